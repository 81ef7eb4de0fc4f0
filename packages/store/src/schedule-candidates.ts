import type { Candidate } from "./candidates.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type RunJson, runOf } from "./run.ts";
import { type ScheduleJson, type ScheduleSeen, scheduleOf } from "./schedule.ts";

/** Schedules with a slot that is due, the longest due first. */
export function findDueSchedules(store: Store, limit: number): Promise<readonly ScheduleSeen[]> {
  return find(store, DUE, limit);
}

/** Schedules with a slot that waits for earlier runs, all of which have ended. */
export function findStartableSchedules(store: Store, limit: number): Promise<readonly ScheduleSeen[]> {
  return find(store, STARTABLE, limit);
}

/** A run that has to give way to a later slot of its schedule, and in whose name. */
export interface ReplacedRun extends Candidate {
  readonly owner: string;
}

/** Runs that have to give way to a later slot of their schedule, and have not been asked to stop yet. */
export async function findReplacedRuns(store: Store, limit: number): Promise<readonly ReplacedRun[]> {
  const values = [store.tenantId, limit];
  const rows = await execute<{ run: RunJson; now: Date; owner: string }>(store, REPLACED, values);
  return rows.map(({ run, now, owner }) => ({ run: runOf(run), nowMs: now.getTime(), owner }));
}

async function find(store: Store, which: typeof DUE, limit: number): Promise<readonly ScheduleSeen[]> {
  const rows = await execute<{ schedule: ScheduleJson; now: Date }>(store, which, [store.tenantId, limit]);
  return rows.map(({ schedule, now }) => ({ schedule: scheduleOf(schedule), nowMs: now.getTime() }));
}

const DUE = statement(
  "find_due_schedules",
  `select to_jsonb(s) as schedule, holdpoint.clock() as now from holdpoint.schedules s
   where s.tenant_id = $1::uuid and s.next_slot_at <= holdpoint.now() and s.paused_at is null and s.deleted_at is null
   order by s.next_slot_at, s.id limit $2::int`,
);

const STARTABLE = statement(
  "find_startable_schedules",
  `select to_jsonb(s) as schedule, holdpoint.clock() as now from holdpoint.schedules s
   where s.tenant_id = $1::uuid and s.queued_slot_at is not null and not exists (
     select from holdpoint.runs r where r.tenant_id = s.tenant_id and r.line = any(s.lines) and r.ended_at is null)
   order by s.queued_slot_at, s.id limit $2::int`,
);

const REPLACED = statement(
  "find_replaced_runs",
  `select to_jsonb(r) as run, holdpoint.clock() as now, s.created_by as owner
   from holdpoint.schedules s
   join holdpoint.runs r on r.tenant_id = s.tenant_id and r.line = any(s.lines) and r.ended_at is null
   where s.tenant_id = $1::uuid and s.queued_slot_at is not null and s.overlap = 'replace'
     and r.cancel_requested_at is null
   order by r.id limit $2::int`,
);
