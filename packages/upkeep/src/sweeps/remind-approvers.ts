import { findRemindersDue, remindApprovers as makeReminders } from "@holdpoint/store";
import { plannedSweep } from "../sweep.ts";

const NAME = "remind-approvers";

/** Requests that nobody has decided by the time their rule says: a reminder is made, once a stage. */
export const remindApprovers = plannedSweep(NAME, async ({ store, limit }) => {
  const due = await findRemindersDue(store, limit);
  return {
    actions: due.map(({ approvalId, runId }) => ({
      kind: NAME,
      runId,
      subject: { kind: "approval", id: approvalId },
    })),
    unreadable: [],
    carryOut: async () => {
      const made = due.length === 0 ? [] : await makeReminders(store, limit);
      return { found: made.length, moved: made.length, errors: [] };
    },
  };
});
