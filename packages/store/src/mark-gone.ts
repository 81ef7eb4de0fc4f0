import { SECOND_LEASE_LIMIT_MS } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type LeaseWatcher, MS, WATCH } from "./watch-leases.ts";

/** What one look at the leases has come to. */
export interface GoneWorkers {
  /** Those that are gone since this call, by id. */
  readonly gone: readonly string[];
  /** Since when the leases are watched without a gap, in milliseconds since the epoch. */
  readonly watchedSinceMs: number;
  /** Workers whose lease and grace are over and that are waited for all the same, by the rule that says so. */
  readonly heldBack: { readonly own_gap: number; readonly blast_radius: number };
}

/** What a look at the leases goes by. */
export interface GoneJudge extends LeaseWatcher {
  readonly limit: number;
}

/**
 * Declares the workers gone whose lease, and the grace after it, are over. A renewal that arrives meanwhile wins: the
 * condition stands on the row that is updated. What core's `goneAtMs` foretells is what this does, but for two cases in
 * which the fault may be the watcher's:
 *
 * - Nobody has looked for twice the grace (all sweepers were away, or the database was, or its clock jumped): the
 *   leases that ran out meanwhile prove nothing, so everybody has one whole lease from now on to renew.
 * - At least three, and more than half of those of a kind, would go at once: they get one lease more.
 *
 * Either is an hour at the most, so that neither keeps for ever what is heard of once in days.
 *
 * The watch is a row, so that a sweeper which was never away covers for one that has just started, and the other way.
 */
export async function markGone(store: Store, { graceMs, limit, sweeper }: GoneJudge): Promise<GoneWorkers> {
  const [row] = await execute<GoneRow>(store, EXPIRE, [store.tenantId, graceMs, sweeper, limit]);
  if (row === undefined) throw new Error("the statement that watches leases gives one row");
  return {
    gone: row.gone,
    watchedSinceMs: row.since.getTime(),
    heldBack: { own_gap: row.by_gap, blast_radius: row.by_crowd },
  };
}

type GoneRow = { gone: readonly string[]; since: Date; by_gap: number; by_crowd: number };

const secondLease = (worker: string): string => `least(${worker}.lease_ms, ${SECOND_LEASE_LIMIT_MS})`;

/** A lease counts from the start of an unbroken watch at the earliest. */
const GONE_AT = `greatest(w.lease_until, watch.since + ${secondLease("w")} * ${MS}) + coalesce(w.grace_ms, $2::int) * ${MS}`;

const EXPIRE = statement(
  "workers_expired",
  `with watch as (${WATCH}
   ),
   silent as materialized (
     select w.id, w.kind, w.lease_ms, ${GONE_AT} as gone_at,
       w.lease_until + coalesce(w.grace_ms, $2::int) * ${MS} < holdpoint.now() as over
     from holdpoint.workers w cross join watch
     where w.tenant_id = $1::uuid and w.gone_at is null and w.lease_until < holdpoint.now()
   ),
   crowds as materialized (
     select s.kind from silent s where s.gone_at < holdpoint.now()
     group by s.kind
     having count(*) >= 3 and count(*) * 2 >
       (select count(*) from holdpoint.workers w where w.tenant_id = $1::uuid and w.gone_at is null and w.kind = s.kind)
   ),
   judged as materialized (
     select s.*, case when c.kind is null then 0 else greatest(${secondLease("s")}, 0) end * ${MS} as more
     from silent s left join crowds c on c.kind = s.kind
   ),
   due as materialized (
     select w.id, j.more from holdpoint.workers w join judged j on j.id = w.id
     where w.gone_at is null and j.gone_at + j.more < holdpoint.now()
     order by w.id limit $4::int for update of w skip locked
   ),
   marked as (
     update holdpoint.workers w set gone_at = holdpoint.clock(),
       gone_reason = case w.kind when 'task' then 'heartbeat_missed' else 'lease_expired' end
     from due cross join watch
     where w.id = due.id and w.gone_at is null and ${GONE_AT} + due.more < holdpoint.clock()
     returning w.id
   )
   select (select coalesce(jsonb_agg(m.id order by m.id), '[]') from marked m) as gone, watch.since,
     (select count(*)::int from judged j where j.over and j.gone_at >= holdpoint.now()) as by_gap,
     (select count(*)::int from judged j where j.gone_at < holdpoint.now() and j.gone_at + j.more >= holdpoint.now()) as by_crowd
   from watch`,
);
