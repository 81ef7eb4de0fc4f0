import { remindApprovers as makeReminders } from "@holdpoint/store";
import type { Sweep } from "../sweep.ts";

/** Requests that nobody has decided by the time their rule says: a reminder is made, once a stage. */
export const remindApprovers: Sweep = {
  name: "remind-approvers",
  run: async ({ store, limit }) => {
    const made = await makeReminders(store, limit);
    return { found: made.length, moved: made.length, errors: [] };
  },
};
