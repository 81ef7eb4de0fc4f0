import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedServerError } from "./embedded-server-error.ts";
import { freePort, isFree, LOOPBACK } from "./loopback-port.ts";
import { readIfPresent } from "./postmaster-file.ts";

export interface RedisOptions {
  /** A folder for its log; made if it is not there. */
  readonly dir: string;
  /** The port on 127.0.0.1; by default any free one. */
  readonly port?: number | undefined;
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** The server's process, for tests that freeze or kill it. */
  readonly pid: number;
  /** Ends the server; all that it holds is gone. */
  stop(): Promise<void>;
}

const START_ATTEMPTS = 3;
const READY_WITHIN_MS = 10_000;
const READY_POLL_MS = 20;
const STOP_WITHIN_MS = 5_000;

/** The `redis-server` program of this machine; `null` where none is installed. */
export function findRedis(): string | null {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
  return folders.map((folder) => join(folder, "redis-server")).find(isExecutable) ?? null;
}

/**
 * Starts a Redis without persistence and waits until it answers. It ends with our process (unless that is killed with
 * SIGKILL), but is in a session of its own, so that a Ctrl-C in our terminal does not reach it before we have drained.
 *
 * @throws {EmbeddedServerError} REDIS_ABSENT: `redis-server` is not installed. START_FAILED: with its log.
 */
export async function startRedis({ dir, port: wantedPort }: RedisOptions): Promise<RedisServer> {
  const program = findRedis();
  if (program === null) {
    throw new EmbeddedServerError("REDIS_ABSENT", "redis-server is not installed: install Redis, or use Postgres");
  }
  mkdirSync(dir, { recursive: true });
  const log = join(dir, "redis.log");
  for (let attempt = 1; ; attempt += 1) {
    const port = wantedPort ?? (await freePort());
    const free = await isFree(port);
    const child = free ? await spawnRedis(program, { dir, log, port }) : null;
    if (child?.pid !== undefined && (await becomesReady(child, port))) {
      return { url: `redis://${LOOPBACK}:${port}`, port, pid: child.pid, stop: () => stopChild(child) };
    }
    if (child !== null) await stopChild(child);
    if (wantedPort === undefined && attempt < START_ATTEMPTS) continue;
    const reason = free ? `its log, ${log}, says:\n${readIfPresent(log)}` : "the port is taken";
    throw new EmbeddedServerError("START_FAILED", `Redis did not start on port ${port}: ${reason}`);
  }
}

interface RedisPlace {
  readonly dir: string;
  readonly log: string;
  readonly port: number;
}

async function spawnRedis(program: string, { dir, log, port }: RedisPlace): Promise<ChildProcess> {
  const child = spawn(
    program,
    // biome-ignore format: one setting, one line
    [
      "--bind", LOOPBACK,
      "--port", String(port),
      "--save", "",
      "--appendonly", "no",
      "--dir", dir,
      "--logfile", log,
    ],
    { detached: true, stdio: "ignore" },
  );
  await once(child, "spawn");
  child.unref();
  const endWithUs = () => child.kill("SIGKILL");
  process.once("exit", endWithUs);
  child.once("exit", () => process.removeListener("exit", endWithUs));
  return child;
}

async function becomesReady(child: ChildProcess, port: number): Promise<boolean> {
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  while (child.exitCode === null && child.signalCode === null && performance.now() < deadlineMs) {
    if (await answersPing(port)) return true;
    await pause(READY_POLL_MS);
  }
  return false;
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: LOOPBACK, timeout: 1_000 });
    const answer = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    socket.once("connect", () => socket.write("PING\r\n"));
    socket.once("data", (data) => answer(data.toString().startsWith("+PONG")));
    socket.once("timeout", () => answer(false));
    socket.once("error", () => answer(false));
  });
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.ref(); // wait for its end
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
  await ended;
  clearTimeout(kill);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent, or not a program for us
  }
}
