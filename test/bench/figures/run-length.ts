import type { Contestant } from "../contestant.ts";
import type { Figure } from "../figure.ts";
import { product } from "../product.ts";
import { costsOf, type StepCost, watchProgress } from "../progress.ts";
import { goal, type Measure, type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Stage } from "../stage.ts";
import { strawMan } from "../straw-man.ts";
import { openCast, warmUp } from "../trial.ts";
import { stepsOf, type Work } from "../work.ts";

/** Both make a run of a thousand steps: a long turn, and a long conversation. */
const SHAPES = [
  { name: "one turn of 998 calls", full: { turns: 1, calls: 998 }, quick: { turns: 1, calls: 98 } },
  { name: "499 turns of one call", full: { turns: 499, calls: 1 }, quick: { turns: 49, calls: 1 } },
];
const SIZES = { full: { runs: 20, warmUpRuns: 10 }, quick: { runs: 4, warmUpRuns: 1 } };
const SLOTS = 20;

/** What is compared, in shares of a run: of a thousand steps those from the 10th, and those up to the 990th; a hundred a run. */
const PARTS = { from: 0.01, to: 0.99, length: 0.1 };

const MOST = goal("ratio", "at most", 1.1);

interface Costs {
  readonly early: StepCost;
  readonly late: StepCost;
}

/** Whether a step of a long run costs what its first steps did. */
export const runLength: Figure = {
  name: "run-length",
  measures:
    "Twenty runs of a thousand steps at once in one worker process. The ceiling is not the straw man but the runs' own beginning: what a step costs in the last hundred steps a run before one of them stores its 990th, against the first hundred a run after all of them have stored their 10th.",
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
  const { arena, client } = cast;
  await warmUp(stage, contestant, { cast, runs: warmUpRuns });
  const submitted = await client.submit(runs);
  const length = stepsOf(work);
  const points = await watchProgress(arena, contestant, {
    runs: submitted.ids,
    steps: runs * length,
    begin: () => submitted.announce(),
  });
  return costsOf(points, {
    from: PARTS.from * length,
    to: PARTS.to * length,
    steps: runs * PARTS.length * length,
  });
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
