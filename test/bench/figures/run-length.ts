import type { Contestant } from "../contestant.ts";
import type { Figure } from "../figure.ts";
import { product } from "../product.ts";
import { costBetween, type StepCost, watchProgress } from "../progress.ts";
import { goal, type Measure, type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Stage } from "../stage.ts";
import { strawMan } from "../straw-man.ts";
import { openCast, untilAllEnded } from "../trial.ts";
import { stepsOf, type Work } from "../work.ts";

/** Both make a run of a thousand steps: a long turn, and a long conversation. */
const SHAPES = [
  { name: "one turn of 998 calls", full: { turns: 1, calls: 998 }, quick: { turns: 1, calls: 98 } },
  { name: "499 turns of one call", full: { turns: 499, calls: 1 }, quick: { turns: 49, calls: 1 } },
];
const SIZES = { full: { runs: 20, warmUpRuns: 4 }, quick: { runs: 4, warmUpRuns: 1 } };
const SLOTS = 20;

/** The parts of a run that are compared: of a thousand steps those from the 10th to the 110th, and from the 890th on. */
const EARLY = { from: 0.01, to: 0.11 };
const LATE = { from: 0.89, to: 0.99 };

const MOST = goal("ratio", "at most", 1.1);

interface Costs {
  readonly early: StepCost;
  readonly late: StepCost;
}

/** Whether a step of a long run costs what its first steps did. */
export const runLength: Figure = {
  name: "run-length",
  measures:
    "Twenty runs of a thousand steps at once in one worker process. The ceiling is not the straw man but the run's own beginning: what a step costs from the 890th to the 990th, against what it cost from the 10th to the 110th.",
  async run(stage, say) {
    const [queue = "postgres"] = stage.settings.queues; // a run is claimed once: the queue has no part in it
    const rows: Row[] = [];
    for (const shape of SHAPES) {
      const work = sized(stage.settings, shape);
      const rounds: Costs[] = [];
      for (let round = 0; round < stage.settings.rounds; round += 1) {
        rounds.push(await playLongRuns(stage, product, { queue, work }));
      }
      rows.push(...rowsOf(rounds, { queue, shape: shape.name, judged: !stage.settings.quick }));
      say(`run length: ${shape.name} done`);
    }
    const straw = await playLongRuns(stage, strawMan, {
      queue,
      work: sized(stage.settings, SHAPES[0] as (typeof SHAPES)[0]),
    });
    rows.push(...rowsOf([straw], { queue, shape: "straw man", judged: false }));
    return rows;
  },
};

async function playLongRuns(
  stage: Stage,
  contestant: Contestant,
  { queue, work }: { readonly queue: QueueKind; readonly work: Work },
): Promise<Costs> {
  const { runs, warmUpRuns } = sized(stage.settings, SIZES);
  await using cast = await openCast(stage, contestant, { queue, work, slots: SLOTS });
  const { arena, client, workers } = cast;
  const warmUp = await client.submit(warmUpRuns);
  await warmUp.announce();
  await untilAllEnded(arena, contestant, workers);
  await stage.servers.admin.query("checkpoint");
  const submitted = await client.submit(runs);
  const steps = runs * stepsOf(work);
  const points = await watchProgress(arena, contestant, { steps, begin: () => submitted.announce() });
  const part = ({ from, to }: typeof EARLY) => costBetween(points, from * steps, to * steps);
  return { early: part(EARLY), late: part(LATE) };
}

function rowsOf(
  rounds: readonly Costs[],
  { queue, shape, judged }: { readonly queue: QueueKind; readonly shape: string; readonly judged: boolean },
): readonly Row[] {
  const row = (what: Pick<Measure, "figure" | "unit">, of: (cost: StepCost) => number) =>
    rowOf(
      { figure: `${what.figure}, ${shape}`, queue, unit: what.unit, ...(judged ? { goal: MOST } : {}) },
      rounds.map(({ early, late }) => ({ value: of(late), ceiling: of(early) })),
    );
  return [
    row({ figure: "time", unit: "µs/step" }, ({ seconds }) => 1e6 * seconds),
    row({ figure: "WAL", unit: "bytes/step" }, ({ walBytes }) => walBytes),
    row({ figure: "statements", unit: "per step" }, ({ statements }) => statements),
  ];
}
