import { afterAll, beforeAll, expect, test } from "vitest";
import { findRedis } from "../../packages/embedded/src/index.ts";
import { product } from "../bench/product.ts";
import { watchProgress } from "../bench/progress.ts";
import { openStage, type Stage } from "../bench/stage.ts";
import { strawMan } from "../bench/straw-man.ts";
import { openCast, playTrial, untilAllEnded } from "../bench/trial.ts";

// Wherever the wake-ups wait: without Redis, on Postgres.
const queue = findRedis() === null ? ("postgres" as const) : ("redis" as const);
const WORK = { turns: 1, calls: 3 };
const STEPS = 5;

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({ rounds: 1, quick: true, profileDir: null, queues: [queue] });
});

afterAll(() => stage[Symbol.asyncDispose]());

test("the benchmark counts what a trial of either contestant does, and nothing of its own", async () => {
  // One run at a time: nothing shares a statement, so that statements can be counted by hand.
  const options = { queue, work: WORK, runs: 4, slots: 1, warmUpRuns: 2 };

  const ceiling = await playTrial(stage, strawMan, options);
  const moves = 4 * (1 + STEPS + 1); // a claim, the steps, an end
  expect(ceiling).toMatchObject({ runs: 4, steps: 4 * STEPS, used: { statements: moves } });

  const played = await playTrial(stage, product, options);
  expect(played).toMatchObject({ runs: 4, steps: 4 * STEPS });
  expect(played.used.statements).toBeGreaterThanOrEqual(4 * 3); // at the least a claim, the reply, the end
  for (const { seconds, used } of [ceiling, played]) {
    // Each statement is a transaction. A renewed lease may be counted as the one before a reading and as the other after
    // it.
    expect(Math.abs(used.transactions - used.statements)).toBeLessThanOrEqual(2);
    expect(seconds).toBeGreaterThan(0);
    expect(used.walBytes).toBeGreaterThan(0);
    expect(used.nodeSeconds).toBeGreaterThan(0);
  }
});

test("progress is watched from before its beginning, however quick the workers are", async () => {
  await using cast = await openCast(stage, strawMan, { queue, work: WORK, slots: 1 });
  const { arena, client, workers } = cast;
  const submitted = await client.submit(2);
  const steps = 2 * STEPS;
  let polls = 0;
  const begin = async () => {
    await submitted.announce();
    polls = await untilAllEnded(arena, strawMan, workers);
  };
  const [first, last, ...others] = await watchProgress(arena, strawMan, { runs: submitted.ids, steps, begin });
  expect(first).toMatchObject({ steps: 0, least: 0, most: 0 });
  expect(last).toMatchObject({ steps, least: STEPS, most: STEPS });
  expect(others).toEqual([]);
  // One run after the other: a claim, the steps and an end each, and nothing of who watches.
  expect((last?.statements ?? 0) - (first?.statements ?? 0) - polls).toBe(2 * (1 + STEPS + 1));
  expect(last?.walBytes).toBeGreaterThan(first?.walBytes ?? 0);
});
