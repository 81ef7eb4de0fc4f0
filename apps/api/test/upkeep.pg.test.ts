import { findViolations } from "@holdpoint/store";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { AGENT, problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, callForRefund, claim, move, startRefund, stored } from "./stage-run.ts";

const api = useTestApi();
const olga = () => api.as("olga-token");
const alice = () => api.as("alice-token");

const sql = async (text: string, values: readonly unknown[] = []) =>
  (await api.store.pool.query(text, [...values])).rows;

beforeEach(async () => {
  await sql("truncate holdpoint.runs, holdpoint.sessions, holdpoint.tombstones cascade");
  await sql(
    "truncate holdpoint.messages, holdpoint.transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.approvals cascade",
  );
});
afterAll(async () => {
  expect(await findViolations(api.store)).toEqual([]);
});

/** Lets days pass since a run has ended. */
const age = (runId: string, days: number) =>
  sql("update holdpoint.runs set ended_at = ended_at - $2::int * interval '1 day' where id = $1", [
    stored(runId),
    days,
  ]);

async function aCancelledRun(key = "order-4411") {
  const { id: sessionId } = await alice().createSession();
  const body = { sessionId, agent: AGENT, goal: "refund" };
  const run = await alice().submitRun(body, { idempotencyKey: key });
  await alice().cancelRun({ runId: run.id });
  return { run, sessionId, again: () => alice().submitRun(body, { idempotencyKey: key }) };
}

test("is for operators only", async () => {
  for (const token of ["alice-token", "mona-token"]) {
    const client = api.as(token);
    for (const ask of [
      () => client.maintain({ apply: true }),
      () => client.audit(),
      () => client.findTombstones({ operationId: "op_1" }),
      () => client.showRetention(),
      () => client.changeRetention({ failedDays: 1 }),
    ]) {
      expect(await problemOf(ask())).toMatchObject({ status: 403, code: "forbidden" });
    }
  }
});

describe("maintenance", () => {
  test("shows what it does, does what it shows, and then has nothing to do", async () => {
    const { run, sessionId } = await aCancelledRun();
    expect(await olga().maintain({ apply: false })).toEqual({ actions: [], unreadable: [], applied: null });
    await age(run.id, 31);
    const shown = await olga().maintain({ apply: false });
    expect(shown.actions).toEqual([{ kind: "remove-expired", runId: run.id, subject: null }]);
    const done = await olga().maintain({ apply: true });
    expect(done.actions).toEqual(shown.actions);
    expect(done.applied).toEqual({
      followUps: [{ kind: "remove-leftovers", runId: null, subject: { kind: "session", id: sessionId } }],
      followed: 1,
      left: [],
      failed: [],
    });
    expect(await olga().maintain({ apply: true })).toMatchObject({ actions: [], applied: { followUps: [] } });
    expect(api.logged.join("")).toContain('"event":"maintenance.applied"');
  });

  test("needs to be told which of both", async () => {
    expect(await problemOf(olga().maintain({} as never))).toMatchObject({ status: 400, code: "invalid_request" });
  });
});

describe("a removed run", () => {
  test("is not there any more, and the same request under its key is told so and starts nothing", async () => {
    const { run, again } = await aCancelledRun("order-1");
    await age(run.id, 31);
    await olga().maintain({ apply: true });
    expect(await problemOf(alice().showRun({ runId: run.id }))).toMatchObject({ status: 404 });
    const problem = await problemOf(again());
    expect(problem).toMatchObject({ status: 410, code: "removed" });
    expect(problem.message).toContain(run.id);
    expect(problem.message).toContain("use a new key");
    expect(await sql("select from holdpoint.runs")).toEqual([]);
    expect(await problemOf(alice().retryRun({ runId: run.id }))).toMatchObject({ status: 404 });
  });

  test("says so as well where its conversation is still there", async () => {
    const { run, sessionId, again } = await aCancelledRun("order-2");
    await alice().submitRun({ sessionId, agent: AGENT, goal: "another" });
    await age(run.id, 31);
    await olga().maintain({ apply: true });
    expect(await problemOf(again())).toMatchObject({ status: 410, code: "removed" });
    const { items } = await alice().listMessages({ sessionId });
    expect(items.map(({ runId }) => runId === null)).toEqual([true, false]);
  });

  test("is found by its effects", async () => {
    const run = await aRun(api);
    const owner = await claim(api.store, run.id);
    const callId = await callForRefund(api.store, run.id, owner);
    await startRefund(api.store, run.id, { ...owner, callId });
    await move(api.store, {
      runId: run.id,
      workerId: owner.workerId,
      event: { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null },
    });
    const [call] = (await olga().listCalls({ runId: run.id })).items;
    const attempts = call?.attempts.flatMap(({ id }) => (id === null ? [] : [id])) ?? [];
    await olga().decideAsOperator({ runId: run.id, choice: "terminate", reason: "no use", attempts });
    await age(run.id, 31);
    await olga().maintain({ apply: true });
    const { items } = await olga().findTombstones({ operationId: call?.operationId ?? "" });
    expect(items).toMatchObject([
      {
        runId: run.id,
        line: run.id,
        status: "cancelled",
        outcome: null,
        effects: [{ tool: "send_refund", externalRef: "op_1", outcome: "not_established" }],
      },
    ]);
    expect((await olga().findTombstones({ runId: run.id })).items).toEqual(items);
    expect((await olga().findTombstones({ externalRef: "op_1" })).items).toEqual(items);
    expect((await olga().findTombstones({ externalRef: "op_2" })).items).toEqual([]);
    expect(await problemOf(olga().findTombstones({}))).toMatchObject({
      status: 400,
      message: expect.stringContaining("one of"),
    });
    expect(await problemOf(olga().findTombstones({ runId: run.id, operationId: "a" }))).toMatchObject({ status: 400 });
  });
});

test("an audit names the run and the command that mends it", async () => {
  const run = await aRun(api);
  expect((await olga().audit()).items).toEqual([]);
  await sql("update holdpoint.runs set queued_since = queued_since - interval '1 hour' where id = $1", [
    stored(run.id),
  ]);
  await sql("update holdpoint.runs set wait_deadline = wait_deadline - interval '2 days' where id = $1", [
    stored(run.id),
  ]);
  const { items } = await olga().audit();
  expect(items.map(({ code }) => code)).toEqual(["hold_past_deadline", "queued_too_long"]);
  const [late] = items;
  expect(late).toMatchObject({ runId: run.id, severity: "error", mend: "holdpoint maintenance --apply" });
  expect(late?.ageMs).toBeGreaterThan(3_600_000);
});

describe("retention", () => {
  test("is shown, changed in part, and within bounds", async () => {
    const before = await olga().showRetention();
    expect(before).toEqual({
      succeededDays: 30,
      partialDays: 30,
      blockedDays: 30,
      failedDays: 30,
      cancelledDays: 30,
      tombstoneDays: 365,
    });
    expect(await olga().changeRetention({ failedDays: 90 })).toEqual({ ...before, failedDays: 90 });
    expect(await olga().showRetention()).toEqual({ ...before, failedDays: 90 });
    for (const wrong of [{ failedDays: 0 }, { failedDays: 1.5 }, { failedDays: 40_000 }]) {
      expect(await problemOf(olga().changeRetention(wrong as never))).toMatchObject({
        status: 400,
        code: "invalid_request",
      });
    }
    const [row] = await sql("select changed_by from holdpoint.retention");
    expect(row).toEqual({ changed_by: "olga" });
  });
});
