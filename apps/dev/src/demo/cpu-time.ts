import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** How long one measurement lasts, in milliseconds. */
export const WINDOW_MS = 1_000;

/** CPU time, in milliseconds, that these processes use together within one window. */
export async function measureCpu(pids: readonly number[], signal: AbortSignal): Promise<number> {
  const before = sumCpu(pids);
  await pause(WINDOW_MS, undefined, { signal });
  return sumCpu(pids) - before;
}

/** CPU time of these processes since each of them started, in milliseconds. */
export function sumCpu(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + cpuTimeMs(pid), 0);
}

/** CPU time of a process so far. @throws {Error} it does not run. */
function cpuTimeMs(pid: number): number {
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

/** All threads, to the nanosecond. */
function fromProc(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((total, one) => total + one, 0) / 1e6;
}

/** `ps` says [[days-]hours:]minutes:seconds.hundredths. */
function fromPs(pid: number): number {
  const text = execFileSync("ps", ["-o", "time=", "-p", String(pid)], { encoding: "utf8" }).trim();
  return text.split(/[-:]/).reduce((total, part) => total * 60 + Number(part), 0) * 1_000;
}
