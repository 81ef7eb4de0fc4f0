import { findReplacedRuns } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/**
 * Runs that have to give way to a later slot of their schedule are asked to stop, in the name of its owner. The slot waits
 * until they have: what they have begun outside is settled first.
 */
export const stopReplaced = movingSweep("stop-replaced", {
  find: ({ store, limit }) => findReplacedRuns(store, limit),
  move: ({ run, owner }) => ({
    run,
    events: [{ type: "CancelRequested", reason: "replaced" }],
    actor: { kind: "requester", id: owner },
    reason: "replaced",
  }),
});
