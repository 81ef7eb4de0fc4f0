import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** That approvers are to be reminded of a request. */
export interface Reminder {
  readonly approvalId: string;
  readonly runId: string;
  /** Which of the rule's reminders it is, counted from 1. */
  readonly stage: number;
}

/**
 * Makes the reminders that are due, of at most `limit` runs: one for each request, of the latest stage that is due, so
 * that an outage is not followed by all that it kept from being made. Nobody is reminded of what is decided, or while
 * the run is paused. Any number may call it at once: a stage is made once.
 */
export function remindApprovers(store: Store, limit: number): Promise<readonly Reminder[]> {
  return execute<Reminder & Record<string, unknown>>(store, REMIND, [store.tenantId, limit]);
}

/** Requests of which a reminder is due, of at most `limit`. Reads only. */
export function findRemindersDue(
  store: Store,
  limit: number,
): Promise<readonly Pick<Reminder, "approvalId" | "runId">[]> {
  return execute<Pick<Reminder, "approvalId" | "runId">>(store, DUE, [store.tenantId, limit]);
}

/** Pending requests whose time for the next reminder has come, and whose run waits for them. */
const REMINDABLE = `holdpoint.approvals a join holdpoint.runs w on w.id = a.run_id
    where a.tenant_id = $1::uuid and a.state = 'pending' and a.remind_at <= holdpoint.now()
      and w.status = 'waiting_approval'
    order by a.remind_at`;

const DUE = statement(
  "find_reminders_due",
  `select a.id as "approvalId", a.run_id as "runId" from ${REMINDABLE}, a.id limit $2::int`,
);

const REMIND = statement(
  "remind_approvers",
  `
with locked as materialized (
  select r.id from holdpoint.runs r
  where r.status = 'waiting_approval' and r.id in (
    select a.run_id from ${REMINDABLE} limit $2::int)
  order by r.id for update of r skip locked
),
due as materialized (
  select a.id, a.run_id, a.remind_at, a.terms->'remindAfterMs' as stages
  from holdpoint.approvals a join locked l on l.id = a.run_id
  where a.state = 'pending' and a.remind_at <= holdpoint.now()
  order by a.id for update of a skip locked
),
-- Which stage is next is read as it was when the statement began: only where the row has not changed since.
reached as materialized (
  select d.*, 1 + coalesce((select max(m.stage) from holdpoint.reminders m where m.approval_id = d.id), 0) as next
  from due d join holdpoint.approvals s on s.id = d.id and s.remind_at = d.remind_at
),
-- The stages that are left, by the time of the next one: a pause has moved that, and the others move with it.
staged as materialized (
  select r.id, r.run_id, max(t.stage) filter (where t.at <= holdpoint.now()) as stage,
         min(t.at) filter (where t.at > holdpoint.now()) as next_at
  from reached r
  cross join lateral (
    select e.n::int as stage,
           r.remind_at + (e.after_ms::float8 - (r.stages->>(r.next - 1))::float8) * interval '1 millisecond' as at
    from jsonb_array_elements_text(r.stages) with ordinality as e(after_ms, n) where e.n >= r.next) t
  group by r.id, r.run_id
),
moved as (
  update holdpoint.approvals a set remind_at = s.next_at, reminders = a.reminders + 1
  from staged s where a.id = s.id
),
made as (
  insert into holdpoint.reminders (tenant_id, approval_id, stage, run_id, at)
  select $1::uuid, s.id, s.stage, s.run_id, holdpoint.clock() from staged s
  returning approval_id, run_id, stage
)
select approval_id as "approvalId", run_id as "runId", stage from made order by approval_id`,
);
