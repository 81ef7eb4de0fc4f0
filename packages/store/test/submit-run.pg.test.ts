import { expect, test } from "vitest";
import {
  createSession,
  findSession,
  listAgents,
  newId,
  registerAgent,
  requestCancel,
  type Submission,
  submitRun,
} from "../src/index.ts";
import { AGENT, ALICE, aCall, aRun, OPERATOR } from "./a-run.ts";
import { anOpenEffect, anUnknownAtOperator, aResult, endBy, ended, RUNS, reload, took } from "./a-status.ts";
import { reachesWait, useBench } from "./a-store.ts";

const bench = useBench();

async function aSubmission(overrides: Partial<Submission> = {}): Promise<Submission> {
  await registerAgent(bench.store, { ...AGENT, tools: [] });
  const { id: sessionId } = await createSession(bench.store, "alice");
  return { sessionId, agent: AGENT, goal: "refund order 4411", actor: ALICE, ...overrides };
}

const key = (requestHash: string, name: string = newId()) => ({ principal: "alice", key: name, requestHash });

test("a submission stores message, run, transition and key together", async () => {
  const submission = await aSubmission({ idempotency: key("h1") });
  const submitted = await submitRun(bench.store, submission);
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  const { run } = submitted;
  expect(run).toMatchObject({
    version: 1,
    stepSeq: 0,
    epoch: 0,
    inputSeq: 1,
    line: run.id,
    requester: "alice",
    goal: "refund order 4411",
  });
  expect((await reload(bench.store, run.id)).messages).toEqual([{ seq: 1, role: "user", text: "refund order 4411" }]);
  const transitions =
    "select seq, from_status, to_status, event, actor_kind, actor_id from holdpoint.transitions where run_id = $1";
  expect(await bench.sql(transitions, [run.id])).toEqual([
    { seq: 1, from_status: null, to_status: "queued", event: "Submitted", actor_kind: "requester", actor_id: "alice" },
  ]);
});

test("the same request again under its key is answered with its run, as it is now", async () => {
  const submission = await aSubmission({ idempotency: key("h1") });
  const first = await submitRun(bench.store, submission);
  if (first.result !== "submitted") throw new Error(first.result);
  await requestCancel(bench.store, { runId: first.run.id, actor: ALICE, reason: null });
  const again = await submitRun(bench.store, submission);
  expect(again).toMatchObject({ result: "repeated", run: { id: first.run.id, state: { status: "cancelled" } } });
  expect(await runsOf(submission.sessionId)).toHaveLength(1);
});

test("another request under the same key is refused; the same key of another principal is free", async () => {
  const idempotency = key("h1");
  const submission = await aSubmission({ idempotency });
  await submitRun(bench.store, submission);
  expect(await submitRun(bench.store, { ...submission, idempotency: { ...idempotency, requestHash: "h2" } })).toEqual({
    result: "key_reused",
  });
  const other = { ...submission, idempotency: { ...idempotency, principal: "bob" } };
  expect(await submitRun(bench.store, other)).toMatchObject({ result: "submitted" });
});

test("the same request many times at once makes one run", async () => {
  const submission = await aSubmission({ idempotency: key("h1") });
  const answers = await Promise.all(Array.from({ length: 6 }, () => submitRun(bench.store, submission)));
  expect(answers.map(({ result }) => result).sort()).toEqual([...Array(5).fill("repeated"), "submitted"]);
  const runs = await runsOf(submission.sessionId);
  expect(runs).toHaveLength(1);
  expect(await bench.sql("select message_seq from holdpoint.sessions where id = $1", [submission.sessionId])).toEqual([
    { message_seq: 1 },
  ]);
});

test("the same retry twice at once under one key makes one run, and both are told of it", async () => {
  const first = await ended(bench.store, "failed");
  const retry = {
    sessionId: first.sessionId,
    agent: AGENT,
    goal: null,
    actor: ALICE,
    retryOf: first.id,
    idempotency: key("h1"),
  };
  await using one = await bench.lonely();
  await using other = await bench.lonely();
  await bench.sql("begin");
  await bench.sql("select from holdpoint.sessions where id = $1 for update", [first.sessionId]);
  const answers = [];
  for (const { store, pid } of [one, other]) {
    const answer = submitRun(store, retry);
    answers.push(answer);
    await reachesWait(bench.admin, pid, answer);
  }
  await bench.sql("commit");
  expect((await Promise.all(answers)).map(({ result }) => result)).toEqual(["submitted", "repeated"]);
});

test("runs of one session at once get message numbers of their own", async () => {
  const { id: sessionId } = await createSession(bench.store, "alice");
  const runs = await Promise.all([1, 2, 3, 4].map(() => aRun(bench.store, { sessionId })));
  expect(runs.map(({ inputSeq }) => inputSeq).sort()).toEqual([1, 2, 3, 4]);
});

test("an unknown session, agent, version or retried run is said so, and nothing is stored", async () => {
  const submission = await aSubmission();
  expect(await submitRun(bench.store, { ...submission, sessionId: newId() })).toEqual({ result: "session_not_found" });
  expect(await submitRun(bench.store, { ...submission, agent: { name: "nobody", version: "1" } })).toEqual({
    result: "agent_not_found",
  });
  expect(await submitRun(bench.store, { ...submission, agent: { ...AGENT, version: "9" } })).toEqual({
    result: "agent_not_found",
  });
  expect(await submitRun(bench.store, { ...submission, retryOf: newId() })).toEqual({
    result: "retried_run_not_found",
  });
  expect(await runsOf(submission.sessionId)).toEqual([]);
});

test("a key is not used up by a submission that was refused", async () => {
  const submission = await aSubmission({ idempotency: key("h1") });
  expect(await submitRun(bench.store, { ...submission, agent: { ...AGENT, version: "9" } })).toEqual({
    result: "agent_not_found",
  });
  expect(await submitRun(bench.store, submission)).toMatchObject({ result: "submitted" });
});

test("a retry joins the line of the run that it does again, with the same input", async () => {
  const first = await ended(bench.store, "failed");
  await aRun(bench.store, { sessionId: first.sessionId, goal: "something else" });
  const again = { sessionId: first.sessionId, agent: AGENT, goal: null, actor: OPERATOR, retryOf: first.id };
  const retried = await submitRun(bench.store, again);
  expect(retried).toMatchObject({
    result: "submitted",
    run: { line: first.id, retryOf: first.id, goal: first.goal, inputSeq: first.inputSeq, requester: "alice" },
  });
});

test.each(["queued", "running", "waiting_input", "waiting_operator", "outcome_unknown", "cancelling"] as const)(
  "a retry of a %s run is refused: its line is live",
  async (status) => {
    const live = await RUNS[status](bench.store);
    const again = { sessionId: live.sessionId, agent: AGENT, goal: null, actor: ALICE, retryOf: live.id };
    expect(await submitRun(bench.store, again)).toEqual({ result: "line_is_live" });
  },
);

test("a retry of an older run of a line is refused while a newer one is live", async () => {
  const first = await ended(bench.store, "failed");
  const again = { sessionId: first.sessionId, agent: AGENT, goal: null, actor: ALICE, retryOf: first.id };
  expect(await submitRun(bench.store, again)).toMatchObject({ result: "submitted" });
  expect(await submitRun(bench.store, again)).toEqual({ result: "line_is_live" });
});

test("a retry of a run with an open attempt is refused", async () => {
  const { run } = await anUnknownAtOperator(bench.store);
  const again = { sessionId: run.sessionId, agent: AGENT, goal: null, actor: OPERATOR, retryOf: run.id };
  expect(await submitRun(bench.store, again)).toEqual({ result: "line_is_live" });
});

test("a retry knows the effects that happened in the runs before it", async () => {
  const call = aCall();
  const { claimed, attemptId } = await anOpenEffect(bench.store, call);
  const done = await took(bench.store, claimed, {
    steps: [aResult(call, { refund: "re_1" })],
    settles: [{ attemptId, outcome: "succeeded", settledBy: "worker" }],
  });
  const first = await endBy(bench.store, done, "failed");
  const again = { sessionId: first.sessionId, agent: AGENT, goal: null, actor: OPERATOR, retryOf: first.id };
  const retried = await submitRun(bench.store, again);
  if (retried.result !== "submitted") throw new Error(retried.result);
  expect((await reload(bench.store, retried.run.id)).lineEffects).toEqual([
    { callId: call.id, tool: "send_refund", argsHash: "hash-1", result: "succeeded", output: { refund: "re_1" } },
  ]);
});

test("a goal with text that Postgres cannot hold is stored without it", async () => {
  const submission = await aSubmission({ goal: "caf\u0000e \ud83d" });
  expect(await submitRun(bench.store, submission)).toMatchObject({ run: { goal: "caf\ufffde \ufffd" } });
});

test("a session and the agents are found as they were stored", async () => {
  const session = await createSession(bench.store, "alice");
  expect(await findSession(bench.store, session.id)).toEqual(session);
  expect(await findSession(bench.store, newId())).toBeNull();
  await registerAgent(bench.store, { name: "zebra", version: "1", tools: [] });
  const tools = [
    {
      name: "run",
      description: "Runs.",
      effect: "read",
      inputSchema: { type: "object" },
      rules: [],
      presentation: { redact: [], amount: null, risk: null },
    } as const,
  ];
  await registerAgent(bench.store, { name: "zebra", version: "1", tools });
  expect((await listAgents(bench.store)).filter(({ name }) => name === "zebra")).toEqual([
    { name: "zebra", version: "1", tools, kind: "agent", inputSchema: null, task: null },
  ]);
});

function runsOf(sessionId: string) {
  return bench.sql("select id from holdpoint.runs where session_id = $1", [sessionId]);
}
