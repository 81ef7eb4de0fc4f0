import { resolve } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { supervise } from "../../apps/worker/src/supervise.ts";
import { openFaultProxy } from "../../packages/queue/test/fault-proxy.ts";
import { openStore } from "../../packages/store/src/index.ts";
import { createTestDatabase, type TestDatabase, waitFor } from "../../packages/testkit/src/index.ts";
import { AGENTS, startProgram } from "./processes.ts";

const CLOSING_AGENTS = resolve(import.meta.dirname, "closing-agents.ts");
const EXEC_PATH = process.execPath;

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(() => {
  process.execPath = EXEC_PATH;
});
afterAll(() => database[Symbol.asyncDispose]());

const LEASE = { HOLDPOINT_LEASE_MS: "3000", HOLDPOINT_RENEW_MS: "500", HOLDPOINT_DRAIN_MS: "500" };
const OUTSIDE = { OUTSIDE_URL: "http://127.0.0.1:1" };

/** A worker whose servers are behind a proxy; it has started. */
async function startBehind(url: string, env: Record<string, string> = {}) {
  const program = startProgram("worker", ["--agents", CLOSING_AGENTS], {
    ...LEASE,
    ...OUTSIDE,
    ...env,
    HOLDPOINT_DATABASE_URL: url,
  });
  const hasStarted = () => program.output().includes('"event":"worker.started"');
  await waitFor(hasStarted, { deadlineMs: 30_000, what: "the worker to start" });
  return program;
}

test("a worker that is stopped while its database is away closes its agents and ends", async () => {
  const { hostname: host, port } = new URL(database.url);
  await using proxy = await openFaultProxy({ host, port: Number(port) });
  const url = new URL(database.url);
  url.host = `${proxy.address.host}:${proxy.address.port}`;
  const program = await startBehind(url.href);
  await proxy.cut();
  program.process.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  expect(program.output()).toContain("agents closed");
  expect(program.output()).toContain("worker.not_retired");
  expect(program.output()).toMatch(/"code":0,.*"worker exited"/);
});

test("agents that never come to the end of their closing do not keep a process", async () => {
  const program = await startBehind(database.url, { AGENTS_HANG: "yes" });
  program.process.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  expect(program.output()).toContain("agents closed");
  expect(program.output()).toMatch(/"code":0,.*"worker exited"/);
});

test("a process that cannot be started is tried again", async () => {
  await using store = openStore({ url: database.url, maxConnections: 2 });
  const living = "select from holdpoint.workers where gone_at is null";
  const countLiving = async () => (await store.pool.query(living)).rows.length;
  const before = await countLiving();
  const events: string[] = [];
  const note = (line: object) => void events.push("event" in line ? String(line.event) : "");
  const log = { debug: note, info: note, warn: note, error: note };
  const publisher = {
    publish: async () => ({ published: 0, failed: 0, error: null }),
    waiting: async () => 0,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  Object.assign(process.env, LEASE, OUTSIDE, { HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_LOG_LEVEL: "error" });
  process.execPath = resolve(import.meta.dirname, "no-such-program");
  const agents = new URL(`file://${AGENTS}`).href;
  const supervisor = supervise({ agents, processes: 1, slots: 1, store, publisher, log });
  const failures = () => events.filter((event) => event === "worker.process_failed").length;
  await waitFor(() => failures() >= 2, { deadlineMs: 10_000, what: "two tries" });
  process.execPath = EXEC_PATH;
  await waitFor(async () => (await countLiving()) > before, { deadlineMs: 30_000, what: "a working process" });
  await supervisor.stop();
  expect(await countLiving()).toBe(before);
});
