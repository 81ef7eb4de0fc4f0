import { beforeAll, expect, test } from "vitest";
import {
  changeSchedule,
  createSchedule,
  type DueSlots,
  deleteSchedule,
  findDueSchedules,
  findReplacedRuns,
  findStartableSchedules,
  fireSlot,
  pauseSchedule,
  type Run,
  registerAgent,
  requestCancel,
  resumeSchedule,
  type Schedule,
  startNow,
  startQueuedSlot,
  submitRun,
} from "../src/index.ts";
import { AGENT, OPERATOR } from "./a-run.ts";
import { aSchedule, HOUR_MS, seen } from "./a-schedule.ts";
import { reachesWait, useBench } from "./a-store.ts";

const bench = useBench();
const T0 = Date.UTC(2026, 0, 5, 9);
const at = (hours: number): number => T0 + hours * HOUR_MS;

beforeAll(() => registerAgent(bench.store, { ...AGENT, tools: [] }));

const slot = (hours: number, more: Partial<DueSlots> = {}): DueSlots => ({
  slotAtMs: at(hours),
  missed: [],
  nextSlotAtMs: at(hours + 1),
  ...more,
});

/** Fires a slot of the schedule as it is now. */
async function fire(name: string, hours: number, more: Partial<DueSlots> = {}) {
  return fireSlot(bench.store, await seen(bench.store, name), slot(hours, more));
}

async function started(name: string, hours: number): Promise<Run> {
  const fired = await fire(name, hours);
  if (fired.result !== "started") throw new Error(`slot ${hours} of ${name}: ${fired.result}`);
  return fired.run;
}

type SlotRow = { slot_at: Date; manual: boolean; state: string; reason: string | null; run_id: string | null };

async function slotsOf({ id }: Schedule) {
  const rows = await bench.sql<SlotRow>(
    "select * from holdpoint.schedule_slots where schedule_id = $1 order by slot_at, manual",
    [id],
  );
  return rows.map(({ slot_at, state, reason, run_id }) => ({
    hours: (slot_at.getTime() - T0) / HOUR_MS,
    state,
    reason,
    runId: run_id,
  }));
}

const end = (run: Run, reason: string | null = null) =>
  requestCancel(bench.store, { runId: run.id, actor: OPERATOR, reason });

test("a slot starts a run in a session of its own, asked for by the schedule's owner", async () => {
  const schedule = await aSchedule(bench.store, { name: "stale", slotAtMs: at(0), by: "olga" });
  const run = await started("stale", 0);
  expect(run).toMatchObject({ agent: AGENT, requester: "olga", submittedBy: "olga", goal: "refund what is stale" });
  expect(run.state.status).toBe("queued");
  expect(await slotsOf(schedule)).toEqual([{ hours: 0, state: "started", reason: null, runId: run.id }]);
  expect(
    await bench.sql("select requester, message_seq from holdpoint.sessions where id = $1", [run.sessionId]),
  ).toEqual([{ requester: "olga", message_seq: 1 }]);
  expect(
    await bench.sql("select seq, event, actor_kind, actor_id, reason from holdpoint.transitions where run_id = $1", [
      run.id,
    ]),
  ).toEqual([
    {
      seq: 1,
      event: "Submitted",
      actor_kind: "requester",
      actor_id: "olga",
      reason: "schedule stale, slot 2026-01-05T09:00:00Z",
    },
  ]);
  expect(await seen(bench.store, "stale")).toMatchObject({ nextSlotAtMs: at(1), queuedSlotAtMs: null });
});

test("behind a run that waits, `skip` records each slot with its reason, and the next one runs once it has ended", async () => {
  const schedule = await aSchedule(bench.store, { name: "skipping", slotAtMs: at(0) });
  const first = await started("skipping", 0);
  for (const hours of [1, 2, 3, 4]) expect(await fire("skipping", hours)).toEqual({ result: "skipped" });
  await end(first);
  const next = await started("skipping", 5);
  expect(await slotsOf(schedule)).toEqual([
    { hours: 0, state: "started", reason: null, runId: first.id },
    ...[1, 2, 3, 4].map((hours) => ({ hours, state: "skipped", reason: "earlier_run_live", runId: null })),
    { hours: 5, state: "started", reason: null, runId: next.id },
  ]);
});

test("a run that does the schedule's last one again counts as its run", async () => {
  await aSchedule(bench.store, { name: "again", slotAtMs: at(0) });
  const first = await started("again", 0);
  await end(first);
  const again = await submitRun(bench.store, {
    sessionId: first.sessionId,
    agent: AGENT,
    goal: null,
    retryOf: first.id,
    actor: OPERATOR,
  });
  expect(again.result).toBe("submitted");
  expect(await fire("again", 1)).toEqual({ result: "skipped" });
});

test("`queue` keeps one slot waiting, and starts it when the earlier run has ended", async () => {
  const schedule = await aSchedule(bench.store, { name: "queueing", slotAtMs: at(0), overlap: "queue" });
  const first = await started("queueing", 0);
  expect(await fire("queueing", 1)).toEqual({ result: "queued" });
  expect(await fire("queueing", 2)).toEqual({ result: "skipped" });
  const startable = async () => (await findStartableSchedules(bench.store, 10)).map((each) => each.schedule.name);
  expect(await startable()).toEqual([]);
  expect(await startQueuedSlot(bench.store, await seen(bench.store, "queueing"))).toBeNull();
  await end(first);
  expect(await startable()).toEqual(["queueing"]);
  // What is queued comes before what is due.
  expect(await fire("queueing", 3)).toEqual({ result: "skipped" });
  const second = await startQueuedSlot(bench.store, await seen(bench.store, "queueing"));
  expect(await slotsOf(schedule)).toEqual([
    { hours: 0, state: "started", reason: null, runId: first.id },
    { hours: 1, state: "started", reason: null, runId: second?.id },
    { hours: 2, state: "skipped", reason: "slot_already_queued", runId: null },
    { hours: 3, state: "skipped", reason: "slot_already_queued", runId: null },
  ]);
  expect(await startable()).toEqual([]);
});

test("`replace` names the run that has to stop, waits until it has, and takes only the latest slot", async () => {
  const schedule = await aSchedule(bench.store, { name: "replacing", slotAtMs: at(0), overlap: "replace" });
  const first = await started("replacing", 0);
  expect(await fire("replacing", 1)).toEqual({ result: "queued" });
  expect(await fire("replacing", 2)).toEqual({ result: "queued" });
  const replaced = await findReplacedRuns(bench.store, 10);
  expect(replaced.map(({ run, owner }) => [run.id, owner])).toEqual([[first.id, "olga"]]);
  await requestCancel(bench.store, {
    runId: first.id,
    actor: { kind: "requester", id: "olga" },
    reason: "replaced",
  });
  expect(await findReplacedRuns(bench.store, 10)).toEqual([]);
  const second = await startQueuedSlot(bench.store, await seen(bench.store, "replacing"));
  expect(await slotsOf(schedule)).toEqual([
    { hours: 0, state: "replaced", reason: "later_slot", runId: first.id },
    { hours: 1, state: "replaced", reason: "later_slot", runId: null },
    { hours: 2, state: "started", reason: null, runId: second?.id },
  ]);
});

test("a slot whose run came to its own end is not called replaced", async () => {
  const schedule = await aSchedule(bench.store, { name: "in-time", slotAtMs: at(0), overlap: "replace" });
  const first = await started("in-time", 0);
  await fire("in-time", 1);
  await end(first, "enough");
  await startQueuedSlot(bench.store, await seen(bench.store, "in-time"));
  expect((await slotsOf(schedule)).map(({ state }) => state)).toEqual(["started", "started"]);
});

test("missed slots are rows too, and each slot is started once however often it comes", async () => {
  const schedule = await aSchedule(bench.store, { name: "missing", slotAtMs: at(0) });
  const missed = [
    { slotAtMs: at(0), reason: "too_old" },
    { slotAtMs: at(1), reason: "too_many_missed" },
  ] as const;
  const run = await fire("missing", 2, { missed });
  expect(run.result).toBe("started");
  // A clock that was set back finds the slot again.
  expect(await fire("missing", 2, { missed })).toEqual({ result: "none" });
  expect(await fire("missing", 3, { slotAtMs: null, missed: [{ slotAtMs: at(3), reason: "too_old" }] })).toEqual({
    result: "none",
  });
  expect((await slotsOf(schedule)).map(({ hours, state, reason }) => [hours, state, reason])).toEqual([
    [0, "missed", "too_old"],
    [1, "missed", "too_many_missed"],
    [2, "started", null],
    [3, "missed", "too_old"],
  ]);
});

test("of two sweepers that fire a slot at once, one does", async () => {
  const schedule = await aSchedule(bench.store, { name: "raced", slotAtMs: at(0) });
  await using late = await bench.lonely();
  await bench.admin.query("begin");
  await bench.admin.query("select from holdpoint.schedules where id = $1 for update", [schedule.id]);
  const second = fireSlot(late.store, schedule, slot(0));
  await reachesWait(bench.admin, late.pid, second);
  // The other sweeper's commit, on the connection that has the row.
  await bench.admin.query("update holdpoint.schedules set version = version + 1, next_slot_at = $2 where id = $1", [
    schedule.id,
    new Date(at(1)),
  ]);
  await bench.admin.query("commit");
  expect(await second).toEqual({ result: "conflict" });
  const fired = await Promise.all(
    Array.from({ length: 8 }, async () => fireSlot(bench.store, await seen(bench.store, "raced"), slot(1))),
  );
  expect(fired.filter(({ result }) => result === "started")).toHaveLength(1);
  expect(await slotsOf(schedule)).toHaveLength(1);
});

test("a person starts a run by hand although another waits; it is marked, and counts for the slots after it", async () => {
  const schedule = await aSchedule(bench.store, { name: "by-hand", slotAtMs: at(0) });
  const first = await started("by-hand", 0);
  const now = await startNow(bench.store, { name: "by-hand", by: "otto" });
  if (now.result !== "started") throw new Error(now.result);
  expect(now.run).toMatchObject({ requester: "olga", submittedBy: "otto" });
  const rows = await bench.sql("select started_by, causes, state from holdpoint.schedule_slots where run_id = $1", [
    now.run.id,
  ]);
  expect(rows).toEqual([{ started_by: "otto", causes: ["olga", "otto"], state: "started" }]);
  await end(first);
  expect(await fire("by-hand", 1)).toEqual({ result: "skipped" });
  await end(now.run);
  expect((await fire("by-hand", 2)).result).toBe("started");
  expect(await seen(bench.store, "by-hand")).toMatchObject({ id: schedule.id, nextSlotAtMs: at(3) });
});

test("the same request by hand under the same key starts one run; another under that key is told so", async () => {
  await aSchedule(bench.store, { name: "keyed", slotAtMs: at(0) });
  const ask = (requestHash: string) =>
    startNow(bench.store, { name: "keyed", by: "otto", idempotency: { principal: "otto", key: "k1", requestHash } });
  const results = await Promise.all([ask("a"), ask("a"), ask("a")]);
  expect(results.map(({ result }) => result).toSorted()).toEqual(["repeated", "repeated", "started"]);
  expect(await ask("b")).toEqual({ result: "key_reused" });
  expect(await startNow(bench.store, { name: "nobody", by: "otto" })).toEqual({ result: "not_found" });
});

test("nobody starts more runs by hand than can be looked after", async () => {
  await aSchedule(bench.store, { name: "flood", slotAtMs: at(0) });
  const by = (count: number) =>
    Promise.all(Array.from({ length: count }, () => startNow(bench.store, { name: "flood", by: "otto" })));
  const results = [...(await by(6)), ...(await by(6)), ...(await by(6)), ...(await by(6))].map(({ result }) => result);
  expect(results.filter((result) => result === "started")).toHaveLength(20);
  expect(results.filter((result) => result === "too_many_live")).toHaveLength(4);
});

test("a paused schedule is not due, what waited is skipped, and it goes on with the slot that is named", async () => {
  const schedule = await aSchedule(bench.store, { name: "paused", slotAtMs: at(0), overlap: "queue" });
  await started("paused", 0);
  await fire("paused", 1);
  const due = async () => (await findDueSchedules(bench.store, 50)).map((each) => each.schedule.name);
  expect(await due()).toContain("paused");
  const before = await seen(bench.store, "paused");
  expect(await pauseSchedule(bench.store, { name: "paused", by: "otto" })).toMatchObject({
    result: "accepted",
    schedule: { paused: { by: "otto" }, queuedSlotAtMs: null },
  });
  expect(await due()).not.toContain("paused");
  // A sweeper that had read it before.
  expect(await fireSlot(bench.store, before, slot(2))).toEqual({ result: "conflict" });
  expect((await slotsOf(schedule)).map(({ state, reason }) => [state, reason])).toEqual([
    ["started", null],
    ["skipped", "paused"],
  ]);
  expect(await pauseSchedule(bench.store, { name: "paused", by: "otto" })).toMatchObject({ result: "ignored" });
  const resumed = await resumeSchedule(bench.store, { name: "paused", by: "otto", nextSlotAtMs: () => at(7) });
  expect(resumed).toMatchObject({ result: "accepted", schedule: { paused: null, nextSlotAtMs: at(7) } });
});

test("a change is for the slots after it, and everybody who has made one stands behind the run", async () => {
  const schedule = await aSchedule(bench.store, { name: "changed", slotAtMs: at(0), by: "olga" });
  const { agent, timing, overlap, catchUp } = schedule;
  const changeTo = (goal: string, by: string) =>
    changeSchedule(bench.store, {
      name: "changed",
      by,
      change: () => ({ definition: { agent, timing, overlap, catchUp, goal }, nextSlotAtMs: at(0) }),
    });
  expect(await changeTo("refund everything", "mallory")).toMatchObject({
    result: "changed",
    schedule: { goal: "refund everything", changedBy: "mallory", createdBy: "olga" },
  });
  await changeTo("refund what is late", "otto");
  const run = await started("changed", 0);
  expect(run).toMatchObject({ requester: "olga", goal: "refund what is late" });
  const [slotRow] = await bench.sql<{ causes: string[] }>(
    "select causes from holdpoint.schedule_slots where run_id = $1",
    [run.id],
  );
  expect(slotRow?.causes).toEqual(["mallory", "olga", "otto"]);
  const history = await bench.sql<{ change: string; actor_id: string; goal: string }>(
    "select change, actor_id, definition->>'goal' as goal from holdpoint.schedule_changes where schedule_id = $1 order by version",
    [schedule.id],
  );
  expect(history).toEqual([
    { change: "created", actor_id: "olga", goal: "refund what is stale" },
    { change: "changed", actor_id: "mallory", goal: "refund everything" },
    { change: "changed", actor_id: "otto", goal: "refund what is late" },
  ]);
});

test("names are unique among the schedules that there are, and an agent has to be known", async () => {
  const schedule = await aSchedule(bench.store, { name: "unique", slotAtMs: at(0) });
  const { agent, timing, overlap, catchUp, goal } = schedule;
  const definition = { agent, timing, overlap, catchUp, goal };
  const create = (more: Partial<typeof definition> = {}) =>
    createSchedule(bench.store, {
      name: "unique",
      definition: { ...definition, ...more },
      nextSlotAtMs: at(0),
      by: "olga",
    });
  expect(await create()).toEqual({ result: "name_taken" });
  expect(await deleteSchedule(bench.store, { name: "unique", by: "olga" })).toMatchObject({ result: "accepted" });
  expect(await deleteSchedule(bench.store, { name: "unique", by: "olga" })).toEqual({ result: "not_found" });
  expect(await fireSlot(bench.store, schedule, slot(0))).toEqual({ result: "conflict" });
  expect(await create({ agent: { name: "nobody", version: "1" } })).toEqual({ result: "agent_not_found" });
  expect(await create()).toMatchObject({ result: "created" });
});
