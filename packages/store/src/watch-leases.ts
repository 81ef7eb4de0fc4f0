import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** Who looks at the leases, and with which grace. */
export interface LeaseWatcher {
  /** How long after its lease a worker is waited for, where it has no grace of its own, in milliseconds. */
  readonly graceMs: number;
  /** Who looks, by name. */
  readonly sweeper: string;
}

/**
 * Notes that somebody looks at the leases, and so that the database answers: a watch without a gap is what makes a lease
 * that is over a proof. It is noted beside the sweeps, so that a pass which takes long is no gap.
 */
export async function watchLeases(store: Store, { graceMs, sweeper }: LeaseWatcher): Promise<void> {
  await execute(store, NOTE, [store.tenantId, graceMs, sweeper]);
}

export const MS = "interval '1 millisecond'";

/**
 * Nobody has looked for twice the grace, which is at least two pauses between two passes: the watch begins anew. So it does
 * after a clock that went back: nobody knows what was seen by it.
 */
export const WATCH = `
     insert into holdpoint.lease_watch as l (tenant_id, since, seen_at, seen_by, grace_ms)
     values ($1::uuid, holdpoint.clock(), holdpoint.clock(), $3, $2::int)
     on conflict (tenant_id) do update set
       since = case when holdpoint.clock() between l.seen_at - $2::int * ${MS} and l.seen_at + 2 * $2::int * ${MS}
         then least(l.since, holdpoint.clock()) else holdpoint.clock() end,
       seen_at = holdpoint.clock(), seen_by = excluded.seen_by, grace_ms = excluded.grace_ms
     returning since`;

const NOTE = statement("watch_leases", WATCH);
