import { createSession, openStore, registerAgent, requestCancel, type Store, submitRun } from "@holdpoint/store";
import { createTestDatabase, moveClock, type TestDatabase, waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runSweeper } from "../src/run-sweeper.ts";

const AGENT = { name: "desk", version: "1" };
const ALICE = { kind: "requester", id: "alice" } as const;

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  await registerAgent(store, { ...AGENT, tools: [] });
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

async function anEndedRun(): Promise<void> {
  const { id: sessionId } = await createSession(store, "alice");
  const submitted = await submitRun(store, { sessionId, agent: AGENT, goal: "do it", actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  const cancelled = await requestCancel(store, { runId: submitted.run.id, actor: ALICE, reason: null });
  expect(cancelled.result).toBe("accepted");
}

test("two sweepers remove what is past its retention in their passes, once, and their logs count it", async () => {
  for (let number = 0; number < 30; number += 1) await anEndedRun();
  await moveClock(database.url, 31 * 86_400_000);
  await anEndedRun();
  const lines: { event: string; sweep?: string; runs?: number; sessions?: number }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const publisher = {
    publish: async () => ({ published: 0, failed: 0, error: null }),
    waiting: async () => 0,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const stop = new AbortController();
  const options = { store, publisher, sweepMs: 50, graceMs: 5_000, limit: 10, log };
  const sweepers = ["s1", "s2"].map((id) => runSweeper({ ...options, id }, stop.signal));
  const left = async (table: string) => (await store.pool.query(`select from holdpoint.${table}`)).rowCount;
  await waitFor(async () => (await left("runs")) === 1 && (await left("sessions")) === 1, {
    deadlineMs: 20_000,
    what: "the old runs and their sessions to go",
  });
  stop.abort();
  await Promise.all(sweepers);
  const sumOf = (field: "runs" | "sessions") => lines.reduce((sum, line) => sum + (line[field] ?? 0), 0);
  expect(sumOf("runs")).toBe(30);
  expect(sumOf("sessions")).toBe(30);
  expect(lines.filter(({ event }) => event === "sweep.failed")).toEqual([]);
  expect(lines).toContainEqual(expect.objectContaining({ event: "sweep.finished", sweep: "remove-expired" }));
});
