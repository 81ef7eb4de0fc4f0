import { findPast, removePast } from "@holdpoint/store";
import { type Action, plannedSweep, type Subject } from "../sweep.ts";

/** Most of each kind that one pass removes. */
const AT_ONCE = 100;

const NAME = "remove-past";

/** Slots without a run, and memories that have expired or were deleted, past their time. */
export const removePastRecords = plannedSweep(NAME, async ({ store, limit }) => {
  const atOnce = Math.min(limit, AT_ONCE);
  const { slots, memoryIds } = await findPast(store, atOnce);
  const action = (kind: Subject["kind"], id: string): Action => ({ kind: NAME, runId: null, subject: { kind, id } });
  const actions = [...slots.map((id) => action("slot", id)), ...memoryIds.map((id) => action("memory", id))];
  return {
    actions,
    unreadable: [],
    carryOut: async () => {
      const gone = await removePast(store, atOnce);
      const counts = { slots: gone.slots.length, memories: gone.memoryIds.length };
      return { found: actions.length, moved: counts.slots + counts.memories, errors: [], counts };
    },
  };
});
