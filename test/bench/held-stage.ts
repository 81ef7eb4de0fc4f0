import { setTimeout as sleep } from "node:timers/promises";
import type { HeldContestant } from "./held-contestants.ts";
import type { Arena } from "./stage.ts";
import type { WorkerProcess } from "./worker-process.ts";

const LIMIT_MS = 120_000;
const POLL_MS = 2;

/**
 * Waits until so many runs wait to be released.
 *
 * @throws {Error} it takes too long, or one of the workers has ended.
 */
export async function untilHeld(
  { admin }: Arena,
  { name, holding }: HeldContestant,
  { runs, workers }: { readonly runs: number; readonly workers: readonly WorkerProcess[] },
): Promise<void> {
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const { rows } = await admin.query<{ held: number }>(holding);
    if (rows[0]?.held === runs) return;
    if (workers.some((worker) => worker.hasEnded())) throw new Error(`A worker of the ${name} has ended`);
    if (performance.now() > deadlineMs) throw new Error(`The ${name} holds ${rows[0]?.held} runs, not ${runs}`);
    await sleep(POLL_MS);
  }
}

/** Does all, so many at once. */
export async function doAll(acts: readonly (() => Promise<void>)[], atOnce: number): Promise<void> {
  const left = acts.values(); // shared: each takes the next
  const one = async (): Promise<void> => {
    for (const act of left) await act();
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}
