import { findUnclaimed } from "@holdpoint/store";
import { repair, UNCLAIMED_MS } from "../repair.ts";
import type { Sweep } from "../sweep.ts";

/** Runs that are queued and nobody has claimed: the queue may have lost everything, the rows have not. */
export const repairWakeUps: Sweep = {
  name: "repair-wake-ups",
  run: async (context) => repair(context, await findUnclaimed(context.store, UNCLAIMED_MS, context.limit)),
};
