import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { QueueConnection } from "@holdpoint/queue";
import { product } from "./product.ts";
import type { QueueKind } from "./settings.ts";
import type { Arena, Stage } from "./stage.ts";

/** Workers as they are started in production, and a sweeper, on a database of their own. */
export interface TakeoverFleet extends AsyncDisposable {
  /** Starts a worker, and waits until its processes take wake-ups. */
  startWorker(processes: number): Promise<void>;
  startSweeper(): Promise<void>;
  /** Waits until so many processes take wake-ups: those that were killed have got successors. */
  untilWhole(processes: number): Promise<void>;
  /** Kills a process and, before it, its supervisor. */
  killWorkerOf(pid: number): void;
  /** Submits a run that goes on until its process is killed; gives its id. */
  submit(): Promise<string>;
  /** Waits until the run's call goes on; gives the process that works on it. */
  untilWorkedOn(runId: string): Promise<number>;
  /** Waits until another process has claimed it; gives when. */
  untilClaimedAgain(runId: string): Promise<number>;
  untilEnded(runId: string): Promise<void>;
  /** The database's clock, in milliseconds. */
  nowMs(): Promise<number>;
}

const ROOT = join(import.meta.dirname, "../..");
const AGENTS = join(import.meta.dirname, "takeover-agents.ts");
const SLOTS = "4";
const LIMIT_MS = 60_000;
const POLL_MS = 5;
/** A lease that a busy machine can keep, and a sweep that is quick. */
const TIMES = {
  HOLDPOINT_LEASE_MS: "3000",
  HOLDPOINT_RENEW_MS: "500",
  HOLDPOINT_GRACE_MS: "500",
  HOLDPOINT_SWEEP_MS: "200",
  HOLDPOINT_DRAIN_MS: "500",
  HOLDPOINT_LOG_LEVEL: "warn",
};

/** Opens a database and a queue, with no process on them yet. */
export async function openTakeoverFleet(stage: Stage, kind: QueueKind): Promise<TakeoverFleet> {
  await using stack = new AsyncDisposableStack();
  const arena = stack.use(await stage.openArena(product.schema, kind));
  const client = stack.use(await product.openClient(arena));
  const folder = await mkdtemp(join(tmpdir(), "holdpoint-takeover-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const programs = stack.adopt(openPrograms({ ...TIMES, ...serversOf(arena), BENCH_FOLDER: folder }), (open) =>
    open.stop(),
  );
  const supervisors = new Map<number, ChildProcess>();
  const livingPids = async (): Promise<readonly number[]> => {
    const living = "select pid from holdpoint.workers where gone_at is null";
    return (await arena.admin.query<{ pid: number }>(living)).rows.map(({ pid }) => pid);
  };
  const read = <Value>(text: string, runId: string) => readValue<Value>(arena, text, [runId]);
  let submissions = 0;
  const kept = stack.move();
  return {
    async startWorker(processes) {
      const before = new Set(await livingPids());
      const supervisor = programs.start("worker", [
        "--agents",
        AGENTS,
        "--processes",
        `${processes}`,
        "--slots",
        SLOTS,
      ]);
      const started = await until("the working processes", async () => {
        const pids = (await livingPids()).filter((pid) => !before.has(pid));
        return pids.length >= processes ? pids : null;
      });
      for (const pid of started) supervisors.set(pid, supervisor);
    },
    startSweeper: async () => void programs.start("sweeper", []),
    untilWhole: async (processes) =>
      void (await until("the processes' successors", async () =>
        (await livingPids()).length >= processes ? true : null,
      )),
    killWorkerOf(pid) {
      supervisors.get(pid)?.kill("SIGKILL");
      process.kill(pid, "SIGKILL");
    },
    async submit() {
      submissions += 1;
      const submitted = await client.submit(1);
      await submitted.announce();
      const [runId] = submitted.ids;
      if (runId === undefined) throw new Error("No run was submitted");
      return runId;
    },
    async untilWorkedOn(runId) {
      // Each call leaves a mark when it begins to go on.
      await until("the call to go on", async () => ((await readdir(folder)).length === submissions ? true : null));
      return until("an owner", () => read<number>(OWNER, runId));
    },
    untilClaimedAgain: (runId) => until("the takeover", () => read<number>(SECOND_CLAIM, runId)),
    untilEnded: async (runId) => void (await until("the run's end", () => read<boolean>(ENDED, runId))),
    nowMs: async () => (await readValue<number>(arena, NOW, [])) ?? Number.NaN,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const OWNER = `select w.pid as value from holdpoint.runs r join holdpoint.workers w on w.id = r.owner where r.id = $1`;
const SECOND_CLAIM = `select extract(epoch from at)::float8 * 1000 as value from holdpoint.transitions
  where run_id = $1 and event = 'Claimed' order by seq offset 1 limit 1`;
const ENDED = "select true as value from holdpoint.runs where id = $1 and ended_at is not null";
const NOW = "select extract(epoch from clock_timestamp())::float8 * 1000 as value";

async function readValue<Value>({ admin }: Arena, text: string, values: readonly string[]): Promise<Value | null> {
  const { rows } = await admin.query<{ value: Value }>(text, [...values]);
  return rows[0]?.value ?? null;
}

/** Asks until there is an answer. */
async function until<Value>(what: string, ask: () => Promise<Value | null>): Promise<Value> {
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > deadlineMs) throw new Error(`Waited too long for ${what}`);
    await sleep(POLL_MS);
  }
}

function serversOf({ url, queue }: Arena): Readonly<Record<string, string>> {
  return { HOLDPOINT_DATABASE_URL: url, ...queueOf(queue) };
}

function queueOf({ kind, url }: QueueConnection): Readonly<Record<string, string>> {
  return kind === "redis" ? { HOLDPOINT_REDIS_URL: url } : { HOLDPOINT_QUEUE_DATABASE_URL: url };
}

/** Starts entry points of apps; at the end it stops what has not ended. */
function openPrograms(env: Readonly<Record<string, string>>) {
  const children = new Set<ChildProcess>();
  return {
    start(app: "worker" | "sweeper", args: readonly string[]): ChildProcess {
      const child = spawn(process.execPath, [`apps/${app}/src/main.ts`, ...args], {
        cwd: ROOT,
        env: { ...env },
        stdio: ["ignore", "ignore", "inherit"], // their logs are nobody's, but why one cannot start is
      });
      children.add(child);
      child.once("exit", () => children.delete(child));
      return child;
    },
    async stop() {
      const living = [...children];
      const ended = living.map((child) => once(child, "exit"));
      for (const child of living) child.kill("SIGTERM");
      await Promise.all(ended);
    },
  };
}
