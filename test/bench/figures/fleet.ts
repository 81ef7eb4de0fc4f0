import type { Figure } from "../figure.ts";
import { playTrials } from "../rounds.ts";
import { type Row, rowOf } from "../row.ts";
import { sized } from "../settings.ts";

const WORK = { turns: 1, calls: 10 };
const SLOTS = 100;
const FLEETS = [1, 2, 4];

/** Durable steps a second of several worker processes. They share this machine with the servers. */
export const fleet: Figure = {
  name: "fleet",
  measures:
    "One, two and four worker processes, each with 100 slots, work on runs of 12 durable steps. All of them, the servers and the benchmark share this machine's cores, so the ratio says more than the growth.",
  async run(stage, say) {
    const rows: Row[] = [];
    for (const queue of stage.settings.queues) {
      for (const processes of FLEETS) {
        const rounds = await playTrials(stage, {
          queue,
          work: WORK,
          slots: SLOTS,
          processes,
          ...sized(stage.settings, {
            full: { runs: 2_000, warmUpRuns: 1_000 * processes },
            quick: { runs: 200, warmUpRuns: 20 * processes },
          }),
        });
        const samples = rounds.map(({ product, strawMan }) => ({
          value: product.steps / product.seconds,
          ceiling: strawMan.steps / strawMan.seconds,
        }));
        const figure = `durable steps, ${processes} process${processes === 1 ? "" : "es"}`;
        rows.push(rowOf({ figure, queue, unit: "steps/s" }, samples));
        say(`fleet of ${processes} on ${queue} done`);
      }
    }
    return rows;
  },
};
