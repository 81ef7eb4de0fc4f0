import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect } from "vitest";
import { openPublisher, type QueueConnection } from "../../packages/queue/src/index.ts";
import {
  createSession,
  findViolations,
  openStore,
  registerAgent,
  type Store,
  submitRun,
} from "../../packages/store/src/index.ts";
import { createTestDatabase } from "../../packages/testkit/src/index.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { COURIER } from "./agents.ts";
import { type Outside, openOutside } from "./outside.ts";

const ROOT = resolve(import.meta.dirname, "../..");
export const AGENTS = resolve(import.meta.dirname, "agents.ts");
const ALICE = { kind: "requester", id: "alice" } as const;

/** One process of the product, with what it said. */
export interface Program {
  readonly process: ChildProcess;
  readonly output: () => string;
  /** Resolves with the exit code, or the signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Starts an app's entry point as a process. */
export function startProgram(
  app: "worker" | "sweeper" | "api",
  args: readonly string[],
  env: Record<string, string>,
): Program {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [`apps/${app}/src/main.ts`, ...args], {
    cwd: ROOT,
    env: { PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = once(child, "close").then(([code, signal]) => code ?? signal);
  return { process: child, output: () => said, ended };
}

/** A database with its queue, a world outside, and processes that end with it. */
export interface Fleet extends AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  readonly outside: Outside;
  readonly env: Record<string, string>;
  worker(options?: {
    readonly processes?: number;
    readonly slots?: number;
    readonly env?: Record<string, string>;
  }): Promise<Program>;
  sweeper(): Promise<Program>;
  submit(...goals: readonly string[]): Promise<readonly string[]>;
  /** The processes that could take runs now. */
  workers(): Promise<readonly { readonly id: string; readonly pid: number }[]>;
  /** The process that has the run. */
  ownerPid(runId: string): Promise<number>;
  untilStatus(runIds: readonly string[], status: string, deadlineMs?: number): Promise<void>;
  /** A run's transitions, with their instants in milliseconds. */
  history(runId: string): Promise<readonly Transition[]>;
  /** The database's clock, in milliseconds. */
  nowMs(): Promise<number>;
}

export interface Transition {
  readonly event: string;
  readonly to_status: string;
  readonly reason: string | null;
  readonly at_ms: number;
}

/** A lease that a busy machine of tests can keep, and a sweep that is quick. */
const SCALED = {
  HOLDPOINT_LEASE_MS: "3000",
  HOLDPOINT_RENEW_MS: "500",
  HOLDPOINT_GRACE_MS: "500",
  HOLDPOINT_SWEEP_MS: "200",
  HOLDPOINT_DRAIN_MS: "500",
};

export async function openFleet({ redisUrl }: { readonly redisUrl?: string } = {}): Promise<Fleet> {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url, maxConnections: 4 }));
  const outside = stack.use(await openOutside());
  const queue: QueueConnection = redisUrl === undefined ? { kind: "postgres", url } : { kind: "redis", url: redisUrl };
  const publisher = stack.use(openPublisher(queue, { limitMs: 10_000 }));
  const programs: Program[] = [];
  stack.defer(() => endAll(store, programs));
  await registerAgent(store, { ...COURIER, tools: [] });
  const redis: Record<string, string> = redisUrl === undefined ? {} : { HOLDPOINT_REDIS_URL: redisUrl };
  const env = { ...SCALED, ...redis, HOLDPOINT_DATABASE_URL: url, OUTSIDE_URL: outside.url };

  const start = async (
    app: "worker" | "sweeper",
    args: readonly string[],
    moreEnv: Record<string, string>,
    sign: string,
  ): Promise<Program> => {
    const program = startProgram(app, args, { ...env, ...moreEnv });
    programs.push(program);
    const isUp = () => {
      if (program.process.exitCode !== null) throw new Error(`${app} ended: ${program.output()}`);
      return program.output().includes(sign);
    };
    await waitFor(isUp, { deadlineMs: 30_000, what: `${app} to start` });
    return program;
  };
  const workers = async () => {
    const { rows } = await store.pool.query<{ id: string; pid: number }>(
      "select id, pid from holdpoint.workers where gone_at is null",
    );
    return rows;
  };
  return {
    url,
    store,
    outside,
    env,
    workers,
    worker: async ({ processes = 1, slots = 8, env: moreEnv = {} } = {}) => {
      const before = (await workers()).length;
      const args = ["--agents", AGENTS, "--processes", String(processes), "--slots", String(slots)];
      const program = await start("worker", args, moreEnv, "worker started");
      const areUp = async () => (await workers()).length >= before + processes;
      await waitFor(areUp, { deadlineMs: 30_000, what: `${processes} processes` });
      return program;
    },
    sweeper: () => start("sweeper", [], {}, "sweeper started"),
    submit: async (...goals) => {
      const runs = [];
      for (const goal of goals) {
        // One each: a run is shown what was said before in its session.
        const session = await createSession(store, ALICE.id);
        const submitted = await submitRun(store, { sessionId: session.id, agent: COURIER, goal, actor: ALICE });
        if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
        runs.push({ agent: COURIER, runId: submitted.run.id, version: submitted.run.version });
      }
      await publisher.publish(runs);
      return runs.map(({ runId }) => runId);
    },
    ownerPid: async (runId) => {
      const owner = "select w.pid from holdpoint.runs r join holdpoint.workers w on w.id = r.owner where r.id = $1";
      const { rows } = await store.pool.query<{ pid: number }>(owner, [runId]);
      const [row] = rows;
      if (row === undefined) throw new Error("nobody has the run");
      return row.pid;
    },
    untilStatus: (runIds, status, deadlineMs = 40_000) => untilStatus(store, { runIds, status, deadlineMs, programs }),
    history: async (runId) => {
      const columns = "event, to_status, reason, extract(epoch from at)::float8 * 1000 as at_ms";
      const { rows } = await store.pool.query<Transition>(
        `select ${columns} from holdpoint.transitions where run_id = $1 order by seq`,
        [runId],
      );
      return rows;
    },
    nowMs: async () => {
      const { rows } = await store.pool.query<{ ms: number }>(
        "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
      );
      return rows[0]?.ms ?? Number.NaN;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function untilStatus(
  store: Store,
  wanted: {
    readonly runIds: readonly string[];
    readonly status: string;
    readonly deadlineMs: number;
    readonly programs: readonly Program[];
  },
): Promise<void> {
  const { runIds, status, deadlineMs, programs } = wanted;
  const count = "select status, count(*)::int as n from holdpoint.runs where id = any($1::uuid[]) group by status";
  let seen: unknown = null;
  const areThere = async () => {
    const { rows } = await store.pool.query<{ status: string; n: number }>(count, [runIds]);
    seen = rows;
    return rows.length === 1 && rows[0]?.status === status && rows[0].n === runIds.length;
  };
  await waitFor(areThere, { deadlineMs, what: `${runIds.length} runs to be ${status}` }).catch((cause) => {
    const said = programs.map(({ output }) => output().slice(-1_500)).join("\n---\n");
    throw new Error(`${JSON.stringify(seen)}\n${said}`, { cause });
  });
}

/** Whether the process lives. One that has ended and that nobody has waited for (its parent is gone) does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false; // there is none of this id
  }
  const status = `/proc/${pid}/status`;
  return !existsSync(status) || !/^State:\s+Z/m.test(readFileSync(status, "utf8"));
}

/** Ends every process of the fleet, by its own id, and looks for violated invariants. */
async function endAll(store: Store, programs: readonly Program[]): Promise<void> {
  for (const { process: child } of programs)
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
  await Promise.all(programs.map(({ ended }) => ended));
  expect(await findViolations(store)).toEqual([]);
}
