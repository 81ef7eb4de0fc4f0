import type { AgentWakeUp, Publisher } from "@holdpoint/queue";
import {
  decideAsOperator,
  findViolations,
  heartbeatTask,
  loadRun,
  reportTask,
  requestCancel,
  requestPause,
  resumeRun,
} from "@holdpoint/store";
import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ALICE, aRun, aWorker, claim, OPERATOR } from "../../store/test/a-run.ts";
import { useBench } from "../../store/test/a-store.ts";
import { aStartedTask, aTask, GRACE_MS, HEARTBEAT_MS, type InHands } from "../../store/test/a-task.ts";
import { watched } from "../../store/test/watched.ts";
import { MOVING, type SweepContext, WAKING } from "../src/index.ts";

const bench = useBench();
/** The sweeper's own, far beyond the task's: whoever is gone in these tests is gone by its own. */
const SWEEPERS_GRACE_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let published: AgentWakeUp[] = [];
const publisher: Publisher = {
  publish: async (wakeUps) => {
    published.push(...wakeUps);
    return { published: wakeUps.length, failed: 0, error: null };
  },
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

beforeEach(async () => {
  published = [];
  await moveClock(bench.url, 0);
  await watched(bench.store, SWEEPERS_GRACE_MS);
});
afterEach(async () => {
  await moveClock(bench.url, 0);
  expect(await findViolations(bench.store)).toEqual([]);
});

/** One pass of everything, at a moment. */
async function passAt(ms: number): Promise<void> {
  await moveClock(bench.url, ms);
  const context: SweepContext = {
    store: bench.store,
    publisher,
    id: "s1",
    graceMs: SWEEPERS_GRACE_MS,
    limit: 100,
    number: 1,
  };
  for (const sweep of [...MOVING, ...WAKING]) expect((await sweep.run(context)).errors).toEqual([]);
}

async function runOf(runId: string) {
  const loaded = await loadRun(bench.store, runId);
  if (loaded === null) throw new Error("the run is gone");
  return loaded.run;
}

const beat = (task: InHands) => heartbeatTask(bench.store, { ...task, progress: null });

test("a task whose executor is not heard of is lost by its own grace, and stays so; runs of workers are untouched", async () => {
  const { id } = await aRun(bench.store);
  await claim(bench.store, id, await aWorker(bench.store));
  await bench.sql("update holdpoint.runs set progress_due_at = holdpoint.clock() + interval '1 day' where id = $1", [
    id,
  ]);
  const task = await aStartedTask(bench.store);
  await passAt(HEARTBEAT_MS + GRACE_MS - 1_000);
  expect((await runOf(task.runId)).state.status).toBe("running");
  const [verdict] = await bench.sql("select verdict, rule, reason from holdpoint.verdicts where run_id = $1", [
    task.runId,
  ]);
  expect(verdict).toEqual({ verdict: "grace_pending", rule: "heartbeat", reason: "heartbeat_missed" });
  await passAt(HEARTBEAT_MS + GRACE_MS + 1_000);
  await passAt(HEARTBEAT_MS + GRACE_MS + 2_000);
  expect((await runOf(task.runId)).state).toMatchObject({ status: "lost", lostReason: "heartbeat_missed" });
  expect((await runOf(id)).state.status).toBe("running");
  expect(published.map(({ runId }) => runId)).not.toContain(task.runId);
  expect(await beat(task)).toMatchObject({ result: "renewed" });
});

test("the deadline of a loss brings an operator, whose retry waits for another executor and wakes no worker", async () => {
  const task = await aStartedTask(bench.store);
  await passAt(HEARTBEAT_MS + GRACE_MS + 1_000);
  await passAt(2 * HOUR_MS);
  expect((await runOf(task.runId)).state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "lost" } });
  await decideAsOperator(bench.store, {
    runId: task.runId,
    choice: "retry",
    actor: OPERATOR,
    reason: "dead",
    attemptIds: [],
  });
  await passAt(3 * HOUR_MS);
  expect((await runOf(task.runId)).state.status).toBe("queued");
  expect(published.map(({ runId }) => runId)).not.toContain(task.runId);
});

test("a task that nobody starts brings an operator at its queue's limit, as every run", async () => {
  const { id } = await aTask(bench.store);
  await passAt(25 * HOUR_MS);
  expect((await runOf(id)).state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "queue_limit" } });
  expect(published.map(({ runId }) => runId)).not.toContain(id);
});

test("a task that is resumed after a pause wakes no worker", async () => {
  const { id } = await aTask(bench.store);
  await requestPause(bench.store, { runId: id, actor: OPERATOR });
  await resumeRun(bench.store, { runId: id, actor: OPERATOR });
  await passAt(HOUR_MS);
  expect(published.map(({ runId }) => runId)).not.toContain(id);
});

test("an executor that goes on after it was asked to stop keeps its run, and on-call is named again and again", async () => {
  const task = await aStartedTask(bench.store);
  await requestCancel(bench.store, { runId: task.runId, actor: ALICE, reason: null });
  for (const minutes of [5, 11, 22]) {
    // It is heard of all the while.
    await bench.sql(
      "update holdpoint.workers set lease_until = holdpoint.clock() + $2 * interval '1 minute' where id = $1",
      [task.run.state.owner, 60],
    );
    await passAt(minutes * 60_000);
    expect((await runOf(task.runId)).state).toMatchObject({ status: "cancelling", owner: task.run.state.owner });
  }
  const escalations = await bench.sql(
    "select from holdpoint.transitions where run_id = $1 and event = 'DeadlinePassed'",
    [task.runId],
  );
  expect(escalations).toHaveLength(2);
  const stopped = { ...task, report: { kind: "stopped", reason: null } } as const;
  expect(await reportTask(bench.store, stopped)).toMatchObject({ run: { state: { status: "cancelled" } } });
});
