import { DEFINITION, definitionValues } from "./create-schedule.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import {
  actOnSchedule,
  type Schedule,
  type ScheduleDefinition,
  type ScheduleJson,
  type ScheduleSeen,
  scheduleOf,
} from "./schedule.ts";

/** What a change of a schedule comes to, on the schedule as it is: the whole new definition and its next slot. */
export type Changed<Refusal> =
  | { readonly definition: ScheduleDefinition; readonly nextSlotAtMs: number | null }
  | { readonly refuse: Refusal };

export type ChangeScheduleResult<Refusal> =
  | { readonly result: "changed"; readonly schedule: Schedule }
  | { readonly result: "refused"; readonly refusal: Refusal }
  | { readonly result: "agent_not_found" }
  | { readonly result: "not_found" }
  /** It kept changing while this was tried. */
  | { readonly result: "busy" };

/**
 * Changes what a schedule does from its next slot on. A run that it has started goes on as it was; a slot that waits
 * starts with what the schedule then says.
 */
export function changeSchedule<Refusal>(
  store: Store,
  {
    name,
    by,
    change,
  }: {
    readonly name: string;
    readonly by: string;
    readonly change: (seen: ScheduleSeen) => Changed<Refusal>;
  },
): Promise<ChangeScheduleResult<Refusal>> {
  return actOnSchedule(store, name, async (seen): Promise<ChangeScheduleResult<Refusal> | null> => {
    const changed = change(seen);
    if ("refuse" in changed) return { result: "refused", refusal: changed.refuse };
    const [row] = await execute<{ schedule: ScheduleJson | null; agent_found: boolean }>(store, CHANGE, [
      store.tenantId,
      seen.schedule.id,
      seen.schedule.version,
      ...definitionValues(changed.definition),
      changed.nextSlotAtMs,
      by,
    ]);
    if (row?.agent_found === false) return { result: "agent_not_found" };
    if (row?.schedule == null) return null;
    return { result: "changed", schedule: scheduleOf(row.schedule) };
  });
}

const CHANGE = statement(
  "change_schedule",
  `with agent as materialized (
     select exists (select from holdpoint.agents a where a.tenant_id = $1::uuid and a.name = $4 and a.version = $5) as found
   ),
   changed as (
     update holdpoint.schedules s set
       agent_name = $4, agent_version = $5, goal = $6, cron = $7, zone = $8, once_at = to_timestamp($9::float8 / 1000),
       overlap = $10, catch_up_slots = $11::int, catch_up_within_ms = $12::bigint, version = s.version + 1,
       next_slot_at = to_timestamp($13::float8 / 1000), changed_at = holdpoint.clock(), changed_by = $14,
       authors = case when $14 = any(s.authors) then s.authors else s.authors || $14::text end
     from agent a
     where s.tenant_id = $1::uuid and s.id = $2::uuid and s.version = $3::int and s.deleted_at is null and a.found
     returning s.*
   ),
   logged as (
     insert into holdpoint.schedule_changes (tenant_id, schedule_id, version, change, actor_id, definition, at)
     select $1::uuid, s.id, s.version, 'changed', $14, ${DEFINITION}, s.changed_at from changed s
   )
   select (select to_jsonb(s) from changed s) as schedule, a.found as agent_found from agent a`,
);
