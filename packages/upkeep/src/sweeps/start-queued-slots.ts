import { findStartableSchedules, startQueuedSlot } from "@holdpoint/store";
import { scheduleSweep } from "../sweep.ts";

/** Slots that have waited for an earlier run of their schedule, which has ended. */
export const startQueuedSlots = scheduleSweep("start-queued-slots", {
  find: findStartableSchedules,
  act: ({ store }, { schedule }) => startQueuedSlot(store, schedule),
});
