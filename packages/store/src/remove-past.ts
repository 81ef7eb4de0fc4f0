import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** Records of schedules and memories that have had their time. */
export interface PastRecords {
  /** Each as `<schedule's id>/<slot>`. */
  readonly slots: readonly string[];
  readonly memoryIds: readonly string[];
}

/** Looks for what `removePast` would remove, at most `limit` of each kind. Reads only. */
export async function findPast(store: Store, limit: number): Promise<PastRecords> {
  return recordsIn(await execute<PastRow>(store, FIND, [store.tenantId, limit]));
}

/**
 * Removes slots without a run, and memories that have expired or were deleted, as long ago as the tenant keeps what it
 * keeps longest; a slot with a run goes with its session. A memory stays while a run has not ended that was told it. At most
 * `limit` of each kind.
 */
export async function removePast(store: Store, limit: number): Promise<PastRecords> {
  return recordsIn(await execute<PastRow>(store, REMOVE, [store.tenantId, limit]));
}

type PastRow = { slots: readonly string[]; memories: readonly string[] };

function recordsIn([row]: readonly PastRow[]): PastRecords {
  return { slots: row?.slots ?? [], memoryIds: row?.memories ?? [] };
}

// Neither becomes untrue again: slots of the past do not change, and no run is created in the past.
const PAST = `
kept_since as materialized (
  select holdpoint.now() - greatest(p.succeeded_days, p.partial_days, p.blocked_days, p.failed_days, p.cancelled_days)
    * interval '1 day' as at
  from holdpoint.retention p where p.tenant_id = $1::uuid
),
slots as materialized (
  select k.schedule_id, k.slot_at, k.manual from holdpoint.schedule_slots k cross join kept_since
  where k.tenant_id = $1::uuid and k.run_id is null and k.state <> 'queued' and k.at <= kept_since.at
  order by k.at limit $2::int
),
memories as materialized (
  select m.id from holdpoint.memories m cross join kept_since
  where m.tenant_id = $1::uuid and least(m.deleted_at, m.expires_at) <= kept_since.at and not exists (
    select from holdpoint.runs r where r.tenant_id = m.tenant_id and r.ended_at is null and r.requester = m.subject
      and r.created_at < least(m.deleted_at, m.expires_at) and r.created_at >= m.created_at)
  order by least(m.deleted_at, m.expires_at), m.id limit $2::int
)`;

const SLOT = `schedule_id || '/' || to_char(slot_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const FIND = statement(
  "find_past",
  `with ${PAST}
select array(select ${SLOT} from slots order by 1) as slots, array(select id from memories order by id) as memories`,
);

const REMOVE = statement(
  "remove_past",
  `with ${PAST},
slots_gone as (
  delete from holdpoint.schedule_slots k using slots s
  where k.schedule_id = s.schedule_id and k.slot_at = s.slot_at and k.manual = s.manual
  returning k.schedule_id, k.slot_at
),
memories_gone as (delete from holdpoint.memories where id = any(array(select id from memories)) returning id)
select array(select ${SLOT} from slots_gone order by 1) as slots,
  array(select id from memories_gone order by id) as memories`,
);
