// What the sweeps may count on, and what they may not: grace that nobody lengthens, stops that outlive whoever asked for
// them, trees that one maintenance brings to their end, and removals that fail where somebody sees it.

import type { Publisher } from "@holdpoint/queue";
import {
  commitSteps,
  findViolations,
  loadRun,
  markExited,
  recordFact,
  recordLateEvidence,
  renewLease,
  requestCancel,
  requestPause,
  resumeRun,
  transitionOne,
} from "@holdpoint/store";
import { moveClock, stopClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aParent, holdParent } from "../../store/test/a-parent.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, claim, OPERATOR } from "../../store/test/a-run.ts";
import { aClaimedRun, aResult, ended, ownerOf, reload, took } from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { watched } from "../../store/test/watched.ts";
import { applyMaintenance, MOVING, type SweepContext, TIDYING } from "../src/index.ts";

const bench = useBench();
const LEASE_MS = 15_000;
const GRACE_MS = 5_000;
const START_MS = Date.parse("2026-03-02T12:00:00Z");
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await goTo(0);
  const tables = "transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.verdicts";
  await bench.sql("truncate holdpoint.runs, holdpoint.workers cascade");
  await bench.sql(`truncate holdpoint.${tables}, holdpoint.inbox, holdpoint.refusals cascade`);
});
afterEach(async () => {
  expect(await findViolations(bench.store)).toEqual([]);
  await moveClock(bench.url, 0);
});

/** The clock goes on to a moment and stays there, and the leases were watched all the while. */
async function goTo(ms: number): Promise<void> {
  await stopClock(bench.url, new Date(START_MS + ms));
  await watched(bench.store, GRACE_MS);
}

const publisher: Publisher = {
  publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};
const context = (): SweepContext => ({
  store: bench.store,
  publisher,
  id: "s1",
  graceMs: GRACE_MS,
  limit: 100,
  number: 1,
});

/** One pass of the sweeps that move runs. */
async function pass(): Promise<void> {
  for (const sweep of MOVING) expect((await sweep.run(context())).errors).toEqual([]);
}

const statusOf = async (runId: string) => (await reload(bench.store, runId)).run.state.status;
const eventsOf = async (runId: string) =>
  (
    await bench.sql<{ event: string }>("select event from holdpoint.transitions where run_id = $1 order by seq", [
      runId,
    ])
  ).map(({ event }) => event);

describe("the time that a silent worker is given", () => {
  test("is not lengthened by what anybody asks of its run", async () => {
    const { id } = await aRun(bench.store);
    await claim(bench.store, id, await aWorker(bench.store, LEASE_MS));
    await goTo(19_000);
    await recordFact(bench.store, { runId: id, kind: "message", text: "are you there?", actor: ALICE });
    await requestPause(bench.store, { runId: id, actor: OPERATOR });
    await resumeRun(bench.store, { runId: id, actor: OPERATOR });
    await goTo(20_000);
    await pass();
    expect(await statusOf(id)).toBe("running");
    await goTo(20_001);
    await pass();
    expect((await eventsOf(id)).slice(-2)).toEqual(["OwnerGone", "Recovered"]);
  });

  test("nor is the time for progress, while its worker renews", async () => {
    const { id } = await aRun(bench.store);
    const workerId = await aWorker(bench.store, DAY_MS);
    await claim(bench.store, id, workerId);
    await goTo(59_000);
    await recordFact(bench.store, { runId: id, kind: "message", text: "how far are you?", actor: ALICE });
    await renewLease(bench.store, { workerId, leaseMs: DAY_MS });
    await pass();
    expect(await statusOf(id)).toBe("running");
    await goTo(60_001);
    await pass();
    expect((await eventsOf(id)).slice(-2)).toEqual(["OwnerGone", "Recovered"]);
  });
});

describe("a request to stop", () => {
  test("outlives the worker that was to follow it: nobody takes the run up again, and it has stopped", async () => {
    const claimed = await aClaimedRun(bench.store);
    await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: "changed my mind" });
    await markExited(bench.store, ownerOf(claimed).id);
    await pass();
    const { run } = await reload(bench.store, claimed.run.id);
    expect(run.state).toMatchObject({ status: "cancelled", endReason: "changed my mind", outcome: null });
    expect(await eventsOf(run.id)).toEqual(["Submitted", "Claimed", "CancelRequested", "OwnerGone"]);
  });

  test("is no success afterwards, whatever the worker that was taken for lost comes back with", async () => {
    const claimed = await aClaimedRun(bench.store);
    await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: null });
    const { run: read } = await reload(bench.store, claimed.run.id);
    await markExited(bench.store, ownerOf(claimed).id);
    await pass();
    const { run: stopped } = await reload(bench.store, claimed.run.id);
    const end = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
    for (const run of [read, stopped]) {
      const { result } = await transitionOne(bench.store, { run, actor: ownerOf(claimed), events: [end] });
      expect(result).toBe(run === read ? "conflict" : "rejected");
    }
    expect((await reload(bench.store, stopped.id)).run).toEqual(stopped);
  });

  test("whose time is over takes the run from its worker, and waits for what that worker has begun", async () => {
    const { id } = await aRun(bench.store);
    const claimed = await claim(bench.store, id, await aWorker(bench.store, DAY_MS));
    const [call, next] = [aCall(), aCall({ ordinal: 1 })];
    const planned = await took(bench.store, claimed, { steps: [aReply([call, next])], calls: [call, next] });
    const start = aStart(call);
    const begun = await took(bench.store, planned, { start, progress: false });
    await requestCancel(bench.store, { runId: id, actor: ALICE, reason: null });
    const due = (await reload(bench.store, id)).run.state.waitDeadline;
    await goTo((due !== null && "at" in due ? due.at : Number.NaN) - START_MS + 1);
    await pass();
    const revoked = await reload(bench.store, id);
    expect(revoked.run.state).toMatchObject({ status: "cancelling", owner: null, openAttempts: 1 });
    const late = { ...aCommit(begun), stepSeq: revoked.run.stepSeq, start: { ...aStart(next), policyRevision: 1 } };
    expect(await commitSteps(bench.store, [late])).toEqual([{ result: "replaced" }]);
    const answer = { runId: id, attemptId: start.attemptId, workerId: ownerOf(begun).id };
    await recordLateEvidence(bench.store, { ...answer, body: aResult(call), settle: { outcome: "succeeded" } });
    expect((await reload(bench.store, id)).run.state).toMatchObject({ status: "cancelled", openAttempts: 0 });
  });
});

test("one maintenance brings a tree of three levels to its end, from the bottom up; a second finds nothing", async () => {
  const top = await aParent(bench.store, { count: 1 });
  const middle = await aParent(bench.store, {
    count: 2,
    run: (await reload(bench.store, top.childIds[0] ?? "")).run,
  });
  await holdParent(bench.store, top.parent, top.call);
  await holdParent(bench.store, middle.parent, middle.call);
  // One of the lowest is worked on by somebody who has gone, the other has not begun; nobody has told those below.
  const lowest = await claim(bench.store, middle.childIds[0] ?? "", await aWorker(bench.store));
  await markExited(bench.store, ownerOf(lowest).id);
  await requestCancel(bench.store, { runId: top.parent.run.id, actor: ALICE, reason: null });
  const never = new AbortController().signal;
  expect((await applyMaintenance(context(), never)).applied).toMatchObject({ left: [], failed: [] });
  const all = [top.parent.run.id, middle.parent.run.id, ...middle.childIds];
  expect(await Promise.all(all.map(statusOf))).toEqual(all.map(() => "cancelled"));
  const again = await applyMaintenance(context(), never);
  expect(again).toMatchObject({ actions: [], applied: { followed: 0, left: [] } });
});

test("a run that cannot be removed is told of, and keeps none of the others", async () => {
  const [stays, goes] = [await ended(bench.store, "failed"), await ended(bench.store, "failed")];
  await bench.sql(`create function holdpoint.refuse() returns trigger language plpgsql as
    $$ begin raise exception 'it stays' using errcode = '54000'; end $$`);
  await bench.sql(`create trigger refuse before delete on holdpoint.runs
    for each row when (old.id = '${stays.id}') execute function holdpoint.refuse()`);
  await goTo(31 * DAY_MS);
  const swept = [];
  for (const sweep of TIDYING) swept.push(await sweep.run(context()));
  await bench.sql("drop function holdpoint.refuse cascade");
  expect(swept.flatMap(({ errors }) => errors.map(({ message }) => message))).toEqual(["it stays"]);
  expect(swept.find(({ counts }) => counts?.runs !== undefined)).toMatchObject({ moved: 1, counts: { runs: 1 } });
  expect(await loadRun(bench.store, stays.id)).not.toBeNull();
  expect(await loadRun(bench.store, goes.id)).toBeNull();
});
