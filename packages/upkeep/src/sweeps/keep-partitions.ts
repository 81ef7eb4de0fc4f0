import { keepPartitions, planPartitions, type Store } from "@holdpoint/store";
import { NOTHING, type Plan, type PlannedSweep, type SweepContext } from "../sweep.ts";

const NAME = "keep-partitions";

/** In the passes' number, which grows every ten seconds: how long nothing is looked at after what is well, and what is not. */
const QUIET = 6;
const QUIET_AFTER_STOP = 30;

async function plan({ store }: SweepContext): Promise<Plan> {
  const { make, drop } = await planPartitions(store);
  const names = [...make, ...drop].map(({ name }) => name);
  return {
    actions: names.map((id) => ({ kind: NAME, runId: null, subject: { kind: "partition", id } as const })),
    unreadable: [],
    carryOut: async () => {
      if (names.length === 0) return NOTHING;
      const { made, dropped, stopped } = await keepPartitions(store);
      const counts = { made: made.length, dropped: dropped.length };
      return {
        found: names.length,
        moved: made.length + dropped.length,
        errors: stopped === null ? [] : [stopped],
        counts,
      };
    },
  };
}

interface Patience {
  readonly notBefore: number;
  /** What has been said, so that it is said once. */
  readonly told: string | null;
}

const patience = new WeakMap<Store, Patience>();

/**
 * Partitions of the histories: made a month and more before they are needed, dropped when retention has emptied them. A
 * sweeper looks once a minute. What it may not do, or did not get the lock for, it says once and tries again after minutes:
 * others wait behind whoever waits for a lock.
 */
export const keepHistoryPartitions: PlannedSweep = {
  name: NAME,
  plan,
  async run(context) {
    const { notBefore, told } = patience.get(context.store) ?? { notBefore: 0, told: null };
    if (context.number < notBefore) return NOTHING;
    const swept = await (await plan(context)).carryOut();
    const stop = swept.errors[0]?.message ?? null;
    const quiet = stop === null ? QUIET : QUIET_AFTER_STOP;
    patience.set(context.store, { notBefore: context.number + quiet, told: stop });
    return stop !== null && stop === told ? { ...swept, errors: [] } : swept;
  },
};
