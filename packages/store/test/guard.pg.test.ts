// What a run costs, by the server's own counters. Its own database: nobody else commits there.

import { createTestDatabase } from "@holdpoint/testkit";
import pg from "pg";
import { expect, test } from "vitest";
import { claimRuns, commitSteps, type LoadedRun, openStore, type Store } from "../src/index.ts";
import { aCall, aCommit, aReply, aRun, aStart, aWorker, type Carried, claim } from "./a-run.ts";
import { aResult, endBy } from "./a-status.ts";

/** Commits that a piece of work costs on a store with one connection. */
async function commitsOf(work: (store: Store) => Promise<unknown>): Promise<number> {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url, maxConnections: 1 });
  // Read from another database: the reading itself is a commit.
  const elsewhere = new URL(database.url);
  elsewhere.pathname = "/postgres";
  const reader = new pg.Client({ connectionString: elsewhere.href });
  await reader.connect();
  try {
    const count = async (): Promise<number> => {
      await store.pool.query("select pg_stat_force_next_flush()"); // on the counted connection, or the counter lags
      const { rows } = await reader.query(
        "select xact_commit::int as commits from pg_stat_database where datname = $1",
        [database.name],
      );
      return rows[0]?.commits;
    };
    await store.pool.query("select 1"); // the connection's own start
    const before = await count();
    await work(store);
    return (await count()) - before - 1; // the second flush
  } finally {
    await reader.end();
  }
}

/** The lower of two counts: the server's own maintenance may commit in the database during one of them. */
async function leastCommitsOf(work: (store: Store) => Promise<unknown>): Promise<number> {
  return Math.min(await commitsOf(work), await commitsOf(work));
}

/** Commits without reading the run again, as a worker does. */
function steady(store: Store, claimed: LoadedRun) {
  let { stepSeq } = claimed.run;
  return async (commit: Carried): Promise<void> => {
    const [result] = await commitSteps(store, [aCommit(claimed, { ...commit, stepSeq })]);
    if (result === undefined || result instanceof Error || result.result !== "taken") throw new Error("not taken");
    stepSeq = result.stepSeq;
  };
}

async function readingRun(store: Store, turns: number): Promise<void> {
  const run = await aRun(store);
  const claimed = await claim(store, run.id, await aWorker(store));
  const commit = steady(store, claimed);
  for (let turn = 1; turn <= turns; turn += 1) {
    const call = aCall({ turn, effect: { kind: "read" } });
    await commit({ steps: [aReply([call], turn)], calls: [call] });
    await commit({ steps: [aResult(call)] });
  }
  await endBy(store, { ...claimed, run: { ...claimed.run, stepSeq: 2 * turns } });
}

async function payingRun(store: Store, turns: number): Promise<void> {
  const run = await aRun(store);
  const claimed = await claim(store, run.id, await aWorker(store));
  const commit = steady(store, claimed);
  for (let turn = 1; turn <= turns; turn += 1) {
    const call = aCall({ turn });
    const start = aStart(call);
    await commit({ steps: [aReply([call], turn)], calls: [call] });
    await commit({ start, progress: false });
    const settles = [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
    await commit({ steps: [aResult(call)], settles });
  }
  await endBy(store, { ...claimed, run: { ...claimed.run, stepSeq: 3 * turns } });
}

/** What comes before the claim: agent, session, run and worker, a commit each. */
const SUBMISSION = 4;

test("a run of 100 read-only steps costs at most 1.1 commits a step, claim and end included", async () => {
  const commits = (await leastCommitsOf((store) => readingRun(store, 50))) - SUBMISSION;
  process.stdout.write(`100 read-only steps, claim and end: ${commits} commits\n`);
  expect(commits).toBeLessThanOrEqual(110);
  // Each step is one: fewer would mean that the counter was not read. It may lag by a commit or two.
  expect(commits).toBeGreaterThanOrEqual(100);
});

test("an effectful call costs at most one commit more than a read: its intent", async () => {
  const reading = await leastCommitsOf((store) => readingRun(store, 20));
  const paying = await leastCommitsOf((store) => payingRun(store, 20));
  process.stdout.write(`20 effectful calls: ${paying - reading} commits more than 20 reads\n`);
  expect(paying - reading).toBeLessThanOrEqual(20);
});

test("a claim of several runs is one round trip", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  const runs = [await aRun(store), await aRun(store), await aRun(store)];
  const workerId = await aWorker(store);
  let trips = 0;
  store.pool.on("acquire", () => {
    trips += 1;
  });
  const claimed = await claimRuns(store, {
    runIds: runs.map(({ id }) => id),
    workerId,
    progressMs: 60_000,
    mayTakeSuspect: true,
  });
  expect(claimed).toHaveLength(3);
  expect(trips).toBe(1);
});
