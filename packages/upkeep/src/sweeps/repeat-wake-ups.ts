import { findLookUpsDue, findUnclaimed } from "@holdpoint/store";
import { planRepair, UNCLAIMED_MS } from "../repair.ts";
import { plannedSweep } from "../sweep.ts";

const NAME = "repeat-wake-ups";

/** Queues in which fewer wake-ups wait than there are runs that need one: queued and unclaimed, or due for a look-up. */
export const repeatWakeUps = plannedSweep(NAME, async (context) => {
  const { store, limit } = context;
  const unclaimed = await findUnclaimed(store, UNCLAIMED_MS, limit);
  const lookUps = await findLookUpsDue(store, limit);
  return planRepair(context, NAME, [...unclaimed, ...lookUps]);
});
