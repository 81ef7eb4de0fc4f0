import { type Client, createClient } from "@holdpoint/client";
import type { Publisher } from "@holdpoint/queue";
import { TOKEN } from "../development-tokens.ts";
import type { Fleet } from "../fleet.ts";
import { type Crew, openCrew } from "./crew.ts";
import type { Narrator } from "./narrator.ts";
import { openSandboxAdmin, type SandboxAdmin } from "./sandbox-admin.ts";

/** Everything that the story plays with: real processes, and what a director may do with them from outside. */
export interface Stage {
  readonly fleet: Fleet;
  /** Each speaks to the api under a token of their own. */
  readonly people: Readonly<Record<keyof typeof TOKEN, Client>>;
  readonly crew: Crew;
  readonly sandbox: SandboxAdmin;
  /** Only asked how many wake-ups wait. */
  readonly queue: Publisher;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
}

export const AGENT = { name: "refund-desk", version: "1" } as const;
export const WORKFLOW = { name: "refund-case", version: "1" } as const;

/** An order of the shop's seed, and its customer. */
export interface Order {
  readonly id: string;
  readonly paymentIntent: string;
  readonly email: string;
}

/** Above the limit from which a manager decides. */
export const ORDER: Order = { id: "ord_4411", paymentIntent: "pi_seed4411", email: "jonas.nowak@example.com" };
/** Above the limit from which two of finance decide. */
export const LARGE_ORDER: Order = {
  id: "ord_4447",
  paymentIntent: "pi_seed4447",
  email: "nadia.lindqvist@example.com",
};
/** For a manager as well; she changes the amount. */
export const EDITED_ORDER: Order = {
  id: "ord_4423",
  paymentIntent: "pi_seed4423",
  email: "tomasz.tanaka@example.com",
};

/** Below every limit: it goes through a workflow. */
export const CASE_ORDER: Order = { id: "ord_4418", paymentIntent: "pi_seed4418", email: "oskar.nowak@example.com" };

export function setStage(parts: Pick<Stage, "fleet" | "queue" | "narrator" | "signal">): Stage {
  const { fleet, signal } = parts;
  const speak = (token: string): Client => createClient({ baseUrl: fleet.apiUrl, token });
  const { alice, mona, max, fay, fred, olga } = TOKEN;
  const people = {
    alice: speak(alice),
    mona: speak(mona),
    max: speak(max),
    fay: speak(fay),
    fred: speak(fred),
    olga: speak(olga),
  };
  return {
    ...parts,
    people,
    crew: openCrew(people.olga, fleet.workers),
    sandbox: openSandboxAdmin(fleet.sandboxUrl, signal),
  };
}
