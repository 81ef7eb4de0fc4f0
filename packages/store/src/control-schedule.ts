import { type Statement, type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { actOnSchedule, type Schedule, type ScheduleJson, type ScheduleSeen, scheduleOf } from "./schedule.ts";

export type ControlScheduleResult =
  | { readonly result: "accepted"; readonly schedule: Schedule }
  /** Nothing to do: it is so already. */
  | { readonly result: "ignored"; readonly schedule: Schedule }
  | { readonly result: "not_found" }
  /** It kept changing while this was tried. */
  | { readonly result: "busy" };

interface Asked {
  readonly name: string;
  readonly by: string;
}

/** Starts nothing of a schedule any more until it is resumed; a slot that waits is skipped. Its runs go on. */
export function pauseSchedule(store: Store, { name, by }: Asked): Promise<ControlScheduleResult> {
  return actOnSchedule(store, name, async ({ schedule }) =>
    schedule.paused === null
      ? control(store, PAUSE, [store.tenantId, schedule.id, schedule.version, by])
      : { result: "ignored", schedule },
  );
}

/** Lets a schedule start runs again, from this next slot on: what passed during the pause is not made up. */
export function resumeSchedule(
  store: Store,
  { name, by, nextSlotAtMs }: Asked & { readonly nextSlotAtMs: (seen: ScheduleSeen) => number | null },
): Promise<ControlScheduleResult> {
  return actOnSchedule(store, name, async (seen) => {
    const { schedule } = seen;
    if (schedule.paused === null) return { result: "ignored", schedule };
    return control(store, RESUME, [store.tenantId, schedule.id, schedule.version, by, nextSlotAtMs(seen)]);
  });
}

/** Ends a schedule; its name is free again. Its slots and changes stay on record, and its runs go on. */
export function deleteSchedule(store: Store, { name, by }: Asked): Promise<ControlScheduleResult> {
  return actOnSchedule(store, name, ({ schedule }) =>
    control(store, DELETE, [store.tenantId, schedule.id, schedule.version, by]),
  );
}

async function control(
  store: Store,
  which: Statement,
  values: readonly unknown[],
): Promise<ControlScheduleResult | null> {
  const [row] = await execute<{ schedule: ScheduleJson }>(store, which, values);
  return row === undefined ? null : { result: "accepted", schedule: scheduleOf(row.schedule) };
}

const controlling = (change: "paused" | "resumed" | "deleted", sets: string): Statement =>
  statement(
    `schedule_${change}`,
    `with at as materialized (select holdpoint.clock() as at),
     changed as (
       update holdpoint.schedules s set version = s.version + 1, ${sets}
       from at
       where s.tenant_id = $1::uuid and s.id = $2::uuid and s.version = $3::int and s.deleted_at is null
       returning s.*
     ),
     closed as (
       update holdpoint.schedule_slots k set state = 'skipped', reason = '${change}', at = at.at
       from changed s cross join at
       where k.schedule_id = s.id and k.state = 'queued' and s.queued_slot_at is null
     ),
     logged as (
       insert into holdpoint.schedule_changes (tenant_id, schedule_id, version, change, actor_id, at)
       select $1::uuid, s.id, s.version, '${change}', $4, at.at from changed s cross join at
     )
     select to_jsonb(s) as schedule from changed s`,
  );

const PAUSE = controlling("paused", "paused_at = at.at, paused_by = $4, queued_slot_at = null");
const RESUME = controlling(
  "resumed",
  "paused_at = null, paused_by = null, next_slot_at = to_timestamp($5::float8 / 1000)",
);
const DELETE = controlling("deleted", "deleted_at = at.at, deleted_by = $4, queued_slot_at = null");
