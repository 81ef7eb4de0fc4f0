import { moveClock } from "@holdpoint/testkit";
import { afterEach, expect, test } from "vitest";
import {
  type Candidate,
  findForsaken,
  findIdleCancelling,
  findLookUpsDue,
  findOverdue,
  findOwnedBy,
  findRetriesDue,
  findUnclaimed,
  findWedged,
  markExited,
  type Run,
  recordRefusal,
  renewLease,
  requestCancel,
  requestPause,
  retireWorker,
} from "../src/index.ts";
import { ALICE, aReply, aRun, aWorker, claim, claimAll, OPERATOR, SWEEPER } from "./a-run.ts";
import {
  aClaimedRun,
  aHeldRun,
  anAskingRun,
  anUnknownRun,
  endBy,
  lose,
  MINUTE_MS,
  moved,
  ownerOf,
  QUESTION,
  released,
  reload,
  took,
} from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

afterEach(() => moveClock(bench.url, 0));

const ids = (found: readonly Candidate[]) => found.map(({ run }) => run.id);

function gone(workerId: string) {
  return bench.sql("select gone_reason from holdpoint.workers where id = $1 and gone_at is not null", [workerId]);
}

test("a renewal extends the lease and lists the runs that are to stop", async () => {
  const workerId = await aWorker(bench.store);
  const [stopped, paused, other] = [await aRun(bench.store), await aRun(bench.store), await aRun(bench.store)];
  for (const { id } of [stopped, paused, other]) await claim(bench.store, id, workerId);
  await requestCancel(bench.store, { runId: stopped.id, actor: ALICE, reason: null });
  await requestPause(bench.store, { runId: paused.id, actor: OPERATOR });
  const renewal = await renewLease(bench.store, { workerId, leaseMs: 15_000 });
  if (!renewal.renewed) throw new Error("not renewed");
  expect([...renewal.stop].sort()).toEqual([stopped.id, paused.id].sort());
});

test("why a worker is gone is what was said first", async () => {
  const [exited, retired] = [await aWorker(bench.store), await aWorker(bench.store)];
  await markExited(bench.store, exited);
  await retireWorker(bench.store, exited);
  await retireWorker(bench.store, retired);
  await markExited(bench.store, retired);
  expect(await gone(exited)).toEqual([{ gone_reason: "process_exited" }]);
  expect(await gone(retired)).toEqual([{ gone_reason: "retired" }]);
});

test("runs of a gone worker are found, those of a living one are not", async () => {
  const forsaken = await aClaimedRun(bench.store);
  const kept = await aClaimedRun(bench.store);
  await markExited(bench.store, ownerOf(forsaken).id);
  const found = await findForsaken(bench.store, 100);
  expect(ids(found)).toContain(forsaken.run.id);
  expect(ids(found)).not.toContain(kept.run.id);
  expect(ids(await findOwnedBy(bench.store, ownerOf(forsaken).id, 100))).toEqual([forsaken.run.id]);
  expect(found.find(({ run }) => run.id === forsaken.run.id)?.run).toEqual(forsaken.run);
});

test("a run without progress is wedged although its worker renews; progress moves the time on", async () => {
  const claimed = await aClaimedRun(bench.store);
  expect(ids(await findWedged(bench.store, 100))).not.toContain(claimed.run.id);
  await moveClock(bench.url, 50_000);
  const moving = await took(bench.store, claimed, { steps: [aReply([])] });
  await moveClock(bench.url, 70_000);
  expect(ids(await findWedged(bench.store, 100))).not.toContain(claimed.run.id);
  await moveClock(bench.url, 111_000);
  const [wedged] = (await findWedged(bench.store, 100)).filter(({ run }) => run.id === claimed.run.id);
  expect(wedged?.run).toEqual(moving.run);
  await lose(bench.store, claimedAs(wedged), "wedged");
  expect(ids(await findWedged(bench.store, 100))).not.toContain(claimed.run.id);
});

function claimedAs(candidate: Candidate | undefined): Run {
  if (candidate === undefined) throw new Error("not found");
  return candidate.run;
}

test("a retry is due at its time", async () => {
  const run = await released(bench.store, MINUTE_MS);
  expect(ids(await findRetriesDue(bench.store, 100))).not.toContain(run.id);
  await moveClock(bench.url, MINUTE_MS + 1_000);
  expect(ids(await findRetriesDue(bench.store, 100))).toContain(run.id);
  expect(await moved(bench.store, { run, actor: SWEEPER, events: [{ type: "RetryDue" }] })).toMatchObject({
    state: { status: "queued" },
  });
  expect(ids(await findRetriesDue(bench.store, 100))).not.toContain(run.id);
});

test("a deadline is found once it has passed, with the approvals that are still pending", async () => {
  const asking = await anAskingRun(bench.store);
  const held = await aHeldRun(bench.store, QUESTION);
  expect(ids(await findOverdue(bench.store, 100))).not.toContain(held.id);
  await moveClock(bench.url, MINUTE_MS + 1_000);
  const due = await findOverdue(bench.store, 100);
  expect(due.find(({ run }) => run.id === held.id)?.approvals).toEqual([]);
  const approvals = due.find(({ run }) => run.id === asking.run.id)?.approvals;
  const { id, callId, terms } = asking.request;
  expect(approvals).toEqual([{ id, callId, terms, level: 0, extended: false, deadlineMs: expect.any(Number) }]);
  expect(due.map(({ run }) => run.state.waitDeadline)).toEqual(
    due.map(({ run }) => run.state.waitDeadline).toSorted(byTime),
  );
});

function byTime(a: Run["state"]["waitDeadline"], b: Run["state"]["waitDeadline"]): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

test("a look-up is due at its time, until somebody has claimed the run for it", async () => {
  const { run } = await anUnknownRun(bench.store);
  const due = async () => (await findLookUpsDue(bench.store, 100)).filter(({ runId }) => runId === run.id);
  expect(await due()).toEqual([{ runId: run.id, version: run.version, agent: { name: "refunds", version: "1" } }]);
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  expect(await due()).toEqual([]);
  await moved(bench.store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "EffectUnknown", nextLookUp: { inMs: 2 * MINUTE_MS }, lookUpsEnd: { inMs: 60 * MINUTE_MS } }],
  });
  expect(await due()).toEqual([]);
  await moveClock(bench.url, 2 * MINUTE_MS + 1_000);
  expect(await due()).toHaveLength(1);
});

test("a queued run is found when its wake-up seems to be gone, the oldest first", async () => {
  const [first, second] = [await aRun(bench.store), await aRun(bench.store)];
  const found = async (olderThanMs: number) =>
    (await findUnclaimed(bench.store, olderThanMs, 100))
      .map(({ runId }) => runId)
      .filter((id) => id === first.id || id === second.id);
  expect(await found(MINUTE_MS)).toEqual([]);
  await moveClock(bench.url, MINUTE_MS + 1_000);
  expect(await found(MINUTE_MS)).toEqual([first.id, second.id]);
  await claim(bench.store, first.id, await aWorker(bench.store));
  expect(await found(MINUTE_MS)).toEqual([second.id]);
});

test("a backlog of one agent does not hide the queued runs of another", async () => {
  const stuck = { name: "stuck", version: "1" };
  for (let n = 0; n < 3; n += 1) await aRun(bench.store, { agent: stuck });
  const other = await aRun(bench.store, { agent: { name: "other", version: "1" } });
  await moveClock(bench.url, MINUTE_MS);
  const found = await findUnclaimed(bench.store, 1_000, 2);
  expect(found.filter(({ agent }) => agent.name === "stuck")).toHaveLength(2);
  expect(found.map(({ runId }) => runId)).toContain(other.id);
});

test("a run that is being stopped and has nothing left is found", async () => {
  const run = await aRun(bench.store);
  const stopped = await moved(bench.store, { run, actor: ALICE, events: [{ type: "CancelRequested", reason: null }] });
  expect(stopped.state.status).toBe("cancelled");
  expect(ids(await findIdleCancelling(bench.store, 100))).not.toContain(run.id);
  const { run: parent } = await aClaimedRun(bench.store);
  await bench.sql("update holdpoint.runs set live_children = 1 where id = $1", [parent.id]);
  await requestCancel(bench.store, { runId: parent.id, actor: ALICE, reason: null });
  await lose(bench.store, (await reload(bench.store, parent.id)).run).catch(() => undefined);
  const idle = await moved(bench.store, {
    run: (await reload(bench.store, parent.id)).run,
    actor: SWEEPER,
    events: [{ type: "DeadlinePassed", remaining: null }],
  });
  expect(idle.state).toMatchObject({ status: "cancelling", owner: null, liveChildren: 1 });
  expect(ids(await findIdleCancelling(bench.store, 100))).not.toContain(parent.id);
  await bench.sql("update holdpoint.runs set live_children = 0 where id = $1", [parent.id]);
  expect(ids(await findIdleCancelling(bench.store, 100))).toEqual([parent.id]);
});

test("takeovers are counted at the claim, reset by a stored result, and end in quarantine", async () => {
  const takeovers: number[] = [];
  let claimed = await aClaimedRun(bench.store);
  for (let n = 0; n < 2; n += 1) {
    claimed = await claim(bench.store, (await lose(bench.store, claimed.run)).id, await aWorker(bench.store));
    takeovers.push(claimed.run.state.takeovers);
  }
  expect(takeovers).toEqual([1, 2]);
  const quarantined = await lose(bench.store, claimed.run);
  expect(quarantined.state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "quarantined" } });
});

test("an interrupted run that makes progress in between is never quarantined", async () => {
  let claimed = await aClaimedRun(bench.store);
  for (let n = 0; n < 4; n += 1) {
    claimed = await took(bench.store, claimed, { steps: [aReply([])] });
    expect(claimed.run.state.takeovers).toBe(0);
    claimed = await claim(bench.store, (await lose(bench.store, claimed.run)).id, await aWorker(bench.store));
  }
  expect(claimed.run.state).toMatchObject({ status: "running", takeovers: 1 });
});

/** A run whose next claim is its second takeover. */
async function aSuspect(): Promise<Run> {
  const first = await aClaimedRun(bench.store);
  const second = await claim(bench.store, (await lose(bench.store, first.run)).id, await aWorker(bench.store));
  return lose(bench.store, second.run);
}

test("suspects are claimed one at a time, and only by a process that has none", async () => {
  const suspects = [await aSuspect(), await aSuspect()];
  const harmless = await aRun(bench.store);
  const runIds = [...suspects.map(({ id }) => id), harmless.id];
  const request = { runIds, workerId: await aWorker(bench.store), progressMs: 60_000 };
  const without = await claimAll(bench.store, { ...request, mayTakeSuspect: false });
  expect(without.map(({ run }) => run.id)).toEqual([harmless.id]);
  const first = await claimAll(bench.store, { ...request, mayTakeSuspect: true });
  expect(first.map(({ run }) => run.id)).toEqual([suspects.map(({ id }) => id).sort()[0]]);
  expect(first[0]?.run.state.takeovers).toBe(2);
  const next = await claimAll(bench.store, { ...request, mayTakeSuspect: true });
  expect(next.map(({ run }) => run.id)).toEqual([suspects.map(({ id }) => id).sort()[1]]);
});

test("a claim gives a batch in order of the ids, and a run that is not there or not free is left out", async () => {
  const runs = [await aRun(bench.store), await aRun(bench.store), await aRun(bench.store)];
  const taken = await aClaimedRun(bench.store);
  const done = await endBy(bench.store, await aClaimedRun(bench.store));
  const runIds = [done.id, taken.run.id, ...runs.map(({ id }) => id).reverse()];
  const claimed = await claimAll(bench.store, {
    runIds,
    workerId: await aWorker(bench.store),
    progressMs: 60_000,
    mayTakeSuspect: true,
  });
  expect(claimed.map(({ run }) => run.id)).toEqual(runs.map(({ id }) => id).sort());
});

test("a refusal is stored with its actor, rule and status", async () => {
  const run = await aRun(bench.store);
  const actor = { kind: "worker", id: "wrk_1" } as const;
  await recordRefusal(bench.store, { runId: run.id, event: "Held", rule: "replaced", status: "running", actor });
  expect(
    await bench.sql("select event, rule, status, actor_kind, actor_id from holdpoint.refusals where run_id = $1", [
      run.id,
    ]),
  ).toEqual([{ event: "Held", rule: "replaced", status: "running", actor_kind: "worker", actor_id: "wrk_1" }]);
});
