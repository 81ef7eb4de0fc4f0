import { findWedged, loseAndRecover, type Run } from "@holdpoint/store";
import { NOTHING, plannedSweep, wake } from "../sweep.ts";

const NAME = "recover-wedged";

/**
 * Runs whose owner lives but has shown no progress in time: renewal is not progress. The time stands on the run's own row
 * and moves only with its steps and claims, both of which the transition pins: progress that arrives meanwhile wins.
 */
export const recoverWedged = plannedSweep(NAME, async ({ store, publisher, id, limit }) => {
  const wedged = await findWedged(store, limit);
  return {
    actions: wedged.map(({ run }) => ({ kind: NAME, runId: run.id, subject: null })),
    unreadable: [],
    carryOut: async () => {
      if (wedged.length === 0) return NOTHING;
      const losses = wedged.map(({ run }) => ({ run, reason: "wedged" as const, evidence: seenOf(run) }));
      const { moved, errors } = await loseAndRecover(store, losses, { kind: "sweeper", id });
      await wake(publisher, moved);
      return { found: wedged.length, moved: moved.length, errors };
    },
  };
});

function seenOf({ state, currentStep, progressDueAtMs }: Run) {
  const progressDueAt = progressDueAtMs === null ? null : new Date(progressDueAtMs).toISOString();
  return { worker: state.owner, step: currentStep, progressDueAt };
}
