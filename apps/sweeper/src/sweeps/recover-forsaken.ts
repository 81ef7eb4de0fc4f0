import { findForsaken, loseAndRecover, markGone } from "@holdpoint/store";
import { NOTHING, type Sweep, wake } from "../sweep.ts";

/** Workers whose lease and grace are over are gone; their runs are lost, and go on with somebody else. */
export const recoverForsaken: Sweep = {
  name: "recover-forsaken",
  run: async ({ store, publisher, id, graceMs, limit }) => {
    await markGone(store, graceMs, limit);
    const forsaken = await findForsaken(store, limit);
    if (forsaken.length === 0) return NOTHING;
    const runs = forsaken.map(({ run }) => run);
    const { moved, errors } = await loseAndRecover(store, runs, {
      actor: { kind: "sweeper", id },
      reason: "owner_gone",
    });
    await wake(publisher, moved);
    return { found: forsaken.length, moved: moved.length, errors };
  },
};
