import type { StepBody } from "@holdpoint/core";
import { createTestDatabase, type TestDatabase } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  commitSteps,
  decideApproval,
  markExited,
  newId,
  openStore,
  recordFact,
  requestCancel,
  type Store,
  showId,
  transitionOne,
} from "../src/index.ts";
import {
  checkStore,
  findApproval,
  findRun,
  findTimeline,
  listApprovals,
  listCalls,
  listMessages,
  listRuns,
  listWorkers,
  readId,
} from "../src/read/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, claim, grantAll, MANAGER } from "./a-run.ts";
import { SHOWN, TERMS } from "./a-status.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  await grantAll(store);
});

afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const FIRST = { limit: 200, after: null };

/** A run that waits for its manager, and its request. */
async function aWaitingRun(options: { users?: string[]; deadlineMs?: number } = {}) {
  const run = await aRun(store);
  const workerId = await aWorker(store);
  const claimed = await claim(store, run.id, workerId);
  const call = aCall();
  await commitSteps(store, [aCommit(claimed, { steps: [aReply([call])], calls: [call] })]);
  const approvalId = newId();
  const deadlineMs = options.deadlineMs ?? 60_000;
  const held = await transitionOne(store, {
    run: { ...claimed.run, stepSeq: 1 },
    actor: { kind: "worker", id: workerId },
    events: [
      {
        type: "Held",
        hold: {
          kind: "approval",
          waitingFor: { kind: "approvers", principal: "role:manager", subject: call.id, reason: "over_limit" },
          deadline: { inMs: deadlineMs },
          onDeadline: "reject",
        },
      },
    ],
    writes: {
      requests: [
        {
          id: approvalId,
          callId: call.id,
          tool: call.tool,
          args: '{"amount":"30.00"}',
          argsHash: call.argsHash,
          terms: { ...TERMS, deadlineMs, approvers: { roles: ["manager"], users: options.users ?? [] } },
          request: SHOWN,
          excluded: [ALICE.id],
          editedBy: null,
          approval: null,
        },
      ],
    },
  });
  if (held.result !== "accepted") throw new Error(`not held: ${held.result}`);
  return { run: held.run, call, approvalId, workerId };
}

describe("findRun", () => {
  test("shows a run with its owner, what moved it last, and who may decide what it waits for", async () => {
    const { run, workerId } = await aWaitingRun();
    expect(await findRun(store, run.id)).toMatchObject({
      run: { id: run.id, version: 3, state: { status: "waiting_approval", waitDeadline: run.state.waitDeadline } },
      owner: null,
      movedBy: { event: "Held", actorKind: "worker", actorId: workerId },
      overdue: false,
      lineLive: true,
      pending: [{ roles: ["manager"], users: [], excluded: ["alice"] }],
    });
    expect(await findRun(store, newId())).toBeNull();
  });

  test("says that an owner is silent once its lease is over", async () => {
    const working = await aRun(store);
    await claim(store, working.id, await aWorker(store));
    expect(await findRun(store, working.id)).toMatchObject({
      owner: { host: "test", pid: process.pid, silent: false },
    });

    const silent = await aRun(store);
    const workerId = await aWorker(store);
    await claim(store, silent.id, workerId);
    await store.pool.query("update holdpoint.workers set lease_until = now() - interval '1 s' where id = $1", [
      workerId,
    ]);
    expect(await findRun(store, silent.id)).toMatchObject({ owner: { id: workerId, silent: true } });
    expect(await listWorkers(store, { gone: false }, FIRST)).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ id: workerId, silent: true })]),
    });
  });

  test("keeps what moved the run apart from what was only recorded", async () => {
    const { run } = await aWaitingRun();
    await recordFact(store, { runId: run.id, kind: "message", text: "hurry", actor: ALICE });
    expect(await findRun(store, run.id)).toMatchObject({ run: { version: 4 }, movedBy: { event: "Held" } });
  });
});

describe("listRuns", () => {
  test("pages from the newest to the oldest without a gap or a repeat", async () => {
    const { sessionId, id } = await aRun(store);
    const ids = [id];
    for (let index = 0; index < 4; index += 1) ids.push((await aRun(store, { sessionId })).id);
    const seen: string[] = [];
    for (let after: string | null = null, pages = 0; pages < 9; pages += 1) {
      const page = await listRuns(store, { sessionId }, { limit: 2, after });
      seen.push(...page.items.map(({ run }) => run.id));
      after = page.next;
      if (after === null) break;
    }
    expect(seen).toEqual(ids.toReversed());
  });

  test("finds runs by status, by whom they wait for, by agent, and by who may see them", async () => {
    const { run } = await aWaitingRun({ users: ["zoe"] });
    const { sessionId } = run;
    const idle = await aRun(store, { sessionId });
    const found = async (filter: Parameters<typeof listRuns>[1]) =>
      (await listRuns(store, { sessionId, ...filter }, FIRST)).items.map((view) => view.run.id);
    expect(await found({ statuses: ["waiting_approval"] })).toEqual([run.id]);
    expect(await found({ statuses: ["queued", "waiting_approval"] })).toEqual([idle.id, run.id]);
    expect(await found({ waitingForKind: "approvers" })).toEqual([run.id]);
    expect(await found({ waitingForPrincipal: "role:manager" })).toEqual([run.id]);
    expect(await found({ waitingForKind: "operator" })).toEqual([]);
    expect(await found({ agentName: "refunds", agentVersion: "1" })).toEqual([idle.id, run.id]);
    expect(await found({ agentVersion: "2" })).toEqual([]);
    expect(await found({ visibleTo: "alice" })).toEqual([idle.id, run.id]);
    expect(await found({ visibleTo: "zoe" })).toEqual([run.id]);
    expect(await found({ visibleTo: "mallory" })).toEqual([]);
  });

  test("finds what is overdue", async () => {
    const { run } = await aWaitingRun({ deadlineMs: -1 });
    const inTime = await aRun(store, { sessionId: run.sessionId });
    const found = async (overdue: boolean) =>
      (await listRuns(store, { sessionId: run.sessionId, overdue }, FIRST)).items.map((view) => view.run.id);
    expect(await found(true)).toEqual([run.id]);
    expect(await found(false)).toEqual([inTime.id]);
  });

  test("gives nothing for a cursor that it never gave, and refuses a page without a limit", async () => {
    expect(await listRuns(store, {}, { limit: 10, after: "' or true --" })).toEqual({ items: [], next: null });
    await expect(listRuns(store, {}, { limit: 201, after: null })).rejects.toThrow(RangeError);
  });
});

describe("approvals", () => {
  test("shows the arguments as they will run, who may decide, and who has", async () => {
    const { run, approvalId, call } = await aWaitingRun();
    expect(await findApproval(store, approvalId)).toMatchObject({
      runId: run.id,
      sessionId: run.sessionId,
      requester: "alice",
      callId: call.id,
      args: { amount: "30.00" },
      argsHash: "hash-1",
      terms: { rule: "over_limit" },
      roles: ["manager"],
      state: "pending",
      decidedBy: null,
    });
    const decision = { approvalId, decision: "approve", argsHash: "hash-1", note: "fine" } as const;
    await decideApproval(store, { ...decision, actor: MANAGER });
    expect(await findApproval(store, approvalId)).toMatchObject({ state: "approved", decidedBy: "mona", note: "fine" });
    expect(await findApproval(store, newId())).toBeNull();
  });

  test("lists what a person may decide, and what it may see", async () => {
    const { run, approvalId } = await aWaitingRun({ users: ["zoe"] });
    const found = async (filter: Parameters<typeof listApprovals>[1]) =>
      (await listApprovals(store, { runId: run.id, ...filter }, FIRST)).items.map(({ id }) => id);
    expect(await found({ states: ["pending"] })).toEqual([approvalId]);
    expect(await found({ states: ["approved", "spent"] })).toEqual([]);
    expect(await found({ decidableBy: { user: "mona", roles: ["manager"] } })).toEqual([approvalId]);
    expect(await found({ decidableBy: { user: "zoe", roles: [] } })).toEqual([approvalId]);
    expect(await found({ decidableBy: { user: "alice", roles: ["manager"] } })).toEqual([]);
    expect(await found({ visibleTo: "alice" })).toEqual([approvalId]);
    expect(await found({ visibleTo: "mallory" })).toEqual([]);
  });
});

describe("findTimeline", () => {
  test("tells what happened in its order, page by page, without payloads unless asked", async () => {
    const { run, approvalId } = await aWaitingRun();
    const decision = { approvalId, argsHash: "hash-1", note: null, actor: MANAGER } as const;
    await decideApproval(store, { ...decision, decision: "approve" });
    await decideApproval(store, { ...decision, decision: "reject" });
    await requestCancel(store, { runId: run.id, actor: ALICE, reason: "changed my mind" });
    await requestCancel(store, { runId: run.id, actor: ALICE, reason: null });

    const whole = await findTimeline(store, run.id, { ...FIRST, payloads: false });
    expect(whole.items.map((entry) => ({ ...entry, atMs: 0 }))).toMatchObject([
      { kind: "transition", seq: 1, from: null, to: "queued", event: "Submitted" },
      { kind: "transition", seq: 2, from: "queued", to: "running", event: "Claimed", actorKind: "worker" },
      { kind: "step", seq: 1, step: "model_reply", line: "model turn 1: asks for 1 call", body: null },
      { kind: "transition", seq: 3, to: "waiting_approval", event: "Held" },
      { kind: "decision", approvalId, tool: "send_refund", decision: "approve", actorId: "mona" },
      { kind: "transition", seq: 4, to: "queued", event: "FactArrived", actorId: "mona" },
      { kind: "refusal", event: "FactArrived", rule: "already_decided", actorId: "mona" },
      { kind: "transition", seq: 5, to: "cancelled", event: "CancelRequested", reason: "changed my mind" },
      { kind: "refusal", event: "CancelRequested", rule: "run_ended", status: "cancelled" },
    ]);

    const pieces = [];
    for (let after: string | null = null, pages = 0; pages < 20; pages += 1) {
      const page = await findTimeline(store, run.id, { limit: 2, after, payloads: false });
      pieces.push(...page.items);
      after = page.next;
      if (after === null) break;
    }
    expect(pieces).toEqual(whole.items);

    const full = await findTimeline(store, run.id, { ...FIRST, payloads: true });
    expect(full.items.find(({ kind }) => kind === "step")).toMatchObject({
      body: { kind: "model_reply", callIds: [{}] },
    });
  });
});

test("what happened outside is told per call, with each attempt", async () => {
  const run = await aRun(store);
  const workerId = await aWorker(store);
  const claimed = await claim(store, run.id, workerId);
  const [read, refund] = [
    aCall({ tool: "find_order", effect: { kind: "read" } }),
    aCall({ ordinal: 1, toolCallId: "call_2" }),
  ];
  await commitSteps(store, [aCommit(claimed, { steps: [aReply([read, refund])], calls: [read, refund] })]);
  const failed = { errorClass: "transient", code: "busy", retryInMs: 0, durationMs: 5 } as const;
  const tries: readonly StepBody[] = [
    { kind: "call_failed", callId: read.id, attempt: 1, ...failed },
    { kind: "tool_result", callId: read.id, result: "succeeded", output: {}, attempt: 2, durationMs: 3 },
  ];
  await commitSteps(store, [aCommit({ ...claimed, run: { ...claimed.run, stepSeq: 1 } }, { steps: tries })]);
  const start = aStart(refund);
  await commitSteps(store, [aCommit({ ...claimed, run: { ...claimed.run, stepSeq: 3 } }, { start })]);

  const first = await listCalls(store, run.id, { limit: 1, after: null });
  expect(first).toMatchObject({
    items: [
      {
        id: read.id,
        tool: "find_order",
        effect: "read",
        attempts: [
          { id: null, number: 1, workerId, outcome: "failed", errorClass: "transient", errorCode: "busy" },
          { id: null, number: 2, workerId, outcome: "succeeded", errorClass: null, errorCode: null },
        ],
      },
    ],
    next: read.id,
  });
  const [{ attempts: [, second] = [] } = {}] = first.items;
  expect((second?.endedAtMs ?? 0) - (second?.startedAtMs ?? 0)).toBe(3);
  expect(await listCalls(store, run.id, { limit: 1, after: first.next })).toMatchObject({
    items: [
      {
        tool: "send_refund",
        effect: "effect",
        verdict: "allowed",
        attempts: [{ id: start.attemptId, number: 1, workerId, externalRef: refund.operationId, outcome: null }],
      },
    ],
    next: null,
  });
});

test("messages come in the order in which they were said", async () => {
  const run = await aRun(store, { goal: "first" });
  await recordFact(store, { runId: run.id, kind: "message", text: "second", actor: ALICE });
  const { next } = await listMessages(store, run.sessionId, { limit: 1, after: null });
  expect(await listMessages(store, run.sessionId, { limit: 1, after: next })).toMatchObject({
    items: [{ seq: 2, role: "user", author: "alice", text: "second", runId: run.id }],
    next: null,
  });
});

test("workers that are gone are shown only if asked for", async () => {
  const id = await aWorker(store);
  await markExited(store, id);
  const found = async (gone: boolean) =>
    (await listWorkers(store, { gone }, FIRST)).items.filter((worker) => worker.id === id);
  expect(await found(false)).toEqual([]);
  expect(await found(true)).toMatchObject([{ goneReason: "process_exited", silent: false, ownedRuns: 0 }]);
});

test("an id is read back from the form in which it is shown, and only as its own kind", () => {
  const id = newId();
  expect(readId("run", showId("run", id))).toBe(id);
  expect(readId("session", showId("run", id))).toBeNull();
  expect(readId("run", "run_nonsense")).toBeNull();
});

test("the check writes, and sees a schema that was never made", async () => {
  expect(await checkStore(store)).toBe("ok");
  const name = `${database.name}_empty`;
  await store.pool.query(`create database ${name}`);
  const url = new URL(database.url);
  url.pathname = `/${name}`;
  const empty = openStore({ url: url.href });
  try {
    expect(await checkStore(empty)).toBe("migration_missing");
  } finally {
    await empty[Symbol.asyncDispose]();
    await store.pool.query(`drop database ${name} with (force)`);
  }
});
