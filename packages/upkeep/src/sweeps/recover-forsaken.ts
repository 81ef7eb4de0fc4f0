import { lostReasonOf } from "@holdpoint/core";
import { findForsaken, loseAndRecover, markGone } from "@holdpoint/store";
import { NOTHING, type Plan, type PlannedSweep, type SweepContext, wake } from "../sweep.ts";

const NAME = "recover-forsaken";

/**
 * Workers whose lease and grace are over are gone; their runs are lost, and go on with somebody else. Who is gone is judged
 * by whoever watches the leases without a gap, so a plan, which is one look, only finds the runs of those that are.
 */
export const recoverForsaken: PlannedSweep = {
  name: NAME,
  plan,
  run: async (context) => {
    const { heldBack } = await markGone(context.store, {
      graceMs: context.graceMs,
      limit: context.limit,
      sweeper: context.id,
    });
    const { carryOut } = await plan(context);
    return { ...(await carryOut()), heldBack };
  },
};

async function plan({ store, publisher, id, limit }: SweepContext): Promise<Plan> {
  const forsaken = await findForsaken(store, limit);
  return {
    actions: forsaken.map(({ run }) => ({ kind: NAME, runId: run.id, subject: null })),
    unreadable: [],
    carryOut: async () => {
      if (forsaken.length === 0) return NOTHING;
      const losses = forsaken.map(({ run, goneReason, owner: { id: worker, ...owner } }) => ({
        run,
        reason: lostReasonOf(goneReason),
        evidence: { worker, ...owner },
      }));
      const { moved, errors } = await loseAndRecover(store, losses, { kind: "sweeper", id });
      await wake(publisher, moved);
      return { found: forsaken.length, moved: moved.length, errors };
    },
  };
}
