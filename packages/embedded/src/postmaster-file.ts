import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isAnswering } from "./loopback-port.ts";

const GONE_WITHIN_MS = 5_000;
const GONE_POLL_MS = 50;

/** What the file `postmaster.pid` of a data folder says about a server that lives. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
}

/** The living server of a data folder; `null` if there is none (a stale file of a dead server counts as none). */
export async function readPostmaster(pgData: string): Promise<Postmaster | null> {
  const found = parsePostmaster(readIfPresent(join(pgData, "postmaster.pid")));
  if (found === null || !isAlive(found.pid)) return null;
  // The number may belong to another process by now (after a restart of the machine): a ready server also answers.
  if (found.ready && !(await isAnswering(found.port))) return null;
  return found;
}

/**
 * Waits, for some seconds at most, until the process named in the file is gone: a server that was just killed, whose
 * number the system has not given free yet, would make the next start fail. Returns at once when a server lives.
 */
export async function untilPredecessorGone(pgData: string): Promise<void> {
  const deadlineMs = performance.now() + GONE_WITHIN_MS;
  while (performance.now() < deadlineMs) {
    const found = parsePostmaster(readIfPresent(join(pgData, "postmaster.pid")));
    if (found === null || !isAlive(found.pid) || !found.ready || (await isAnswering(found.port))) return;
    await pause(GONE_POLL_MS);
  }
}

/** Reads the text of a `postmaster.pid`: line 1 pid, line 4 port, line 8 state. `null` while it is incomplete. */
export function parsePostmaster(text: string): Postmaster | null {
  const lines = text.split("\n");
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid <= 0 || !Number.isInteger(port) || port <= 0) return null;
  return { pid, port, ready: lines[7]?.trim() === "ready" };
}

export function readIfPresent(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // it lives, as another user
  }
}
