import { moveClock } from "@holdpoint/testkit";
import { beforeEach, expect, test } from "vitest";
import {
  decideAsOperator,
  findForsaken,
  findIdleCancelling,
  findOverdue,
  heartbeatTask,
  loadRun,
  loseAndRecover,
  markGone,
  reportTask,
  requestCancel,
  requestPause,
  startTask,
  transition,
} from "../src/index.ts";
import { findTask } from "../src/read/index.ts";
import { ALICE, aRun, aWorker, claim, OPERATOR, SWEEPER } from "./a-run.ts";
import { useBench } from "./a-store.ts";
import { aStartedTask, DONE, GRACE_MS, HEARTBEAT_MS, hashOf, type InHands, start } from "./a-task.ts";

const bench = useBench();

/** The sweeper's own grace is longer than all that a test lets pass: who is gone, is so by a grace of its own. */
const SWEEP = { graceMs: 3_600_000, limit: 100, sweeper: "sweeper-1" };
const PAST_GRACE_MS = HEARTBEAT_MS + GRACE_MS + 1_000;
let passedMs = 0;

/** Time passes on the database's clock, for everybody. */
function pass(ms: number): Promise<void> {
  passedMs += ms;
  return moveClock(bench.url, passedMs);
}

beforeEach(async () => {
  await markGone(bench.store, SWEEP);
});

async function runOf(runId: string) {
  const loaded = await loadRun(bench.store, runId);
  if (loaded === null) throw new Error("the run is gone");
  return loaded.run;
}

/** What a pass of the sweeper does about owners that are gone. */
async function sweepForsaken(): Promise<void> {
  const { gone } = await markGone(bench.store, SWEEP);
  const forsaken = await findForsaken(bench.store, 100);
  const losses = forsaken
    .filter(({ run }) => gone.includes(run.state.owner ?? ""))
    .map(({ run }) => ({ run, reason: "heartbeat_missed" as const }));
  const { errors } = await loseAndRecover(bench.store, losses, SWEEPER);
  expect(errors).toEqual([]);
}

/** A task whose executor was not heard of in time. */
async function aLostTask(): Promise<InHands> {
  const task = await aStartedTask(bench.store);
  await pass(PAST_GRACE_MS);
  await sweepForsaken();
  expect((await runOf(task.runId)).state).toMatchObject({
    status: "lost",
    lostReason: "heartbeat_missed",
    owner: null,
  });
  return task;
}

function beat(task: InHands) {
  return heartbeatTask(bench.store, { ...task, progress: null });
}

test("an executor is gone after its heartbeat and its own grace, and not before; others go by theirs", async () => {
  const run = await aRun(bench.store);
  const ours = await claim(bench.store, run.id, await aWorker(bench.store));
  const task = await aStartedTask(bench.store);
  await pass(HEARTBEAT_MS + GRACE_MS - 1_000);
  await sweepForsaken();
  expect((await runOf(task.runId)).state.status).toBe("running");
  await pass(2_000);
  await sweepForsaken();
  expect((await runOf(task.runId)).state).toMatchObject({ status: "lost", lostReason: "heartbeat_missed" });
  expect((await runOf(ours.run.id)).state.status).toBe("running");
  const [worker] = await bench.sql("select gone_reason from holdpoint.workers where id = $1", [task.run.state.owner]);
  expect(worker).toEqual({ gone_reason: "heartbeat_missed" });
});

test("a lost task goes to nobody else by itself: its executor may still act", async () => {
  const { runId } = await aLostTask();
  const other = { runId, startedBy: "other", executor: "other", tokenHash: hashOf("other"), startKey: null };
  expect(await startTask(bench.store, other)).toMatchObject({ result: "refused", rule: "task_not_queued" });
});

test("an executor that is heard of again has its task again, under a new epoch and with the token it has", async () => {
  const task = await aLostTask();
  expect(await beat(task)).toMatchObject({ result: "renewed", status: "running" });
  const run = await runOf(task.runId);
  expect(run).toMatchObject({ epoch: 2, state: { status: "running", lostAt: null, takeovers: 0 } });
  expect(run.state.owner).not.toBe(task.run.state.owner);
  const events = await bench.sql(
    "select event, from_status, to_status, reason from holdpoint.transitions where run_id = $1 order by seq",
    [task.runId],
  );
  expect(events.slice(-3)).toMatchObject([
    { event: "OwnerGone", to_status: "lost" },
    { event: "Recovered", to_status: "queued", reason: "heard_of_again" },
    { event: "Claimed", to_status: "running" },
  ]);
  expect(await reportTask(bench.store, { ...task, report: DONE })).toMatchObject({
    run: { state: { status: "completed" } },
  });
});

test("a completion after a loss counts: its executor is heard of again by it", async () => {
  const task = await aLostTask();
  const said = { ...task, report: DONE, result: { build: 77 } };
  expect(await reportTask(bench.store, said)).toMatchObject({
    run: { result: { build: 77 }, state: { status: "completed" } },
  });
  expect(await reportTask(bench.store, said)).toMatchObject({ result: "repeated" });
});

test("a heartbeat that comes before the sweeper's look keeps the task, whichever has begun first", async () => {
  const task = await aStartedTask(bench.store);
  await pass(PAST_GRACE_MS);
  expect(await beat(task)).toMatchObject({ result: "renewed" });
  await sweepForsaken();
  expect(await runOf(task.runId)).toMatchObject({ epoch: 1, state: { status: "running" } });
});

test("a heartbeat whose executor is declared gone while it waits does not renew, and has the task again once it is lost", async () => {
  const task = await aStartedTask(bench.store);
  await pass(PAST_GRACE_MS);
  // The heartbeat waits for the run; the sweeper declares its executor gone and loses the run before it goes on.
  const renewed = await bench.whileHeld(
    task.runId,
    (store) => heartbeatTask(store, { ...task, progress: null }),
    async (holder) => {
      const { gone } = await markGone(bench.store, SWEEP);
      expect(gone).toContain(task.run.state.owner);
      await holder.query(
        `with r as (update holdpoint.runs set status = 'lost', owner = null, version = version + 1, progress_due_at = null,
           lost_at = holdpoint.clock(), lost_reason = 'heartbeat_missed', wait_deadline = holdpoint.clock() + interval '1 hour'
           where id = $1 returning *)
         insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
         select tenant_id, id, version, 'running', 'lost', 'OwnerGone', 'sweeper', 's', epoch, updated_at from r`,
        [task.runId],
      );
    },
  );
  expect(renewed).toMatchObject({ result: "renewed", status: "running" });
  expect((await runOf(task.runId)).epoch).toBe(2);
});

test("an executor that is declared gone and not lost yet is told to try again", async () => {
  const task = await aStartedTask(bench.store);
  await pass(PAST_GRACE_MS);
  await markGone(bench.store, SWEEP);
  expect(await beat(task)).toMatchObject({ result: "refused", rule: "busy" });
  const forsaken = await findForsaken(bench.store, 100);
  const losses = forsaken.map(({ run }) => ({ run, reason: "heartbeat_missed" as const }));
  await loseAndRecover(bench.store, losses, SWEEPER);
  expect(await beat(task)).toMatchObject({ result: "renewed" });
});

test("two that are heard of again at once are one", async () => {
  const task = await aLostTask();
  const [first, second] = await bench.inOrder(
    task.runId,
    (store) => heartbeatTask(store, { ...task, progress: null }),
    (store) => heartbeatTask(store, { ...task, progress: null }),
  );
  expect([first.result, second.result]).toEqual(["renewed", "renewed"]);
  expect((await runOf(task.runId)).epoch).toBe(2);
});

test("after the deadline of a loss an operator decides, and a retry is another's start", async () => {
  const task = await aLostTask();
  await pass(3_700_000);
  await markGone(bench.store, SWEEP);
  const overdue = (await findOverdue(bench.store, 100)).filter(({ run }) => run.id === task.runId);
  await transition(
    bench.store,
    overdue.map(({ run }) => ({ run, events: [{ type: "DeadlinePassed", remaining: null }], actor: SWEEPER })),
  );
  expect((await runOf(task.runId)).state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "lost" } });
  // It comes too late to have it by itself; what it brings is kept for the operator.
  expect(await reportTask(bench.store, { ...task, report: DONE, result: 77 })).toMatchObject({ rule: "not_owned" });
  expect((await findTask(bench.store, task.runId))?.late).toMatchObject([{ result: 77, status: "waiting_operator" }]);
  await decideAsOperator(bench.store, {
    runId: task.runId,
    choice: "retry",
    actor: OPERATOR,
    reason: "it is dead",
    attemptIds: [],
  });
  const next = await start(bench.store, task.runId);
  expect(next.run).toMatchObject({ epoch: 2, state: { takeovers: 0 } });
  // Who has it now may be doing it a second time: the word of the one before is still seen.
  expect((await findTask(bench.store, task.runId))?.late).toMatchObject([{ executor: "runner 7", result: 77 }]);
  expect(await beat(task)).toMatchObject({ rule: "task_token_stale" });
});

test("a lost task that was asked to pause is paused when its executor is heard of, and not in its hands", async () => {
  const task = await aStartedTask(bench.store);
  await requestPause(bench.store, { runId: task.runId, actor: OPERATOR });
  await pass(PAST_GRACE_MS);
  await sweepForsaken();
  expect(await beat(task)).toMatchObject({
    result: "refused",
    rule: "not_owned",
    run: { epoch: 1, state: { status: "paused" } },
  });
});

test("a task that is being stopped and whose executor is never heard of again has stopped after its grace", async () => {
  const task = await aStartedTask(bench.store);
  await requestCancel(bench.store, { runId: task.runId, actor: ALICE, reason: null });
  await pass(PAST_GRACE_MS - 5_000);
  await sweepForsaken();
  expect((await runOf(task.runId)).state).toMatchObject({ status: "cancelling", owner: task.run.state.owner });
  await pass(5_000);
  await sweepForsaken();
  expect((await runOf(task.runId)).state.status).toBe("cancelled");
});

test("a lost task that is asked to stop has nobody to wait for", async () => {
  const task = await aLostTask();
  await requestCancel(bench.store, { runId: task.runId, actor: ALICE, reason: null });
  expect((await findIdleCancelling(bench.store, 100)).map(({ run }) => run.id)).toContain(task.runId);
  expect(await beat(task)).toMatchObject({
    result: "refused",
    rule: "not_owned",
    run: { state: { status: "cancelling" } },
  });
});
