import type { Publisher } from "@holdpoint/queue";
import { newId, openStore, type Store } from "@holdpoint/store";
import { createTestDatabase, moveClock } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { planMaintenance } from "../src/index.ts";
import type { SweepContext } from "../src/sweep.ts";
import { keepHistoryPartitions } from "../src/sweeps/keep-partitions.ts";

const DAY_MS = 86_400_000;

/** Nothing is published here. */
const QUEUE: Publisher = {
  publish: async () => ({ published: 0, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

const pass = (store: Store, number: number): SweepContext => ({
  store,
  publisher: QUEUE,
  id: "sweeper-1",
  graceMs: 5_000,
  limit: 100,
  number,
});

async function aDatabase() {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url }));
  return { url, store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("a sweeper makes what will be needed, and looks again after a minute", async () => {
  await using database = await aDatabase();
  const run = (number: number) => keepHistoryPartitions.run(pass(database.store, number));
  expect(await run(100)).toMatchObject({ found: 0 });
  await moveClock(database.url, 40 * DAY_MS);
  expect(await run(105)).toMatchObject({ found: 0 });
  const { found, moved, errors } = await run(106);
  expect({ moved, errors }).toEqual({ moved: found, errors: [] });
  expect(found).toBeGreaterThanOrEqual(4);
  expect(await run(112)).toMatchObject({ found: 0 });
});

test("maintenance lists each partition that it would make", async () => {
  await using database = await aDatabase();
  await moveClock(database.url, 40 * DAY_MS);
  const { actions } = await planMaintenance(pass(database.store, 1));
  expect(actions).toContainEqual({
    kind: "keep-partitions",
    runId: null,
    subject: { kind: "partition", id: expect.stringMatching(/^steps_\d{4}_\d{2}$/) },
  });
});

test("what its role may not do it says once, and tries again after minutes", async () => {
  await using database = await aDatabase();
  const role = `sweeper_${newId().replaceAll("-", "")}`;
  await database.store.pool.query(`create role ${role} login`);
  const url = new URL(database.url);
  url.username = role;
  try {
    await database.store.pool.query(`grant usage on schema holdpoint to ${role}`);
    await database.store.pool.query(`grant all on all tables in schema holdpoint to ${role}`);
    await moveClock(database.url, 40 * DAY_MS);
    await using store = openStore({ url: url.href });
    const run = (number: number) => keepHistoryPartitions.run(pass(store, number));
    const first = await run(100);
    expect(first.errors.map(({ message }) => message)).toEqual([expect.stringMatching(/owner of the tables/)]);
    expect(await run(129)).toMatchObject({ found: 0, errors: [] });
    const again = await run(130);
    expect({ found: again.found, moved: again.moved, errors: again.errors }).toEqual({
      found: first.found,
      moved: 0,
      errors: [],
    });
    // Whoever has asked for it by hand is told each time.
    const byHand = await (await keepHistoryPartitions.plan(pass(store, 131))).carryOut();
    expect(byHand.errors).toHaveLength(1);
  } finally {
    await database.store.pool.query(`drop owned by ${role}`);
    await database.store.pool.query(`drop role ${role}`);
  }
});
