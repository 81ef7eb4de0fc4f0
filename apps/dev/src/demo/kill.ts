import type { Run } from "@holdpoint/protocol";
import type { Hand } from "./crew.ts";
import { DIRECTOR } from "./narrator.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

const LIMIT_MS = 60_000;

/** Who had a run last. */
export async function lastOwner({ people, crew, signal }: Stage, run: Pick<Run, "id">): Promise<Hand> {
  const { items } = await people.olga.showTimeline({ runId: run.id, limit: 200 }, { signal });
  const claim = items.findLast((entry) => entry.kind === "transition" && entry.event === "Claimed");
  if (claim?.kind !== "transition") throw new Error("nobody has claimed the run");
  return crew.find(claim.actor.id);
}

/** Kills one working process, which its supervisor replaces. */
export async function killHand(stage: Stage, hand: Hand, when: string): Promise<void> {
  stage.narrator.does(DIRECTOR, `${when}: SIGKILL to the working process ${hand.name} (${hand.pid})`);
  process.kill(hand.pid, "SIGKILL");
  await untilGone(stage, hand);
}

/** Waits until a process is gone. */
export async function untilGone({ signal }: Stage, { name, pid }: Hand): Promise<void> {
  await until(async () => (isRunning(pid) ? null : true), { what: `${name} to be gone`, limitMs: LIMIT_MS, signal });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // no such process: the answer itself
  }
}
