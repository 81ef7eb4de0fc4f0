import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { z } from "zod";

/** One program of the fleet, in a process group of its own: a Ctrl-C in the terminal reaches only us. */
export interface Program {
  readonly name: string;
  /** Also the id of its process group. */
  readonly pid: number;
  /** Resolves with how it ended: an exit code or a signal. */
  readonly ended: Promise<string>;
  /** Lets it drain; after the limit it is killed with all that it started. */
  stop(): Promise<void>;
  /** SIGKILL to it and all that it started; false where nothing of it was left. */
  killGroup(): boolean;
}

export interface ProgramStart {
  readonly name: string;
  readonly main: URL;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Its output is appended to this file. */
  readonly logFile: string;
  /** Hears every line of its output, and of the processes that it started. */
  readonly onLine?: (line: LogLine) => void;
}

const LogLineSchema = z.looseObject({ event: z.string() });
/** A line of output that is JSON and names an event. */
export type LogLine = z.infer<typeof LogLineSchema>;

const STOP_LIMIT_MS = 15_000;

/** Starts a program. It ends by itself when we die: its channel closes. */
export function startProgram({ name, main, args = [], env, logFile, onLine }: ProgramStart): Program {
  const child = fork(main, [...args], {
    execArgv: [],
    env: { ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  keepLog(child, logFile);
  if (onLine !== undefined) readLines(child, onLine);
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once("error", (error) => resolve(error.message));
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} could not be started: see ${logFile}`);
  const killGroup = (): boolean => sendSignal(-pid, "SIGKILL");
  return {
    name,
    pid,
    ended,
    killGroup,
    stop: async () => {
      const limit = setTimeout(killGroup, STOP_LIMIT_MS);
      sendSignal(pid, "SIGTERM");
      await ended;
      clearTimeout(limit);
    },
  };
}

/**
 * Waits for the line with which a program says that it is ready.
 *
 * @throws {Error} it ended instead.
 */
export async function startAndWait(
  start: ProgramStart,
  event: string,
): Promise<{ readonly program: Program; readonly line: LogLine }> {
  const ready = Promise.withResolvers<LogLine>();
  const onLine = (line: LogLine): void => {
    if (line.event === event) ready.resolve(line);
    start.onLine?.(line);
  };
  const program = startProgram({ ...start, onLine });
  const line = await Promise.race([ready.promise, program.ended]);
  if (typeof line !== "string") return { program, line };
  throw new Error(`${start.name} ended at its start (${line}): see ${start.logFile}`);
}

/** Sends a signal to a process, or to a group where the id is negative; false where there is none. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

function keepLog({ stdout, stderr }: ChildProcess, logFile: string): void {
  const log = createWriteStream(logFile, { flags: "a" });
  for (const stream of [stdout, stderr]) stream?.pipe(log, { end: false });
  const streams = [stdout, stderr].map((stream) => (stream === null ? null : once(stream, "close")));
  void Promise.allSettled(streams).then(() => log.end());
}

function readLines({ stdout }: ChildProcess, onLine: (line: LogLine) => void): void {
  if (stdout === null) throw new Error("the program's output is not piped");
  createInterface(stdout).on("line", (text) => {
    const line = LogLineSchema.safeParse(parseJson(text));
    if (line.success) onLine(line.data);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a line for people
  }
}
