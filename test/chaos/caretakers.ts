// Those who move runs besides workers: the supervisor that sees a process end, and the sweeper that watches the clock.
// Both as the product has them; the queue is a list.

import { findOwnedBy, loseAndRecover, markExited, type Store } from "../../packages/store/src/index.ts";
import { moveClock } from "../../packages/testkit/src/move-clock.ts";
import { MOVING, WAKING } from "../../packages/upkeep/src/index.ts";
import type { Stage } from "./stage.ts";

/** How long after its lease a worker is gone, in milliseconds. */
const GRACE_MS = 1_000;

/** A process has ended: its runs are given back. Gives those that a worker can go on with. */
export async function superviseEnd(store: Store, workerId: string): Promise<readonly string[]> {
  await markExited(store, workerId);
  const owned = await findOwnedBy(store, workerId, 10);
  const losses = owned.map(({ run }) => ({ run, reason: "process_exited" as const }));
  const { moved, errors } = await loseAndRecover(store, losses, { kind: "supervisor", id: "supervisor-chaos" });
  if (errors.length > 0) throw new AggregateError(errors, "the runs were not given back");
  return moved.flatMap(({ id, state }) =>
    state.status === "queued" || state.status === "outcome_unknown" ? [id] : [],
  );
}

/** One pass over all sweeps; gives the runs that it wakes a worker for. */
export async function sweepOnce(store: Store, number: number): Promise<readonly string[]> {
  const woken: string[] = [];
  const publisher = {
    publish: async (wakeUps: readonly { readonly runId: string }[]) => {
      woken.push(...wakeUps.map(({ runId }) => runId));
      return { published: wakeUps.length, failed: 0, error: null };
    },
    waiting: async () => 0,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const context = { store, publisher, id: "sweeper-chaos", graceMs: GRACE_MS, limit: 10, number };
  for (const sweep of [...MOVING, ...WAKING]) {
    const { errors } = await sweep.run(context);
    if (errors.length > 0) throw new AggregateError(errors, `the sweep ${sweep.name} failed`);
  }
  return woken;
}

/** Moves the clock to when the sweeper has something to do for the run, which waits for nobody. */
export async function passTime({ store, url, runId }: Stage): Promise<void> {
  const { rows } = await store.pool.query<{ status: string; offset_ms: number | null }>(DUE, [runId, GRACE_MS + 1]);
  const [row] = rows;
  if (row === undefined || row.offset_ms === null) throw new Error(`nobody moves the run, which is ${row?.status}`);
  await moveClock(url, Math.ceil(row.offset_ms) + 1);
  // The sweeper has looked all the time, so that no lease is prolonged for a gap of its own.
  await store.pool.query(WATCHED);
}

/** What the sweeper waits for: a look-up, a retry, a wake-up that may be gone, a timer, the end of an owner's lease. */
const DUE = `
  select r.status, extract(epoch from least(r.next_reconcile_at, r.retry_at, r.queued_since + interval '2 seconds',
    case r.status when 'waiting_dependency' then r.wait_deadline end, w.lease_until + $2::float8 * interval '1 millisecond') - clock_timestamp())::float8 * 1000 as offset_ms
  from holdpoint.runs r left join holdpoint.workers w on w.id = r.owner where r.id = $1`;

const WATCHED = `insert into holdpoint.lease_watch (tenant_id, since, seen_at, seen_by, grace_ms)
  select id, 'epoch', holdpoint.clock(), 'sweeper-chaos', 0 from holdpoint.tenants
  on conflict (tenant_id) do update set since = excluded.since, seen_at = excluded.seen_at`;
