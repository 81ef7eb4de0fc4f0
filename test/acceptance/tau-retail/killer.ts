import type { HeldReply } from "./store-service/reply-holds.ts";

/** Numbers in [0, 1). */
export type RandomSource = () => number;

/** What the killer is to achieve, and how hard it presses. */
export type KillPlan = {
  /** Kills altogether. */
  readonly kills: number;
  /** Of these, at least so many on a process whose write has left and whose reply is held. */
  readonly killsAfterWrite: number;
  /** Pause before each kill, in milliseconds, drawn evenly from this range. */
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  /** Share of the kills, 0 to 1, that take the victim's whole machine along: its supervisor and all its processes. */
  readonly machineShare: number;
};

/** The processes that may be killed now, and the replies that are held back now. */
export type KillChoices = {
  readonly workerPids: readonly number[];
  readonly held: readonly Pick<HeldReply, "operationId" | "workerPid">[];
};

/** `afterWrite` is the operation whose reply the victim still waits for, or null for a victim at random. */
export type Kill = {
  readonly pid: number;
  readonly afterWrite: string | null;
  readonly scope: "process" | "machine";
};

/** Kills that were carried out, in order. */
export type KillLog = readonly Kill[];

/** A seeded source: the same seed gives the same numbers on every machine (mulberry32 over the text's FNV-1a hash). */
export function createRandomSource(seed: string): RandomSource {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(seed)) state = Math.imul(state ^ byte, 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The pause before the next kill, in whole milliseconds within the plan's range. */
export function chooseDelayMs(random: RandomSource, plan: KillPlan): number {
  return plan.minDelayMs + Math.floor(random() * (plan.maxDelayMs - plan.minDelayMs + 1));
}

/**
 * The next victim: as long as the plan still wants kills after a write, a live process with a held reply where there is
 * one; otherwise any live process. Null: nobody to kill, or the kills that are left must wait for a held reply.
 */
export function chooseVictim(
  random: RandomSource,
  { plan, log }: { plan: KillPlan; log: KillLog },
  { workerPids, held }: KillChoices,
): Kill | null {
  const killsLeft = plan.kills - log.length;
  const afterWriteLeft = plan.killsAfterWrite - log.filter((kill) => kill.afterWrite !== null).length;
  const scope = random() < plan.machineShare ? "machine" : "process";
  const waiting = held.filter(({ workerPid }) => workerPid !== null && workerPids.includes(workerPid));
  if (afterWriteLeft > 0) {
    const reply = pick(random, waiting);
    if (reply !== undefined && reply.workerPid !== null) {
      return { pid: reply.workerPid, afterWrite: reply.operationId, scope };
    }
    if (killsLeft <= afterWriteLeft) return null;
  }
  const pid = pick(random, workerPids);
  if (pid === undefined) return null;
  // A victim at random may have a write out all the same; it counts as what it is.
  return { pid, afterWrite: waiting.find((reply) => reply.workerPid === pid)?.operationId ?? null, scope };
}

/** What the killer needs from the world around it. */
export type KillerDeps = {
  readonly random: RandomSource;
  /** Sends SIGKILL; false where the process had already ended by itself. */
  readonly kill: (victim: Kill) => boolean;
  readonly choices: () => Promise<KillChoices>;
  /** Hears of every kill that was carried out. */
  readonly onKill: (kill: Kill) => void;
  /** Rejects or returns early when the signal aborts; both are fine. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
};

/**
 * Kills until the plan is fulfilled or the signal aborts; returns the kills in order. Victims are chosen after the pause,
 * from what is true at that moment.
 */
export async function runKiller(deps: KillerDeps, plan: KillPlan, signal: AbortSignal): Promise<KillLog> {
  const log: Kill[] = [];
  while (log.length < plan.kills && !signal.aborted) {
    await waitOrAbort(deps, chooseDelayMs(deps.random, plan), signal);
    if (signal.aborted) break;
    const victim = chooseVictim(deps.random, { plan, log }, await deps.choices());
    if (victim === null || !deps.kill(victim)) continue;
    log.push(victim);
    deps.onKill(victim);
  }
  return log;
}

async function waitOrAbort({ wait }: KillerDeps, ms: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(ms, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function pick<T>(random: RandomSource, choices: readonly T[]): T | undefined {
  return choices[Math.floor(random() * choices.length)];
}
