import { EMPTY_CHECKPOINT, submitted } from "@holdpoint/core";
import { announcedOf } from "./announce.ts";
import type { Store } from "./db.ts";
import { newId } from "./ids.ts";
import type { Schedule } from "./schedule.ts";

// What the statements that start a schedule's run have in common. Each locks the schedule's row first, pinned by the
// version that was read before: all that has started a run of it moved that version and was seen, so the runs that the
// row names are in the statement's snapshot. That a run has ended never becomes false again.

/** The first seven values of each: tenant, schedule, version, and what a new run needs. */
export function slotValues(store: Store, { id, version }: Schedule): readonly unknown[] {
  const { waitDeadline } = submitted();
  const queueLimitMs = waitDeadline !== null && "inMs" in waitDeadline ? waitDeadline.inMs : 0;
  return [store.tenantId, id, version, newId(), newId(), JSON.stringify(EMPTY_CHECKPOINT), queueLimitMs];
}

/** The schedule `s`, locked, if it is what it was read as, and its runs that have not ended. */
export const locked = (condition: string): string => `
at as materialized (select holdpoint.clock() as at),
schedule as materialized (
  select s.* from holdpoint.schedules s
  where s.tenant_id = $1::uuid and s.id = $2::uuid and s.version = $3::int and s.deleted_at is null and ${condition}
  for update
),
live as materialized (
  select r.id, r.line from schedule s join holdpoint.runs r
    on r.tenant_id = s.tenant_id and r.line = any(s.lines) and r.ended_at is null
)`;

/**
 * Starts a run for the row of `starting` (a schedule, with `slot_at`, `submitted_by`, `actor_kind` and `note`): a
 * session of its own, the goal as its first message, the run and its first transition. And says of the runs that had to
 * give way that they did.
 */
export const STARTED = `
session as (
  insert into holdpoint.sessions (tenant_id, id, requester, message_seq, created_at)
  select $1::uuid, $5::uuid, s.created_by, 1, at.at from starting s cross join at
),
said as (
  insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
  select $1::uuid, $5::uuid, 1, 'user', s.changed_by, s.goal, $4::uuid, at.at from starting s cross join at
),
submitted as (
  insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal,
    input_seq, line, is_task, status, version, checkpoint, queued_since, wait_deadline, created_at, updated_at)
  select $1::uuid, $4::uuid, $5::uuid, s.agent_name, s.agent_version, s.created_by, s.submitted_by, s.goal, 1, $4::uuid,
    exists (select from holdpoint.agents g where g.tenant_id = $1::uuid and g.name = s.agent_name
      and g.version = s.agent_version and g.kind = 'task'), 'queued', 1, $6::jsonb, at.at, at.at + $7::float8 * interval '1 millisecond', at.at, at.at
  from starting s cross join at
  returning *
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, $4::uuid, 1, null, 'queued', 'Submitted', s.actor_kind, s.submitted_by, 0,
    'schedule ' || s.name || ', ' || s.note, at.at
  from starting s cross join at
),
${announcedOf("submitted")},
gave_way as (
  update holdpoint.schedule_slots k set state = 'replaced', reason = 'later_slot', at = at.at
  from starting s cross join at
  join holdpoint.runs r on r.tenant_id = $1::uuid and r.status = 'cancelled' and r.end_reason = 'replaced'
  where r.line = any(s.lines) and k.schedule_id = s.id and k.run_id = r.line and k.state = 'started'
)`;

/** Who stands behind the run of `starting s`. */
export const CAUSES = "array(select distinct unnest(s.authors || s.submitted_by) order by 1)";

/** The lines that a schedule keeps in sight once `starting` has started. */
export const LINES = "array[$4::uuid] || array(select distinct l.line from live l)";

/** A slot as the history of its run names it. */
export const SLOT_NOTE = `'slot ' || to_char(s.slot_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
