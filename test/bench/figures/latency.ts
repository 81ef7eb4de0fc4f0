import { percentile } from "../arithmetic.ts";
import type { Figure } from "../figure.ts";
import { type HeldContestant, heldProduct, heldStrawMan, type People } from "../held-contestants.ts";
import { untilHeld } from "../held-stage.ts";
import { playRounds, type Round } from "../rounds.ts";
import { type Bound, type Goal, type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Stage } from "../stage.ts";
import { openCast, untilAllEnded } from "../trial.ts";
import { monotonicMs, type Point } from "../worker-channel.ts";
import type { WorkerProcess } from "../worker-process.ts";

const NO_WORK = { turns: 0, calls: 0 }; // the programs of held runs do work of their own
const SLOTS = 8;
const NEWS_WITHIN_MS = 30_000;
const GOALS: Readonly<Record<QueueKind, Goal>> = {
  redis: { all: [atMost("ratio", 1.5), atMost("value", 5)] },
  postgres: { all: [atMost("ratio", 2.5)] },
};

/** What was measured of each run, in milliseconds. */
export interface Latencies {
  readonly startMs: readonly number[];
  readonly continueMs: readonly number[];
}

/** How long an idle fleet takes to begin a run, and to go on with one that a person has released. */
export const latency: Figure = {
  name: "latency",
  measures:
    "One worker process has nothing to do; then there is one run. Start: from before the submission to the moment in the worker when the first step is known to be durable. Continue: from before the decision to the same moment of the step that it released.",
  async run(stage, say) {
    const rows: Row[] = [];
    const sizes = sized(stage.settings, { full: { runs: 300, warmUpRuns: 50 }, quick: { runs: 20, warmUpRuns: 3 } });
    for (const queue of stage.settings.queues) {
      const rounds = await playRounds(stage, (contestant) =>
        playLatency(stage, contestant.name === "product" ? heldProduct : heldStrawMan, { queue, ...sizes }),
      );
      rows.push(...rowsOf(rounds, queue, !stage.settings.quick));
      say(`latency on ${queue} done`);
    }
    return rows;
  },
};

/** Plays one run after the other, each when the one before it has ended. */
export async function playLatency(
  stage: Stage,
  contestant: HeldContestant,
  { queue, runs, warmUpRuns }: { readonly queue: QueueKind; readonly runs: number; readonly warmUpRuns: number },
): Promise<Latencies> {
  await using cast = await openCast(stage, contestant, { queue, work: NO_WORK, slots: SLOTS });
  const { arena, workers } = cast;
  const [worker] = workers;
  if (worker === undefined) throw new Error("There is no worker");
  await using people = await contestant.openPeople(arena);
  const reached = listen(worker);
  await stage.servers.admin.query("checkpoint"); // not later: see `warmUp`
  const startMs: number[] = [];
  const continueMs: number[] = [];
  for (let number = 0; number < warmUpRuns + runs; number += 1) {
    // Early enough for the plans to be made anew.
    if (number === Math.floor(warmUpRuns / 2)) await arena.admin.query("analyze");
    const started = await timed(reached("started"), await people.prepareRun());
    await untilHeld(arena, contestant, { runs: 1, workers });
    const continued = await timed(reached("continued"), await onlyRequest(people));
    await untilAllEnded(arena, contestant, workers);
    if (number < warmUpRuns) continue;
    startMs.push(started);
    continueMs.push(continued);
  }
  return { startMs, continueMs };
}

/** From before the act to the moment that the worker tells of; both by the machine's monotonic clock. */
async function timed(reached: Promise<number>, act: () => Promise<void>): Promise<number> {
  const fromMs = monotonicMs();
  const [atMs] = await Promise.all([reached, act()]);
  return atMs - fromMs;
}

async function onlyRequest(people: People): Promise<() => Promise<void>> {
  const [release, ...others] = await people.readRequests();
  if (release === undefined || others.length > 0) throw new Error("There is not one request");
  return release;
}

/** Gives when the worker's next run comes to a point. */
function listen(worker: WorkerProcess): (point: Point) => Promise<number> {
  const waiting = new Map<Point, (atMs: number) => void>();
  worker.onNews(({ point, atMs }) => waiting.get(point)?.(atMs));
  return (point) =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`No run has ${point}`)), NEWS_WITHIN_MS);
      waiting.set(point, (atMs) => {
        clearTimeout(late);
        resolve(atMs);
      });
    });
}

function rowsOf(rounds: readonly Round<Latencies>[], queue: QueueKind, judged: boolean): readonly Row[] {
  const row = (figure: string, share: number, of: (played: Latencies) => readonly number[]) => {
    const isMedian = share === 0.5;
    return rowOf(
      {
        figure: `${figure}, ${isMedian ? "p50" : "p99"}`,
        queue,
        unit: "ms",
        ...(judged && isMedian ? { goal: GOALS[queue] } : {}),
      },
      rounds.map(({ product, strawMan }) => ({
        value: percentile(of(product), share),
        ceiling: percentile(of(strawMan), share),
      })),
    );
  };
  return [0.5, 0.99].flatMap((share) => [
    row("submit to first step", share, ({ startMs }) => startMs),
    row("decide to next step", share, ({ continueMs }) => continueMs),
  ]);
}

function atMost(of: Bound["of"], than: number): Bound {
  return { of, is: "at most", than };
}
