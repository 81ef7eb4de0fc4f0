import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** What was left when its last run was removed, or nobody has ever used. */
export interface Leftovers {
  readonly sessionIds: readonly string[];
  /** By their content. */
  readonly artifacts: readonly string[];
  /** Runs of which nobody needs the tombstone any more; their idempotency keys are free with it. */
  readonly tombstones: readonly string[];
}

/** Looks for what `removeLeftovers` would remove, at most `limit` of each kind. Reads only. */
export async function findLeftovers(store: Store, limit: number): Promise<Leftovers> {
  return foundIn(await execute<LeftoversRow>(store, FIND, [store.tenantId, limit]));
}

/**
 * Removes sessions without runs, with their messages and the slots that began them; artifacts to which no run has referred
 * for a day; and tombstones past their time, with the idempotency keys of their runs. At most `limit` of each kind; each is
 * judged on the row as it is locked.
 */
export async function removeLeftovers(store: Store, limit: number): Promise<Leftovers> {
  const values = [store.tenantId, limit];
  const [sessions] = await execute<{ ids: readonly string[] }>(store, REMOVE_SESSIONS, values);
  const [artifacts] = await execute<{ ids: readonly string[] }>(store, REMOVE_ARTIFACTS, values);
  const [tombstones] = await execute<{ ids: readonly string[] }>(store, REMOVE_TOMBSTONES, values);
  return { sessionIds: sessions?.ids ?? [], artifacts: artifacts?.ids ?? [], tombstones: tombstones?.ids ?? [] };
}

type LeftoversRow = { sessions: readonly string[]; artifacts: readonly string[]; tombstones: readonly string[] };

function foundIn([row]: readonly LeftoversRow[]): Leftovers {
  return { sessionIds: row?.sessions ?? [], artifacts: row?.artifacts ?? [], tombstones: row?.tombstones ?? [] };
}

const HAS_RUN = "exists (select from holdpoint.runs r where r.session_id = s.id)";

/** One that nobody has ever used is kept as long as what is kept longest; one that has lost its runs has had its time. */
const SESSIONS = `
  select s.id from holdpoint.sessions s where s.id = any(array(
    (select e.id from holdpoint.sessions e where e.tenant_id = $1::uuid and e.emptied_at is not null
     order by e.emptied_at limit $2::int)
    union all
    (select e.id from holdpoint.retention p join holdpoint.sessions e on e.tenant_id = p.tenant_id
     where p.tenant_id = $1::uuid and not e.used and e.emptied_at is null and e.created_at <= holdpoint.now()
       - greatest(p.succeeded_days, p.partial_days, p.blocked_days, p.failed_days, p.cancelled_days) * interval '1 day'
       and not exists (select from holdpoint.runs r where r.session_id = e.id)
     order by e.created_at limit $2::int)
    limit $2::int))`;

/** Not at once: who has read of it in a history that is gone now may still be about to ask for it. */
const LOOSE_FOR = "interval '1 day'";

const ARTIFACTS = `
  select a.sha256 from holdpoint.artifacts a
  where a.tenant_id = $1::uuid and a.loose_since <= holdpoint.now() - ${LOOSE_FOR}`;

const HAS_USE = "exists (select from holdpoint.artifact_uses u where u.tenant_id = $1::uuid and u.sha256 = a.sha256)";

const TOMBSTONES = `
  select t.run_id from holdpoint.retention p join holdpoint.tombstones t on t.tenant_id = p.tenant_id
  where p.tenant_id = $1::uuid and t.removed_at <= holdpoint.now() - p.tombstone_days * interval '1 day'`;

const FIND = statement(
  "find_leftovers",
  `select
     array(${SESSIONS} and not ${HAS_RUN} order by s.id) as sessions,
     array(${ARTIFACTS} and not ${HAS_USE} order by a.sha256 limit $2::int) as artifacts,
     array(${TOMBSTONES} order by t.removed_at, t.run_id limit $2::int) as tombstones`,
);

/** A run that is submitted meanwhile refers to the session: then its foreign key refuses the statement, and nothing goes. */
const REMOVE_SESSIONS = statement(
  "remove_sessions",
  `
with locked as materialized (
  select f.id from holdpoint.sessions f where f.id = any(array(${SESSIONS})) order by f.id for update skip locked
),
gone as materialized (select s.id from locked s where not ${HAS_RUN}),
used_again as (
  update holdpoint.sessions s set emptied_at = null from locked l
  where s.id = l.id and s.emptied_at is not null and l.id not in (select id from gone)
),
unsaid as (delete from holdpoint.messages where session_id = any(array(select id from gone))),
slots_gone as (delete from holdpoint.schedule_slots where session_id = any(array(select id from gone))),
removed as (delete from holdpoint.sessions where id = any(array(select id from gone)) returning id)
select array(select id from removed order by id) as ids`,
);

const REMOVE_ARTIFACTS = statement(
  "remove_artifacts",
  `
with locked as materialized (
  ${ARTIFACTS} order by a.sha256 limit $2::int for update skip locked
),
gone as materialized (select a.sha256 from locked a where not ${HAS_USE}),
used_again as (
  update holdpoint.artifacts a set loose_since = null from locked l
  where a.tenant_id = $1::uuid and a.sha256 = l.sha256 and l.sha256 not in (select sha256 from gone)
),
removed as (
  delete from holdpoint.artifacts where tenant_id = $1::uuid and sha256 = any(array(select sha256 from gone))
  returning sha256
)
select array(select sha256 from removed order by sha256) as ids`,
);

const REMOVE_TOMBSTONES = statement(
  "remove_tombstones",
  `
with locked as materialized (
  ${TOMBSTONES} order by t.removed_at, t.run_id limit $2::int for update of t skip locked
),
freed as (
  delete from holdpoint.idempotency_keys where run_id = any(array(select run_id from locked))
),
removed as (delete from holdpoint.tombstones where run_id = any(array(select run_id from locked)) returning run_id)
select array(select run_id from removed order by run_id) as ids`,
);
