import { EMPTY_CHECKPOINT } from "@holdpoint/core";
import { expect, test } from "vitest";
import { type LoadedRun, openCommitGroup } from "../src/index.ts";
import { aCommit, aReply } from "./a-run.ts";
import { aClaimedRun, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

async function claimedRuns(count: number): Promise<readonly LoadedRun[]> {
  const claimed: LoadedRun[] = [];
  for (let n = 0; n < count; n += 1) claimed.push(await aClaimedRun(bench.store));
  return claimed;
}

const replying = (claimed: LoadedRun) => aCommit(claimed, { steps: [aReply([])] });

test("steps of runs that are ready together share one statement", async () => {
  await using counted = await bench.lonely();
  const claimed = await claimedRuns(5);
  let trips = 0;
  counted.store.pool.on("acquire", () => {
    trips += 1;
  });
  const group = openCommitGroup(counted.store);
  const results = await Promise.all(claimed.map((each) => group.commit(replying(each))));
  expect(results.map(({ result }) => result)).toEqual(Array(5).fill("taken"));
  expect(trips).toBe(1);
});

test("commits that arrive while a statement is under way share the next, and each run waits for its own", async () => {
  await using counted = await bench.lonely();
  const [first, ...others] = await claimedRuns(4);
  if (first === undefined) throw new Error("there are four");
  let trips = 0;
  counted.store.pool.on("acquire", () => {
    trips += 1;
  });
  const group = openCommitGroup(counted.store);
  const late = group
    .commit(replying(first))
    .then(() => Promise.all(others.map((each) => group.commit(replying(each)))));
  expect((await late).map(({ result }) => result)).toEqual(Array(3).fill("taken"));
  expect(trips).toBe(2);
});

test("a commit with data that the database refuses fails for its own run only", async () => {
  const [bad, good] = await claimedRuns(2);
  if (bad === undefined || good === undefined) throw new Error("there are two");
  const group = openCommitGroup(bench.store);
  const checkpoint = { ...EMPTY_CHECKPOINT, lastCompleted: "x".repeat(3_000) };
  const [refused, taken] = await Promise.allSettled([
    group.commit({ ...replying(bad), checkpoint }),
    group.commit(replying(good)),
  ]);
  expect(refused).toMatchObject({ status: "rejected", reason: { constraint: "checkpoint_is_small" } });
  expect(taken).toMatchObject({ status: "fulfilled", value: { result: "taken", stepSeq: 1 } });
  expect((await reload(bench.store, bad.run.id)).steps).toEqual([]);
});
