import { expect, test } from "vitest";
import { commitSteps, type LoadedRun, newId, openStore, renewLease, type Store } from "../src/index.ts";
import { aCall, aCommit, aReply, aStart, aWorker, type Carried } from "./a-run.ts";
import { aClaimedRun, aResult } from "./a-status.ts";
import { useBench } from "./a-store.ts";

// An update of what is in no index stays on its page (HOT): no index is written, and what it leaves is taken away by whoever
// reads the page next. One index on a column that changes, or a page without room, and it is an update like any other.

const bench = useBench();

/**
 * Many of them: while a transaction that writes is open anywhere on the server, as in the tests beside this one, old versions
 * stay and pages are full. With an index on what changes there is none at all.
 */
const MANY = 0.3;

interface Updates {
  readonly updated: number;
  readonly onPage: number;
}

/** How many rows of these tables (and their partitions) the work updates, and how many of these updates stay on their page. */
async function updatesOf(
  tables: readonly string[],
  work: (store: Store) => Promise<unknown>,
): Promise<readonly Updates[]> {
  const count = () =>
    bench.sql<{ updated: number; on_page: number }>(
      `select sum(s.n_tup_upd)::int as updated, sum(s.n_tup_hot_upd)::int as on_page
       from unnest($1::text[]) with ordinality as t(name, n)
       cross join lateral (select relid from pg_partition_tree('holdpoint.' || t.name)
         union select ('holdpoint.' || t.name)::regclass) p
       join pg_stat_user_tables s on s.relid = p.relid group by t.n order by t.n`,
      [tables],
    );
  await using store = openStore({ url: bench.url, maxConnections: 1 });
  // A server process reports at intervals, unless it is told to, by itself.
  const flush = () =>
    Promise.all([store.pool, store.leasePool].map((pool) => pool.query("select pg_stat_force_next_flush()")));
  await flush();
  const before = await count();
  await work(store);
  await flush();
  const after = await count();
  return after.map(({ updated, on_page }, n) => ({
    updated: updated - (before[n]?.updated ?? 0),
    onPage: on_page - (before[n]?.on_page ?? 0),
  }));
}

/** Commits on a run that is claimed, one after another. */
function aWriter(claimed: LoadedRun) {
  let stepSeq = claimed.run.stepSeq;
  return async (store: Store, carried: Carried): Promise<void> => {
    const commit = aCommit(claimed, carried);
    const [result] = await commitSteps(store, [
      { ...commit, stepSeq, checkpoint: { ...commit.checkpoint, stepSeq }, currentStep: `step ${stepSeq}` },
    ]);
    if (result === undefined || result instanceof Error || result.result !== "taken")
      throw new Error("not taken", { cause: result });
    if (carried.start != null && !result.started) throw new Error("not started");
    stepSeq = result.stepSeq;
  };
}

async function claimedRuns(count: number): Promise<readonly LoadedRun[]> {
  const runs: LoadedRun[] = [];
  for (let n = 0; n < count; n += 1) runs.push(await aClaimedRun(bench.store));
  return runs;
}

test("a step updates its run on its page", async () => {
  const writers = (await claimedRuns(10)).map(aWriter);
  const [made] = await updatesOf(["runs"], async (store) => {
    for (let n = 0; n < 30; n += 1) for (const write of writers) await write(store, { steps: [aReply([], n)] });
  });
  expect(made?.updated).toBe(300);
  expect(made?.onPage).toBeGreaterThanOrEqual(MANY * (made?.updated ?? 0));
});

test("a lease is renewed on its page, by a fleet that has registered at once", async () => {
  const workers: string[] = [];
  for (let n = 0; n < 40; n += 1) workers.push(await aWorker(bench.store));
  const [made] = await updatesOf(["workers"], async (store) => {
    for (let n = 0; n < 10; n += 1)
      for (const workerId of workers) await renewLease(store, { workerId, leaseMs: 15_000 });
  });
  expect(made?.updated).toBe(400);
  expect(made?.onPage).toBeGreaterThanOrEqual(MANY * (made?.updated ?? 0));
});

test("an effect's start and end update its run and its attempt on their pages", async () => {
  const runs = await claimedRuns(10);
  const calls = Array.from({ length: 15 }, (_, ordinal) => ({ ordinal, toolCallId: `call_${ordinal}` }));
  const plans = runs.map((claimed) => ({ write: aWriter(claimed), calls: calls.map(aCall) }));
  for (const { write, calls: made } of plans) await write(bench.store, { steps: [aReply(made)], calls: made });
  const work = async (store: Store): Promise<void> => {
    for (const { ordinal } of calls) {
      // All at once are open, as in a busy process: the rows of a page are settled together.
      const open = plans.flatMap(({ write, calls: made }) => {
        const call = made[ordinal];
        return call === undefined ? [] : [{ write, call, start: aStart(call) }];
      });
      for (const { write, start } of open) await write(store, { start, progress: false });
      for (const { write, call, start } of open) {
        const settles = [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
        await write(store, { steps: [aResult(call)], settles });
      }
    }
  };
  const [ofAttempts, ofRuns] = await updatesOf(["attempts", "runs"], work);
  expect([ofAttempts?.updated, ofRuns?.updated]).toEqual([150, 300]);
  expect(ofAttempts?.onPage).toBeGreaterThanOrEqual(MANY * 150);
  expect(ofRuns?.onPage).toBeGreaterThanOrEqual(MANY * 300);
});

test("after its first message a session is updated on its page", async () => {
  const writers = (await claimedRuns(10)).map(aWriter);
  const [made] = await updatesOf(["sessions"], async (store) => {
    for (let n = 0; n < 20; n += 1) {
      const messages = [{ role: "assistant", author: `agent ${newId()}`, text: "so far" }] as const;
      for (const write of writers) await write(store, { steps: [aReply([], n)], messages });
    }
  });
  expect(made?.updated).toBe(200);
  expect(made?.onPage).toBeGreaterThanOrEqual(MANY * (made?.updated ?? 0));
});
