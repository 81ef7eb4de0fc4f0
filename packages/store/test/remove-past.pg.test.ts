import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  createSession,
  deleteMemory,
  findPast,
  fireSlot,
  loadRun,
  putMemory,
  type Run,
  readClock,
  registerAgent,
  removePast,
  requestCancel,
  submitRun,
} from "../src/index.ts";
import { AGENT, OPERATOR } from "./a-run.ts";
import { aSchedule, HOUR_MS, seen } from "./a-schedule.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const DAY_MS = 86_400_000;
const later = (days: number) => moveClock(bench.url, days * DAY_MS);
const NOTHING = { slots: [], memoryIds: [] };

beforeEach(async () => {
  await registerAgent(bench.store, { ...AGENT, tools: [] });
});
afterEach(() => later(0));

/** Removes what has had its time, which must be what was found before; afterwards nothing has. */
async function remove() {
  const found = await findPast(bench.store, 100);
  expect(await removePast(bench.store, 100)).toEqual(found);
  expect(await findPast(bench.store, 100)).toEqual(NOTHING);
  return found;
}

const remember = (subject: string, key: string, validForMs: number) =>
  putMemory(bench.store, { subject, key, value: "v", validForMs, by: "olga" });

async function runOf(requester: string): Promise<Run> {
  const session = await createSession(bench.store, requester);
  const submitted = await submitRun(bench.store, {
    sessionId: session.id,
    agent: AGENT,
    goal: "do it",
    actor: OPERATOR,
  });
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  return submitted.run;
}

test("a slot without a run goes when it has had its time; one that waits or has started a run stays", async () => {
  const nowMs = await readClock(bench.store);
  const slotAtMs = Math.ceil(nowMs / HOUR_MS) * HOUR_MS;
  const { id } = await aSchedule(bench.store, { name: "past", slotAtMs, overlap: "queue" });
  for (const hours of [0, 1, 2]) {
    const due = { slotAtMs: slotAtMs + hours * HOUR_MS, missed: [], nextSlotAtMs: slotAtMs + (hours + 1) * HOUR_MS };
    expect((await fireSlot(bench.store, await seen(bench.store, "past"), due)).result).not.toBe("conflict");
  }
  await later(29);
  expect(await remove()).toEqual(NOTHING);
  await later(31);
  expect(await remove()).toEqual({ ...NOTHING, slots: [`${id}/${new Date(slotAtMs + 2 * HOUR_MS).toISOString()}`] });
  const left = await bench.sql("select state from holdpoint.schedule_slots where schedule_id = $1 order by slot_at", [
    id,
  ]);
  expect(left).toEqual([{ state: "started" }, { state: "queued" }]);
});

test("a memory goes some time after it has expired or was deleted, not while it is told", async () => {
  const expired = await remember("ann", "expired", DAY_MS);
  const deleted = await remember("ann", "deleted", 300 * DAY_MS);
  await remember("ann", "kept", 300 * DAY_MS);
  await deleteMemory(bench.store, { memoryId: deleted.id, by: "olga" });
  await later(29);
  expect(await remove()).toEqual(NOTHING);
  await later(32);
  expect((await remove()).memoryIds).toEqual([expired.id, deleted.id].toSorted());
  expect(await bench.sql("select key from holdpoint.memories where subject = 'ann'")).toEqual([{ key: "kept" }]);
});

test("a memory stays while a run that was told it has not ended, however long that takes", async () => {
  const told = await remember("bob", "told", DAY_MS);
  const run = await runOf("bob");
  await later(100);
  expect(await remove()).toEqual(NOTHING);
  expect((await loadRun(bench.store, run.id))?.memories).toEqual([{ key: "told", value: "v", createdBy: "olga" }]);
  // It was never told to this one.
  await runOf("bob");
  await requestCancel(bench.store, { runId: run.id, actor: OPERATOR, reason: null });
  expect((await remove()).memoryIds).toEqual([told.id]);
});
