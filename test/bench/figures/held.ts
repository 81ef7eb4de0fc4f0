import type { Figure } from "../figure.ts";
import { type HeldContestant, heldProduct, heldStrawMan, type People } from "../held-contestants.ts";
import { doAll, untilHeld } from "../held-stage.ts";
import { HELD_WORK } from "../held-work.ts";
import { playRounds } from "../rounds.ts";
import { type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Arena, Stage } from "../stage.ts";
import { type Cast, openCast, untilAllEnded } from "../trial.ts";

const NO_WORK = { turns: 0, calls: 0 }; // the programs of held runs do work of their own
const SLOTS = 100;
const AT_ONCE = 32;

/** How long many held runs take that are decided at the same time. */
export const held: Figure = {
  name: "held",
  measures:
    "Runs wait for a manager, who decides all of them, 32 at once; one worker process with 100 slots does the rest of each: a claim, two steps and an end. Time runs from the first decision to the last end.",
  async run(stage, say) {
    const rows: Row[] = [];
    const sizes = sized(stage.settings, {
      full: { runs: 2_000, warmUpRuns: 500 },
      quick: { runs: 100, warmUpRuns: 20 },
    });
    const { runs } = sizes;
    for (const queue of stage.settings.queues) {
      const rounds = await playRounds(stage, (contestant) =>
        playHeld(stage, contestant.name === "product" ? heldProduct : heldStrawMan, { queue, ...sizes }),
      );
      const samples = rounds.map(({ product, strawMan }) => ({ value: product, ceiling: strawMan }));
      const perSecond = samples.map(({ value, ceiling }) => ({ value: runs / value, ceiling: runs / ceiling }));
      rows.push(rowOf({ figure: `${runs} held runs decided, all done`, queue, unit: "s" }, samples));
      rows.push(rowOf({ figure: "decided and done", queue, unit: "runs/s" }, perSecond));
      say(`held runs on ${queue} done`);
    }
    return rows;
  },
};

/** Gives the seconds from the first decision to the last end, by the database's clock. */
export async function playHeld(
  stage: Stage,
  contestant: HeldContestant,
  { queue, runs, warmUpRuns }: { readonly queue: QueueKind; readonly runs: number; readonly warmUpRuns: number },
): Promise<number> {
  await using cast = await openCast(stage, contestant, { queue, work: NO_WORK, slots: SLOTS });
  const { arena } = cast;
  await using people = await contestant.openPeople(arena);
  await stage.servers.admin.query("checkpoint"); // not later: see `warmUp`
  await decideAll(contestant, { cast, people, runs: warmUpRuns });
  await arena.admin.query("analyze");
  const from = await decideAll(contestant, { cast, people, runs });
  await checkSteps(arena, contestant, (warmUpRuns + runs) * HELD_WORK.steps);
  return (await secondsOf(arena, contestant.sql.endedAt)) - from;
}

/** Submits runs, waits until all are held, and decides them. Gives when the first decision began. */
async function decideAll(
  contestant: HeldContestant,
  { cast, people, runs }: { readonly cast: Cast; readonly people: People; readonly runs: number },
): Promise<number> {
  const { arena, client, workers } = cast;
  const submitted = await client.submit(runs);
  await submitted.announce();
  await untilHeld(arena, contestant, { runs, workers });
  const requests = await people.readRequests();
  const from = await secondsOf(arena, "select extract(epoch from clock_timestamp())::float8 as seconds");
  await doAll(requests, AT_ONCE);
  await untilAllEnded(arena, contestant, workers);
  return from;
}

async function secondsOf({ admin }: Arena, text: string): Promise<number> {
  const { rows } = await admin.query<{ seconds: number }>(text);
  if (rows[0] === undefined) throw new Error(`"${text}" gives nothing`);
  return rows[0].seconds;
}

async function checkSteps({ admin }: Arena, { name, sql }: HeldContestant, expected: number): Promise<void> {
  const { rows } = await admin.query<{ steps: number }>(sql.steps);
  if (rows[0]?.steps !== expected) throw new Error(`The ${name} stored ${rows[0]?.steps} steps, not ${expected}`);
}
