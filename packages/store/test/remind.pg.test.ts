import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { decideApproval, openStore, remindApprovers, requestCancel, requestPause, resumeRun } from "../src/index.ts";
import { aDecision, passDeadline } from "./a-decision.ts";
import { openGate } from "./a-gate.ts";
import { ALICE, aCall, OPERATOR } from "./a-run.ts";
import { type Asked, anAskingRun, MINUTE_MS } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

beforeEach(() => bench.sql("update holdpoint.approvals set remind_at = null"));
afterEach(() => moveClock(bench.url, 0));

/** Reminders after one, two and four minutes, of a request that has an hour. */
const STAGES: Asked = { terms: { remindAfterMs: [1, 2, 4].map((n) => n * MINUTE_MS), deadlineMs: 60 * MINUTE_MS } };
const anAsking = (request: Asked = STAGES) => anAskingRun(bench.store, { request });

const minutes = (n: number) => moveClock(bench.url, n * MINUTE_MS + 5_000);
const remind = () => remindApprovers(bench.store, 100);

/** A request's reminders, how many are counted, and when the next is due, in milliseconds from the request. */
async function remindersOf(approvalId: string) {
  const [row] = await bench.sql(
    `select array(select m.stage from holdpoint.reminders m where m.approval_id = a.id order by m.stage) as stages,
       a.reminders, round(extract(epoch from a.remind_at - a.requested_at) / 60)::int as next_minute
     from holdpoint.approvals a where a.id = $1`,
    [approvalId],
  );
  return row;
}

test("a reminder is made at each stage, and none before it, between them or after the last", async () => {
  const { request, run } = await anAsking();
  const { id } = request;
  expect(await remind()).toEqual([]);
  await minutes(1);
  expect(await remind()).toEqual([{ approvalId: id, runId: run.id, stage: 1 }]);
  expect(await remind()).toEqual([]);
  expect(await remindersOf(id)).toEqual({ stages: [1], reminders: 1, next_minute: 2 });
  await minutes(2);
  expect(await remind()).toMatchObject([{ stage: 2 }]);
  await minutes(4);
  expect(await remind()).toMatchObject([{ stage: 3 }]);
  expect(await remindersOf(id)).toEqual({ stages: [1, 2, 3], reminders: 3, next_minute: null });
  await minutes(30);
  expect(await remind()).toEqual([]);
});

test("after an outage only the latest stage that is due is made", async () => {
  const { request } = await anAsking();
  await minutes(3);
  expect(await remind()).toMatchObject([{ approvalId: request.id, stage: 2 }]);
  expect(await remindersOf(request.id)).toEqual({ stages: [2], reminders: 1, next_minute: 4 });
  await minutes(4);
  expect(await remind()).toMatchObject([{ stage: 3 }]);
  const later = await anAsking();
  await minutes(20);
  expect(await remind()).toMatchObject([{ approvalId: later.request.id, stage: 3 }]);
  expect(await remindersOf(later.request.id)).toEqual({ stages: [3], reminders: 1, next_minute: null });
});

test("whoever asks to be reminded of nothing is not", async () => {
  await anAsking({});
  await minutes(0.5);
  expect(await remind()).toEqual([]);
});

test("nobody is reminded of what has been decided, withdrawn or has expired", async () => {
  const decided = await anAsking();
  await decideApproval(bench.store, aDecision(decided));
  const { run } = await anAsking();
  await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null });
  const expired = await anAsking({ terms: { remindAfterMs: [MINUTE_MS], deadlineMs: 2 * MINUTE_MS } });
  await minutes(2);
  await passDeadline(bench.store, expired.run.id);
  expect(await remind()).toEqual([]);
});

test("nobody is reminded while the run is paused, and its time is given back to the reminders that are left", async () => {
  const { request, run } = await anAsking();
  await minutes(1);
  await remind();
  await requestPause(bench.store, { runId: run.id, actor: OPERATOR });
  await minutes(11);
  expect(await remind()).toEqual([]);
  await resumeRun(bench.store, { runId: run.id, actor: OPERATOR });
  expect(await remind()).toEqual([]);
  expect(await remindersOf(request.id)).toEqual({ stages: [1], reminders: 1, next_minute: 12 });
  await minutes(12);
  expect(await remind()).toMatchObject([{ stage: 2 }]);
  expect(await remindersOf(request.id)).toEqual({ stages: [1, 2], reminders: 2, next_minute: 14 });
});

test("paused runs do not use up the limit of a pass", async () => {
  const paused = await anAsking();
  await requestPause(bench.store, { runId: paused.run.id, actor: OPERATOR });
  const { request } = await anAsking();
  await minutes(1);
  expect(await remindApprovers(bench.store, 1)).toMatchObject([{ approvalId: request.id }]);
});

test("of a run's requests each is reminded of by itself, at most as many runs in a pass as asked", async () => {
  const calls = [aCall(), aCall({ ordinal: 1 })];
  const first = await anAskingRun(bench.store, { calls, request: STAGES });
  const second = await anAsking();
  await minutes(1);
  const [one, other] = [await remindApprovers(bench.store, 1), await remindApprovers(bench.store, 1)];
  expect([...one, ...other].map(({ approvalId }) => approvalId).toSorted()).toEqual(
    [...first.requests, second.request].map(({ id }) => id).toSorted(),
  );
  expect(new Set(one.map(({ runId }) => runId)).size).toBe(1);
});

test("four sweepers that sweep without end make each stage once", async () => {
  const made = [];
  const asked = await Promise.all([1, 2, 3, 4, 5, 6].map(() => anAsking()));
  await using other = openStore({ url: bench.url });
  for (const minute of [1, 2, 4]) {
    await minutes(minute);
    const passes = Array.from({ length: 12 }, (_, n) => remindApprovers(n % 2 === 0 ? bench.store : other, 3));
    made.push(...(await Promise.all(passes)).flat(), ...(await remind()));
  }
  const stages = made.map(({ approvalId, stage }) => `${approvalId} ${stage}`);
  expect(stages.toSorted()).toEqual(
    asked.flatMap(({ request }) => [1, 2, 3].map((n) => `${request.id} ${n}`)).toSorted(),
  );
});

test("a run whose row somebody holds is passed over and reminded of in the next pass", async () => {
  const { run } = await anAsking();
  await minutes(1);
  await bench.sql("begin");
  await bench.sql("select from holdpoint.runs where id = $1 for update", [run.id]);
  expect(await remind()).toEqual([]);
  await bench.sql("commit");
  expect(await remind()).toMatchObject([{ runId: run.id, stage: 1 }]);
});

test("a sweeper that has read before another made a stage does not make that stage again", async () => {
  const { request } = await anAsking();
  await using gate = await openGate(bench);
  await minutes(2);
  const late = await gate.whileShut(
    (store) => remindApprovers(store, 100),
    async () => {
      // By this sweeper's clock only the first stage is due; the next is due by the other's.
      await minutes(1);
      expect(await remind()).toMatchObject([{ approvalId: request.id, stage: 1 }]);
    },
  );
  expect(late).toEqual([]);
  await minutes(2);
  expect(await remind()).toMatchObject([{ stage: 2 }]);
});
