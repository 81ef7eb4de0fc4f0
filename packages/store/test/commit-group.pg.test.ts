import { EMPTY_CHECKPOINT } from "@holdpoint/core";
import { waitFor } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { type BatchReport, type LoadedRun, openCommitGroup } from "../src/index.ts";
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

/** What an owner does that has nothing more to do on its run. */
const completing = ({ run }: LoadedRun) => ({
  run,
  events: [{ type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null }] as const,
  actor: { kind: "worker", id: run.state.owner ?? "" } as const,
});

test("ends of runs that are ready together share one statement, and each is told of its own", async () => {
  await using counted = await bench.lonely();
  const claimed = await claimedRuns(5);
  const batches: BatchReport[] = [];
  const group = openCommitGroup(counted.store, { onBatch: (report) => batches.push(report) });
  const results = await Promise.all(claimed.map((each) => group.move(completing(each))));
  expect(results.map((each) => (each.result === "accepted" ? each.run.id : each.result))).toEqual(
    claimed.map(({ run }) => run.id),
  );
  expect(batches).toMatchObject([{ kind: "moves", size: 5, splitOff: 0 }]);
});

/** Somebody holds a row for as long as `meanwhile` takes. */
async function whileRowIsHeld(text: string, id: string, meanwhile: () => Promise<unknown>): Promise<void> {
  const { admin } = bench;
  await admin.query("begin");
  try {
    expect((await admin.query(text, [id])).rowCount).toBe(1);
    await meanwhile();
  } finally {
    await admin.query("commit");
  }
}

const RUN = "select from holdpoint.runs where id = $1 for update";
const SESSION = "select from holdpoint.sessions where id = $1 for update";

test("a row that somebody else is moving keeps its neighbours from nothing, and its own commit waits for it", async () => {
  const [slow, ...others] = await claimedRuns(20);
  if (slow === undefined) throw new Error("there are twenty");
  const batches: BatchReport[] = [];
  const group = openCommitGroup(bench.store, { onBatch: (report) => batches.push(report) });
  let late: Promise<unknown> | null = null;
  await whileRowIsHeld(RUN, slow.run.id, async () => {
    late = group.commit(replying(slow));
    const results = await Promise.all(others.map((each) => group.commit(replying(each))));
    expect(results.map(({ result }) => result)).toEqual(Array(19).fill("taken"));
    // Their next ones do not wait for it either.
    const again = await Promise.all(
      others.map((each) => group.commit({ ...replying(each), stepSeq: each.run.stepSeq + 1 })),
    );
    expect(again.map(({ result }) => result)).toEqual(Array(19).fill("taken"));
  });
  expect(await late).toMatchObject({ result: "taken", stepSeq: 1 });
  expect(batches).toMatchObject([
    { kind: "results", size: 20, splitOff: 1 },
    { kind: "results", size: 19, splitOff: 0 },
  ]);
});

test("a run whose end waits for somebody else's move keeps no other run from ending", async () => {
  const [slow, ...others] = await claimedRuns(5);
  if (slow === undefined) throw new Error("there are five");
  const group = openCommitGroup(bench.store);
  let late: Promise<unknown> | null = null;
  await whileRowIsHeld(RUN, slow.run.id, async () => {
    late = group.move(completing(slow));
    const results = await Promise.all(others.map((each) => group.move(completing(each))));
    expect(results.map(({ result }) => result)).toEqual(Array(4).fill("accepted"));
  });
  expect(await late).toMatchObject({ result: "accepted" });
});

test("what is said in a session that somebody holds keeps nothing waiting that says nothing", async () => {
  const [slow, quiet] = await claimedRuns(2);
  if (slow === undefined || quiet === undefined) throw new Error("there are two");
  const group = openCommitGroup(bench.store);
  const messages = [{ role: "assistant", author: "desk", text: "done" }] as const;
  let late: Promise<unknown> | null = null;
  await whileRowIsHeld(SESSION, slow.run.sessionId, async () => {
    late = group.commit({ ...replying(slow), messages });
    expect(await group.commit(replying(quiet))).toMatchObject({ result: "taken" });
  });
  expect(await late).toMatchObject({ result: "taken" });
});

test("of those that say something, only the one whose session is held for too long waits again", async () => {
  const claimed = await claimedRuns(4);
  const [slow, ...others] = claimed;
  if (slow === undefined) throw new Error("there are four");
  const group = openCommitGroup(bench.store);
  const messages = [{ role: "assistant", author: "desk", text: "done" }] as const;
  let late: Promise<unknown> | null = null;
  await whileRowIsHeld(SESSION, slow.run.sessionId, async () => {
    late = group.commit({ ...replying(slow), messages });
    const results = await Promise.all(others.map((each) => group.commit({ ...replying(each), messages })));
    expect(results.map(({ result }) => result)).toEqual(Array(3).fill("taken"));
  });
  expect(await late).toMatchObject({ result: "taken" });
});

test("a second commit of one run waits for its first, whatever lanes are free", async () => {
  const [claimed] = await claimedRuns(1);
  if (claimed === undefined) throw new Error("there is one");
  const group = openCommitGroup(bench.store);
  const results = await Promise.all([
    group.commit(replying(claimed)),
    group.commit({ ...replying(claimed), stepSeq: claimed.run.stepSeq + 1 }),
  ]);
  expect(results).toMatchObject([
    { result: "taken", stepSeq: 1 },
    { result: "taken", stepSeq: 2 },
  ]);
});

test("an answer that is lost is read back for each run of its batch", async () => {
  await using waiting = await bench.lonely();
  const claimed = await claimedRuns(3);
  const group = openCommitGroup(waiting.store);
  waiting.deafen();
  const sent = Promise.all(claimed.map((each) => group.commit(replying(each))));
  await waitFor(async () => (await reload(bench.store, claimed[2]?.run.id ?? "")).steps.length === 1, {
    deadlineMs: 10_000,
    what: "the batch to be committed",
  });
  waiting.cut();
  expect((await sent).map(({ result }) => result)).toEqual(Array(3).fill("taken"));
  for (const { run } of claimed) expect((await reload(bench.store, run.id)).steps).toHaveLength(1);
});
