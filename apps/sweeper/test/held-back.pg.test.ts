import type { Publisher } from "@holdpoint/queue";
import { newId, openStore, registerWorker, type Store } from "@holdpoint/store";
import { createTestDatabase, moveClock, type TestDatabase, waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runSweeper } from "../src/run-sweeper.ts";

let database: TestDatabase;
let store: Store;

beforeEach(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
});
afterEach(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const publisher: Publisher = {
  publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

async function aWorker(leaseMs: number): Promise<string> {
  const id = newId();
  await registerWorker(store, { id, host: "h", pid: 1, agents: [], slots: 1, leaseMs });
  return id;
}

async function goneIds(): Promise<readonly string[]> {
  const { rows } = await store.pool.query<{ id: string }>("select id from holdpoint.workers where gone_at is not null");
  return rows.map(({ id }) => id);
}

/** A sweeper that runs while the test does, and what it has said of workers that it waits for. */
function aSweeper(graceMs: number) {
  const stop = new AbortController();
  const said: { ownGap: number; blastRadius: number }[] = [];
  const log = pino(
    { level: "warn" },
    {
      write: (text) => {
        const line = JSON.parse(text);
        if (line.event === "workers.held_back") said.push({ ownGap: line.ownGap, blastRadius: line.blastRadius });
      },
    },
  );
  const running = runSweeper({ store, publisher, id: "s1", sweepMs: 50, graceMs, limit: 10, log }, stop.signal);
  return {
    said,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
    },
  };
}

test("a sweeper that starts after hours gives everybody a lease, says so once, and then judges", async () => {
  const dead = await aWorker(1_000);
  await moveClock(database.url, 3 * 3_600_000);
  await using sweeper = aSweeper(2_000);
  await waitFor(() => sweeper.said.length > 0, { deadlineMs: 10_000, what: "the sweeper to say that it waits" });
  expect(sweeper.said).toEqual([{ ownGap: 1, blastRadius: 0 }]);
  expect(await goneIds()).toEqual([]);
  await waitFor(async () => (await goneIds()).length > 0, { deadlineMs: 20_000, what: "the worker to be gone" });
  expect(await goneIds()).toEqual([dead]);
  await waitFor(() => sweeper.said.length > 1, {
    deadlineMs: 10_000,
    what: "the sweeper to say that it waits no more",
  });
  expect(sweeper.said).toEqual([
    { ownGap: 1, blastRadius: 0 },
    { ownGap: 0, blastRadius: 0 },
  ]);
});

test("a pass that hangs on one sweep is no gap of the watch", async () => {
  await using sweeper = aSweeper(500);
  const sinceOf = async () => {
    const { rows } = await store.pool.query<{ since: Date; seen_at: Date }>(
      "select since, seen_at from holdpoint.lease_watch",
    );
    return rows[0] ?? null;
  };
  const begun = await waitFor(sinceOf, { deadlineMs: 10_000, what: "the first look" });
  const holder = await store.pool.connect();
  try {
    // Whoever reads overdue runs waits for this lock, and the pass with it.
    await holder.query("begin");
    await holder.query("lock table holdpoint.approvals in access exclusive mode");
    // More than twice the grace: without the notes beside the passes it would be a gap.
    await waitFor(async () => Number((await sinceOf())?.seen_at) - begun.seen_at.getTime() > 1_500, {
      deadlineMs: 20_000,
      what: "the watch to go on",
    });
  } finally {
    await holder.query("rollback");
    holder.release();
  }
  expect((await sinceOf())?.since).toEqual(begun.since);
  expect(sweeper.said).toEqual([]);
});
