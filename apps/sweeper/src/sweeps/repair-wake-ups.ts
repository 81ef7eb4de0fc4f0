import { findUnclaimed } from "@holdpoint/store";
import { repair, type Sweep } from "../sweep.ts";

/** A run that is queued for longer than this may have no wake-up any more, in milliseconds. */
const UNCLAIMED_MS = 2_000;

/** Runs that are queued and nobody has claimed: the queue may have lost everything, the rows have not. */
export const repairWakeUps: Sweep = {
  name: "repair-wake-ups",
  run: async (context) => repair(context, await findUnclaimed(context.store, UNCLAIMED_MS, context.limit)),
};
