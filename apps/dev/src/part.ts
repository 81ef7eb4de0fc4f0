// One process of the fleet: started, seen to be ready, stopped.
// I1  It is in a session of its own: a Ctrl-C in our terminal reaches it only through us, in the order that we choose.
// I2  It ends when we end, however we end: its channel to us closes.
// I3  What it prints goes to its log file directly, so its last lines outlive us.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findLine, type LogLine, tailOf } from "./log-file.ts";

/** What a part is started with. */
export interface PartPlan {
  readonly name: string;
  /** Its entry point, relative to the clone's folder. */
  readonly entry: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** The `event` of the line that says it is ready; null for a task that has to end with exit code 0. */
  readonly readyEvent: string | null;
}

/** How a process ended. */
export interface PartEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process of the fleet that is ready. */
export interface Part {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** The line that said it is ready. */
  readonly ready: LogLine;
  readonly ended: Promise<PartEnd>;
  isAlive(): boolean;
  /** Asks it to drain and waits for its end; after the limit, in milliseconds, it is killed. Says which it was. */
  stop(limitMs: number): Promise<"drained" | "killed">;
  /** SIGKILL for the part and every process it has started. */
  kill(): void;
}

/** A part that did not come up. The message ends with the last lines of its log. */
class PartError extends Error {
  readonly code = "PART_FAILED";
  constructor(name: string, what: string, logFile: string) {
    super(`${name} ${what}.\nThe last lines of ${logFile}:\n${tailOf(logFile)}`);
    this.name = "PartError";
  }
}

const CLONE = fileURLToPath(new URL("../../../", import.meta.url));
const READY_WITHIN_MS = 60_000;
const READY_POLL_MS = 15;

/**
 * Starts a part and waits until it says that it is ready.
 *
 * @throws {PartError} it ended before, or is not ready after a minute.
 */
export async function startPart(plan: PartPlan, signal: AbortSignal): Promise<Part> {
  const child = spawnPart(plan);
  const ended = once(child, "exit").then(([code, by]): PartEnd => ({ code, signal: by }));
  const part: Omit<Part, "ready"> = {
    name: plan.name,
    pid: child.pid ?? 0,
    logFile: plan.logFile,
    ended,
    isAlive: () => isRunning(child),
    stop: (limitMs) => stopPart(child, ended, limitMs),
    kill: () => killAll(child),
  };
  try {
    return { ...part, ready: await becomesReady(plan, child, signal) };
  } catch (error) {
    part.kill();
    if (child.pid !== undefined) await ended;
    throw error;
  }
}

/** Runs a task to its end. @throws {PartError} it failed. */
export async function runTask(plan: Omit<PartPlan, "readyEvent">): Promise<void> {
  const child = spawnPart({ ...plan, readyEvent: null });
  const [code, by] = await once(child, "exit");
  if (code !== 0) throw new PartError(plan.name, `failed (${endInWords({ code, signal: by })})`, plan.logFile);
}

/** "exit code 1", "SIGKILL". */
export function endInWords({ code, signal }: PartEnd): string {
  return signal ?? `exit code ${code}`;
}

function spawnPart({ entry, args = [], env, logFile }: PartPlan): ChildProcess {
  const log = openSync(logFile, "w");
  try {
    const stdio = ["ignore", log, log, "ipc"] as const;
    return fork(entry, [...args], { cwd: CLONE, env: { ...env }, execArgv: [], detached: true, stdio: [...stdio] });
  } finally {
    closeSync(log);
  }
}

async function becomesReady(
  { name, readyEvent, logFile }: PartPlan,
  child: ChildProcess,
  signal: AbortSignal,
): Promise<LogLine> {
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const line = readyEvent === null ? null : findLine(logFile, readyEvent);
    if (line !== null) return line;
    if (!isRunning(child)) {
      throw new PartError(
        name,
        `did not start (${endInWords({ code: child.exitCode, signal: child.signalCode })})`,
        logFile,
      );
    }
    if (performance.now() > deadlineMs)
      throw new PartError(name, `is not ready after ${READY_WITHIN_MS / 1_000} s`, logFile);
    await pause(READY_POLL_MS, undefined, { signal });
  }
}

async function stopPart(child: ChildProcess, ended: Promise<PartEnd>, limitMs: number): Promise<"drained" | "killed"> {
  if (!isRunning(child)) return "drained";
  child.kill("SIGTERM");
  const over = new AbortController();
  const first = await Promise.race([
    ended.then(() => "drained" as const),
    // An abort only says that there is nothing to wait for any more.
    pause(limitMs, "killed" as const, { signal: over.signal }).catch(() => "drained" as const),
  ]);
  over.abort();
  if (first === "killed") killAll(child);
  await ended;
  return first;
}

function killAll({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL"); // its whole group
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error; // it has ended already
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}
