import type { Delays } from "./delays.ts";
import type { Faults } from "./faults.ts";
import type { HeldReply, Holds } from "./holds.ts";
import type { Journal } from "./journal.ts";
import type { RequestCounts } from "./request-counts.ts";
import type { RequestLog } from "./request-log.ts";
import type { Answer } from "./stripe-error.ts";

/** One request, read completely. */
export interface SandboxRequest {
  readonly method: string;
  readonly path: string;
  /** The id that the path names, or "". */
  readonly id: string;
  readonly query: string;
  readonly body: string;
  readonly idempotencyKey: string | null;
  readonly requestId: string;
  /** The sandbox's own clock. */
  readonly nowMs: number;
}

/** What a handler decides; with `hold` the reply waits until it is released. */
export interface Reply extends Answer {
  readonly headers?: Readonly<Record<string, string>>;
  readonly hold?: HeldReply;
}

/** What the handlers work on. */
export interface SandboxState {
  readonly journal: Journal;
  readonly holds: Holds;
  readonly delays: Delays;
  readonly faults: Faults;
  readonly counts: RequestCounts;
  readonly log: RequestLog;
  /** Payments whose next refund is accepted as pending. */
  readonly pendingNext: Set<string>;
  readonly newId: (prefix: string) => string;
}

export type Handler = (state: SandboxState, request: SandboxRequest) => Reply;
