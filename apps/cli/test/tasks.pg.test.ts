import { Run, StartedTask, Task, TaskDefinition } from "@holdpoint/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
  const terms = ["--heartbeat", "30s", "--grace", "1h", "--on-failure", "end", "--retries", "2"];
  const { exitCode, out } = await as("olga", "tasks", "define", "ci-build@1", "Builds a branch", ...terms);
  expect(exitCode).toBe(0);
  expect(out).toBe("Known: ci-build@1. Heard of every 30 s, 1 h of grace; after 2 retries the run ends as failed.\n");
});
afterAll(() => desk[Symbol.asyncDispose]());

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

/** A script in a CI job: it has its task's token, and nobody's else. */
const script = (token: string, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TASK_TOKEN: token } });

function json<T>(schema: z.ZodType<T>, { exitCode, out, err }: Ran): T {
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

async function aTask(): Promise<string> {
  return json(Run, await as("alice", "runs", "submit", "ci-build@1", "build main", "--json")).id;
}

async function aStartedTask(): Promise<{ readonly runId: string; readonly token: string }> {
  const runId = await aTask();
  const started = json(StartedTask, await as("ci", "tasks", "start", runId, "--executor", "runner 7", "--json"));
  return { runId, token: started.token ?? "" };
}

const Page = z.object({ items: z.array(Task), next: z.string().nullable() });

describe("tasks", () => {
  test("list those that wait for somebody, and show who has one in hands", async () => {
    const runId = await aTask();
    const listed = json(Page, await as("ci", "tasks", "list", "--agent", "ci-build@1", "--status", "queued", "--json"));
    expect(listed.items.map((task) => task.runId)).toContain(runId);
    const table = (await as("ci", "tasks", "list")).out;
    expect(table).toMatch(new RegExp(`${runId} +ci-build@1 +queued +\\S+.* nobody yet +build main`));
    const { out } = await as("alice", "tasks", "show", runId);
    expect(out).toMatch(/Task +ci-build@1: Builds a branch/);
    expect(out).toMatch(/Executor +nobody yet/);
  });

  test("start prints the token once, as the line that a script takes", async () => {
    const runId = await aTask();
    const { exitCode, out } = await as("ci", "tasks", "start", runId, "--executor", "runner 7");
    expect(exitCode).toBe(0);
    const [, token = ""] = /^export HOLDPOINT_TASK_TOKEN=(hpt_\S{43})$/m.exec(out) ?? [];
    expect((await script(token, "tasks", "heartbeat", runId)).exitCode).toBe(0);
    expect((await as("alice", "tasks", "show", runId)).out).not.toContain(token);
  });

  test("heartbeat says how far it is, and by its exit code whether to stop", async () => {
    const { runId, token } = await aStartedTask();
    const beat = await script(token, "tasks", "heartbeat", runId, "--percent", "40", "--text", "compiled");
    expect(beat.exitCode).toBe(0);
    expect(beat.out).toMatch(/^The next heartbeat is due .* \(in \d+ s\)\.\n$/);
    expect((await as("alice", "tasks", "show", runId)).out).toMatch(/Progress +40 %, compiled/);
    await as("alice", "runs", "cancel", runId);
    const stop = await script(token, "tasks", "heartbeat", runId);
    expect(stop.exitCode).toBe(6);
    expect(stop.out).toMatch(/^Asked to stop: /);
    const stopped = await script(token, "tasks", "fail", runId, "--reason", "stopped", "--stopped");
    expect(stopped).toMatchObject({ exitCode: 0, out: `${runId}  cancelled\n` });
  });

  test("complete says what was achieved and brings home; again is no other", async () => {
    const { runId, token } = await aStartedTask();
    const done = ["tasks", "complete", runId, "--result", '{"tests":214}'];
    expect(await script(token, ...done)).toMatchObject({ exitCode: 0, out: `${runId}  completed\n` });
    expect((await script(token, ...done)).out).toBe(`${runId}  completed (the same was said before)\n`);
    const other = await script(token, "tasks", "complete", runId);
    expect(other.exitCode).toBe(1);
    expect(other.err).toMatch(/^holdpoint: Refused: The run has ended/);
    expect((await as("olga", "tasks", "show", runId)).out).toMatch(/Said too late +runner 7: complete, succeeded at /);
  });

  test("complete as blocked is never shown as a success", async () => {
    const { runId, token } = await aStartedTask();
    const blocked = ["tasks", "complete", runId, "--blocked", "missing permission", "--step", "deploy"];
    expect((await script(token, ...blocked)).out).toBe(`${runId}  completed: blocked\n`);
    expect((await as("alice", "tasks", "show", runId)).out).toMatch(/Outcome +blocked at deploy: missing permission/);
  });

  test("fail, once the retries are over, does what the task says", async () => {
    const { runId, token } = await aStartedTask();
    expect((await script(token, "tasks", "fail", runId, "--reason", "no disk", "--retryable")).out).toBe(
      `${runId}  queued\n`,
    );
    const again = json(StartedTask, await as("ci", "tasks", "start", runId, "--json"));
    const failed = await script(again.token ?? "", "tasks", "fail", runId, "--reason", "no disk");
    expect(failed.out).toBe(`${runId}  failed\n`);
  });

  test("release lets somebody else start it", async () => {
    const { runId, token } = await aStartedTask();
    expect((await script(token, "tasks", "release", runId, "--reason", "not mine")).out).toBe(`${runId}  queued\n`);
  });

  test("token gives one out in advance, with which a script starts the task", async () => {
    const runId = await aTask();
    const { out } = await as("olga", "tasks", "token", runId);
    expect(out).toMatch(/^It starts the task\. /);
    const [, token = ""] = /HOLDPOINT_TASK_TOKEN=(\S+)/.exec(out) ?? [];
    const started = json(StartedTask, await script(token, "tasks", "start", runId, "--json"));
    expect(started).toMatchObject({ token: null, task: { status: "running" } });
    expect((await script(token, "tasks", "complete", runId, "--partial", "half of it")).out).toBe(
      `${runId}  completed: partial\n`,
    );
  });

  test("define answers with all that it holds executors to", async () => {
    const defined = json(
      TaskDefinition,
      await as("olga", "tasks", "define", "desk-work@1", "By hand", "--heartbeat", "24h", "--json"),
    );
    expect(defined).toMatchObject({ heartbeatMs: 86_400_000, graceMs: 60_000, onFailure: "operator", retries: 1 });
  });

  test.each([
    [["tasks", "complete", "RUN", "--blocked", "why"], "--blocked needs --step"],
    [["tasks", "complete", "RUN", "--step", "deploy"], "--step goes with --blocked"],
    [["tasks", "complete", "RUN", "--partial", "a", "--blocked", "b", "--step", "c"], "exclude each other"],
    [["tasks", "fail", "RUN", "--reason", "x", "--retryable", "--stopped"], "exclude each other"],
    [["tasks", "heartbeat", "RUN", "--percent", "140"], '--percent is "140"'],
    [["tasks", "list", "--status", "waiting"], 'there is no status "waiting"'],
    [["tasks", "define", "a@1", "A", "--heartbeat", "soon"], '--heartbeat is "soon"'],
    [["tasks", "define", "a@1", "A", "--on-failure", "panic"], '--on-failure is "panic"'],
    [["tasks", "define", "a@1", "A", "--retries", "-1"], '--retries is "-1"'],
  ])("%j is no usage", async (argv, message) => {
    const { exitCode, err } = await script("hpt_x", ...argv);
    expect(exitCode).toBe(2);
    expect(err).toContain(message);
  });

  test("what speaks for a task needs its token, and a wrong one is told where it comes from", async () => {
    const runId = await aTask();
    const without = await as("ci", "tasks", "heartbeat", runId);
    expect(without).toMatchObject({ exitCode: 2, err: expect.stringContaining("HOLDPOINT_TASK_TOKEN is not set") });
    const wrong = await script(`hpt_${"a".repeat(43)}`, "tasks", "heartbeat", runId);
    expect(wrong).toMatchObject({ exitCode: 2, err: expect.stringContaining("a task's from HOLDPOINT_TASK_TOKEN") });
  });
});
