import { findLookUpsDue } from "@holdpoint/store";
import { repair } from "../repair.ts";
import type { Sweep } from "../sweep.ts";

/** Open attempts whose next look-up is due: a worker does it on a claimed run, since only workers have the tools. */
export const wakeLookUps: Sweep = {
  name: "wake-look-ups",
  run: async (context) => repair(context, await findLookUpsDue(context.store, context.limit)),
};
