import { moveClock, untilWaiting } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  changeRetention,
  commitSteps,
  createSession,
  findRetentionDue,
  findTombstones,
  loadRun,
  newId,
  type RunUnit,
  recordFact,
  recordRefusal,
  registerAgent,
  removeLeftovers,
  removeRuns,
  requestCancel,
  submitRun,
  transitionOne,
} from "../src/index.ts";
import { AGENT, ALICE, aCommit, aRun, OPERATOR, SWEEPER } from "./a-run.ts";
import {
  aClaimedRun,
  accepted,
  aHeldRun,
  aResult,
  aSpendingRun,
  endBy,
  ended,
  moved,
  operatorHold,
  ownerOf,
  QUESTION,
  took,
} from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const DAY_MS = 86_400_000;
const later = (days: number) => moveClock(bench.url, days * DAY_MS);

beforeEach(async () => {
  await bench.sql("truncate holdpoint.runs, holdpoint.tombstones cascade");
  const tables = "transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.approvals";
  await bench.sql(`truncate holdpoint.${tables}, holdpoint.inbox, holdpoint.refusals, holdpoint.callbacks cascade`);
});
afterEach(async () => {
  await later(0);
  await bench.sql("delete from holdpoint.retention");
  await changeRetention(bench.store, { by: "test" });
});

/** One look of retention, as a sweep has it. */
async function remove(limit = 100): Promise<readonly RunUnit[]> {
  const { removed, errors } = await removeRuns(bench.store, await findRetentionDue(bench.store, limit));
  expect(errors).toEqual([]);
  return removed;
}

async function removedIds(): Promise<readonly string[]> {
  return (await remove()).flatMap(({ runIds }) => runIds).toSorted();
}

/** A refund that was approved, sent and completed; its whole history. */
async function aRefund() {
  const { claimed, call, start } = await aSpendingRun(bench.store);
  const settles = [
    { attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker", externalRef: "re_1" },
  ] as const;
  const after = await took(bench.store, claimed, { steps: [aResult(call)], settles });
  return { run: await endBy(bench.store, after), call };
}

/** Makes an ended run the child of another. */
async function adopt(childId: string, parentId: string): Promise<void> {
  await bench.sql(
    `update holdpoint.runs set parent = $2, ancestors = array[$2::uuid], parent_call = $3, parent_ordinal = 0, parent_try = 1,
       told_parent_at = ended_at where id = $1`,
    [childId, parentId, newId()],
  );
}

async function retry(runId: string, sessionId: string) {
  return submitRun(bench.store, { sessionId, agent: AGENT, goal: null, actor: ALICE, retryOf: runId });
}

async function aRetry(runId: string, sessionId: string) {
  const submitted = await retry(runId, sessionId);
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  return submitted.run;
}

describe("a run past its retention", () => {
  test("goes with all of its history, and leaves a tombstone by which its effect is found", async () => {
    const { run, call } = await aRefund();
    await recordRefusal(bench.store, {
      runId: run.id,
      event: "CancelRequested",
      rule: "run_ended",
      status: "completed",
      actor: ALICE,
    });
    await later(29);
    expect(await remove()).toEqual([]);
    await later(31);
    expect(await remove()).toEqual([{ runId: run.id, runIds: [run.id] }]);
    const [rows] = await bench.sql(
      ["runs", "transitions", "steps", "calls", "attempts", "approvals", "decisions", "inbox", "refusals"]
        .map((table) => `(select count(*)::int from holdpoint.${table}) as ${table}`)
        .join(", ")
        .replace(/^/, "select "),
    );
    expect(Object.values(rows ?? {}).every((count) => count === 0)).toBe(true);
    const tombstone = {
      runId: run.id,
      line: run.id,
      parent: null,
      agent: AGENT,
      requester: "alice",
      status: "completed",
      outcome: "succeeded",
      effects: [{ operationId: call.operationId, externalRef: "re_1", tool: "send_refund", outcome: "succeeded" }],
    };
    for (const key of [{ runId: run.id }, { operationId: call.operationId }, { externalRef: "re_1" }]) {
      expect(await findTombstones(bench.store, key)).toMatchObject([tombstone]);
    }
    expect(await findTombstones(bench.store, { externalRef: "re_2" })).toEqual([]);
    expect(await remove()).toEqual([]);
  });

  test.each([
    ["failed", "failedDays", async () => (await ended(bench.store, "failed")).id],
    ["completed", "succeededDays", async () => (await ended(bench.store, "completed")).id],
    [
      "cancelled",
      "cancelledDays",
      async () =>
        accepted(await requestCancel(bench.store, { runId: (await aRun(bench.store)).id, actor: ALICE, reason: null }))
          .id,
    ],
  ] as const)("goes by the days of what it is: %s", async (_status, days, make) => {
    const id = await make();
    await changeRetention(bench.store, { [days]: 3, by: "test" });
    await later(2);
    expect(await remove()).toEqual([]);
    await later(4);
    expect(await removedIds()).toEqual([id]);
  });

  test("is kept as long as one that failed, where a person ended it after it was lost", async () => {
    const { run } = await aClaimedRun(bench.store);
    const lost = await moved(bench.store, { run, actor: SWEEPER, events: [{ type: "OwnerGone", reason: "wedged" }] });
    const stopping = accepted(await requestCancel(bench.store, { runId: lost.id, actor: OPERATOR, reason: "no use" }));
    await moved(bench.store, {
      run: stopping,
      actor: SWEEPER,
      events: [{ type: "OwnerGone", reason: "nothing_pending" }],
    });
    await changeRetention(bench.store, { failedDays: 90, cancelledDays: 5, by: "test" });
    await later(60);
    expect(await remove()).toEqual([]);
    await later(91);
    expect(await removedIds()).toEqual([run.id]);
  });
});

describe("a run stays", () => {
  test("while it waits, were it a year", async () => {
    const run = await aHeldRun(bench.store, QUESTION);
    await later(366);
    expect(await remove()).toEqual([]);
    expect(await loadRun(bench.store, run.id)).not.toBeNull();
  });

  test("while another of its line is live or within its retention; then all of the line go", async () => {
    const first = await ended(bench.store, "failed");
    await later(20);
    const second = await aRetry(first.id, first.sessionId);
    await later(40);
    expect(await remove()).toEqual([]);
    accepted(await requestCancel(bench.store, { runId: second.id, actor: ALICE, reason: null }));
    await later(60);
    expect(await remove()).toEqual([]);
    await later(72);
    expect(await removedIds()).toEqual([first.id, second.id].toSorted());
  });

  test("while one of its tree is live or within its retention; parent and children go together", async () => {
    const parent = await ended(bench.store, "completed");
    await later(10);
    const child = await ended(bench.store, "completed");
    await adopt(child.id, parent.id);
    await later(35);
    expect(await remove()).toEqual([]);
    const childsRetry = await aRetry(child.id, child.sessionId);
    await later(60);
    expect(await remove()).toEqual([]);
    accepted(await requestCancel(bench.store, { runId: childsRetry.id, actor: ALICE, reason: null }));
    await later(92);
    expect(await removedIds()).toEqual([parent.id, child.id, childsRetry.id].toSorted());
  });

  test("while nobody knows how an effect ended that the other side had accepted", async () => {
    const { run, call } = await aRefund();
    const pending = { kind: "effect_pending", callId: call.id, output: null, externalRef: "re_1" };
    await bench.sql(
      "update holdpoint.steps set body = $2, kind = 'effect_pending' where run_id = $1 and kind = 'tool_result'",
      [run.id, pending],
    );
    await later(40);
    expect(await remove()).toEqual([]);
    await bench.sql(
      `insert into holdpoint.callbacks (tenant_id, source, event_id, run_id, call_id, status, received_at)
       values ($1, 'payments', 'e1', $2, $3, 'settled', holdpoint.clock())`,
      [bench.store.tenantId, run.id, call.id],
    );
    await later(42);
    expect(await removedIds()).toEqual([run.id]);
  });

  test("where the tenant has no policy", async () => {
    await ended(bench.store, "completed");
    await bench.sql("delete from holdpoint.retention");
    await later(4_000);
    expect(await remove()).toEqual([]);
  });
});

test("what is kept never hides what is not", async () => {
  const held = await ended(bench.store, "failed");
  await later(1);
  const free = await ended(bench.store, "failed");
  await aRetry(held.id, held.sessionId);
  await later(40);
  expect(await remove(1)).toEqual([]);
  expect((await remove(1)).map(({ runId }) => runId)).toEqual([free.id]);
  expect(await findRetentionDue(bench.store, 10)).toEqual([]);
  await later(42);
  expect(await findRetentionDue(bench.store, 10)).toMatchObject([{ runId: held.id, keptBy: "live" }]);
});

describe("nobody brings a removed run back", () => {
  test("neither its last owner, nor a person, nor a sweep, nor a fact", async () => {
    const claimed = await aClaimedRun(bench.store);
    await endBy(bench.store, claimed);
    await later(31);
    expect(await removedIds()).toEqual([claimed.run.id]);
    const { run } = claimed;
    const end = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
    expect(await transitionOne(bench.store, { run, actor: ownerOf(claimed), events: [end] })).toEqual({
      result: "notFound",
    });
    const gone = { type: "OwnerGone", reason: "wedged" } as const;
    expect(await transitionOne(bench.store, { run, actor: SWEEPER, events: [gone] })).toEqual({ result: "notFound" });
    expect(await commitSteps(bench.store, [aCommit(claimed)])).toEqual([{ result: "replaced" }]);
    expect(await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null })).toMatchObject({
      result: "not_found",
    });
    const fact = { runId: run.id, kind: "message", text: "hello?", actor: ALICE } as const;
    expect(await recordFact(bench.store, fact)).toMatchObject({ result: "not_found" });
    expect(await retry(run.id, run.sessionId)).toEqual({ result: "retried_run_not_found" });
    await recordRefusal(bench.store, {
      runId: run.id,
      event: "Claimed",
      rule: "run_ended",
      status: "completed",
      actor: ALICE,
    });
    expect(await bench.sql("select from holdpoint.runs")).toEqual([]);
    expect(await bench.sql("select from holdpoint.refusals")).toEqual([]);
  });

  test("nor the same request under its key, for a year; after that the key is free", async () => {
    await registerAgent(bench.store, { ...AGENT, tools: [] });
    const { id: sessionId } = await createSession(bench.store, ALICE.id);
    const idempotency = { principal: "alice", key: "order-4411", requestHash: "h1" };
    const submission = { sessionId, agent: AGENT, goal: "refund", actor: ALICE, idempotency };
    const first = await submitRun(bench.store, submission);
    if (first.result !== "submitted") throw new Error(first.result);
    accepted(await requestCancel(bench.store, { runId: first.run.id, actor: ALICE, reason: null }));
    await later(31);
    expect(await removedIds()).toEqual([first.run.id]);
    await later(395);
    await removeLeftovers(bench.store, 100);
    const { id: newSession } = await createSession(bench.store, ALICE.id);
    const again = { ...submission, sessionId: newSession };
    expect(await submitRun(bench.store, again)).toMatchObject({ result: "removed", runId: first.run.id });
    const other = { ...again, idempotency: { ...idempotency, requestHash: "h2" } };
    expect(await submitRun(bench.store, other)).toEqual({ result: "key_reused" });
    expect(await bench.sql("select from holdpoint.runs")).toEqual([]);
    await later(397);
    expect(await removeLeftovers(bench.store, 100)).toMatchObject({ tombstones: [first.run.id] });
    expect(await findTombstones(bench.store, { runId: first.run.id })).toEqual([]);
    expect(await submitRun(bench.store, again)).toMatchObject({ result: "submitted" });
  });

  test("a retry that is submitted while the run goes finds nothing; one that was first keeps it", async () => {
    const going = await ended(bench.store, "failed");
    const staying = await ended(bench.store, "failed");
    await later(31);
    const due = await findRetentionDue(bench.store, 10);
    await using remover = await bench.lonely();
    await remover.store.pool.query("begin");
    const { removed } = await removeRuns(
      remover.store,
      due.filter(({ runId }) => runId === going.id),
    );
    expect(removed).toHaveLength(1);
    await using submitter = await bench.lonely();
    const late = submitRun(submitter.store, {
      sessionId: going.sessionId,
      agent: AGENT,
      goal: null,
      actor: ALICE,
      retryOf: going.id,
    });
    await untilWaiting(bench.admin, submitter.pid);
    await remover.store.pool.query("commit");
    expect(await late).toEqual({ result: "retried_run_not_found" });

    await submitter.store.pool.query("begin");
    await submitRun(submitter.store, {
      sessionId: staying.sessionId,
      agent: AGENT,
      goal: null,
      actor: ALICE,
      retryOf: staying.id,
    });
    expect(
      await removeRuns(
        bench.store,
        due.filter(({ runId }) => runId === staying.id),
      ),
    ).toEqual({ removed: [], kept: [], errors: [] });
    await submitter.store.pool.query("commit");
    expect(
      await removeRuns(
        bench.store,
        due.filter(({ runId }) => runId === staying.id),
      ),
    ).toMatchObject({ removed: [], kept: [staying.id] });
  });
});

test("two that remove at once remove each run once", async () => {
  const runs = [];
  for (let number = 0; number < 12; number += 1) runs.push(await ended(bench.store, "failed"));
  await later(31);
  const due = await findRetentionDue(bench.store, 100);
  const both = await Promise.all([removeRuns(bench.store, due), removeRuns(bench.store, due.toReversed())]);
  const ids = both.flatMap(({ removed }) => removed.map(({ runId }) => runId));
  expect(ids.toSorted()).toEqual(runs.map(({ id }) => id).toSorted());
  expect(both.flatMap(({ errors }) => errors)).toEqual([]);
});

test("a run in quarantine is nobody's to remove", async () => {
  await aHeldRun(bench.store, operatorHold("quarantined"));
  await later(400);
  expect(await findRetentionDue(bench.store, 10)).toEqual([]);
});
