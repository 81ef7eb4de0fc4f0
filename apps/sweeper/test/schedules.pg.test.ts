import { type Call, EMPTY_CHECKPOINT, type StepBody } from "@holdpoint/core";
import type { Publisher } from "@holdpoint/queue";
import {
  claimRuns,
  commitSteps,
  createSchedule,
  findSchedule,
  findViolations,
  isUnloaded,
  loadRun,
  newId,
  openStore,
  operationIdOf,
  pauseSchedule,
  readClock,
  registerAgent,
  registerWorker,
  requestCancel,
  type ScheduleDefinition,
  type Store,
  transitionOne,
} from "@holdpoint/store";
import { listSlots } from "@holdpoint/store/read";
import { createTestDatabase, moveClock, type TestDatabase } from "@holdpoint/testkit";
import { MOVING, type Swept } from "@holdpoint/upkeep";
import { afterAll, beforeAll, expect, test } from "vitest";

const AGENT = { name: "refunds", version: "1" };
const HOUR_MS = 3_600_000;

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  await registerAgent(store, { ...AGENT, tools: [] });
});
afterAll(async () => {
  expect(await findViolations(store)).toEqual([]);
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** The real clock, and how far the database's is ahead of it. */
let aheadMs = 0;

/** Lets hours pass until a little after a full one. */
async function passHours(hours: number): Promise<void> {
  const nowMs = await readClock(store);
  const untilMs = (Math.floor(nowMs / HOUR_MS) + hours) * HOUR_MS + 2_000;
  aheadMs += untilMs - nowMs;
  await moveClock(database.url, aheadMs);
}

const published: string[] = [];
const publisher: Publisher = {
  publish: async (wakeUps) => {
    published.push(...wakeUps.map(({ runId }) => runId));
    return { published: wakeUps.length, failed: 0, error: null };
  },
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};
const context = { publisher, graceMs: 5_000, limit: 100, number: 7 };

const SWEEPS = ["settle-cancelling", "start-queued-slots", "fire-schedules", "stop-replaced"];

/** One pass of the sweeps that schedules need, by one sweeper. */
async function pass(id = "s1"): Promise<readonly Swept[]> {
  const swept: Swept[] = [];
  for (const name of SWEEPS) {
    const sweep = MOVING.find((each) => each.name === name);
    if (sweep === undefined) throw new Error(`there is no sweep ${name}`);
    swept.push(await sweep.run({ ...context, store, id }));
  }
  expect(swept.flatMap(({ errors }) => errors)).toEqual([]);
  return swept;
}

async function create(name: string, more: Partial<ScheduleDefinition> = {}): Promise<string> {
  const nowMs = await readClock(store);
  const created = await createSchedule(store, {
    name,
    definition: {
      agent: AGENT,
      goal: "refund what is stale",
      timing: { cron: "0 * * * *", zone: "UTC", onceAtMs: null },
      overlap: "skip",
      catchUp: { slots: 1, withinMs: 24 * HOUR_MS },
      ...more,
    },
    nextSlotAtMs: (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS,
    by: "olga",
  });
  if (created.result !== "created") throw new Error(created.result);
  return created.schedule.id;
}

/** What one test leaves is not due in the next. */
const over = (name: string) => pauseSchedule(store, { name, by: "olga" });

/** The schedule's slots, the oldest first, and its runs. */
async function slotsOf(scheduleId: string) {
  const { items } = await listSlots(store, scheduleId, { limit: 200, after: null });
  return items.toReversed().map(({ state, reason, runId }) => ({ state, reason, runId }));
}

const end = (runId: string) =>
  requestCancel(store, { runId, actor: { kind: "operator", id: "olga" }, reason: "done with it" });

/** Takes a run up and begins an effect whose outcome nobody knows yet. */
async function beginEffect(runId: string) {
  const workerId = newId();
  const leaseMs = 1_000_000_000;
  await registerWorker(store, { id: workerId, host: "test", pid: 1, agents: [AGENT], slots: 1, leaseMs });
  const [claimed] = await claimRuns(store, { runIds: [runId], workerId, progressMs: leaseMs, mayTakeSuspect: true });
  if (claimed === undefined || isUnloaded(claimed)) throw new Error("not claimed");
  const attemptId = newId();
  const committed = await commitSteps(store, [
    {
      runId,
      workerId,
      epoch: claimed.run.epoch,
      stepSeq: 0,
      steps: [REPLY],
      calls: [CALL],
      start: {
        body: { kind: "intent", callId: CALL.id, attempt: 1 },
        attemptId,
        deadlineMs: 10_000,
        externalRef: CALL.operationId,
        argsHash: CALL.argsHash,
        approvalId: null,
        supersedes: null,
        policyRevision: claimed.policyRevision,
      },
      checkpoint: { ...EMPTY_CHECKPOINT, stepSeq: 2 },
      currentStep: "send_refund",
      progressMs: leaseMs,
      progress: true,
    },
  ]);
  expect(committed[0]).toMatchObject({ started: true });
  return { workerId, attemptId };
}

const CALL_ID = newId();
const CALL: Call = {
  id: CALL_ID,
  turn: 1,
  ordinal: 0,
  toolCallId: "call_1",
  tool: "send_refund",
  args: {},
  argsHash: "hash-1",
  operationId: operationIdOf(CALL_ID),
  effect: {
    kind: "effect",
    keyValidForMs: 86_400_000,
    lookUpSettlesWithinMs: 60_000,
    equalCallsAreDistinct: false,
    settlement: null,
  },
  verdict: { kind: "allowed" },
  timeoutMs: 10_000,
  retries: 1,
  throttledForMs: 86_400_000,
  service: "payments",
};
const REPLY: StepBody = {
  kind: "model_reply",
  turn: 1,
  message: { role: "assistant", content: [] },
  text: "",
  callIds: [CALL.id],
  outcome: null,
  usage: { inputTokens: 1, outputTokens: 1 },
};

test("hour after hour behind a run that waits: one run, four slots skipped with their reason, then the next run", async () => {
  const id = await create("stale");
  await passHours(1);
  await pass();
  const [first] = await slotsOf(id);
  if (first?.runId == null) throw new Error("no run");
  expect(published).toContain(first.runId);
  for (let hours = 0; hours < 4; hours += 1) {
    await passHours(1);
    await pass();
    await pass("s2");
  }
  await end(first.runId);
  await passHours(1);
  await pass();
  const slots = await slotsOf(id);
  expect(slots.map(({ state }) => state)).toEqual(["started", "skipped", "skipped", "skipped", "skipped", "started"]);
  expect(slots.slice(1, 5).map(({ reason }) => reason)).toEqual(Array(4).fill("earlier_run_live"));
  const last = slots.at(-1)?.runId;
  if (last != null) await end(last);
  await over("stale");
});

test("sweepers that come at once start each slot once", async () => {
  const names = ["one", "two", "three", "four"];
  const ids = await Promise.all(names.map((name) => create(name)));
  await passHours(1);
  await Promise.all(["s1", "s2", "s3"].map((sweeper) => pass(sweeper)));
  for (const id of ids) expect((await slotsOf(id)).map(({ state }) => state)).toEqual(["started"]);
  const { rows } = await store.pool.query<{ count: number }>(
    "select count(*)::int as count from holdpoint.runs r where exists (select from holdpoint.schedule_slots k where k.run_id = r.id and k.schedule_id = any($1))",
    [ids],
  );
  expect(rows[0]?.count).toBe(4);
  for (const name of names) await over(name);
});

test("a sweeper that was away makes the newest slot up, and says of the others that they were missed", async () => {
  const id = await create("away");
  await passHours(5);
  // Half an hour after the last slot, so that none of them is in time.
  aheadMs += HOUR_MS / 2;
  await moveClock(database.url, aheadMs);
  await pass();
  await pass();
  expect((await slotsOf(id)).map(({ state, reason }) => [state, reason])).toEqual([
    ...Array(4).fill(["missed", "too_many_missed"]),
    ["started", null],
  ]);
  await over("away");
});

test("a run that has to give way is asked to stop by its owner, and the later slot waits until it has stopped", async () => {
  const id = await create("replacing", { overlap: "replace" });
  await passHours(1);
  await pass();
  const [first] = await slotsOf(id);
  if (first?.runId == null) throw new Error("no run");
  const { workerId, attemptId } = await beginEffect(first.runId);
  await passHours(1);
  await pass();
  const stopping = await loadRun(store, first.runId);
  expect(stopping?.run.state).toMatchObject({ status: "cancelling", endReason: "replaced", owner: workerId });
  const { rows } = await store.pool.query(
    "select actor_kind, actor_id, reason from holdpoint.transitions where run_id = $1 and event = 'CancelRequested'",
    [first.runId],
  );
  expect(rows).toEqual([{ actor_kind: "requester", actor_id: "olga", reason: "replaced" }]);
  expect(stopping?.run.state.openAttempts).toBe(1);
  // What it has begun outside is not settled: nothing starts beside it, however often the sweep comes.
  await pass();
  expect((await slotsOf(id)).map(({ state, reason }) => [state, reason])).toEqual([
    ["started", null],
    ["queued", "earlier_run_stopping"],
  ]);
  if (stopping === null) throw new Error("gone");
  const settled = await transitionOne(store, {
    run: stopping.run,
    events: [{ type: "EffectSettled", by: "owner", wasOpen: true }],
    actor: { kind: "worker", id: workerId },
    writes: {
      steps: [{ kind: "tool_result", callId: CALL.id, result: "succeeded", output: "sent" }],
      settles: [{ attemptId, outcome: "succeeded", settledBy: "owner" }],
      checkpoint: { ...stopping.run.checkpoint, stepSeq: stopping.run.stepSeq + 1 },
    },
  });
  expect(settled).toMatchObject({ result: "accepted", run: { state: { status: "cancelled" } } });
  await pass();
  const slots = await slotsOf(id);
  expect(slots.map(({ state, reason }) => [state, reason])).toEqual([
    ["replaced", "later_slot"],
    ["started", null],
  ]);
  expect(slots[0]?.runId).toBe(first.runId);
  expect(published).toContain(slots[1]?.runId);
});

test("what cannot be read any more is told, and keeps no other schedule from starting", async () => {
  const broken = await create("broken");
  const whole = await create("whole");
  await store.pool.query("update holdpoint.schedules set zone = 'Mars/Base' where id = $1", [broken]);
  await passHours(1);
  const fire = MOVING.find(({ name }) => name === "fire-schedules");
  const swept = await fire?.run({ ...context, store, id: "s1" });
  expect(swept?.errors).toHaveLength(1);
  expect((await slotsOf(whole)).map(({ state }) => state)).toEqual(["started"]);
  expect(await slotsOf(broken)).toEqual([]);
  expect((await findSchedule(store, "broken"))?.schedule.nextSlotAtMs).not.toBeNull();
});
