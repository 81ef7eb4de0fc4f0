import { and, asc, desc, eq, gt, isNull, lt, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import type { Schedule, Timing } from "../schedule.ts";
import { scheduleChanges, scheduleSlots, schedules } from "../schema-schedules.ts";
import { msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";

/** What became of a slot. */
export interface SlotView {
  readonly slotAtMs: number;
  readonly state: "started" | "skipped" | "queued" | "replaced" | "missed";
  /** The person that has started it by hand. */
  readonly startedBy: string | null;
  readonly reason: string | null;
  readonly earlierRunId: string | null;
  readonly runId: string | null;
  readonly atMs: number;
}

/** Who did what to a schedule. */
export interface ScheduleChangeView {
  readonly change: "created" | "changed" | "paused" | "resumed" | "deleted";
  readonly by: string;
  readonly atMs: number;
  readonly definition: Readonly<Record<string, unknown>> | null;
  readonly version: number;
}

/** The schedules that there are, by name. */
export async function listSchedules(store: Store, page: PageRequest): Promise<Page<Schedule>> {
  const rows = await reader(store)
    .select()
    .from(schedules)
    .where(
      and(
        eq(schedules.tenantId, store.tenantId),
        isNull(schedules.deletedAt),
        page.after === null ? undefined : gt(schedules.name, page.after),
      ),
    )
    .orderBy(asc(schedules.name))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ name }) => name);
}

function viewOf(row: typeof schedules.$inferSelect): Schedule {
  const { pausedAt, pausedBy } = row;
  return {
    id: row.id,
    name: row.name,
    agent: { name: row.agentName, version: row.agentVersion },
    goal: row.goal,
    timing: timingOf(row),
    overlap: row.overlap,
    catchUp: { slots: row.catchUpSlots, withinMs: row.catchUpWithinMs },
    version: row.version,
    nextSlotAtMs: msOf(row.nextSlotAt),
    queuedSlotAtMs: msOf(row.queuedSlotAt),
    createdAtMs: msOf(row.createdAt),
    createdBy: row.createdBy,
    changedAtMs: msOf(row.changedAt),
    changedBy: row.changedBy,
    paused: pausedAt === null || pausedBy === null ? null : { atMs: msOf(pausedAt), by: pausedBy },
  };
}

function timingOf({ cron, zone, onceAt }: typeof schedules.$inferSelect): Timing {
  if (cron !== null && zone !== null) return { cron, zone, onceAtMs: null };
  if (onceAt !== null) return { cron: null, zone: null, onceAtMs: msOf(onceAt) };
  throw new Error("A schedule's row says neither a pattern nor an instant");
}

/** What became of a schedule's slots, the latest first. */
export async function listSlots(store: Store, scheduleId: string, page: PageRequest): Promise<Page<SlotView>> {
  const [afterMs, afterManual] = page.after?.split(SEPARATOR) ?? [];
  const { slotAt, manual } = scheduleSlots;
  const isAfter =
    Number.isSafeInteger(Number(afterMs)) && afterManual !== undefined
      ? sql`(${slotAt}, ${manual}) < (to_timestamp(${Number(afterMs)}::float8 / 1000), ${afterManual === "m"}::boolean)`
      : undefined;
  const rows = await reader(store)
    .select()
    .from(scheduleSlots)
    .where(and(eq(scheduleSlots.tenantId, store.tenantId), eq(scheduleSlots.scheduleId, scheduleId), isAfter))
    .orderBy(desc(slotAt), desc(manual))
    .limit(rowsFor(page));
  const views = rows.map((row) => ({
    slotAtMs: msOf(row.slotAt),
    state: row.state,
    startedBy: row.startedBy,
    reason: row.reason,
    earlierRunId: row.earlierRun,
    runId: row.runId,
    atMs: msOf(row.at),
  }));
  return pageOf(views, page, (last) => `${last.slotAtMs}${SEPARATOR}${last.startedBy === null ? "s" : "m"}`);
}

const SEPARATOR = "/";

/** Who did what to a schedule, the latest first. */
export async function listScheduleChanges(
  store: Store,
  scheduleId: string,
  page: PageRequest,
): Promise<Page<ScheduleChangeView>> {
  const after = Number(page.after ?? Number.NaN);
  const rows = await reader(store)
    .select()
    .from(scheduleChanges)
    .where(
      and(
        eq(scheduleChanges.tenantId, store.tenantId),
        eq(scheduleChanges.scheduleId, scheduleId),
        Number.isSafeInteger(after) ? lt(scheduleChanges.version, after) : undefined,
      ),
    )
    .orderBy(desc(scheduleChanges.version))
    .limit(rowsFor(page));
  const views = rows.map(({ change, actorId, at, definition, version }) => ({
    change,
    by: actorId,
    atMs: msOf(at),
    definition,
    version,
  }));
  return pageOf(views, page, ({ version }) => String(version));
}
