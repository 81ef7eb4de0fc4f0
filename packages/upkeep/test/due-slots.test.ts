import type { Schedule } from "@holdpoint/store";
import { expect, test } from "vitest";
import { dueSlots, MOST_SLOTS } from "../src/due-slots.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NINE = Date.UTC(2026, 0, 5, 9);

/** An hourly schedule whose next slot is at nine. */
function hourly(more: Partial<Schedule> = {}): Schedule {
  return {
    id: "id",
    name: "stale",
    agent: { name: "refunds", version: "1" },
    goal: "refund what is stale",
    timing: { cron: "0 * * * *", zone: "UTC", onceAtMs: null },
    overlap: "skip",
    catchUp: { slots: 1, withinMs: 24 * HOUR_MS },
    version: 1,
    nextSlotAtMs: NINE,
    queuedSlotAtMs: null,
    createdAtMs: 0,
    createdBy: "olga",
    changedAtMs: 0,
    changedBy: "olga",
    paused: null,
    ...more,
  };
}

/** What each pass does until nothing is due: the hour of each slot, and what became of it. */
function passes(schedule: Schedule, nowMs: number): readonly string[] {
  const told: string[] = [];
  let nextSlotAtMs = schedule.nextSlotAtMs;
  for (let count = 0; count < 10; count += 1) {
    const due = dueSlots({ ...schedule, nextSlotAtMs }, nowMs);
    if (due === null) return told;
    const hour = (atMs: number) => (atMs - NINE) / HOUR_MS + 9;
    told.push(...due.missed.map(({ slotAtMs, reason }) => `${hour(slotAtMs)} ${reason}`));
    if (due.slotAtMs !== null) told.push(`${hour(due.slotAtMs)} start`);
    nextSlotAtMs = due.nextSlotAtMs;
  }
  return told;
}

test("nothing is due before its time, nor of a schedule that is over", () => {
  expect(dueSlots(hourly(), NINE - 1)).toBeNull();
  expect(dueSlots(hourly({ nextSlotAtMs: null }), NINE)).toBeNull();
});

test("a slot in time is started, and the next one is an hour later", () => {
  expect(dueSlots(hourly(), NINE + 900)).toEqual({ slotAtMs: NINE, missed: [], nextSlotAtMs: NINE + HOUR_MS });
});

test("of the slots that nobody was there for, the newest is made up", () => {
  expect(passes(hourly(), NINE + 5.5 * HOUR_MS)).toEqual([
    ...[9, 10, 11, 12, 13].map((hour) => `${hour} too_many_missed`),
    "14 start",
  ]);
});

test("a slot in time is started beside those that are made up", () => {
  expect(passes(hourly(), NINE + 3 * HOUR_MS)).toEqual([
    "9 too_many_missed",
    "10 too_many_missed",
    "11 start",
    "12 start",
  ]);
});

test("as many are made up as the schedule says, the oldest of them first, and none that is too old", () => {
  const catchUp = { slots: 3, withinMs: 2 * HOUR_MS };
  expect(passes(hourly({ catchUp }), NINE + 3.5 * HOUR_MS)).toEqual([
    "9 too_old",
    "10 too_old",
    "11 start",
    "12 start",
  ]);
  const none = { slots: 0, withinMs: 24 * HOUR_MS };
  expect(passes(hourly({ catchUp: none }), NINE + 1.5 * HOUR_MS)).toEqual(["9 too_many_missed", "10 too_many_missed"]);
});

test("one instant is a slot like any other, and nothing follows it", () => {
  const once = hourly({ timing: { cron: null, zone: null, onceAtMs: NINE } });
  expect(dueSlots(once, NINE)).toEqual({ slotAtMs: NINE, missed: [], nextSlotAtMs: null });
  expect(passes({ ...once, catchUp: { slots: 1, withinMs: HOUR_MS } }, NINE + 2 * HOUR_MS)).toEqual(["9 too_old"]);
});

test("after a long time away, so many slots are judged at once, and the newest is still made up in the end", () => {
  const minutely = hourly({
    timing: { cron: "* * * * *", zone: "UTC", onceAtMs: null },
    catchUp: { slots: 2, withinMs: 24 * HOUR_MS },
  });
  const slots = 2.4 * MOST_SLOTS;
  const nowMs = NINE + (slots - 1) * MINUTE_MS + 2 * MINUTE_MS - 1;
  const seen = { missed: 0, started: [] as number[], most: 0 };
  let nextSlotAtMs: number | null = NINE;
  for (let due = dueSlots(minutely, nowMs); due !== null; due = dueSlots({ ...minutely, nextSlotAtMs }, nowMs)) {
    seen.missed += due.missed.length;
    seen.most = Math.max(seen.most, due.missed.length);
    if (due.slotAtMs !== null) seen.started.push((due.slotAtMs - NINE) / MINUTE_MS);
    nextSlotAtMs = due.nextSlotAtMs;
  }
  expect(seen.most).toBe(MOST_SLOTS);
  // Two are made up, and the last one is in time.
  expect(seen.started).toEqual([slots - 2, slots - 1, slots]);
  expect(seen.missed).toBe(slots - 2);
});
