import { createSchedule, findSchedule, type Schedule, type ScheduleDefinition, type Store } from "../src/index.ts";
import { AGENT } from "./a-run.ts";

export const HOUR_MS = 3_600_000;

/** A schedule that one test is about; everything else is a default. */
export async function aSchedule(
  store: Store,
  {
    name,
    slotAtMs,
    by = "olga",
    ...definition
  }: { readonly name: string; readonly slotAtMs: number; readonly by?: string } & Partial<ScheduleDefinition>,
): Promise<Schedule> {
  const created = await createSchedule(store, {
    name,
    definition: {
      agent: AGENT,
      goal: "refund what is stale",
      timing: { cron: "0 * * * *", zone: "UTC", onceAtMs: null },
      overlap: "skip",
      catchUp: { slots: 1, withinMs: 24 * HOUR_MS },
      ...definition,
    },
    nextSlotAtMs: slotAtMs,
    by,
  });
  if (created.result !== "created") throw new Error(`Not created: ${created.result}`);
  return created.schedule;
}

/** The schedule as it is now. */
export async function seen(store: Store, name: string): Promise<Schedule> {
  const found = await findSchedule(store, name);
  if (found === null) throw new Error(`No schedule ${name}`);
  return found.schedule;
}
