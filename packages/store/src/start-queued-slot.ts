import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import type { Schedule } from "./schedule.ts";
import { CAUSES, LINES, locked, SLOT_NOTE, STARTED, slotValues } from "./slot-statement.ts";

/**
 * Starts the slot of a schedule that waits for an earlier run, once that has ended; of several that do it at once, one
 * does it.
 *
 * @returns null if nothing could be started: a run has not ended, or the schedule is not any more what it was read as.
 */
export async function startQueuedSlot(store: Store, schedule: Schedule): Promise<Run | null> {
  const [row] = await execute<{ run: RunJson }>(store, START, slotValues(store, schedule));
  return row === undefined ? null : runOf(row.run);
}

const START = statement(
  "start_queued_slot",
  `with ${locked("s.queued_slot_at is not null and s.paused_at is null")},
starting as materialized (
  select s.*, s.created_by as submitted_by, 'requester' as actor_kind, ${SLOT_NOTE} as note
  from (select s.*, s.queued_slot_at as slot_at from schedule s) s where not exists (select from live)
),
${STARTED},
slotted as (
  update holdpoint.schedule_slots k set state = 'started', reason = null, run_id = $4::uuid, session_id = $5::uuid,
    causes = ${CAUSES}, at = at.at
  from starting s cross join at
  where k.schedule_id = s.id and k.slot_at = s.slot_at and k.state = 'queued'
),
advanced as (
  update holdpoint.schedules s set version = s.version + 1, queued_slot_at = null, lines = ${LINES}
  from starting k where s.id = k.id
)
select to_jsonb(r) as run from submitted r`,
);
