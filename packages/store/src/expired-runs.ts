// What is past its retention, in SQL: shared by the statement that finds it and the one that removes it.

/** What a run counts as, as the index on ended runs has it. */
const kindOf = (run: string): string =>
  `(case when ${run}.status = 'completed' then ${run}.outcome ->> 'kind' else ${run}.status end)`;

/** Ended by a person after its worker was lost: nobody saw how it ended, so the evidence stays as long as a failure's. */
const endedAfterLoss = (run: string): string => `(${run}.status = 'cancelled' and exists
    (select from holdpoint.transitions t where t.run_id = ${run}.id and t.to_status = 'lost'))`;

const daysOf = (run: string): string => `case ${kindOf(run)}
    when 'succeeded' then p.succeeded_days when 'partial' then p.partial_days when 'blocked' then p.blocked_days
    when 'failed' then p.failed_days
    when 'cancelled' then case when ${endedAfterLoss(run)} then greatest(p.cancelled_days, p.failed_days)
      else p.cancelled_days end end`;

/** An effect that the other side has accepted for later, and nobody has said how it ended. */
const unsettled = (run: string): string => `exists (select from holdpoint.steps s
    where s.run_id = ${run}.id and s.kind = 'effect_pending'
      and not exists (select from holdpoint.steps d
        where d.run_id = s.run_id and d.kind = 'tool_result' and d.body->>'callId' = s.body->>'callId')
      and not exists (select from holdpoint.callbacks b
        where b.run_id = s.run_id and b.call_id::text = s.body->>'callId' and b.status <> 'pending'))`;

/** Somebody is still to be told of it. What was given up is found by the audit while the run is kept, and goes with it. */
const untold = (run: string): string => `exists (select from holdpoint.deliveries v
    where v.run_id = ${run}.id and v.state = 'pending')`;

/**
 * What keeps a run `r`, by itself, under the policy `p`; null: nothing. Ended, nothing open, past its time; and no
 * effect of which the end is not known, nor anybody to be told.
 */
export const keptBy = (run: string): string => `case
    when ${run}.ended_at is null then 'live'
    when ${run}.open_attempts > 0 or ${run}.live_children > 0 then 'open_work'
    when ${run}.ended_at > holdpoint.clock() - (${daysOf(run)}) * interval '1 day' then 'within_retention'
    when ${unsettled(run)} then 'unsettled_effect'
    when ${untold(run)} then 'pending_delivery' end`;

/** The tenant's policy: a tenant without one keeps everything. */
export const POLICY = `
policy as materialized (select * from holdpoint.retention where tenant_id = $1::uuid)`;

/**
 * Runs at the head of the indexes, at most `$2`: trees by their roots, those that ended first before the others; and those
 * that something has kept, once it is time to look again.
 */
export const DUE = `
due as materialized (
  select d.id from (
    select e.id, e.ended_at as at from policy p
    cross join lateral (values ('succeeded', p.succeeded_days), ('partial', p.partial_days), ('blocked', p.blocked_days),
      ('failed', p.failed_days), ('cancelled', p.cancelled_days)) as c (kind, days)
    cross join lateral (
      select r.id, r.ended_at from holdpoint.runs r
      where r.tenant_id = $1::uuid and ${kindOf("r")} = c.kind and r.ended_at is not null and r.parent is null
        and r.kept_until is null and r.ended_at <= holdpoint.now() - c.days * interval '1 day'
      order by r.ended_at limit $2::int) e
    union all
    (select r.id, r.kept_until from holdpoint.runs r
     where r.tenant_id = $1::uuid and r.kept_until <= holdpoint.now() order by r.kept_until limit $2::int)
  ) d order by d.at, d.id limit $2::int
)`;

/**
 * All that goes together, from each root: whoever does a run of it again, whoever started one of it, and whom those have
 * started. Nothing of it is removed while one of it is kept.
 */
export const UNITS = `
unit (root, id) as (
  select d.id, d.id from due d
  union
  select u.root, n.id from unit u
  join holdpoint.runs r on r.id = u.id
  cross join lateral (
    select l.id from holdpoint.runs l where l.line = r.line
    union all select c.id from holdpoint.runs c where c.parent = r.id
    union all select r.parent where r.parent is not null
  ) n
)`;
