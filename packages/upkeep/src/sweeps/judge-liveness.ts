import { judgeLiveness } from "@holdpoint/core";
import { findSilent, findWaiting, forgetVerdicts, recordVerdicts, type SilentRun } from "@holdpoint/store";
import { goRound } from "../rounds.ts";
import type { Sweep } from "../sweep.ts";

const NAME = "judge-liveness";

/**
 * A verdict for every run that looks silent, also for those that are kept, stored when it changes. It moves nothing: what
 * is lost is moved by the sweeps before this one, each with its own conditions. It comes last in a pass, so that what
 * they have moved is judged as it is now. Those that only wait are judged a part at a time.
 */
export const judgeSilentRuns: Sweep = {
  name: NAME,
  run: ({ store, graceMs, limit }) =>
    goRound({ store, name: NAME }, async (look) => {
      const silent = await findSilent(store, { graceMs, limit });
      const waiting = await look((part) => findWaiting(store, { graceMs, part }));
      await forgetVerdicts(store, waiting.over);
      const records = [...new Map([...silent, ...waiting.found].map((run) => [run.runId, run])).values()].map((run) =>
        recordOf(run, graceMs),
      );
      const changed = await recordVerdicts(store, records);
      // Runs that are only looked at again are no news.
      return { found: changed.length, moved: changed.length, errors: [] };
    }),
};

function recordOf({ runId, version, evidence, shown, nowMs, watchedSinceMs }: SilentRun, graceMs: number) {
  const judged = judgeLiveness(evidence, { nowMs, watch: { sinceMs: watchedSinceMs, graceMs } });
  return { runId, version, evidence: shown, ...judged };
}
