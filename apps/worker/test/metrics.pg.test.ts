import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { openPublisher, type Publisher } from "@holdpoint/queue";
import { createSession, openStore, registerAgent, type Store, submitRun } from "@holdpoint/store";
import { createTestDatabase, type TestDatabase, waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { CLERK } from "./clerk.ts";

// Each test starts processes, which takes its time while others keep the machine busy.
vi.setConfig({ testTimeout: 120_000 });

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const AGENTS = fileURLToPath(new URL("./clerk.ts", import.meta.url));
const PATIENCE_MS = 60_000;

let database: TestDatabase;
let store: Store;
let publisher: Publisher;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url, maxConnections: 2 });
  publisher = openPublisher({ kind: "postgres", url: database.url }, { limitMs: 10_000 });
  await registerAgent(store, { ...CLERK, tools: [] });
});
afterAll(async () => {
  await publisher[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

interface Program {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

function startWorker(settings: Record<string, string>, processes = 1): Program {
  const args = [MAIN, "--agents", AGENTS, "--processes", String(processes), "--slots", "4"];
  const { PATH = "" } = process.env;
  const env = { PATH, HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_DRAIN_MS: "500", ...settings };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += String(chunk)));
  const ended = once(child, "close").then(([code]) => code);
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  return { child, output: () => said, ended };
}

/** What a worker has said on its log. */
function linesOf({ output }: Program): readonly Record<string, unknown>[] {
  const whole = output().split("\n").slice(0, -1);
  return whole.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

function untilSaid(program: Program, event: string, times = 1): Promise<readonly Record<string, unknown>[]> {
  const said = () => {
    if (program.child.exitCode !== null) throw new Error(`the worker has ended: ${program.output()}`);
    const lines = linesOf(program).filter((line) => line.event === event);
    return lines.length >= times && lines;
  };
  return waitFor(said, { deadlineMs: PATIENCE_MS, what: `${times} × ${event}` });
}

async function startShown(processes: number) {
  const program = startWorker({ HOLDPOINT_METRICS_PORT: "0" }, processes);
  const [listening] = await untilSaid(program, "metrics.listening");
  const started = await untilSaid(program, "worker.started", processes);
  const url = `http://127.0.0.1:${listening?.port}`;
  return { program, pids: started.map(({ pid }) => Number(pid)), url, scrape: () => scrape(url) };
}

/** A scrape's samples by their names with labels, as they stand there. */
async function scrape(url: string): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => line.split(/ (?=[^ ]+$)/)).map(([name = "", value]) => [name, Number(value)]));
}

/** The sum of a metric over all processes. */
function total(samples: ReadonlyMap<string, number>, name: string, label = ""): number {
  const found = [...samples].filter(([key]) => key.split("{")[0] === name && key.includes(label));
  return found.reduce((sum, [, value]) => sum + value, 0);
}

function committed(samples: ReadonlyMap<string, number>, ...kinds: readonly string[]): number {
  const of = (kind: string) => total(samples, "holdpoint_worker_committed_rows_total", `_kind="${kind}"`);
  return kinds.reduce((sum, kind) => sum + of(kind), 0);
}

async function workOff(count: number): Promise<void> {
  const runs = [];
  for (let n = 0; n < count; n += 1) {
    const session = await createSession(store, "alice");
    const actor = { kind: "requester", id: "alice" } as const;
    const submitted = await submitRun(store, { sessionId: session.id, agent: CLERK, goal: "look", actor });
    if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
    runs.push({ agent: CLERK, runId: submitted.run.id, version: submitted.run.version });
  }
  await publisher.publish(runs);
  const ids = runs.map(({ runId }) => runId);
  const completed = "select count(*)::int as n from holdpoint.runs where id = any($1::uuid[]) and status = 'completed'";
  const areDone = async () => (await store.pool.query<{ n: number }>(completed, [ids])).rows[0]?.n === count;
  await waitFor(areDone, { deadlineMs: PATIENCE_MS, what: "the runs to end" });
}

describe("a worker that shows its metrics", () => {
  test("tells of all its processes at one address: batches, claims, slots, the loop", async () => {
    const { scrape: scrapeNow, url } = await startShown(2);
    await workOff(20);
    const areCounted = async () => {
      const now = await scrapeNow();
      return committed(now, "moves", "said_moves") >= 20 && now;
    };
    // The runs' rows are there a moment before their worker has heard of it.
    const samples = await waitFor(areCounted, { deadlineMs: PATIENCE_MS, what: "the ends to be counted" });
    for (const place of [0, 1]) {
      expect(samples.get(`holdpoint_worker_up{holdpoint_process="${place}"}`)).toBe(1);
      expect(samples.get(`holdpoint_worker_slot_limit{holdpoint_process="${place}"}`)).toBe(4);
      expect(samples.get(`nodejs_eventloop_delay_p99{holdpoint_process="${place}"}`)).toBeGreaterThanOrEqual(0);
    }
    expect(total(samples, "holdpoint_worker_claimed_runs_total")).toBe(20);
    expect(total(samples, "holdpoint_worker_claimed_takeovers_total")).toBe(0);
    expect(committed(samples, "moves", "said_moves")).toBe(20);
    // Of each run at least the model's word and the results of its two calls.
    expect(committed(samples, "said", "results")).toBeGreaterThanOrEqual(60);
    const rows = total(samples, "holdpoint_worker_batch_size_sum");
    expect(rows).toBeGreaterThanOrEqual(total(samples, "holdpoint_worker_committed_rows_total") + 20);
    const statements = total(samples, "holdpoint_worker_batch_size_count");
    expect(total(samples, "holdpoint_worker_batch_wait_count")).toBe(statements);
    expect(total(samples, "holdpoint_worker_batch_duration_count")).toBe(statements);
    expect(total(samples, "holdpoint_worker_batch_duration_sum")).toBeGreaterThan(0);
    expect((await fetch(`${url}/`)).status).toBe(404);
  });

  test("a process that hangs is told as such, and keeps nobody from telling of the others", async () => {
    const { scrape: scrapeNow, pids } = await startShown(2);
    const [pid = 0] = pids;
    const ups = async () => {
      const samples = await scrapeNow();
      const up = [0, 1].map((place) => samples.get(`holdpoint_worker_up{holdpoint_process="${place}"}`) ?? -1);
      return { samples, up: up.toSorted() };
    };
    process.kill(pid, "SIGSTOP");
    onTestFinished(() => void process.kill(pid, "SIGCONT"));
    const { samples, up } = await ups();
    expect(up).toEqual([0, 1]);
    expect(total(samples, "holdpoint_worker_slot_limit")).toBe(4);
    process.kill(pid, "SIGCONT");
    await waitFor(async () => (await ups()).up[0] === 1, { deadlineMs: PATIENCE_MS, what: "it to go on" });
  });

  test("a process that dies is counted, and its successor takes its place", async () => {
    const { scrape: scrapeNow, pids, program } = await startShown(1);
    process.kill(pids[0] ?? 0, "SIGKILL");
    await untilSaid(program, "worker.started", 2);
    const samples = await scrapeNow();
    expect(samples.get('holdpoint_worker_exits_total{holdpoint_process="0"}')).toBe(1);
    expect(samples.get('holdpoint_worker_up{holdpoint_process="0"}')).toBe(1);
    expect(samples.get('holdpoint_worker_slot_limit{holdpoint_process="0"}')).toBe(4);
  });
});

describe("a port for metrics that cannot be had", () => {
  test("is told before any process is started", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // a TCP server's address
    const program = startWorker({ HOLDPOINT_METRICS_PORT: String(port) });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      `holdpoint worker: Port ${port} of 127.0.0.1 cannot be used for metrics (EADDRINUSE). Set HOLDPOINT_METRICS_PORT to another, or to 0.\n`,
    );
  });
});
