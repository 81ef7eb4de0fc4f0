import { type Store, statement } from "./db.ts";
import { execute, executeBatch } from "./execute.ts";
import { DUE, keptBy, POLICY, UNITS } from "./expired-runs.ts";

/** Runs that go together: a line of runs, and the trees of its runs. */
export interface RunUnit {
  /** The run by which it was found. */
  readonly runId: string;
  /** All of them, that one included. */
  readonly runIds: readonly string[];
}

/** A unit that retention has to look at. */
export interface DueUnit extends RunUnit {
  /** What keeps it, as far as it was seen; null: nothing does. */
  readonly keptBy: "live" | "open_work" | "pending_delivery" | "unsettled_effect" | "within_retention" | null;
}

/** What became of units that retention has looked at. */
export interface RemovedRuns {
  readonly removed: readonly RunUnit[];
  /** Of each unit that something keeps, the run by which it was found: it is looked at again a day later. */
  readonly kept: readonly string[];
  /** What kept single units from being judged; they are found again. */
  readonly errors: readonly Error[];
}

/**
 * Units that retention has to look at, at most `limit`: those past the time of their first run's own kind, what ended
 * first before the others; and those that something has kept, a day after. Reads only: `removeRuns` judges each anew.
 */
export async function findRetentionDue(store: Store, limit: number): Promise<readonly DueUnit[]> {
  const rows = await execute<UnitRow>(store, FIND, [store.tenantId, limit]);
  return rows.map(({ root, ids, kept_by }) => ({ runId: root, runIds: ids, keptBy: kept_by }));
}

/** Most runs that one statement removes, unless one unit alone has more. */
const RUNS_AT_ONCE = 100;

/**
 * Removes these units, and all of their history: what is left of each run is a tombstone. A unit goes as a whole or not
 * at all, judged on its rows as they are locked, whatever was seen before; what somebody else has locked, or has moved
 * since, stays and is found again.
 */
export async function removeRuns(store: Store, units: readonly RunUnit[]): Promise<RemovedRuns> {
  const results: (RemovedRow | Error)[] = [];
  for (const batch of batchesOf(units)) {
    // A run that is submitted to do one of these again fails the statement: its unit stays, the others go.
    const outcomes = await executeBatch<RunUnit, RemovedRow & { ord: number }>(batch, async (items) => {
      const roots = items.map(({ item }) => item.runId);
      const rows = await execute<RemovedRow>(store, REMOVE, [store.tenantId, roots]);
      const gone = rows.flatMap(({ ids }) => ids ?? []);
      if (gone.length > 0) await execute(store, REMOVE_CRUMBS, [store.tenantId, gone]);
      return rows.map((row) => ({ ...row, ord: items[roots.indexOf(row.root)]?.ord ?? -1 }));
    });
    results.push(...outcomes.flat());
  }
  const judged = results.flatMap((each) => (each instanceof Error ? [] : [each]));
  return {
    removed: judged.flatMap(({ root, ids }) => (ids === null ? [] : [{ runId: root, runIds: ids }])),
    kept: judged.flatMap(({ root, ids }) => (ids === null ? [root] : [])),
    errors: results.filter((each) => each instanceof Error),
  };
}

type UnitRow = { root: string; ids: readonly string[]; kept_by: DueUnit["keptBy"] };
type RemovedRow = { root: string; ids: readonly string[] | null };

function batchesOf(units: readonly RunUnit[]): readonly (readonly RunUnit[])[] {
  const batches: RunUnit[][] = [];
  let runs = RUNS_AT_ONCE;
  for (const unit of units) {
    if (runs + unit.runIds.length > RUNS_AT_ONCE) {
      batches.push([]);
      runs = 0;
    }
    batches.at(-1)?.push(unit);
    runs += unit.runIds.length;
  }
  return batches;
}

/** Of the roots of one unit the first stands for it. */
const FIND = statement(
  "find_expired",
  `
with recursive ${POLICY},
${DUE},
${UNITS},
member as materialized (
  select r.id, r.ended_at, ${keptBy("r")} as kept_by from holdpoint.runs r cross join policy p
  where r.tenant_id = $1::uuid and r.id = any(array(select id from unit))
),
judged as materialized (
  select u.root, array_agg(u.id order by u.id) as ids, min(m.kept_by) as kept_by, min(m.ended_at) as ended_at
  from unit u join member m on m.id = u.id
  group by u.root
)
select j.root, j.ids, j.kept_by from (
  select distinct on (j.ids) j.* from judged j order by j.ids, j.root) j
order by j.ended_at, j.root`,
);

/**
 * What is known of a run beside its row; decisions go with the approvals that they are about. Not the slot that has started
 * it: whom that names approves nothing in this conversation, so it goes with the session.
 */
const HISTORY = [
  "transitions",
  "steps",
  "calls",
  "attempts",
  "approvals",
  "inbox",
  "reminders",
  "verdicts",
  "artifact_uses",
  "tasks",
  "deliveries",
  "delivery_changes",
] as const;
/** What is stored about a run without a lock on its row, even when it has ended. */
const CRUMBS = ["callbacks", "refusals"] as const;

/** By an array, for which the planner takes the index however many it expects. */
const deletes = (tables: readonly string[]): string =>
  tables
    .map((table) => `${table}_gone as (delete from holdpoint.${table} where run_id = any(array(select id from gone)))`)
    .join(",\n");

/** The last attempt of each effect, which on-call may still be asked about. */
const EFFECTS = `(select coalesce(jsonb_agg(jsonb_build_object('operationId', c.operation_id, 'externalRef', a.external_ref,
    'tool', c.tool, 'service', c.service, 'outcome', a.outcome, 'at', a.started_at, 'failedAt', null) order by a.started_at, c.id), '[]')
  from holdpoint.calls c
  cross join lateral (select * from holdpoint.attempts o where o.run_id = c.run_id and o.call_id = c.id
    order by o.number desc limit 1) a
  where c.run_id = l.id and c.effect->>'kind' = 'effect')`;

const REMOVE = statement(
  "remove_runs",
  `
with recursive ${POLICY},
due as materialized (select id from unnest($2::uuid[]) as d(id)),
${UNITS},
-- What the snapshot saw. A row that has moved since may have a history that this statement cannot see.
seen as materialized (
  select r.id, r.version, r.step_seq from holdpoint.runs r
  where r.tenant_id = $1::uuid and r.id = any(array(select id from unit))
),
locked as materialized (
  select r.* from holdpoint.runs r
  where r.tenant_id = $1::uuid and r.id = any(array(select id from seen))
  order by r.id for update of r skip locked
),
member as materialized (
  select l.id, ${keptBy("l")} as kept_by from locked l join seen s on s.id = l.id cross join policy p
  where l.version = s.version and l.step_seq = s.step_seq
),
judged as materialized (
  select u.root, array_agg(u.id order by u.id) as ids, bool_and(m.id is not null) as is_read,
    bool_and(m.id is not null and m.kept_by is null) as goes
  from unit u left join member m on m.id = u.id group by u.root
),
gone as materialized (
  select l.id, l.session_id from locked l
  where exists (select from judged j where j.goes and l.id = any(j.ids))
),
buried as (
  insert into holdpoint.tombstones (tenant_id, run_id, line, parent, agent_name, agent_version, requester, status,
    outcome, ended_at, removed_at, effects)
  select l.tenant_id, l.id, l.line, l.parent, l.agent_name, l.agent_version, l.requester, l.status,
    l.outcome ->> 'kind', l.ended_at, holdpoint.clock(), ${EFFECTS}
  from locked l join gone g on g.id = l.id
),
-- Reads the judgement, so that a unit is either postponed or gone.
postponed as (
  update holdpoint.runs r set kept_until = holdpoint.clock() + interval '1 day'
  from judged j where r.id = j.root and j.is_read and not j.goes and r.ended_at is not null
),
session_locked as materialized (
  select s.id from holdpoint.sessions s where s.id = any(array(select session_id from gone)) order by s.id for update
),
-- The conversation stays as long as a run of it does.
unsaid as (
  update holdpoint.messages m set run_id = null from gone g where m.session_id = g.session_id and m.run_id = g.id
),
session_emptied as (
  update holdpoint.sessions s set emptied_at = holdpoint.clock() from session_locked l
  where s.id = l.id and not exists (select from holdpoint.runs r where r.session_id = s.id
    and r.id not in (select id from gone))
),
artifact_locked as materialized (
  select a.sha256 from holdpoint.artifacts a
  where a.tenant_id = $1::uuid and a.loose_since is null
    and a.sha256 = any(array(select u.sha256 from holdpoint.artifact_uses u where u.run_id = any(array(select id from gone))))
    and not exists (select from holdpoint.artifact_uses o where o.tenant_id = $1::uuid and o.sha256 = a.sha256
      and o.run_id not in (select id from gone))
  order by a.sha256 for update
),
artifact_loosened as (
  update holdpoint.artifacts a set loose_since = holdpoint.clock() from artifact_locked l
  where a.tenant_id = $1::uuid and a.sha256 = l.sha256
),
decisions_gone as (
  delete from holdpoint.decisions d using holdpoint.approvals a
  where a.run_id = any(array(select id from gone)) and d.approval_id = a.id
),
${deletes([...HISTORY, ...CRUMBS])},
runs_gone as (delete from holdpoint.runs where id = any(array(select id from gone)))
select j.root, case when j.goes then j.ids end as ids from judged j where j.is_read order by j.root`,
);

/** What came in about a run between the snapshot of its removal and the lock on its row. Nothing can come in any more. */
const REMOVE_CRUMBS = statement(
  "remove_crumbs",
  `with gone as materialized (
     select t.run_id as id from holdpoint.tombstones t where t.tenant_id = $1::uuid and t.run_id = any($2::uuid[])
   ),
   ${deletes(CRUMBS)}
   select 1 as done`,
);
