import { openFaultPoints } from "@holdpoint/testkit/fault-points";
import { expect, test } from "vitest";
import { renewLease, type Store } from "../src/index.ts";
import {
  findEvidence,
  findFleetFacts,
  findRun,
  findWorker,
  listApprovals,
  listChildren,
  listRuns,
  listWorkers,
} from "../src/read/index.ts";
import { aParent } from "./a-parent.ts";
import { aRun, aWorker, claim } from "./a-run.ts";
import { anAskingRun, anOpenEffect, endBy, lose, RUNS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const PAGE = { limit: 50, after: null };

/** What a run's calls were is read by itself: they never change. */
const READS: readonly (readonly [string, (store: Store, runId: string) => Promise<unknown>])[] = [
  ["a run", (store, runId) => findRun(store, runId)],
  ["a list of runs", (store) => listRuns(store, {}, PAGE)],
  ["a run's children", (store, runId) => listChildren(store, runId, PAGE)],
  ["requests", (store) => listApprovals(store, {}, PAGE)],
  ["workers and what they have", (store) => listWorkers(store, { gone: true }, PAGE)],
  ["the evidence about a whole tree", (store, runId) => findEvidence(store, runId)],
  ["the facts about a fleet", (store) => findFleetFacts(store)],
];

test.each(READS)("one statement reads %s: all that is shown was so at one moment", async (_what, read) => {
  const { parent } = await aParent(bench.store, { count: 2 });
  await anOpenEffect(bench.store);
  await anAskingRun(bench.store);
  const points = openFaultPoints();
  expect(await read(points.store(bench.store), parent.run.id)).not.toBeNull();
  expect(points.passed.filter((name) => name.endsWith(":sent"))).toHaveLength(1);
});

test("what is shown of a run is what is stored, in every status", async () => {
  const runs = await Promise.all(Object.values(RUNS).map((make) => make(bench.store)));
  const listed = (await listRuns(bench.store, {}, { limit: 200, after: null })).items;
  for (const { id } of runs) {
    const { run } = await reload(bench.store, id);
    expect((await findRun(bench.store, id))?.run).toEqual(run);
    expect(listed.find((view) => view.run.id === id)?.run).toEqual(run);
  }
});

test("a run whose worker is not heard of is shown as stored, with a word that it is silent, until somebody moves it", async () => {
  const { id } = await aRun(bench.store);
  const workerId = await aWorker(bench.store, -1_000);
  await claim(bench.store, id, workerId);
  expect(await findRun(bench.store, id)).toMatchObject({
    run: { state: { status: "running" } },
    owner: { silent: true },
  });
  await renewLease(bench.store, { workerId, leaseMs: 15_000 });
  expect(await findRun(bench.store, id)).toMatchObject({ owner: { silent: false } });
});

test("how many runs a worker has is counted from the runs, whatever came between", async () => {
  const workerId = await aWorker(bench.store);
  const owned = async () => (await findWorker(bench.store, workerId))?.ownedRuns;
  expect(await owned()).toBe(0);
  const [ends, stays] = [
    await claim(bench.store, (await aRun(bench.store)).id, workerId),
    await claim(bench.store, (await aRun(bench.store)).id, workerId),
  ];
  expect(await owned()).toBe(2);
  await endBy(bench.store, ends);
  expect(await owned()).toBe(1);
  await lose(bench.store, stays.run);
  expect(await owned()).toBe(0);
});
