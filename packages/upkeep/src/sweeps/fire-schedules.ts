import { findDueSchedules, fireSlot } from "@holdpoint/store";
import { dueSlots } from "../due-slots.ts";
import { scheduleSweep } from "../sweep.ts";

/** Slots that are due: each gets its row, and a run where none of the schedule's is in its way. */
export const fireSchedules = scheduleSweep("fire-schedules", {
  find: findDueSchedules,
  act: async ({ store }, { schedule, nowMs }) => {
    const due = dueSlots(schedule, nowMs);
    if (due === null) return null;
    const fired = await fireSlot(store, schedule, due);
    if (fired.result === "started") return fired.run;
    return fired.result === "conflict" ? null : "moved";
  },
});
