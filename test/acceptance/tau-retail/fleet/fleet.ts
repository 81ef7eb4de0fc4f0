// The processes of a product under test, as they run anywhere: api, sweeper, supervisors with their working processes.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { migrateQueue } from "@holdpoint/queue";
import { migrate } from "@holdpoint/store/migrate";
import { z } from "zod";
import { keepMachine, type Machine } from "./machine.ts";
import { type LogLine, type Program, startAndWait, startProgram } from "./program.ts";

export interface FleetOptions {
  readonly databaseUrl: string;
  /** The module with the agents, and what it reads from the environment. */
  readonly agents: { readonly module: URL; readonly env: Readonly<Record<string, string>> };
  /** The api's callers, as HOLDPOINT_API_TOKENS. */
  readonly tokens: string;
  readonly machines: number;
  readonly processesEach: number;
  readonly slots: number;
  /** A folder for what every program prints. */
  readonly logDir: string;
  /** Ends the start. */
  readonly interrupted: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Fleet extends AsyncDisposable {
  readonly apiUrl: string;
  /** The working processes that can be killed now. */
  workerPids(): readonly number[];
  /**
   * Kills one working process, or with `machine` its supervisor and all its processes. False where the process had ended
   * by itself, or where its machine is the only one that works.
   */
  kill(pid: number, scope: "process" | "machine"): boolean;
  /** Takeovers that the workers have told of so far. */
  takeovers(): number;
  /** Look-ups of an open attempt that workers have told of so far. */
  lookUps(): number;
  /** Rejects when a program ends that should not have. */
  readonly failed: Promise<never>;
}

const ROOT = new URL("../../../../", import.meta.url);
const API = new URL("apps/api/src/main.ts", ROOT);
const SWEEPER = new URL("apps/sweeper/src/main.ts", ROOT);
const WORKER = new URL("apps/worker/src/main.ts", ROOT);

/** Short, so that a loss is found within seconds; long enough for a busy machine with two cores. */
const TIMES = {
  HOLDPOINT_LEASE_MS: "4500",
  HOLDPOINT_RENEW_MS: "1000",
  HOLDPOINT_GRACE_MS: "1000",
  HOLDPOINT_SWEEP_MS: "250",
  HOLDPOINT_DRAIN_MS: "3000",
};

const READY_LIMIT_MS = 60_000;
const READY_POLL_MS = 50;

/** Migrates the database and starts all programs; resolves when the api answers. */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const env = environmentOf(options);
  await migrate({ url: options.databaseUrl });
  if (env.HOLDPOINT_REDIS_URL === undefined) await migrateQueue({ kind: "postgres", url: options.databaseUrl });
  const logFile = (name: string) => join(options.logDir, `${name}.log`);
  const programs: Program[] = [];
  const machines: Machine[] = [];
  let stopping = false;
  let takeovers = 0;
  let lookUps = 0;
  const onLine = ({ event, takeovers: count }: LogLine): void => {
    if (event === "attempt.looked_up") lookUps += 1;
    if (event === "run.taken_up" && typeof count === "number" && count > 0) takeovers += 1;
  };
  const stop = async (): Promise<void> => {
    stopping = true;
    await Promise.all(machines.map((machine) => machine.stop()));
    await Promise.all(programs.map((program) => program.stop()));
  };
  try {
    const api = await startAndWait({ name: "api", main: API, env, logFile: logFile("api") }, "api.listening");
    programs.push(api.program);
    programs.push(startProgram({ name: "sweeper", main: SWEEPER, env, logFile: logFile("sweeper") }));
    for (let number = 1; number <= options.machines; number += 1) {
      const name = `machine-${number}`;
      const start = { name, main: WORKER, args: workerArguments(options), env, logFile: logFile(name) };
      const startWith = (note: (line: LogLine) => void) => {
        const hear = (line: LogLine): void => {
          note(line);
          onLine(line);
        };
        return startProgram({ ...start, onLine: hear });
      };
      machines.push(keepMachine(startWith));
    }
    const failed = Promise.race(programs.map((program) => unexpectedEnd(program, () => stopping)));
    failed.catch(() => undefined); // whoever plays on the fleet waits for it; nobody has to
    await untilReady(machines, options);
    const { port } = z.object({ port: z.number() }).parse(api.line);
    return {
      apiUrl: `http://127.0.0.1:${port}`,
      workerPids: () => machines.flatMap((machine) => machine.workerPids()),
      kill: (pid, scope) => {
        const machine = machines.find((candidate) => candidate.workerPids().includes(pid));
        const others = machines.filter((candidate) => candidate !== machine && candidate.workerPids().length > 0);
        if (machine === undefined || (scope === "machine" && others.length === 0)) return false;
        return scope === "machine" ? machine.killAll() : machine.killWorker(pid);
      },
      takeovers: () => takeovers,
      lookUps: () => lookUps,
      failed,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The agents are registered, and every process takes work. */
async function untilReady(
  machines: readonly Machine[],
  { processesEach, logDir, interrupted }: FleetOptions,
): Promise<void> {
  const deadlineMs = performance.now() + READY_LIMIT_MS;
  while (!machines.every((machine) => machine.workerPids().length === processesEach)) {
    if (performance.now() > deadlineMs) {
      throw new Error(`not all workers were ready within ${READY_LIMIT_MS / 1_000} s: see ${logDir}`);
    }
    await sleep(READY_POLL_MS, undefined, { signal: interrupted });
  }
}

function environmentOf({ env, databaseUrl, tokens, agents }: FleetOptions): Record<string, string | undefined> {
  return {
    ...env,
    ...TIMES,
    ...agents.env,
    HOLDPOINT_DATABASE_URL: databaseUrl,
    HOLDPOINT_QUEUE_DATABASE_URL: undefined,
    HOLDPOINT_POOLED: undefined,
    HOLDPOINT_API_HOST: "127.0.0.1",
    HOLDPOINT_API_PORT: "0",
    HOLDPOINT_API_TOKENS: tokens,
    HOLDPOINT_LOG_LEVEL: "info",
  };
}

function workerArguments({ agents, processesEach, slots }: FleetOptions): readonly string[] {
  const module = fileURLToPath(agents.module);
  return ["--agents", module, "--processes", String(processesEach), "--slots", String(slots)];
}

async function unexpectedEnd({ name, ended }: Program, isStopping: () => boolean): Promise<never> {
  const how = await ended;
  if (isStopping()) return new Promise<never>(() => undefined);
  throw new Error(`${name} ended (${how}) although nobody stopped it`);
}
