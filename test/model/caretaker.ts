// The sweeper and the supervisors: they find who is gone, and take the runs from them.

import type { Publisher } from "@holdpoint/queue";
import { findOwnedBy, loseAndRecover, markExited, renewLease } from "@holdpoint/store";
import { MOVING, type Sweep, WATCHING } from "@holdpoint/upkeep";
import type { Ledger } from "./ledger.ts";
import type { MortalStore } from "./mortal-store.ts";
import { expectFailure, LEASE_MS } from "./worker.ts";

export interface Caretaker {
  /** One pass of the sweeps that move runs. */
  sweep(): Promise<void>;
  /** A supervisor has seen the process end: it takes its runs. */
  buryWorker(workerId: string): Promise<void>;
  /** The worker's lease is about to run out; the next sweep after the clock has moved finds it gone. */
  shortenLease(workerId: string): Promise<void>;
  keepLease(workerId: string): Promise<void>;
  /** Somebody looks at the leases. */
  watch(): Promise<void>;
}

export const GRACE_MS = 10_000;
const LIMIT = 1_000;

/** By name, so that one which is called otherwise now is not left out unseen. */
const SWEEPS = ["recover-forsaken", "pass-deadlines", "retry-due", "settle-cancelling"].map((name): Sweep => {
  const found = MOVING.find((sweep) => sweep.name === name);
  if (found === undefined) throw new Error(`there is no sweep ${name}`);
  return found;
});

/** Wake-ups carry no state: these sequences need none, since their workers try whatever runs they know of. */
const NO_QUEUE: Publisher = {
  publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Opens the caretaker of a sequence. */
export function openCaretaker({
  mortal,
  ledger,
}: {
  readonly mortal: MortalStore;
  readonly ledger: Ledger;
}): Caretaker {
  const { store } = mortal;
  const context = { store, publisher: NO_QUEUE, id: "sweeper-1", graceMs: GRACE_MS, limit: LIMIT, number: 1 };
  const attempt = (work: () => Promise<unknown>): Promise<void> =>
    work().then(
      () => undefined,
      (error: unknown) => expectFailure(ledger, error),
    );
  const sweep = async (each: Sweep): Promise<void> => {
    for (const error of (await each.run(context)).errors) expectFailure(ledger, error);
  };
  const lease = (workerId: string, leaseMs: number) => attempt(() => renewLease(store, { workerId, leaseMs }));
  return {
    async sweep() {
      for (const each of SWEEPS) await attempt(() => sweep(each));
    },
    buryWorker: (workerId) =>
      attempt(async () => {
        await markExited(store, workerId);
        const owned = await findOwnedBy(store, workerId, LIMIT);
        const losses = owned.map(({ run }) => ({ run, reason: "process_exited" as const }));
        const { errors } = await loseAndRecover(store, losses, { kind: "supervisor", id: "supervisor-1" });
        for (const error of errors) expectFailure(ledger, error);
      }),
    shortenLease: (workerId) => lease(workerId, 1),
    keepLease: (workerId) => lease(workerId, LEASE_MS),
    watch: () => attempt(() => sweep(WATCHING)),
  };
}
