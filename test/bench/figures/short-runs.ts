import type { Figure } from "../figure.ts";
import { playTrials } from "../rounds.ts";
import { type Row, rowOf } from "../row.ts";
import { sized } from "../settings.ts";

const WORK = { turns: 0, calls: 0 };
const SLOTS = 100;

/** Runs a second that have one step, so that their claim and their end count most. */
export const shortRuns: Figure = {
  name: "short-runs",
  measures: "One worker process works on runs of one durable step (a closing reply), 100 of them at once.",
  async run(stage, say) {
    const rows: Row[] = [];
    for (const queue of stage.settings.queues) {
      const rounds = await playTrials(stage, {
        queue,
        work: WORK,
        slots: SLOTS,
        profile: "short-runs",
        ...sized(stage.settings, {
          full: { runs: 4_000, warmUpRuns: 4_000 },
          quick: { runs: 200, warmUpRuns: 50 },
        }),
      });
      const samples = rounds.map(({ product, strawMan }) => ({
        value: product.runs / product.seconds,
        ceiling: strawMan.runs / strawMan.seconds,
      }));
      const cpu = rounds.map(({ product, strawMan }) => ({
        value: (1_000 * product.used.nodeSeconds) / product.runs,
        ceiling: (1_000 * strawMan.used.nodeSeconds) / strawMan.runs,
      }));
      rows.push(rowOf({ figure: "runs of one step", queue, unit: "runs/s" }, samples));
      rows.push(rowOf({ figure: "CPU of the worker", queue, unit: "s / 1 000 runs" }, cpu));
      say(`short runs on ${queue} done`);
    }
    return rows;
  },
};
