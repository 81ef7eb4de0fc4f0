import { findMissedByCascade } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Children of a run that is being stopped, which its cascade has missed: few runs are being stopped, and none may wait. */
export const repairCascade = movingSweep("repair-cascade", {
  find: ({ store, limit }) => findMissedByCascade(store, limit),
  move: ({ run }) => ({
    run,
    events: [{ type: "CancelRequested", reason: "parent_cancelled" }],
    actor: { kind: "parent", id: run.parent ?? "" },
    reason: "parent_cancelled",
  }),
});
