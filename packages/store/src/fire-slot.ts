import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import type { Schedule } from "./schedule.ts";
import { CAUSES, LINES, locked, SLOT_NOTE, STARTED, slotValues } from "./slot-statement.ts";

/** Why a slot that nobody was there for is not made up. */
export type MissedReason = "too_many_missed" | "too_old";

/** What is due of a schedule. */
export interface DueSlots {
  /** The slot to start; null where all that is due is not made up. */
  readonly slotAtMs: number | null;
  readonly missed: readonly { readonly slotAtMs: number; readonly reason: MissedReason }[];
  /** The slot after these, which may be due as well; null if none follows. */
  readonly nextSlotAtMs: number | null;
}

export type FireResult =
  | { readonly result: "started"; readonly run: Run }
  /** An earlier run has not ended: what the schedule's overlap rule says; or there was nothing to start. */
  | { readonly result: "skipped" | "queued" | "none" }
  /** Somebody has changed the schedule since, or was faster. Nothing was stored. */
  | { readonly result: "conflict" };

/**
 * Does what is due of a schedule: the slot's row, the check of earlier runs, the new run and the next slot, in one
 * statement. Of several that do it at once, one does it.
 */
export async function fireSlot(
  store: Store,
  schedule: Schedule,
  { slotAtMs, missed, nextSlotAtMs }: DueSlots,
): Promise<FireResult> {
  const [row] = await execute<{ state: "started" | "skipped" | "queued" | null; run: RunJson | null }>(store, FIRE, [
    ...slotValues(store, schedule),
    slotAtMs,
    nextSlotAtMs,
    missed.map((slot) => slot.slotAtMs),
    missed.map(({ reason }) => reason),
  ]);
  if (row === undefined) return { result: "conflict" };
  if (row.run !== null) return { result: "started", run: runOf(row.run) };
  return { result: row.state === "skipped" || row.state === "queued" ? row.state : "none" };
}

const FIRE = statement(
  "fire_slot",
  `with ${locked("s.paused_at is null and s.next_slot_at is not null")},
missed as (
  insert into holdpoint.schedule_slots (tenant_id, schedule_id, slot_at, state, reason, at)
  select $1::uuid, s.id, to_timestamp(t.slot_at / 1000), 'missed', t.reason, at.at
  from schedule s cross join at cross join unnest($10::float8[], $11::text[]) as t(slot_at, reason)
  on conflict do nothing
),
-- A clock that was set back must not start a slot again.
due as materialized (
  select s.*, to_timestamp($8::float8 / 1000) as slot_at, exists (select from live) as blocked from schedule s
  where $8::float8 is not null and not exists (select from holdpoint.schedule_slots k
    where k.schedule_id = s.id and k.slot_at = to_timestamp($8::float8 / 1000) and not k.manual)
),
judged as materialized (
  select d.*, case
    when not d.blocked and (d.queued_slot_at is null or d.overlap = 'replace') then 'started'
    when d.overlap = 'skip' or (d.overlap = 'queue' and d.queued_slot_at is not null) then 'skipped'
    else 'queued' end as state
  from due d
),
starting as materialized (
  select s.*, s.created_by as submitted_by, 'requester' as actor_kind, ${SLOT_NOTE} as note
  from judged s where s.state = 'started'
),
${STARTED},
superseded as (
  update holdpoint.schedule_slots k set state = 'replaced', reason = 'later_slot', at = at.at
  from judged s cross join at
  where k.schedule_id = s.id and k.state = 'queued' and s.overlap = 'replace'
  returning 1
),
-- Reads the rows superseded so that it comes after them: only one slot of a schedule waits.
slotted as (
  insert into holdpoint.schedule_slots (tenant_id, schedule_id, slot_at, state, reason, earlier_run, run_id, session_id,
    causes, at)
  select $1::uuid, s.id, s.slot_at, s.state,
    case when s.state = 'started' then null
      when s.overlap <> 'replace' and s.queued_slot_at is not null then 'slot_already_queued'
      when s.overlap = 'replace' then 'earlier_run_stopping' else 'earlier_run_live' end,
    case when s.state <> 'started' then (select max(l.id::text)::uuid from live l) end,
    case when s.state = 'started' then $4::uuid end, case when s.state = 'started' then $5::uuid end,
    coalesce((select ${CAUSES} from starting s), '{}'), at.at
  from judged s cross join at where (select count(*) from superseded) >= 0
),
advanced as (
  update holdpoint.schedules s set
    version = s.version + 1, next_slot_at = to_timestamp($9::float8 / 1000),
    queued_slot_at = case j.state when 'started' then null when 'queued' then j.slot_at else s.queued_slot_at end,
    lines = case when j.state = 'started' then ${LINES} else s.lines end
  from schedule k left join judged j on true
  where s.id = k.id
  returning j.state
)
select a.state, (select to_jsonb(r) from submitted r) as run from advanced a`,
);
