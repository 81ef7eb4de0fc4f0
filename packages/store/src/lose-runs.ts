import type { Actor } from "@holdpoint/core";
import type { Store } from "./db.ts";
import type { Run } from "./run.ts";
import { type Moved, sortResults, transition } from "./transition.ts";

/**
 * Takes runs from an owner that is gone and sends them where core's `rest` says, in one statement with both
 * transitions. Each is pinned by version and step_seq: a run that moved meanwhile is found again by the next pass.
 */
export async function loseAndRecover(
  store: Store,
  runs: readonly Run[],
  { actor, reason }: { readonly actor: Actor; readonly reason: string },
): Promise<Moved> {
  const results = await transition(
    store,
    runs.map((run) => ({ run, events: [{ type: "OwnerGone", reason }, { type: "Recovered" }], actor, reason })),
    { skipLocked: true },
  );
  return sortResults(results);
}
