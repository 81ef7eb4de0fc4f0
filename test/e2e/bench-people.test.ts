import { afterAll, beforeAll, expect, test } from "vitest";
import { findRedis } from "../../packages/embedded/src/index.ts";
import { playHeld } from "../bench/figures/held.ts";
import { playLatency } from "../bench/figures/latency.ts";
import { killChildren } from "../bench/figures/takeover.ts";
import { heldProduct, heldStrawMan } from "../bench/held-contestants.ts";
import { openStage, type Stage } from "../bench/stage.ts";

// Wherever the wake-ups wait: without Redis, on Postgres.
const queue = findRedis() === null ? ("postgres" as const) : ("redis" as const);

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({ rounds: 1, quick: true, profileDir: null, queues: [queue] });
});

afterAll(() => stage[Symbol.asyncDispose]());

test.each([heldStrawMan, heldProduct])("a run of the $name tells when it begins and when it goes on", async (each) => {
  const { startMs, continueMs } = await playLatency(stage, each, { queue, runs: 2, warmUpRuns: 1 });
  expect(startMs).toHaveLength(2);
  expect(continueMs).toHaveLength(2);
  for (const tookMs of [...startMs, ...continueMs]) expect(tookMs).toBeGreaterThan(0);
});

test.each([heldStrawMan, heldProduct])("all held runs of the $name are decided and end", async (each) => {
  expect(await playHeld(stage, each, { queue, runs: 6, warmUpRuns: 3 })).toBeGreaterThan(0);
});

test("a run is taken over from a killed process", async () => {
  const [tookMs] = await killChildren(stage, { queue, kills: 1 });
  expect(tookMs).toBeGreaterThan(0);
});
