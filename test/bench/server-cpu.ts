import { readdirSync, readFileSync } from "node:fs";

/** Ticks a second of the times in /proc: fixed by Linux for user programs. */
const TICKS = 100;

/**
 * CPU seconds of a process, of its living children and of those that it has seen end. Null where the system has no /proc
 * to read them from, as on macOS.
 */
export function cpuSecondsOf(pid: number): number | null {
  const root = readTimes(pid);
  if (root === null) return null;
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readTimes(Number(name)))
    .filter((times) => times?.parent === pid)
    .map((times) => times?.own ?? 0);
  return root.own + root.ended + children.reduce((sum, own) => sum + own, 0);
}

interface Times {
  readonly parent: number;
  readonly own: number;
  readonly ended: number;
}

function readTimes(pid: number): Times | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null; // it has ended meanwhile, or there is no /proc
  }
  return parseTimes(stat);
}

/** Reads a line of /proc/<pid>/stat; the name in brackets may hold spaces and brackets itself. */
export function parseTimes(stat: string): Times {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const seconds = (index: number) => Number(fields[index]) / TICKS;
  return { parent: Number(fields[1]), own: seconds(11) + seconds(12), ended: seconds(13) + seconds(14) };
}
