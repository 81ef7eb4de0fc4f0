import type { Client } from "@holdpoint/client";
import { newId, showId } from "@holdpoint/store";
import { beforeAll, describe, expect, test } from "vitest";
import { problemOf, useTestApi } from "./api-fixture.ts";
import { stored } from "./stage-run.ts";

const api = useTestApi();
const TASK = { name: "ci-build", version: "1" };

const alice = () => api.as("alice-token");
const bob = () => api.as("bob-token");
const olga = () => api.as("olga-token");
const ci = () => api.as("ci-token");

beforeAll(async () => {
  await olga().defineTask({ ...TASK, description: "Builds and tests a branch", heartbeatMs: 30_000, graceMs: 10_000 });
});

async function aTask(): Promise<string> {
  const session = await alice().createSession();
  return (await alice().submitRun({ sessionId: session.id, agent: TASK, goal: "build main" })).id;
}

/** A task in somebody's hands, and the client that speaks with its token. */
async function aStartedTask(): Promise<{ readonly runId: string; readonly token: string; readonly executor: Client }> {
  const runId = await aTask();
  const { token } = await ci().startTask({ runId, executor: "runner 7" });
  if (token === null) throw new Error("a start gives a token");
  return { runId, token, executor: api.as(token) };
}

describe("a task's definition", () => {
  test("is made by operators, and answered with all that it holds its executors to", async () => {
    const task = { name: "deploy", version: "2", description: "Deploys" };
    expect(await olga().defineTask(task)).toEqual({
      ...task,
      heartbeatMs: 60_000,
      graceMs: 60_000,
      onFailure: "operator",
      retries: 1,
    });
    expect(await problemOf(alice().defineTask(task))).toMatchObject({ status: 403 });
    const names = (await alice().listAgents()).items.map(({ name }) => name);
    expect(names).toContain("deploy");
  });

  test("does not take a name that workers serve, or numbers that nobody can keep", async () => {
    const named = { name: "refunds", version: "1", description: "Refunds" };
    expect(await problemOf(olga().defineTask(named))).toMatchObject({ status: 409, rule: "task_name_taken" });
    const mistaken = await problemOf(
      olga().defineTask({ name: "Deploy!", version: "1", description: " ", heartbeatMs: 10 }),
    );
    expect(mistaken.problem.mistakes?.map(({ path }) => path)).toEqual([
      "body.name",
      "body.description",
      "body.heartbeatMs",
    ]);
  });
});

describe("a task", () => {
  test("is listed for task runners, shown to whom it belongs, and to nobody else", async () => {
    const runId = await aTask();
    const { items } = await ci().listTasks({ agent: "ci-build", status: ["queued"] });
    expect(items.find((task) => task.runId === runId)).toMatchObject({
      agent: TASK,
      description: "Builds and tests a branch",
      goal: "build main",
      input: null,
      status: "queued",
      heartbeatMs: 30_000,
      executor: null,
    });
    expect(await problemOf(alice().listTasks())).toMatchObject({ status: 403 });
    expect(await alice().showTask({ runId })).toMatchObject({ runId, status: "queued" });
    expect(await problemOf(bob().showTask({ runId }))).toMatchObject({ status: 404 });
    expect(await problemOf(ci().showTask({ runId: showId("run", newId()) }))).toMatchObject({ status: 404 });
  });

  test("is started by one, who gets the token and what there is to do; another is told who was first", async () => {
    const runId = await aTask();
    const started = await ci().startTask({ runId, executor: "runner 7" });
    expect(started).toMatchObject({
      repeated: false,
      task: {
        runId,
        goal: "build main",
        status: "running",
        executor: { name: "runner 7", startedBy: "ci-bot", inHands: true },
      },
    });
    expect(started.token).toMatch(/^hpt_[A-Za-z0-9_-]{43}$/);
    const refused = await problemOf(api.as("ci-token-2").startTask({ runId }));
    expect(refused).toMatchObject({ status: 409, rule: "task_taken" });
    expect(refused.message).toMatch(/^Somebody else has the task in hands\. \(running by worker wrk_/);
    expect(await problemOf(alice().startTask({ runId }))).toMatchObject({ status: 403 });
  });

  test("started again under its key is the same start, and the token of before is worth nothing", async () => {
    const runId = await aTask();
    const key = { idempotencyKey: "job-4711" };
    const first = await ci().startTask({ runId }, key);
    const second = await ci().startTask({ runId }, key);
    expect(second.repeated).toBe(true);
    expect(second.token).not.toBe(first.token);
    expect(await problemOf(api.as(first.token ?? "").heartbeatTask({ runId }))).toMatchObject({ status: 401 });
    expect(await api.as(second.token ?? "").heartbeatTask({ runId })).toMatchObject({ status: "running" });
  });

  test("is no run of ours: an agent's run is not found among tasks", async () => {
    const session = await alice().createSession();
    const { id: runId } = await alice().submitRun({
      sessionId: session.id,
      agent: { name: "refunds", version: "1" },
      goal: "refund",
    });
    expect(await problemOf(olga().showTask({ runId }))).toMatchObject({ status: 404 });
    expect(await problemOf(ci().startTask({ runId }))).toMatchObject({ status: 404 });
    expect(await problemOf(olga().issueTaskToken({ runId }))).toMatchObject({ status: 404 });
  });
});

describe("whoever has a task in hands", () => {
  test("is heard of with its progress, and told by when to be heard of again", async () => {
    const { runId, executor } = await aStartedTask();
    const beat = await executor.heartbeatTask({ runId, progress: { percent: 40, text: "compiled" } });
    expect(beat).toMatchObject({ status: "running", stop: false, pause: false });
    const { executor: seen } = await alice().showTask({ runId });
    expect(seen).toMatchObject({ progress: { percent: 40, text: "compiled" }, heartbeatDueAt: beat.heartbeatDueAt });
    expect(Date.parse(beat.heartbeatDueAt) - Date.parse(seen?.lastHeartbeatAt ?? "")).toBe(30_000);
  });

  test("completes it with what it achieved and brings home, and may say so again", async () => {
    const { runId, executor } = await aStartedTask();
    const done = { runId, outcome: { kind: "succeeded" }, result: { tests: 214 } } as const;
    expect(await executor.completeTask(done)).toEqual({
      runId,
      status: "completed",
      outcome: { kind: "succeeded" },
      repeated: false,
    });
    expect(await executor.completeTask(done)).toMatchObject({ status: "completed", repeated: true });
    const other = await problemOf(executor.completeTask({ ...done, result: { tests: 0 } }));
    expect(other).toMatchObject({ status: 409, rule: "run_ended" });
    const { executor: seen, late } = await olga().showTask({ runId });
    expect(seen).toMatchObject({ inHands: false, said: { kind: "complete", outcome: { kind: "succeeded" } } });
    expect(late).toMatchObject([{ executor: seen?.name, result: { tests: 0 }, runStatus: "completed" }]);
  });

  test("must say what was achieved: a result says nothing of it", async () => {
    const { runId, executor } = await aStartedTask();
    for (const outcome of [undefined, { kind: "blocked" }, { kind: "partial" }, { kind: "done" }]) {
      // What no type allows still comes over the wire.
      const body = { runId, result: "succeeded", outcome } as unknown as Parameters<Client["completeTask"]>[0];
      expect(await problemOf(executor.completeTask(body))).toMatchObject({ status: 400 });
    }
    expect(await alice().showRun({ runId })).toMatchObject({ status: "running" });
  });

  test("ends it as blocked, which no list shows as success", async () => {
    const { runId, executor } = await aStartedTask();
    const outcome = { kind: "blocked", step: "deploy", reason: "missing permission" } as const;
    await executor.completeTask({ runId, outcome });
    const run = await alice().showRun({ runId });
    expect(run.outcome).toEqual(outcome);
    expect(run.sentence).toMatch(/^Ended without achieving anything: missing permission, at step deploy,/);
  });

  test("fails it: an operator is asked, and told why", async () => {
    const { runId, executor } = await aStartedTask();
    expect(await executor.failTask({ runId, reason: "no disk" })).toMatchObject({ status: "waiting_operator" });
    const run = await olga().showRun({ runId });
    expect(run.waitingFor).toMatchObject({ kind: "operator", reason: "task_failed" });
    const { items } = await olga().showTimeline({ runId });
    expect(items).toContainEqual(expect.objectContaining({ event: "Held", reason: "fail: no disk" }));
    expect(await olga().decideAsOperator({ runId, choice: "retry", reason: "disk is there" })).toMatchObject({
      status: "queued",
    });
  });

  test("gives it back, and somebody else starts it", async () => {
    const { runId, executor } = await aStartedTask();
    expect(await executor.releaseTask({ runId })).toMatchObject({ status: "queued" });
    await api.as("ci-token-2").startTask({ runId });
    const stale = await problemOf(executor.heartbeatTask({ runId }));
    expect(stale).toMatchObject({ status: 409, rule: "task_token_stale" });
    expect(stale.message).toContain("Stop working on it.");
    const { items } = await olga().showTimeline({ runId });
    expect(items).toContainEqual(expect.objectContaining({ kind: "refusal", rule: "task_token_stale" }));
  });

  test("is told to stop, and its word that it has ends the run", async () => {
    const { runId, executor } = await aStartedTask();
    const asked = await alice().cancelRun({ runId });
    expect(asked).toMatchObject({ status: "cancelling", owner: { host: "runner 7" } });
    expect(asked.sentence).toMatch(/^Stopping on request; runner 7 has not said yet that it has stopped, since /);
    expect(await executor.heartbeatTask({ runId })).toMatchObject({ stop: true, status: "cancelling" });
    expect(await executor.failTask({ runId, reason: "stopped", stopped: true })).toMatchObject({ status: "cancelled" });
  });

  test("cannot have stopped what nobody has asked to stop, nor retry what it has stopped", async () => {
    const { runId, executor } = await aStartedTask();
    expect(await problemOf(executor.failTask({ runId, reason: "stopped", stopped: true }))).toMatchObject({
      rule: "stop_not_asked",
    });
    expect(await problemOf(executor.failTask({ runId, reason: "x", stopped: true, retryable: true }))).toMatchObject({
      status: 400,
    });
  });
});

describe("a task's token", () => {
  test("speaks for its task alone, and calls nothing else", async () => {
    const { runId, executor } = await aStartedTask();
    const other = await aStartedTask();
    expect(await problemOf(executor.heartbeatTask({ runId: other.runId }))).toMatchObject({ status: 401 });
    expect(
      await problemOf(executor.completeTask({ runId: other.runId, outcome: { kind: "succeeded" } })),
    ).toMatchObject({ status: 401 });
    expect(await problemOf(executor.showRun({ runId }))).toMatchObject({ status: 401 });
    expect(await problemOf(executor.listTasks())).toMatchObject({ status: 401 });
    expect(await problemOf(ci().heartbeatTask({ runId }))).toMatchObject({ status: 401 });
    expect(await problemOf(olga().completeTask({ runId, outcome: { kind: "succeeded" } }))).toMatchObject({
      status: 401,
    });
  });

  test("is given out by operators, in advance or for whoever has it in hands", async () => {
    const runId = await aTask();
    expect(await problemOf(ci().issueTaskToken({ runId }))).toMatchObject({ status: 403 });
    const { token, started } = await olga().issueTaskToken({ runId });
    expect(started).toBe(false);
    const desk = api.as(token);
    expect(await problemOf(desk.heartbeatTask({ runId }))).toMatchObject({ rule: "task_not_started" });
    expect(await desk.startTask({ runId, executor: "a desk" })).toMatchObject({
      token: null,
      repeated: false,
      task: { executor: { name: "a desk", startedBy: "olga" } },
    });
    const next = await olga().issueTaskToken({ runId });
    expect(next.started).toBe(true);
    expect(await problemOf(desk.heartbeatTask({ runId }))).toMatchObject({ status: 401 });
    expect(await api.as(next.token).completeTask({ runId, outcome: { kind: "succeeded" } })).toMatchObject({
      status: "completed",
    });
    expect(await problemOf(olga().issueTaskToken({ runId }))).toMatchObject({ rule: "run_ended" });
  });

  test("is in no table and no line of the log, and neither is what its executor sends", async () => {
    const { runId, token, executor } = await aStartedTask();
    await executor.completeTask({ runId, outcome: { kind: "succeeded" }, result: "SECRET-RESULT" });
    const logged = api.logged.join("\n");
    expect(logged).toContain(runId);
    expect(logged).not.toContain(token);
    expect(logged).not.toContain("SECRET-RESULT");
    const { rows } = await api.store.pool.query(
      "select to_jsonb(t)::text as row from holdpoint.tasks t where run_id = $1",
      [stored(runId)],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0].row).not.toContain(token);
  });
});

test("whoever takes a task from its executor is told before that it may be done twice, and by the audit if it was", async () => {
  const { runId, executor } = await aStartedTask();
  const { forecast } = await olga().takeOverRun({ runId });
  expect(forecast).toMatchObject({ becomes: "queued", text: expect.stringContaining("it may be done twice") });
  expect(await olga().takeOverRun({ runId, apply: true, reason: "it hangs" })).toMatchObject({ status: "queued" });
  await ci().startTask({ runId, executor: "runner 8" });
  const done = { runId, outcome: { kind: "succeeded" } } as const;
  expect(await problemOf(executor.completeTask(done))).toMatchObject({ status: 409, rule: "task_token_stale" });
  expect((await ci().showTask({ runId })).late).toMatchObject([{ executor: "runner 7", report: { kind: "complete" } }]);
  expect((await olga().audit()).items).toContainEqual(
    expect.objectContaining({ code: "task_reported_late", runId, subject: "runner 7" }),
  );
});
