import type { Publisher } from "@holdpoint/queue";
import type { Store } from "@holdpoint/store";
import type { FastifyBaseLogger } from "fastify";
import type { CallbackSecret } from "./callback-signature.ts";
import type { Token } from "./tokens.ts";
import type { WakeUps } from "./wake-ups.ts";

/** What an api is built from. It closes none of it. */
export interface ApiDeps {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly tokens: readonly Token[];
  /** Whose signed reports are taken; nobody's unless given. */
  readonly callbackSecrets?: readonly CallbackSecret[];
  readonly log: FastifyBaseLogger;
}

/** What handlers work with. */
export interface HandlerDeps {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly wakeUps: WakeUps;
  readonly log: FastifyBaseLogger;
}
