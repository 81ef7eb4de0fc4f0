import { hashArgs } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { ARGS, HASH, problemOf, TOOL, useTestApi } from "./api-fixture.ts";
import { aRun, aWaitingRun, claim, end, waitForApproval } from "./stage-run.ts";

const api = useTestApi();

const mona = () => api.as("mona-token");
const max = () => api.as("max-token");

test("a request shows all that a person needs, and the run says for whom it waits", async () => {
  const escalation = [{ approvers: { roles: ["finance"], users: ["carl"] }, deadlineMs: 30_000 }];
  const { runId, approvalId } = await aWaitingRun(api, { terms: { escalation } });
  const approval = await mona().showApproval({ approvalId });
  expect(approval).toMatchObject({
    runId,
    requester: "alice",
    tool: "send_refund",
    args: ARGS,
    redactedArgs: { amount: "30.00", iban: "[redacted]" },
    argsHash: HASH,
    modelArgs: null,
    modelReason: "The parcel never came",
    amount: { minor: "3000", currency: "EUR" },
    risk: { level: "high", reversible: false },
    evidence: [{ tool: "find_order", result: "succeeded", excerpt: "paid 30.00" }],
    rule: "over_limit",
    terms: { quorum: 1, given: 0, veto: true, fourEyes: true, validForMs: 60_000 },
    decided: [],
    approvers: { roles: ["manager"], users: [], excluded: ["alice"] },
    level: 0,
    escalation: [{ roles: ["finance"], users: ["carl"], deadlineMs: 30_000 }],
    state: "pending",
    onDeadline: "reject",
    extended: false,
    reminders: { made: 0, nextAt: expect.stringMatching(/Z$/) },
    editSchema: { type: "object", required: ["amount", "order", "iban"] },
    answerSchema: { type: "object", required: ["refunded"] },
    editedBy: null,
    sameCall: [],
    supersededBy: null,
    equalCalls: [],
  });
  const remindedAfterMs = Date.parse(approval.reminders.nextAt ?? "") - Date.parse(approval.requestedAt);
  expect(remindedAfterMs).toBe(20_000);
  const run = await mona().showRun({ runId });
  expect(run.sentence).toBe(
    `Waits for approval of send_refund by manager since ${run.since}, until ${run.waitDeadline}; then it counts as rejected.`,
  );
  expect(run.waitingFor).toMatchObject({ kind: "approvers", subject: expect.stringMatching(/^call_/) });
  const { items } = await mona().listApprovals({ state: ["pending"], runId });
  expect(items).toMatchObject([{ id: approvalId, redactedArgs: { iban: "[redacted]" } }]);
  expect(JSON.stringify(items)).not.toContain("NO93");
});

describe("the arguments", () => {
  test.each(["mona-token", "alice-token", "olga-token", "carl-token"])(
    "are shown to %s, who has a part",
    async (token) => {
      const escalation = [{ approvers: { roles: [], users: ["carl"] }, deadlineMs: 30_000 }];
      const { approvalId } = await aWaitingRun(api, { terms: { escalation } });
      expect(await api.as(token).showApproval({ approvalId })).toMatchObject({
        args: ARGS,
        modelReason: "The parcel never came",
      });
    },
  );

  test("are kept from those who only look", async () => {
    const { approvalId } = await aWaitingRun(api);
    const seen = await api.as("fay-token").showApproval({ approvalId });
    expect(seen).toMatchObject({ args: null, modelReason: null, evidence: [], redactedArgs: { amount: "30.00" } });
    expect(JSON.stringify(seen)).not.toContain("NO93");
  });
});

describe("what a caller may decide", () => {
  const allowed = {
    approve: null,
    approve_with_edits: null,
    reject: null,
    reject_and_abort: null,
    respond: null,
    skip: null,
    escalate: "nothing_to_escalate_to",
  };
  const all = <Rule>(rule: Rule) => Object.fromEntries(Object.keys(allowed).map((kind) => [kind, rule]));

  test.each([
    ["mona-token", allowed],
    ["fay-token", all("not_an_approver")],
    ["olga-token", all("not_an_approver")],
    [
      "alice-manager",
      { ...allowed, approve: "own_request", approve_with_edits: "own_request", respond: "own_request" },
    ],
  ])("is told to %s with the rule that forbids the rest", async (token, decisions) => {
    const { approvalId } = await aWaitingRun(api);
    expect((await api.as(token).showApproval({ approvalId })).decisions).toEqual(decisions);
  });

  test("is only to take it back for whoever asked for the run and approves nothing", async () => {
    const { approvalId } = await aWaitingRun(api, { token: "bob-token" });
    const bob = api.as("bob-token");
    const { decisions } = await bob.showApproval({ approvalId });
    expect(decisions).toEqual({
      ...all("not_an_approver"),
      ...{ approve: "own_request", approve_with_edits: "own_request", respond: "own_request" },
      ...{ reject: null, reject_and_abort: null },
    });
    const reply = await bob.decideApproval({ approvalId, decision: "reject", argsHash: HASH, note: "not needed" });
    expect(reply).toMatchObject({ approval: { state: "rejected", decidedBy: "bob" }, run: { status: "queued" } });
  });

  test("is nothing after the deadline, and nothing after the decision", async () => {
    const late = await aWaitingRun(api, { terms: { deadlineMs: -1 } });
    expect((await mona().showApproval({ approvalId: late.approvalId })).decisions).toEqual({
      ...all("deadline_passed"),
      escalate: "nothing_to_escalate_to",
    });
    const { approvalId } = await aWaitingRun(api);
    await mona().decideApproval({ approvalId, decision: "skip", argsHash: HASH });
    for (const manager of [mona(), max()])
      expect((await manager.showApproval({ approvalId })).decisions).toEqual(all("already_decided"));
  });
});

test("a request says what became of an equal call of the same line", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  await mona().decideApproval({ approvalId, decision: "reject", argsHash: HASH, note: "too early" });
  await end(api.store, runId, await claim(api.store, runId));
  const again = await api.as("alice-token").retryRun({ runId });
  const second = await waitForApproval(api, again.id);
  const { equalCalls, sameCall } = await mona().showApproval({ approvalId: second.approvalId });
  expect(equalCalls).toMatchObject([{ runId, callId: expect.stringMatching(/^call_/), result: null }]);
  expect(sameCall).toEqual([]);
  const other = await aRun(api);
  const third = await waitForApproval(api, other.id);
  expect((await mona().showApproval({ approvalId: third.approvalId })).equalCalls).toEqual([]);
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
    const { problem } = await problemOf(
      contrary.decideApproval({ approvalId, decision: "reject", argsHash: HASH, note: "no" }),
    );
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
    status: 403,
    code: "refused",
    rule: "own_request",
  });
  expect(await problemOf(api.as("alice-manager").decideApproval(own))).toMatchObject({
    status: 403,
    code: "refused",
    rule: "own_request",
  });
  expect(await problemOf(api.as("olga-token").decideApproval(own))).toMatchObject({
    status: 403,
    rule: "not_an_approver",
  });
  expect((await api.as("alice-manager").listApprovals({ mine: true })).items).toEqual([]);
  expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending" });
});

test("a decision on other arguments than those that would run is refused", async () => {
  const { approvalId } = await aWaitingRun(api);
  const decision = { approvalId, decision: "approve", argsHash: hashArgs(TOOL, { ...ARGS, amount: "90.00" }) } as const;
  const { problem } = await problemOf(mona().decideApproval(decision));
  expect(problem).toMatchObject({ status: 409, rule: "hash_mismatch", runStatus: "waiting_approval" });
  // Nobody has decided anything yet.
  expect(problem).not.toHaveProperty("decided");
  expect(problem.detail).toMatch(/Look at the request again\.$/);
});

test("a decision after the deadline is refused, whether or not the sweep has come by", async () => {
  const { approvalId } = await aWaitingRun(api, { terms: { deadlineMs: -1 } });
  const decision = { approvalId, decision: "approve", argsHash: HASH } as const;
  expect(await problemOf(mona().decideApproval(decision))).toMatchObject({ status: 409, rule: "deadline_passed" });
  expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending" });
});

test("an approval after the end of the run is refused and recorded, and changes nothing", async () => {
  const { runId, approvalId } = await aWaitingRun(api);
  const late = { approvalId, decision: "approve", argsHash: HASH } as const;
  await mona().decideApproval({ ...late, decision: "reject", note: "no" });
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
