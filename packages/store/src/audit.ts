// What a look at the database can find wrong with a fleet, by name. A healthy fleet has none of it, however busy.

import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** Something that is not as it should be, or goes on for too long. */
export interface AuditRow {
  readonly code: AuditCode;
  readonly runId: string | null;
  /** What else it is about: a status, a request, a child, a service. */
  readonly subject: string | null;
  /** Since when, in milliseconds since the epoch on the database's clock. */
  readonly sinceMs: number;
  readonly ageMs: number;
}

/** An agent of live runs: how many of them are queued, and how many of those for so long that a sweep must have seen them. */
export interface QueuedOfAgent {
  readonly agent: { readonly name: string; readonly version: string };
  readonly queued: number;
  readonly overdue: number;
  readonly sinceMs: number;
  readonly ageMs: number;
}

/** Looks at the live runs, at most `limit` findings of each code, the oldest first; one snapshot. */
export async function auditRuns(store: Store, limit: number): Promise<readonly AuditRow[]> {
  const rows = await execute<AuditSqlRow>(store, AUDIT, [store.tenantId, limit]);
  return rows.map(({ code, run_id, subject, since, now }) => ({
    code,
    runId: run_id,
    subject,
    sinceMs: since.getTime(),
    ageMs: Math.max(0, now.getTime() - since.getTime()),
  }));
}

/** The agents with queued runs that somebody else works on than whoever a task is given to, at most `limit`. */
export async function countQueued(store: Store, limit: number): Promise<readonly QueuedOfAgent[]> {
  const rows = await execute<QueuedRow>(store, QUEUED, [store.tenantId, limit]);
  return rows.map(({ name, version, queued, overdue, since, now }) => ({
    agent: { name, version },
    queued,
    overdue,
    sinceMs: since.getTime(),
    ageMs: Math.max(0, now.getTime() - since.getTime()),
  }));
}

type AuditSqlRow = { code: AuditCode; run_id: string | null; subject: string | null; since: Date; now: Date };
type QueuedRow = { name: string; version: string; queued: number; overdue: number; since: Date; now: Date };

const before = (age: string): string => `holdpoint.now() - interval '${age}'`;

/** What sweeps do every second is late after this. */
const SWEEP_IS_LATE = "1 minute";

/** Clocks of the database go forward; what is within this came from one that was set. */
const TOLERANCE = "interval '5 seconds'";

/** People who may decide about a request `p`: who made it, or caused it, is none of them. */
const DECIDERS = `(select count(distinct x.person) from (
    select u.person from unnest(p.users) as u(person)
    union all
    select a.user_id from holdpoint.role_assignments a
    where a.tenant_id = p.tenant_id and a.role = any(p.roles) and a.revoked_at is null) x
  where x.person <> all(p.excluded))`;

const LIVE = "r.tenant_id = $1::uuid and r.ended_at is null";

/** For each code: run, subject, since; from what an index gives. */
const SELECTS = {
  queued_too_long: `select r.id, r.agent_name || '@' || r.agent_version, r.queued_since from holdpoint.runs r
    where r.tenant_id = $1::uuid and r.status = 'queued' and not r.is_task
      and r.queued_since <= ${before("10 minutes")}`,
  running_without_progress: `select r.id, r.current_step, r.progress_due_at from holdpoint.runs r
    where r.tenant_id = $1::uuid and r.owner is not null and r.progress_due_at <= ${before(SWEEP_IS_LATE)}`,
  hold_past_deadline: `select r.id, r.status, r.wait_deadline from holdpoint.runs r
    where ${LIVE} and r.status <> 'lost' and r.wait_deadline <= ${before(SWEEP_IS_LATE)}`,
  hold_without_assignee: `select p.run_id, p.id::text, p.requested_at from holdpoint.approvals p
    join holdpoint.runs r on r.id = p.run_id and r.status = 'waiting_approval'
    where p.tenant_id = $1::uuid and p.state = 'pending' and ${DECIDERS} < p.quorum`,
  cancel_stuck: `select r.id, case when r.open_attempts > 0 then 'open_effect' when r.live_children > 0 then 'live_children'
      when r.owner is not null then 'owner' else 'nothing_pending' end, r.cancel_requested_at from holdpoint.runs r
    where r.tenant_id = $1::uuid and r.status = 'cancelling' and r.cancel_requested_at <=
      case when r.owner is null and r.open_attempts = 0 and r.live_children = 0 then ${before(SWEEP_IS_LATE)}
        else ${before("15 minutes")} end`,
  lost_unresolved: `select r.id, r.lost_reason, r.lost_at from holdpoint.runs r
    where r.tenant_id = $1::uuid and r.status = 'lost' and r.lost_at <= ${before(SWEEP_IS_LATE)}`,
  // The row counts its open attempts: an index of these would be written at every start and end of an effect.
  effect_unresolved: `select a.run_id, a.id::text, a.started_at from holdpoint.runs r
    join holdpoint.attempts a on a.run_id = r.id and a.ended_at is null
    where ${LIVE} and r.open_attempts > 0
      and (r.look_ups_over or r.status = 'waiting_operator' or a.deadline_at <= ${before("1 hour")})
    union all
    select s.run_id, s.body->>'callId', r.ended_at from holdpoint.steps s
    join holdpoint.runs r on r.id = s.run_id and r.ended_at <= ${before("1 day")}
    where s.tenant_id = $1::uuid and s.kind = 'effect_pending'
      and not exists (select from holdpoint.steps d
        where d.run_id = s.run_id and d.kind = 'tool_result' and d.body->>'callId' = s.body->>'callId')
      and not exists (select from holdpoint.callbacks b
        where b.run_id = s.run_id and b.call_id::text = s.body->>'callId' and b.status <> 'pending')`,
  terminal_with_live_children: `select p.id, r.id::text, p.ended_at from holdpoint.runs r
    join holdpoint.runs p on p.id = r.parent and p.ended_at is not null
    where ${LIVE} and r.parent is not null`,
  time_inversion: `select r.id, case when r.created_at > r.updated_at + ${TOLERANCE} then 'updated before it was created'
      when greatest(r.updated_at, r.queued_since, r.waiting_since, r.claimed_at) > holdpoint.clock() + ${TOLERANCE}
        then 'in the future' else 'a transition before the one that it follows' end, r.created_at
    from holdpoint.runs r
    where ${LIVE} and (r.created_at > r.updated_at + ${TOLERANCE}
      or greatest(r.updated_at, r.queued_since, r.waiting_since, r.claimed_at) > holdpoint.clock() + ${TOLERANCE}
      -- Each run's own few rows: as a join of the tables, many live runs would make it read the history of all.
      or exists (select from (
          select t.at, lag(t.at) over (order by t.seq) as before from holdpoint.transitions t where t.run_id = r.id) n
        where n.at < n.before - ${TOLERANCE}))`,
  derived_older_than_source: `select r.id, 'checkpoint', r.updated_at from holdpoint.runs r
    where ${LIVE} and (r.checkpoint->>'stepSeq')::int < r.step_seq`,
  delivery_failing: `select d.run_id, d.id::text, d.created_at from holdpoint.deliveries d
    where d.tenant_id = $1::uuid and (d.state = 'dead'
      or (d.state = 'pending' and d.created_at <= ${before("1 hour")}))`,
  // Who says that it was done, and whose claim was over: the run has come, or may come, to something else.
  task_reported_late: `select t.run_id, t.executor, t.late_at from holdpoint.tasks t
    join holdpoint.runs r on r.id = t.run_id
    where t.tenant_id = $1::uuid and t.late_at is not null and t.late_evidence->'report'->>'kind' = 'complete'
      and t.report->>'kind' is distinct from 'complete' and (r.ended_at is null or t.late_at >= ${before("7 days")})`,
  removed_effect_failed: `select t.run_id, e->>'operationId', (e->>'failedAt')::timestamptz from holdpoint.tombstones t
    cross join lateral jsonb_array_elements(t.effects) as e
    where t.tenant_id = $1::uuid and t.effects <> '[]' and t.effects @@ '$[*].failedAt != null'
      and (e->>'failedAt')::timestamptz >= ${before("30 days")}`,
  service_closed_long: `select null::uuid, s.name, s.since from holdpoint.services s
    where s.tenant_id = $1::uuid and s.since <= ${before("30 minutes")}
      and greatest(s.closed_until, s.probe_until, s.updated_at) > ${before("10 minutes")}`,
} as const;

export type AuditCode = keyof typeof SELECTS;

const AUDIT = statement(
  "audit_runs",
  `${Object.entries(SELECTS)
    .map(
      ([code, select]) => `(select '${code}' as code, f.id as run_id, f.subject, f.since, holdpoint.clock() as now
   from (${select}) as f (id, subject, since) order by f.since, f.id limit $2::int)`,
    )
    .join("\nunion all\n")}`,
);

const QUEUED = statement(
  "count_queued",
  `select r.agent_name as name, r.agent_version as version, count(*)::int as queued,
     count(*) filter (where r.queued_since <= ${before("30 seconds")})::int as overdue,
     min(r.queued_since) as since, holdpoint.clock() as now
   from holdpoint.runs r
   join holdpoint.agents a on a.tenant_id = r.tenant_id and a.name = r.agent_name and a.version = r.agent_version
   where r.tenant_id = $1::uuid and r.status = 'queued' and a.kind <> 'task'
   group by r.agent_name, r.agent_version
   order by min(r.queued_since) limit $2::int`,
);
