import { type Actor, type JsonObject, LOST_REASONS, type LostReason, type RunEvent } from "@holdpoint/core";
import type { Store } from "./db.ts";
import { asError } from "./execute.ts";
import type { Run } from "./run.ts";
import { type Moved, sortResults, transition } from "./transition.ts";
import { lostRecords, recordVerdicts } from "./verdicts.ts";

/** A run whose owner is gone, why, and what was seen of it: names and instants, for whoever asks later. */
export interface Loss {
  readonly run: Run;
  readonly reason: LostReason;
  readonly evidence?: JsonObject;
}

/**
 * A loss that does not recover at once is only that: whoever has a task elsewhere may still act, so nobody else gets it
 * before that one is heard of again, or a person decides.
 */
function lossOf(reason: LostReason): readonly RunEvent[] {
  const gone: RunEvent = { type: "OwnerGone", reason };
  return LOST_REASONS[reason].recovery === "at_once" ? [gone, { type: "Recovered" }] : [gone];
}

/**
 * Takes runs from an owner that is gone and sends them where core's `rest` says, in one statement with both
 * transitions. Each is pinned by version and step_seq: a run that moved meanwhile is found again by the next pass. What
 * was judged is stored after it: a verdict that could not be written keeps no run lost.
 */
export async function loseAndRecover(store: Store, losses: readonly Loss[], actor: Actor): Promise<Moved> {
  const results = await transition(
    store,
    losses.map(({ run, reason }) => ({
      run,
      events: lossOf(reason),
      actor,
      reason,
    })),
    { skipLocked: true },
  );
  const { moved, errors } = sortResults(results);
  const unwritten = await recordVerdicts(store, lostRecords(moved, losses)).then(
    () => [],
    (error: unknown) => [asError(error)],
  );
  return { moved, errors: [...errors, ...unwritten] };
}
