import type { Counters } from "../counters.ts";
import type { Figure } from "../figure.ts";
import { playTrials, type Round } from "../rounds.ts";
import { type Goal, goal, type Measure, type Row, rowOf } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Stage } from "../stage.ts";
import type { Trial } from "../trial.ts";

/** One reply that asks for ten calls, ten results, and the closing reply: twelve durable steps. */
const WORK = { turns: 1, calls: 10 };

const SIZES = {
  100: { full: { runs: 3_000, warmUpRuns: 3_000 }, quick: { runs: 150, warmUpRuns: 30 } },
  20: { full: { runs: 1_500, warmUpRuns: 1_500 }, quick: { runs: 60, warmUpRuns: 20 } },
} as const;

type Slots = keyof typeof SIZES;

interface Goals {
  readonly steps: Goal;
  readonly transactions: Goal;
  readonly wal: Goal;
  readonly cpu: Goal | null;
}

/** The bounds hold for wake-ups on Redis; on Postgres the queue's own work is in the log and in the CPU times. */
const GOALS: Readonly<Record<Slots, Goals>> = {
  100: {
    steps: goal("ratio", "at least", 0.65),
    transactions: goal("value", "at most", 0.06),
    wal: goal("ratio", "at most", 1.3),
    cpu: null,
  },
  20: {
    steps: goal("ratio", "at least", 0.6),
    transactions: goal("value", "at most", 0.25),
    wal: goal("ratio", "at most", 1.3),
    cpu: {
      any: [
        { of: "value", is: "at most", than: 0.15 },
        { of: "ratio", is: "at most", than: 2 },
      ],
    },
  },
};

/** Durable steps a second of one worker process, and what each of them costs. */
export const throughput: Figure = {
  name: "throughput",
  measures:
    "One worker process works on runs of 12 durable steps (a model reply that asks for ten read-only calls, their results, the closing reply), 100 and 20 of them at once.",
  async run(stage, say) {
    const rows: Row[] = [];
    for (const queue of stage.settings.queues) {
      for (const slots of [100, 20] as const) {
        const rounds = await playTrials(stage, {
          queue,
          work: WORK,
          slots,
          profile: `throughput-${slots}`,
          ...sized<{ runs: number; warmUpRuns: number }>(stage.settings, SIZES[slots]),
        });
        rows.push(...rowsOf(stage, rounds, { queue, slots }));
        say(`throughput: ${slots} at once on ${queue} done`);
      }
    }
    return rows;
  },
};

function rowsOf(
  { settings }: Stage,
  rounds: readonly Round[],
  { queue, slots }: { readonly queue: QueueKind; readonly slots: Slots },
): readonly Row[] {
  const goals = GOALS[slots];
  const judged = queue === "redis" && !settings.quick;
  const measure = (figure: string, unit: string, wanted: Goal | null = null): Measure => ({
    figure: `${figure}, ${slots} at once`,
    queue,
    unit,
    ...(judged && wanted !== null ? { goal: wanted } : {}),
  });
  const row = (what: Measure, of: (trial: Trial) => number) =>
    rowOf(
      what,
      rounds.map((round) => ({ value: of(round.product), ceiling: of(round.strawMan) })),
    );
  const perStep = (of: (used: Counters) => number) => (trial: Trial) => of(trial.used) / trial.steps;
  const perThousand = (of: (used: Counters) => number) => (trial: Trial) => (1_000 * of(trial.used)) / trial.steps;
  const seconds = "s / 1 000 steps";
  return [
    row(measure("durable steps", "steps/s", goals.steps), ({ steps, seconds: took }) => steps / took),
    row(measure("second half of the time to the first", "× steps"), ({ steadiness }) => steadiness),
    row(
      measure("transactions", "per step", goals.transactions),
      perStep(({ transactions }) => transactions),
    ),
    row(
      measure("round trips", "per step"),
      perStep(({ statements }) => statements),
    ),
    row(
      measure("WAL", "bytes/step", goals.wal),
      perStep(({ walBytes }) => walBytes),
    ),
    row(
      measure("stored", "bytes/step"),
      perStep(({ storedBytes }) => storedBytes),
    ),
    row(measure("CPU of all processes", seconds, goals.cpu), perThousand(allSeconds)),
    row(
      measure("CPU of the worker", seconds),
      perThousand(({ nodeSeconds }) => nodeSeconds),
    ),
    row(
      measure("CPU of Postgres", seconds),
      perThousand(({ postgresSeconds }) => postgresSeconds ?? Number.NaN),
    ),
    ...(queue === "redis"
      ? [
          row(
            measure("CPU of Redis", seconds),
            perThousand(({ redisSeconds }) => redisSeconds ?? Number.NaN),
          ),
        ]
      : []),
  ].filter(({ value }) => !Number.isNaN(value));
}

function allSeconds({ nodeSeconds, postgresSeconds, redisSeconds }: Counters): number {
  if (postgresSeconds === null || redisSeconds === null) return Number.NaN;
  return nodeSeconds + postgresSeconds + redisSeconds;
}
