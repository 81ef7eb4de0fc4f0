import { findMissedByCascade } from "@holdpoint/store";
import { movingRound } from "../sweep.ts";

/** Children of a run that is being stopped, which its cascade has missed. */
export const repairCascade = movingRound("repair-cascade", {
  find: async ({ store, limit, look }) => (await look((part) => findMissedByCascade(store, { limit, part }))).found,
  move: ({ run }) => ({
    run,
    events: [{ type: "CancelRequested", reason: "parent_cancelled" }],
    actor: { kind: "parent", id: run.parent ?? "" },
    reason: "parent_cancelled",
  }),
});
