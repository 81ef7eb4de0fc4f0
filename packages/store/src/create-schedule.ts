import { storableText } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { type Schedule, type ScheduleDefinition, type ScheduleJson, scheduleOf } from "./schedule.ts";

export type CreateScheduleResult =
  | { readonly result: "created"; readonly schedule: Schedule }
  | { readonly result: "name_taken" }
  | { readonly result: "agent_not_found" };

/** Creates a schedule. Whoever does is its owner: its runs are asked for in that name. */
export async function createSchedule(
  store: Store,
  {
    name,
    definition,
    nextSlotAtMs,
    by,
  }: {
    readonly name: string;
    readonly definition: ScheduleDefinition;
    readonly nextSlotAtMs: number;
    readonly by: string;
  },
): Promise<CreateScheduleResult> {
  try {
    const [row] = await execute<{ schedule: ScheduleJson }>(store, CREATE, [
      store.tenantId,
      newId(),
      name,
      ...definitionValues(definition),
      nextSlotAtMs,
      by,
    ]);
    return row === undefined
      ? { result: "agent_not_found" }
      : { result: "created", schedule: scheduleOf(row.schedule) };
  } catch (error) {
    if (constraintOf(error) === "schedules_name") return { result: "name_taken" };
    throw error;
  }
}

/** A definition as the statements take it, nine values. */
export function definitionValues({ agent, goal, timing, overlap, catchUp }: ScheduleDefinition): readonly unknown[] {
  const { cron, zone, onceAtMs } = timing;
  const said = storableText(goal);
  return [agent.name, agent.version, said, cron, zone, onceAtMs, overlap, catchUp.slots, catchUp.withinMs];
}

/** A definition as the history of changes keeps it, from a row `s` of schedules. */
export const DEFINITION = `jsonb_build_object('agent', s.agent_name || '@' || s.agent_version, 'goal', s.goal,
    'cron', s.cron, 'zone', s.zone, 'at', s.once_at, 'overlap', s.overlap, 'catchUpSlots', s.catch_up_slots,
    'catchUpWithinMs', s.catch_up_within_ms)`;

const CREATE = statement(
  "create_schedule",
  `with at as materialized (select holdpoint.clock() as at),
   created as (
     insert into holdpoint.schedules (tenant_id, id, name, agent_name, agent_version, goal, cron, zone, once_at, overlap,
       catch_up_slots, catch_up_within_ms, version, next_slot_at, authors, created_at, created_by, changed_at, changed_by)
     select $1::uuid, $2::uuid, $3, $4, $5, $6, $7, $8, to_timestamp($9::float8 / 1000), $10, $11::int, $12::bigint, 1,
       to_timestamp($13::float8 / 1000), array[$14::text], at.at, $14, at.at, $14
     from at
     where exists (select from holdpoint.agents a where a.tenant_id = $1::uuid and a.name = $4 and a.version = $5)
     returning *
   ),
   logged as (
     insert into holdpoint.schedule_changes (tenant_id, schedule_id, version, change, actor_id, definition, at)
     select $1::uuid, s.id, s.version, 'created', $14, ${DEFINITION}, s.created_at from created s
   )
   select to_jsonb(s) as schedule from created s`,
);
