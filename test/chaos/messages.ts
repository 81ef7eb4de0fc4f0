import type { FaultPoint } from "../../packages/testkit/src/fault-points.ts";

/** What happens to a worker, at the n-th fault point that it passes. */
export interface PlannedFault {
  readonly at: number;
  /** The process is killed; or its connection breaks there: what was to be sent is not sent, what was answered is not heard. */
  readonly mode: "kill" | "break";
}

/** What the payment provider offers: keys and a look-up; or a look-up alone, so that whatever is sent twice is done twice. */
export type ProviderOffers = "key_and_look_up" | "look_up";

/** What a working process is told; it answers each with one `Answer`. */
export type Order =
  | {
      readonly do: "open";
      readonly workerId: string;
      readonly databaseUrl: string;
      readonly sandboxUrl: string;
      readonly offers: ProviderOffers;
      readonly fault: PlannedFault | null;
    }
  | { readonly do: "take"; readonly runId: string }
  | { readonly do: "close" };

/** What a working process says. */
export type Said =
  /** Its modules are loaded. */
  | { readonly said: "ready" }
  /** The planned fault happens now; the last word of a process that is killed. */
  | { readonly said: "fault"; readonly point: FaultPoint }
  | Answer;

export type Answer =
  | { readonly said: "done"; readonly passed: readonly string[]; readonly status: string | null }
  | { readonly said: "failed"; readonly error: string };
