import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { milliseconds } from "./run.ts";

/** What happens to a slot while an earlier run of its schedule has not ended. */
export type Overlap = "skip" | "queue" | "replace";

/** When a schedule starts runs: by a pattern in a zone, or once. */
export type Timing =
  | { readonly cron: string; readonly zone: string; readonly onceAtMs: null }
  | { readonly cron: null; readonly zone: null; readonly onceAtMs: number };

/** What somebody says a schedule does. */
export interface ScheduleDefinition {
  readonly agent: { readonly name: string; readonly version: string };
  readonly goal: string;
  readonly timing: Timing;
  readonly overlap: Overlap;
  /** Of the slots that nobody was there for, the newest so many are made up, and only if they are no older than this. */
  readonly catchUp: { readonly slots: number; readonly withinMs: number };
}

/** A schedule as its row says. Instants are milliseconds since the epoch, on the database's clock. */
export interface Schedule extends ScheduleDefinition {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly nextSlotAtMs: number | null;
  readonly queuedSlotAtMs: number | null;
  readonly createdAtMs: number;
  /** Its owner: its runs are asked for in this name. */
  readonly createdBy: string;
  readonly changedAtMs: number;
  readonly changedBy: string;
  readonly paused: { readonly atMs: number; readonly by: string } | null;
}

/** A row of `schedules` as `to_jsonb` gives it. */
export interface ScheduleJson {
  readonly id: string;
  readonly name: string;
  readonly agent_name: string;
  readonly agent_version: string;
  readonly goal: string;
  readonly cron: string | null;
  readonly zone: string | null;
  readonly once_at: string | null;
  readonly overlap: Overlap;
  readonly catch_up_slots: number;
  readonly catch_up_within_ms: number;
  readonly version: number;
  readonly next_slot_at: string | null;
  readonly queued_slot_at: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly changed_at: string;
  readonly changed_by: string;
  readonly paused_at: string | null;
  readonly paused_by: string | null;
}

/** Reads a row. */
export function scheduleOf(row: ScheduleJson): Schedule {
  return {
    id: row.id,
    name: row.name,
    agent: { name: row.agent_name, version: row.agent_version },
    goal: row.goal,
    timing: timingOf(row),
    overlap: row.overlap,
    catchUp: { slots: row.catch_up_slots, withinMs: row.catch_up_within_ms },
    version: row.version,
    nextSlotAtMs: milliseconds(row.next_slot_at),
    queuedSlotAtMs: milliseconds(row.queued_slot_at),
    createdAtMs: milliseconds(row.created_at),
    createdBy: row.created_by,
    changedAtMs: milliseconds(row.changed_at),
    changedBy: row.changed_by,
    paused:
      row.paused_at === null || row.paused_by === null
        ? null
        : { atMs: milliseconds(row.paused_at), by: row.paused_by },
  };
}

function timingOf({ cron, zone, once_at: onceAt }: ScheduleJson): Timing {
  if (cron !== null && zone !== null) return { cron, zone, onceAtMs: null };
  if (onceAt !== null) return { cron: null, zone: null, onceAtMs: milliseconds(onceAt) };
  throw new Error("A schedule's row says neither a pattern nor an instant");
}

/** A schedule as it was read, and the database's clock at that moment. */
export interface ScheduleSeen {
  readonly schedule: Schedule;
  readonly nowMs: number;
}

/** The schedule of this name; null if there is none, or none any more. */
export async function findSchedule(store: Store, name: string): Promise<ScheduleSeen | null> {
  const [row] = await execute<{ schedule: ScheduleJson; now: Date }>(store, FIND, [store.tenantId, name]);
  return row === undefined ? null : { schedule: scheduleOf(row.schedule), nowMs: row.now.getTime() };
}

/** The database's clock, in milliseconds since the epoch: for what is computed before it is written. */
export async function readClock(store: Store): Promise<number> {
  const [row] = await execute<{ now: Date }>(store, CLOCK, []);
  if (row === undefined) throw new Error("The clock did not come back from its select");
  return row.now.getTime();
}

const TRIES = 20;

/**
 * Acts on a schedule as it was read; again if it has changed meanwhile, since its version is nobody's business who asks.
 *
 * @param act  gives null where the schedule is not any more what it was read as.
 */
export async function actOnSchedule<Result>(
  store: Store,
  name: string,
  act: (seen: ScheduleSeen) => Promise<Result | null>,
): Promise<Result | { readonly result: "not_found" } | { readonly result: "busy" }> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const seen = await findSchedule(store, name);
    if (seen === null) return { result: "not_found" };
    const done = await act(seen);
    if (done !== null) return done;
  }
  return { result: "busy" };
}

const FIND = statement(
  "find_schedule",
  `select to_jsonb(s) as schedule, holdpoint.clock() as now from holdpoint.schedules s
   where s.tenant_id = $1::uuid and s.name = $2 and s.deleted_at is null`,
);

const CLOCK = statement("read_clock", "select holdpoint.clock() as now");
