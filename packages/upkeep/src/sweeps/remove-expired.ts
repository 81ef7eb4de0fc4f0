import { findRetentionDue, removeRuns } from "@holdpoint/store";
import { plannedSweep } from "../sweep.ts";

/** Most units of runs that one pass looks at. */
const UNITS_AT_ONCE = 100;

const NAME = "remove-expired";

/** Runs past their retention. What is kept is not looked at again for a day, so that it never hides what is not. */
export const removeExpired = plannedSweep(NAME, async ({ store, limit }) => {
  const due = await findRetentionDue(store, Math.min(limit, UNITS_AT_ONCE));
  return {
    actions: due
      .filter(({ keptBy }) => keptBy === null)
      .flatMap(({ runIds }) => runIds.map((runId) => ({ kind: NAME, runId, subject: null }))),
    unreadable: [],
    carryOut: async () => {
      const { removed, kept, errors } = await removeRuns(store, due);
      const runs = removed.reduce((sum, { runIds }) => sum + runIds.length, 0);
      return { found: due.length, moved: runs, errors, counts: { runs, kept: kept.length } };
    },
  };
});
