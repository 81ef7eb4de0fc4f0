import { judgeLiveness } from "@holdpoint/core";
import { findSilent, forgetVerdicts, recordVerdicts } from "@holdpoint/store";
import type { Sweep } from "../sweep.ts";

/**
 * A verdict for every run that looks silent, also for those that are kept, stored when it changes. It moves nothing: what
 * is lost is moved by the sweeps before this one, each with its own conditions. It comes last in a pass, so that what
 * they have moved is judged as it is now.
 */
export const judgeSilentRuns: Sweep = {
  name: "judge-liveness",
  run: async ({ store, graceMs, limit }) => {
    await forgetVerdicts(store, limit);
    const silent = await findSilent(store, { graceMs, limit });
    const records = silent.map(({ runId, version, evidence, shown, nowMs, watchedSinceMs }) => ({
      runId,
      version,
      evidence: shown,
      ...judgeLiveness(evidence, { nowMs, watch: { sinceMs: watchedSinceMs, graceMs } }),
    }));
    const changed = await recordVerdicts(store, records);
    // Runs that are only looked at again are no news.
    return { found: changed.length, moved: changed.length, errors: [] };
  },
};
