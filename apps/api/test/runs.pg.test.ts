import { type AgentWakeUp, openConsumer, openPublisher } from "@holdpoint/queue";
import { newId, showId } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import { AGENT, openTestApi, problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, ask, aWaitingRun, callForRefund, claim, end, move, startRefund, stored } from "./stage-run.ts";

const api = useTestApi();

const alice = () => api.as("alice-token");
const bob = () => api.as("bob-token");
const mona = () => api.as("mona-token");
const olga = () => api.as("olga-token");

describe("submitting", () => {
  test("makes a queued run and says in one sentence what it does", async () => {
    const run = await aRun(api);
    expect(run).toMatchObject({
      status: "queued",
      goal: "refund order 4411",
      requester: "alice",
      agent: AGENT,
      line: run.id,
      overdue: false,
    });
    expect(run.sentence).toBe(`Waits for a free worker since ${run.since}, until ${run.waitDeadline}.`);
    expect(await alice().showRun({ runId: run.id })).toEqual(run);
    expect(await alice().listMessages({ sessionId: run.sessionId })).toMatchObject({
      items: [{ seq: 1, role: "user", author: "alice", text: "refund order 4411", runId: run.id }],
      next: null,
    });
  });

  test("the same request under the same key makes nothing new, also at the same time", async () => {
    const session = await alice().createSession();
    const input = { sessionId: session.id, agent: AGENT, goal: "refund order 1" };
    const runs = await Promise.all([1, 2, 3, 4].map(() => alice().submitRun(input, { idempotencyKey: "order-1" })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect((await alice().listRuns({ sessionId: session.id })).items).toHaveLength(1);
    expect(
      await problemOf(alice().submitRun({ ...input, goal: "other" }, { idempotencyKey: "order-1" })),
    ).toMatchObject({
      status: 422,
      code: "idempotency_key_reused",
    });
    const again = await fetch(`${api.baseUrl}/sessions/${session.id}/runs`, {
      method: "POST",
      headers: {
        authorization: "Bearer alice-token",
        "content-type": "application/json",
        "idempotency-key": "order-1",
      },
      body: JSON.stringify({ agent: AGENT, goal: "refund order 1" }),
    });
    expect(again.status).toBe(200);
    // Another caller's key is another key.
    expect((await olga().submitRun(input, { idempotencyKey: "order-1" })).id).not.toBe(runs[0]?.id);
  });

  test("an unknown agent is refused with the agents that there are", async () => {
    const session = await alice().createSession();
    const problem = await problemOf(
      alice().submitRun({ sessionId: session.id, agent: { name: "refunds", version: "9" }, goal: "refund" }),
    );
    expect(problem).toMatchObject({ status: 422, code: "agent_unknown" });
    expect(problem.message).toContain('There is no agent "refunds" version "9". Registered: "refunds" version "1".');
    expect(await alice().listAgents()).toEqual({
      items: [
        { ...AGENT, kind: "agent", tools: [{ name: "send_refund", description: "Sends a refund", effect: "effect" }] },
      ],
    });
  });

  test("is not for those who only approve", async () => {
    expect(await problemOf(mona().createSession())).toMatchObject({ status: 403, code: "forbidden" });
  });

  test("tells the queue after the commit", async () => {
    const seen: AgentWakeUp[] = [];
    const consumer = openConsumer(
      { kind: "postgres", url: api.store.pool.options.connectionString ?? "" },
      { agents: [AGENT], concurrency: 1, handler: async (wakeUp) => void seen.push(wakeUp), onError: () => undefined },
    );
    onTestFinished(() => consumer[Symbol.asyncDispose]());
    const run = await aRun(api);
    const found = await waitFor(() => seen.find(({ runId }) => runId === stored(run.id)), {
      deadlineMs: 10_000,
      what: "the wake-up of the run",
    });
    expect(found).toMatchObject({ version: 1 });
  });
});

test("a queue that is away is not the caller's business", async () => {
  const publisher = openPublisher({ kind: "redis", url: "redis://holdpoint:hunter22@127.0.0.1:9" }, { limitMs: 500 });
  const other = await openTestApi({ publisher });
  onTestFinished(() => other[Symbol.asyncDispose]());
  const run = await aRun(other);
  expect(run).toMatchObject({ status: "queued" });
  const reply = await other.as("alice-token").showReadiness();
  expect(reply).toEqual({ status: "degraded", postgres: "ok", queue: "unavailable" });
  const line = await waitFor(() => other.logged.find((each) => each.includes("wake_up.failed")), {
    deadlineMs: 20_000,
    what: "the failure in the log",
  });
  expect(JSON.parse(line)).toMatchObject({ event: "wake_up.failed", runId: run.id });
  expect(other.logged.join("")).not.toContain("hunter22");
});

describe("who sees what", () => {
  test("another requester's run, session and request are not found, and neither is one that never was", async () => {
    const { runId, approvalId } = await aWaitingRun(api);
    const { sessionId } = await alice().showRun({ runId });
    const nobodys = showId("run", newId());
    const calls = [
      bob().showRun({ runId }),
      bob().showTimeline({ runId }),
      bob().listCalls({ runId }),
      bob().sendMessage({ runId, text: "hello" }),
      bob().cancelRun({ runId }),
      bob().retryRun({ runId }),
      bob().showSession({ sessionId }),
      bob().listMessages({ sessionId }),
      bob().submitRun({ sessionId, agent: AGENT, goal: "refund" }),
      bob().showApproval({ approvalId }),
      bob().decideApproval({ approvalId, decision: "approve", argsHash: "x" }),
      alice().showRun({ runId: nobodys }),
    ];
    for (const problem of await Promise.all(calls.map(problemOf))) {
      expect(problem).toMatchObject({ status: 404, code: "not_found" });
    }
    expect((await bob().listRuns()).items).toEqual([]);
    expect((await bob().listApprovals()).items).toEqual([]);
    expect(await mona().showRun({ runId })).toMatchObject({ id: runId });
    expect(await olga().showRun({ runId })).toMatchObject({ id: runId });
  });

  test("who is named in a request sees it, and its run, without any other part", async () => {
    const { runId, approvalId } = await aWaitingRun(api, {
      terms: { approvers: { roles: ["manager"], users: ["bob"] } },
    });
    expect(await bob().showRun({ runId })).toMatchObject({ actions: { decide: null, cancel: "not_yours_to_raise" } });
    expect((await bob().listRuns()).items.map(({ id }) => id)).toEqual([runId]);
    expect((await bob().listApprovals({ mine: true })).items.map(({ id }) => id)).toEqual([approvalId]);
  });

  test("workers are for operators", async () => {
    await claim(api.store, (await aRun(api)).id);
    expect((await olga().listWorkers({ limit: 1 })).items).toMatchObject([
      { host: "test", pid: process.pid, ownedRuns: 1 },
    ]);
    expect(await problemOf(alice().listWorkers())).toMatchObject({ status: 403, code: "forbidden" });
  });
});

describe("lists", () => {
  test("come in pages from the newest on, without a gap or a repeat", async () => {
    const session = await alice().createSession();
    const ids: string[] = [];
    for (const goal of ["1", "2", "3", "4", "5"]) {
      ids.push((await alice().submitRun({ sessionId: session.id, agent: AGENT, goal })).id);
    }
    const seen: string[] = [];
    let page = await alice().listRuns({ sessionId: session.id, limit: 2 });
    seen.push(...page.items.map(({ id }) => id));
    while (page.next !== null && seen.length < 10) {
      page = await alice().listRuns({ sessionId: session.id, limit: 2, cursor: page.next });
      seen.push(...page.items.map(({ id }) => id));
    }
    expect(seen).toEqual(ids.toReversed());
  });

  test("are filtered by status, by whom runs wait for, and by agent", async () => {
    const { runId } = await aWaitingRun(api);
    const { sessionId } = await alice().showRun({ runId });
    const queued = await alice().submitRun({ sessionId, agent: AGENT, goal: "another" });
    const found = async (filter: Parameters<ReturnType<typeof alice>["listRuns"]>[0]) =>
      (await mona().listRuns({ sessionId, ...filter })).items.map(({ id }) => id);
    expect(await found({ status: ["waiting_approval", "queued"] })).toEqual([queued.id, runId]);
    expect(await found({ waitingForKind: "approvers", waitingFor: "role:manager" })).toEqual([runId]);
    expect(await found({ agent: "refunds", agentVersion: "1" })).toEqual([queued.id, runId]);
    expect(await found({ overdue: true })).toEqual([]);
  });
});

describe("actions", () => {
  test("are what this caller may do, and the rule that forbids the rest", async () => {
    const { runId } = await aWaitingRun(api);
    expect((await alice().showRun({ runId })).actions).toMatchObject({
      message: null,
      cancel: null,
      pause: "not_yours_to_raise",
      decide: "own_request",
      answer: "nothing_asked",
      retry_as_new_run: "run_not_ended",
      terminate: "not_yours_to_raise",
    });
    expect((await mona().showRun({ runId })).actions).toMatchObject({
      decide: null,
      cancel: "not_yours_to_raise",
      message: "not_yours_to_raise",
    });
    expect((await olga().showRun({ runId })).actions).toMatchObject({
      decide: "not_yours_to_raise",
      cancel: null,
      pause: null,
      resume: "not_paused",
      terminate: null,
      retry: "choice_not_offered",
    });
  });

  test("agree with what happens, and what is refused is recorded with who tried", async () => {
    const { runId } = await aWaitingRun(api);
    const refusedRules = [
      [await problemOf(mona().cancelRun({ runId })), "not_yours_to_raise"],
      [await problemOf(alice().pauseRun({ runId })), "not_yours_to_raise"],
      [await problemOf(olga().resumeRun({ runId })), "not_paused"],
      [await problemOf(olga().decideAsOperator({ runId, choice: "retry", reason: "again" })), "choice_not_offered"],
      [await problemOf(alice().retryRun({ runId })), "run_not_ended"],
    ] as const;
    for (const [problem, rule] of refusedRules) expect(problem).toMatchObject({ status: 409, code: "refused", rule });
    const { items } = await olga().showTimeline({ runId });
    expect(items.filter(({ kind }) => kind === "refusal")).toMatchObject([
      { rule: "not_yours_to_raise", event: "CancelRequested", actor: { kind: "approver", id: "mona" } },
      { rule: "not_yours_to_raise", event: "PauseRequested", actor: { kind: "requester", id: "alice" } },
      { rule: "not_paused", event: "Resumed", actor: { kind: "operator", id: "olga" } },
      { rule: "choice_not_offered", event: "OperatorDecided" },
      { rule: "run_not_ended", event: "Submitted", status: "waiting_approval" },
    ]);
  });
});

describe("what is asked of a run", () => {
  test("a question is answered once; a second answer to the same hold is refused with who moved the run", async () => {
    const run = await aRun(api);
    await ask(api.store, run.id, await claim(api.store, run.id));
    const waiting = await alice().showRun({ runId: run.id });
    expect(waiting.sentence).toBe(
      `Waits for an answer from alice since ${waiting.since}, until ${waiting.waitDeadline}; then the agent is told that nobody answered.`,
    );
    const hold = waiting.hold ?? 0;
    expect(await alice().answer({ runId: run.id, text: "the blue one", hold })).toMatchObject({ status: "queued" });
    const problem = await problemOf(alice().answer({ runId: run.id, text: "no, the red one", hold }));
    expect(problem).toMatchObject({ status: 409, rule: "hold_is_over" });
    expect(problem.problem.decided).toMatchObject({ by: "requester alice", what: "queued" });
  });

  test("a cancel is kept, twice is the same, and after the end it is refused with who ended the run and when", async () => {
    const run = await aRun(api);
    const owner = await claim(api.store, run.id);
    const cancelling = await alice().cancelRun({ runId: run.id, reason: "changed my mind" });
    expect(cancelling).toMatchObject({ status: "cancelling", owner: { host: "test", silent: false } });
    expect(await alice().cancelRun({ runId: run.id })).toMatchObject({ version: cancelling.version });
    await move(api.store, { runId: run.id, workerId: owner.workerId, event: { type: "Released", retryAt: null } });
    const ended = await alice().showRun({ runId: run.id });
    expect(ended).toMatchObject({ status: "cancelled" });
    const problem = await problemOf(alice().cancelRun({ runId: run.id }));
    expect(problem.problem).toMatchObject({
      status: 409,
      rule: "run_ended",
      runStatus: "cancelled",
      decided: { by: `worker ${showId("worker", owner.workerId)}`, what: "cancelled", at: ended.endedAt },
    });
  });

  test("a pause moves the run aside until it is resumed", async () => {
    const run = await aRun(api);
    expect(await olga().pauseRun({ runId: run.id })).toMatchObject({ status: "paused" });
    expect(await olga().resumeRun({ runId: run.id })).toMatchObject({ status: "queued" });
  });

  test("an ended run is done again as a new run of its line, once at a time", async () => {
    const run = await aRun(api);
    await end(api.store, run.id, await claim(api.store, run.id));
    const again = await alice().retryRun({ runId: run.id }, { idempotencyKey: "again" });
    expect(again).toMatchObject({ status: "queued", retryOf: run.id, line: run.id, goal: run.goal });
    expect((await alice().retryRun({ runId: run.id }, { idempotencyKey: "again" })).id).toBe(again.id);
    expect((await alice().showRun({ runId: run.id })).actions.retry_as_new_run).toBe("line_is_live");
    expect((await mona().showRun({ runId: again.id })).actions.retry_as_new_run).toBe("run_not_ended");
    expect(await problemOf(alice().retryRun({ runId: run.id }))).toMatchObject({ status: 409, rule: "line_is_live" });
    expect(await problemOf(mona().retryRun({ runId: run.id }))).toMatchObject({ rule: "not_yours_to_raise" });
  });

  test("an effect whose outcome is unknown is marked done by name, and what happened outside is told", async () => {
    const run = await aRun(api);
    const owner = await claim(api.store, run.id);
    const callId = await callForRefund(api.store, run.id, owner);
    await startRefund(api.store, run.id, { ...owner, callId });
    const event = { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null } as const;
    await move(api.store, { runId: run.id, workerId: owner.workerId, event });
    const { items } = await olga().listCalls({ runId: run.id });
    expect(items).toMatchObject([
      { tool: "send_refund", attempts: [{ number: 1, state: "open", externalRef: "op_1" }] },
    ]);
    const attempts = items.flatMap((call) => call.attempts.flatMap(({ id }) => (id === null ? [] : [id])));
    const choice = { runId: run.id, choice: "mark_done", reason: "seen at the bank" } as const;
    expect(await problemOf(olga().decideAsOperator(choice))).toMatchObject({ rule: "attempt_not_named" });
    const settled = await olga().decideAsOperator({
      ...choice,
      attempts,
      result: { refund: "re_1" },
      externalRef: "re_1",
    });
    expect(settled).toMatchObject({ status: "queued", openAttempts: 0 });
    expect((await olga().listCalls({ runId: run.id })).items).toMatchObject([
      { attempts: [{ state: "happened", externalRef: "re_1", settledBy: "person:olga" }] },
    ]);
  });
});

test("the timeline's payloads are kept from approvers without a part in the run, and shown to those who have one", async () => {
  const { runId } = await aWaitingRun(api);
  const seenBy = async (token: string) => JSON.stringify(await api.as(token).showTimeline({ runId, payloads: true }));
  expect(await seenBy("fay-token")).not.toContain("SECRET-PAYLOAD");
  expect(await seenBy("mona-token")).toContain("SECRET-PAYLOAD");
  expect(await seenBy("olga-token")).toContain("SECRET-PAYLOAD");
});

test("the timeline has no payloads unless they are asked for, and the log never", async () => {
  const { runId } = await aWaitingRun(api);
  const short = await alice().showTimeline({ runId });
  expect(short.items.find(({ kind }) => kind === "step")).toMatchObject({ line: "model turn 1: asks for 1 call" });
  expect(JSON.stringify(short)).not.toContain("SECRET-PAYLOAD");
  expect(JSON.stringify(await alice().showTimeline({ runId, payloads: true }))).toContain("SECRET-PAYLOAD");
  await alice().sendMessage({ runId, text: "SECRET-MESSAGE" });
  const log = api.logged.join("");
  expect(log).toContain(runId);
  expect(log).not.toMatch(/SECRET|alice-token|refund order/);
});
