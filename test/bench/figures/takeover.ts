import { median } from "../arithmetic.ts";
import type { Figure } from "../figure.ts";
import { goal, type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Stage } from "../stage.ts";
import { openTakeoverFleet, type TakeoverFleet } from "../takeover-fleet.ts";

const PROCESSES = 4;
const MOST = goal("value", "at most", 200);

/** How long a run waits for another process when the one that works on it is killed. */
export const takeover: Figure = {
  name: "takeover",
  measures:
    "SIGKILL of a process that works on a run, to the run's claim by another one, by the database's clock (the median of each round). A child process: its supervisor, with four of them, gives the run back. A whole worker with its supervisor: the sweeper does, when a lease of 3 s and a grace of 0.5 s are over; it sweeps each 0.2 s.",
  async run(stage, say) {
    const rows: Row[] = [];
    const sizes = sized(stage.settings, { full: { children: 8, workers: 2 }, quick: { children: 3, workers: 1 } });
    for (const queue of stage.settings.queues) {
      const children: number[] = [];
      const workers: number[] = [];
      for (let round = 0; round < stage.settings.rounds; round += 1) {
        children.push(median(await killChildren(stage, { queue, kills: sizes.children })));
        workers.push(median(await killWorkers(stage, { queue, kills: sizes.workers })));
      }
      const judged = queue === "redis" && !stage.settings.quick ? { goal: MOST } : {};
      rows.push(rowOf({ figure: "takeover from a child process, p50", queue, unit: "ms", ...judged }, alone(children)));
      rows.push(rowOf({ figure: "takeover from a whole worker, p50", queue, unit: "ms" }, alone(workers)));
      say(`takeover on ${queue} done`);
    }
    return rows;
  },
};

interface Kills {
  readonly queue: QueueKind;
  readonly kills: number;
}

/** Kills a working process, again and again; gives how long each takeover took, in milliseconds. */
export async function killChildren(stage: Stage, { queue, kills }: Kills): Promise<readonly number[]> {
  await using fleet = await openTakeoverFleet(stage, queue);
  await fleet.startWorker(PROCESSES);
  return await repeat(kills, async () => {
    // A supervisor waits longer and longer with the successor of a process that has not lived for long. Without this pause
    // the fleet would be gone after some kills, and what was measured would be how long it takes to start a process.
    await fleet.untilWhole(PROCESSES);
    return takenOver(fleet, (pid) => void process.kill(pid, "SIGKILL"));
  });
}

/** Kills a worker, its supervisor first, so that nobody but the sweeper notices. */
async function killWorkers(stage: Stage, { queue, kills }: Kills): Promise<readonly number[]> {
  await using fleet = await openTakeoverFleet(stage, queue);
  await fleet.startSweeper();
  await fleet.startWorker(1);
  return await repeat(kills, async () => {
    await fleet.startWorker(1); // the one that takes over, and is the next to be killed
    return takenOver(fleet, (pid) => fleet.killWorkerOf(pid));
  });
}

async function takenOver(fleet: TakeoverFleet, kill: (pid: number) => void): Promise<number> {
  const runId = await fleet.submit();
  const pid = await fleet.untilWorkedOn(runId);
  const killedMs = await fleet.nowMs();
  kill(pid);
  const tookMs = (await fleet.untilClaimedAgain(runId)) - killedMs;
  await fleet.untilEnded(runId);
  return tookMs;
}

async function repeat(times: number, measure: () => Promise<number>): Promise<readonly number[]> {
  const values: number[] = [];
  for (let number = 0; number < times; number += 1) values.push(await measure());
  return values;
}

function alone(values: readonly number[]) {
  return values.map((value) => ({ value, ceiling: null }));
}
