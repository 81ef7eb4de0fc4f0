import { afterAll, beforeAll, expect, test } from "vitest";
import { aWaitingRun, claim, end, HASH, openTestApi, problemOf, type TestApi } from "./api-fixture.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const mona = () => api.as("mona-token");
const max = () => api.as("max-token");

test("a request shows the arguments as they will run, and the run says for whom it waits", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  expect(await mona().showApproval({ approvalId })).toMatchObject({
    runId,
    requester: "alice",
    tool: "send_refund",
    args: { amount: "30.00" },
    argsHash: HASH,
    rule: "over_limit",
    approvers: { roles: ["manager"], users: [], excluded: ["alice"] },
    state: "pending",
    onDeadline: "reject",
  });
  const run = await mona().showRun({ runId });
  expect(run.sentence).toBe(
    `Waits for approval of send_refund by manager since ${run.since}, until ${run.waitDeadline}; then it counts as rejected.`,
  );
  expect(run.waitingFor).toMatchObject({ kind: "approvers", subject: expect.stringMatching(/^call_/) });
  expect((await mona().listApprovals({ state: ["pending"], runId })).items).toMatchObject([{ id: approvalId }]);
});

test("a double click is one decision: both clicks get the same answer", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  const decision = { approvalId, decision: "approve", argsHash: HASH, note: "fine" } as const;
  const replies = await Promise.all([mona().decideApproval(decision), mona().decideApproval(decision)]);
  expect(replies.map(({ repeated }) => repeated).toSorted()).toEqual([false, true]);
  for (const { approval } of replies)
    expect(approval).toMatchObject({ state: "approved", decidedBy: "mona", note: "fine" });
  const { items } = await mona().showTimeline({ runId });
  expect(items.filter(({ kind }) => kind === "decision")).toHaveLength(1);
  expect(items.filter(({ kind }) => kind === "refusal")).toEqual([]);
});

test("a contrary decision is refused with who decided what and when", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  const { approval } = await mona().decideApproval({ approvalId, decision: "approve", argsHash: HASH });
  for (const contrary of [max(), mona()]) {
    const { problem } = await problemOf(contrary.decideApproval({ approvalId, decision: "reject", argsHash: HASH }));
    expect(problem).toMatchObject({
      type: "urn:holdpoint:problem:refused",
      title: "Refused",
      status: 409,
      code: "refused",
      rule: "already_decided",
      event: "FactArrived",
      runStatus: "queued",
      decided: { by: "approver mona", what: "approved", at: approval.decidedAt },
    });
  }
  const { items } = await mona().showTimeline({ runId });
  expect(items.filter(({ kind }) => kind === "refusal")).toMatchObject([
    { actor: { id: "max" } },
    { actor: { id: "mona" } },
  ]);
});

test("nobody approves a request of their own run, whatever roles they have", async () => {
  const { approvalId } = await aWaitingRun(api);
  const own = { approvalId, decision: "approve", argsHash: HASH } as const;
  expect(await problemOf(api.as("alice-token").decideApproval(own))).toMatchObject({
    status: 409,
    rule: "own_request",
  });
  expect(await problemOf(api.as("alice-manager").decideApproval(own))).toMatchObject({
    status: 409,
    rule: "own_request",
  });
  expect(await problemOf(api.as("olga-token").decideApproval(own))).toMatchObject({ rule: "not_an_approver" });
  expect((await api.as("alice-manager").listApprovals({ mine: true })).items).toEqual([]);
  expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending" });
});

test("a decision on other arguments than those that would run is refused", async () => {
  const { approvalId } = await aWaitingRun(api);
  const decision = { approvalId, decision: "approve", argsHash: "hash-2" } as const;
  expect(await problemOf(mona().decideApproval(decision))).toMatchObject({ status: 409, rule: "hash_mismatch" });
});

test("a decision after the deadline is refused, whether or not the sweep has come by", async () => {
  const { approvalId } = await aWaitingRun(api, { deadlineMs: -1 });
  const decision = { approvalId, decision: "approve", argsHash: HASH } as const;
  expect(await problemOf(mona().decideApproval(decision))).toMatchObject({ status: 409, rule: "deadline_passed" });
  expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending" });
});

test("an approval after the end of the run is refused and recorded, and changes nothing", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  const late = { approvalId, decision: "approve", argsHash: HASH } as const;
  await mona().decideApproval({ ...late, decision: "reject" });
  await end(api.store, runId, await claim(api.store, runId));
  const before = await mona().showRun({ runId });
  expect(before).toMatchObject({ status: "completed", outcome: { kind: "succeeded" } });
  expect(before.sentence).toBe(`Completed with success at ${before.endedAt}.`);
  expect(await problemOf(max().decideApproval(late))).toMatchObject({
    status: 409,
    rule: "already_decided",
    problem: { runStatus: "completed", decided: { by: "approver mona", what: "rejected" } },
  });
  expect({ ...(await mona().showRun({ runId })) }).toEqual(before);
  expect((await mona().showTimeline({ runId })).items.at(-1)).toMatchObject({
    kind: "refusal",
    rule: "already_decided",
    status: "completed",
    actor: { kind: "approver", id: "max" },
  });
});

test("a request that ended with its run is withdrawn, and a decision says who stopped the run", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  await api.as("alice-token").cancelRun({ runId, reason: "changed my mind" });
  const problem = await problemOf(mona().decideApproval({ approvalId, decision: "approve", argsHash: HASH }));
  expect(problem).toMatchObject({
    rule: "approval_withdrawn",
    problem: { runStatus: "cancelled", decided: { by: "requester alice", what: "cancelled" } },
  });
});
