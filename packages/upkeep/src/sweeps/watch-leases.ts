import { watchLeases as noteWatch } from "@holdpoint/store";
import { NOTHING, type Sweep } from "../sweep.ts";

/** Notes that the leases are watched: beside the passes, so that one which takes long is no gap of the watch. */
export const watchLeases: Sweep = {
  name: "watch-leases",
  run: async ({ store, id, graceMs }) => {
    await noteWatch(store, { graceMs, sweeper: id });
    return NOTHING;
  },
};
