import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, createClient, ProblemError } from "../../packages/client/src/index.ts";
import { openPublisher } from "../../packages/queue/src/index.ts";
import { findViolations, openStore } from "../../packages/store/src/index.ts";
import { createTestDatabase } from "../../packages/testkit/src/index.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Program, startProgram } from "./processes.ts";
import { CI_BUILD, RELEASE_DESK } from "./task-agents.ts";

const TOKENS = "alice-token=alice:requester;olga-token=olga:operator;ci-bot-token=ci-bot:task_runner";
const DEADLINE_MS = 40_000;

/** Api, worker and sweeper as processes; executors are this test's own scripts, which know only the api. */
interface Stage extends AsyncDisposable {
  readonly as: (token: string) => Client;
  /** Wake-ups that wait in the task's queue, which nobody reads. */
  readonly wakeUpsOfTasks: () => Promise<number | null>;
}

let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
}, 120_000);
afterAll(() => stage[Symbol.asyncDispose](), 60_000);

async function openStage(): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  try {
    return await startAll(stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startAll(stack: AsyncDisposableStack): Promise<Stage> {
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url, maxConnections: 2 }));
  const publisher = stack.use(openPublisher({ kind: "postgres", url }));
  const env = {
    HOLDPOINT_DATABASE_URL: url,
    HOLDPOINT_LEASE_MS: "3000",
    HOLDPOINT_RENEW_MS: "500",
    HOLDPOINT_GRACE_MS: "3000",
    HOLDPOINT_SWEEP_MS: "200",
    HOLDPOINT_API_TOKENS: TOKENS,
    HOLDPOINT_API_PORT: "0",
  };
  const programs: Program[] = [];
  stack.defer(async () => {
    for (const { process: child } of programs) if (child.exitCode === null) child.kill("SIGTERM");
    await Promise.all(programs.map(({ ended }) => ended));
    expect(await findViolations(store)).toEqual([]);
  });
  const start = async (app: "worker" | "sweeper" | "api", args: readonly string[], sign: string): Promise<Program> => {
    const program = startProgram(app, args, env);
    programs.push(program);
    const isUp = () => {
      if (program.process.exitCode !== null) throw new Error(`${app} ended: ${program.output()}`);
      return program.output().includes(sign);
    };
    await waitFor(isUp, { deadlineMs: 2 * DEADLINE_MS, what: `${app} to start` }).catch((cause) => {
      throw new Error(`${app} said: ${program.output()}`, { cause });
    });
    return program;
  };
  const [api] = await Promise.all([
    start("api", [], "api.listening"),
    start("worker", ["--agents", resolve(import.meta.dirname, "task-agents.ts")], "worker started"),
    start("sweeper", [], "sweeper started"),
  ]);
  const [, port] = /"event":"api.listening","port":(\d+)/.exec(api.output()) ?? [];
  return {
    as: (token) => createClient({ baseUrl: `http://127.0.0.1:${port}`, token }),
    wakeUpsOfTasks: () => publisher.waiting(CI_BUILD),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A run of the agent, and the task that it has started, once somebody can have that in hands. */
async function aReleaseThatWaits(): Promise<{ readonly parent: string; readonly runId: string }> {
  const alice = stage.as("alice-token");
  const session = await alice.createSession();
  const { id: parent } = await alice.submitRun({ sessionId: session.id, agent: RELEASE_DESK, goal: "release main" });
  const started = async () => {
    const { items } = await stage.as("ci-bot-token").listTasks({ agent: CI_BUILD.name, status: ["queued"] });
    return items.find((task) => task.parent === parent) ?? null;
  };
  const task = await waitFor(started, { deadlineMs: DEADLINE_MS, what: "the task to be started by its parent" });
  expect(task).toMatchObject({ goal: "build main", input: { branch: "main" }, executor: null });
  return { parent, runId: task.runId };
}

/** Takes a task in hands, as a script with the api's address and a token does. */
async function takeInHands(runId: string): Promise<Client> {
  const { token, task } = await stage.as("ci-bot-token").startTask({ runId, executor: "runner 7" });
  expect(task).toMatchObject({ input: { branch: "main" }, status: "running" });
  return stage.as(token ?? "");
}

function untilStatus(runId: string, status: string) {
  const isThere = async () => {
    const run = await stage.as("olga-token").showRun({ runId });
    return run.status === status ? run : null;
  };
  return waitFor(isThere, { deadlineMs: DEADLINE_MS, what: `${runId} to be ${status}` });
}

test("an agent has work done by a script elsewhere, and goes on with its result as data", async () => {
  const { parent, runId } = await aReleaseThatWaits();
  expect((await untilStatus(parent, "waiting_dependency")).waitingFor).toMatchObject({
    kind: "child",
    principal: runId,
  });
  const script = await takeInHands(runId);
  for (const percent of [10, 60])
    expect(await script.heartbeatTask({ runId, progress: { percent } })).toMatchObject({ stop: false });
  await script.completeTask({ runId, outcome: { kind: "succeeded" }, result: { build: "77", tests: 214 } });
  await untilStatus(parent, "completed");
  const { items } = await stage.as("olga-token").showTimeline({ runId: parent, payloads: true });
  expect(items).toContainEqual(
    expect.objectContaining({
      body: expect.objectContaining({
        kind: "tool_result",
        result: "succeeded",
        output: {
          children: [
            expect.objectContaining({ run: runId, outcome: "succeeded", result: { build: "77", tests: 214 } }),
          ],
        },
      }),
    }),
  );
  // Nobody reads a task's queue, so nothing was published to it.
  expect(await stage.wakeUpsOfTasks()).toBe(0);
}, 60_000);

test("a script that lacks a permission says so: its parent is held with step and reason, and goes on when somebody retries", async () => {
  const { parent, runId } = await aReleaseThatWaits();
  const script = await takeInHands(runId);
  const outcome = { kind: "blocked", step: "push_image", reason: "missing permission: registry.write" } as const;
  await script.completeTask({ runId, outcome });
  const held = await untilStatus(parent, "waiting_operator");
  expect(held.waitingFor).toMatchObject({ kind: "operator", reason: "child_blocked" });
  expect(await stage.as("olga-token").showRun({ runId })).toMatchObject({ status: "completed", outcome });
  await stage.as("olga-token").decideAsOperator({ runId: parent, choice: "retry", reason: "permission granted" });
  const again = async () => {
    const { items } = await stage.as("ci-bot-token").listTasks({ agent: CI_BUILD.name, status: ["queued"] });
    return items.find((task) => task.parent === parent) ?? null;
  };
  const next = await waitFor(again, { deadlineMs: DEADLINE_MS, what: "a second try of the task" });
  expect(next.runId).not.toBe(runId);
  const second = await takeInHands(next.runId);
  await second.completeTask({ runId: next.runId, outcome: { kind: "succeeded" }, result: "built" });
  await untilStatus(parent, "completed");
}, 60_000);

test("a script that dies is found by its own grace; when it comes back it has its task again", async () => {
  const { parent, runId } = await aReleaseThatWaits();
  const script = await takeInHands(runId);
  await script.heartbeatTask({ runId, progress: { percent: 30 } });
  const lost = await untilStatus(runId, "lost");
  expect(lost.lostReason).toBe("heartbeat_missed");
  // Nobody else gets it meanwhile, and whoever waits for it goes on waiting.
  const other = await stage
    .as("ci-bot-token")
    .startTask({ runId })
    .then(
      () => null,
      (error: unknown) => error,
    );
  expect(other).toBeInstanceOf(ProblemError);
  expect(other).toMatchObject({ rule: "task_not_queued" });
  await untilStatus(parent, "waiting_dependency");
  expect(await script.heartbeatTask({ runId })).toMatchObject({ status: "running", stop: false });
  await script.completeTask({ runId, outcome: { kind: "partial", reason: "no coverage" }, result: "late, and here" });
  await untilStatus(parent, "completed");
}, 60_000);
