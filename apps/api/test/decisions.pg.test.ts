import { hashArgs, revokeRole } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { ARGS, HASH, openTestApi, problemOf, TOOL, useTestApi } from "./api-fixture.ts";
import { aWaitingRun } from "./stage-run.ts";

const api = useTestApi();

const mona = () => api.as("mona-token");
const max = () => api.as("max-token");
const fay = () => api.as("fay-token");
const finn = () => api.as("finn-token");

const withAmount = (amount: string) => ({ ...ARGS, amount });

describe("each kind of decision", () => {
  test.each([
    [{ decision: "approve" }, "approved", "queued"],
    [{ decision: "reject", note: "too much" }, "rejected", "queued"],
    [{ decision: "reject_and_abort", note: "fraud" }, "rejected", "cancelled"],
    [{ decision: "respond", answer: { refunded: true } }, "answered", "queued"],
    [{ decision: "skip", note: "not needed" }, "skipped", "queued"],
  ] as const)("%j makes the request %s, and the run %s", async (decision, state, status) => {
    const { approvalId } = await aWaitingRun(api);
    const asked = { approvalId, argsHash: HASH, ...decision };
    const first = await mona().decideApproval(asked);
    const note = "note" in decision ? decision.note : null;
    expect(first).toMatchObject({
      approval: {
        state,
        decidedBy: "mona",
        note,
        decided: [{ by: "mona", decision: decision.decision, level: 0, note }],
        answer: "answer" in decision ? decision.answer : null,
      },
      run: { status },
      repeated: false,
    });
    // The same again is answered as the first was; anything else is refused with who decided what.
    expect(await mona().decideApproval(asked)).toEqual({ ...first, repeated: true });
    const contrary = { approvalId, argsHash: HASH, decision: "escalate" } as const;
    for (const caller of [mona(), max()]) {
      expect((await problemOf(caller.decideApproval(contrary))).problem).toMatchObject({
        status: 409,
        rule: "already_decided",
        decided: { by: "approver mona", what: state, at: first.approval.decidedAt },
      });
    }
  });

  test("the same answer again in other words of JSON is the same; another answer is not", async () => {
    const { approvalId } = await aWaitingRun(api);
    const respond = { approvalId, argsHash: HASH, decision: "respond" } as const;
    await mona().decideApproval({ ...respond, answer: { refunded: true, by: "hand" } });
    expect(await mona().decideApproval({ ...respond, answer: { by: "hand", refunded: true } })).toMatchObject({
      repeated: true,
    });
    expect(await problemOf(mona().decideApproval({ ...respond, answer: { refunded: false } }))).toMatchObject({
      rule: "already_decided",
    });
  });

  test("escalate passes it on, once, to people who are asked then, until a deadline of their own", async () => {
    const escalation = [{ approvers: { roles: ["finance"], users: [] }, deadlineMs: 90_000 }];
    const { runId, approvalId } = await aWaitingRun(api, { terms: { escalation } });
    const escalate = { approvalId, argsHash: HASH, decision: "escalate" } as const;
    const { approval, run } = await mona().decideApproval(escalate);
    expect(approval).toMatchObject({
      state: "pending",
      level: 1,
      approvers: { roles: ["finance"] },
      escalation: [],
      decided: [{ by: "mona", decision: "escalate", level: 0 }],
    });
    expect(run).toMatchObject({ status: "waiting_approval", waitDeadline: approval.deadline });
    expect(run.waitingFor).toMatchObject({ principal: "role:finance" });
    expect(await mona().decideApproval(escalate)).toMatchObject({ repeated: true, approval: { level: 1 } });
    expect(await problemOf(mona().decideApproval({ ...escalate, decision: "approve" }))).toMatchObject({
      status: 403,
      rule: "not_an_approver",
    });
    expect(await problemOf(fay().decideApproval(escalate))).toMatchObject({ rule: "nothing_to_escalate_to" });
    expect(await fay().decideApproval({ ...escalate, decision: "approve" })).toMatchObject({
      approval: { state: "approved", decidedBy: "fay" },
      run: { id: runId, status: "queued" },
    });
  });

  test("what the rule does not offer is refused", async () => {
    const { approvalId } = await aWaitingRun(api, { terms: { decisions: ["approve", "reject"] } });
    const skip = { approvalId, argsHash: HASH, decision: "skip" } as const;
    expect(await problemOf(mona().decideApproval(skip))).toMatchObject({ status: 409, rule: "decision_not_offered" });
    expect((await mona().showApproval({ approvalId })).decisions).toMatchObject({
      approve: null,
      skip: "decision_not_offered",
    });
  });
});

describe("two people", () => {
  const terms = { approvers: { roles: ["finance"], users: [] }, quorum: 2 };

  test("approve together; one of them alone does not, however often", async () => {
    const { approvalId } = await aWaitingRun(api, { terms });
    const approve = { approvalId, argsHash: HASH, decision: "approve" } as const;
    const mine = async (caller: typeof fay) =>
      (await caller().listApprovals({ mine: true })).items.map(({ id }) => id).includes(approvalId);
    expect([await mine(fay), await mine(finn), await mine(mona)]).toEqual([true, true, false]);
    const first = await fay().decideApproval(approve);
    expect(first).toMatchObject({
      approval: { state: "pending", terms: { quorum: 2, given: 1 }, decisions: { approve: "already_decided" } },
      run: {
        status: "waiting_approval",
        waitingFor: { principal: "role:finance", quorum: 2 },
        sentence: expect.stringMatching(/^Waits for approval of \S+ by 2 of finance since /),
      },
    });
    expect(await fay().decideApproval(approve)).toMatchObject({ repeated: true, approval: { terms: { given: 1 } } });
    const changed = await problemOf(fay().decideApproval({ ...approve, decision: "reject", note: "no" }));
    expect(changed.problem).toMatchObject({
      rule: "already_decided",
      decided: { by: "approver fay", what: "approve", at: first.approval.decided[0]?.at },
    });
    expect([await mine(fay), await mine(finn)]).toEqual([false, true]);
    // Whoever may not decide hears how far it has come: the run's worker has decided nothing.
    const { problem } = await problemOf(mona().decideApproval(approve));
    expect(problem).toMatchObject({ status: 403, rule: "not_an_approver", runStatus: "waiting_approval" });
    expect(problem).not.toHaveProperty("decided");
    expect(problem.detail).toBe(
      "You are not among those who may decide this request. " +
        `(1 of 2 have approved so far: fay at ${first.approval.decided[0]?.at})`,
    );
    expect(await finn().decideApproval(approve)).toMatchObject({
      approval: { state: "approved", terms: { given: 2 }, decided: [{ by: "fay" }, { by: "finn" }] },
      run: { status: "queued" },
    });
  });

  test("one rejection is enough", async () => {
    const { approvalId } = await aWaitingRun(api, { terms });
    await fay().decideApproval({ approvalId, argsHash: HASH, decision: "approve" });
    const reply = await finn().decideApproval({ approvalId, argsHash: HASH, decision: "reject", note: "no" });
    expect(reply).toMatchObject({ approval: { state: "rejected" }, run: { status: "queued" } });
  });
});

describe("an edit", () => {
  const edit = (approvalId: string, args: unknown) =>
    ({ approvalId, argsHash: HASH, decision: "approve_with_edits", args: args as never, note: "less" }) as const;

  test("is a request of its own, approved by its editor; the first answer again for the same edit", async () => {
    const { runId, approvalId } = await aWaitingRun(api);
    const reply = await mona().decideApproval(edit(approvalId, withAmount("20.00")));
    expect(reply).toMatchObject({
      approval: { state: "superseded", args: ARGS, decided: [{ by: "mona", decision: "approve_with_edits" }] },
      run: { status: "queued" },
    });
    const { supersededBy } = reply.approval;
    expect(await mona().showApproval({ approvalId: supersededBy ?? "" })).toMatchObject({
      state: "approved",
      args: withAmount("20.00"),
      argsHash: hashArgs(TOOL, withAmount("20.00")),
      redactedArgs: { amount: "20.00", iban: "[redacted]" },
      modelArgs: ARGS,
      editedBy: "mona",
      decided: [{ by: "mona", decision: "approve" }],
      sameCall: [{ id: approvalId, state: "superseded", argsHash: HASH }],
      supersededBy: null,
    });
    expect(await mona().decideApproval(edit(approvalId, withAmount("20.00")))).toEqual({ ...reply, repeated: true });
    const other = await problemOf(max().decideApproval({ approvalId, argsHash: HASH, decision: "approve" }));
    expect(other.problem).toMatchObject({
      rule: "approval_superseded",
      decided: { by: "approver mona", what: "edited" },
    });

    const decided = async (payloads: boolean) => {
      const { items } = await mona().showTimeline({ runId, payloads });
      return items.filter(({ kind }) => kind === "decision");
    };
    expect(await decided(false)).toMatchObject([{ decision: "approve_with_edits" }, { decision: "approve" }]);
    expect(JSON.stringify(await decided(false))).not.toContain("20.00");
    expect((await decided(true))[0]).toMatchObject({ said: ARGS, ran: withAmount("20.00") });
  });

  test("goes through the rules again: who must approve the new arguments is asked", async () => {
    const { runId, approvalId } = await aWaitingRun(api);
    const { approval, run } = await mona().decideApproval(edit(approvalId, withAmount("500.00")));
    expect(run).toMatchObject({ status: "waiting_approval", waitingFor: { principal: "role:finance" } });
    const next = approval.supersededBy ?? "";
    const argsHash = hashArgs(TOOL, withAmount("500.00"));
    expect(await fay().showApproval({ approvalId: next })).toMatchObject({
      state: "pending",
      rule: "two_of_finance",
      terms: { quorum: 2, given: 0 },
      decided: [],
      approvers: { excluded: ["alice"] },
    });
    for (const caller of [fay(), finn()]) {
      await caller.decideApproval({ approvalId: next, argsHash, decision: "approve" });
    }
    expect(await fay().showRun({ runId })).toMatchObject({ status: "queued" });
  });

  test("that a rule forbids is refused, and nothing has changed", async () => {
    const { approvalId } = await aWaitingRun(api);
    const problem = await problemOf(mona().decideApproval(edit(approvalId, withAmount("5000.00"))));
    expect(problem).toMatchObject({ status: 409, rule: "edit_denied" });
    expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending", decided: [], sameCall: [] });
  });

  test.each([
    ["another kind of amount", withAmount("many"), "amount"],
    ["an argument that the tool has not", { ...ARGS, approved: true }, "approved"],
    ["an argument left out", { amount: "20.00" }, "order"],
    ["no arguments at all", null, "args"],
    ["what was there before", { ...ARGS }, "approve them"],
  ])("with %s is told what is wrong with it", async (_, args, said) => {
    const { approvalId } = await aWaitingRun(api);
    const { problem } = await problemOf(mona().decideApproval(edit(approvalId, args)));
    expect(problem).toMatchObject({ status: 422, code: "invalid_decision", mistakes: [{ path: "body.args" }] });
    expect(problem.detail).toContain(said);
    expect(await mona().showApproval({ approvalId })).toMatchObject({ state: "pending", decided: [] });
  });

  test("of somebody who may not decide says nothing about the arguments", async () => {
    const { approvalId } = await aWaitingRun(api);
    expect(await problemOf(fay().decideApproval(edit(approvalId, { surprise: 1 })))).toMatchObject({
      status: 403,
      rule: "not_an_approver",
    });
  });
});

test("an answer that the call's schema does not take is told what is wrong with it", async () => {
  const { approvalId } = await aWaitingRun(api);
  const answer = { approvalId, argsHash: HASH, decision: "respond", answer: { refunded: "perhaps" } } as const;
  const { problem } = await problemOf(mona().decideApproval(answer));
  expect(problem).toMatchObject({ status: 422, code: "invalid_decision", mistakes: [{ path: "body.answer" }] });
  expect(problem.detail).toContain("refunded");
});

test("authority is that of now: a role that was revoked decides nothing, whatever the token says", async () => {
  await using own = await openTestApi();
  const { approvalId, runId } = await aWaitingRun(own);
  const max = own.as("max-token");
  expect(await max.showApproval({ approvalId })).toMatchObject({ decisions: { approve: null } });
  await revokeRole(own.store, { user: "max", role: "manager", by: "olga" });
  expect(await problemOf(max.showApproval({ approvalId }))).toMatchObject({ status: 404 });
  expect(await problemOf(max.decideApproval({ approvalId, argsHash: HASH, decision: "approve" }))).toMatchObject({
    status: 404,
  });
  expect((await max.listApprovals({ mine: true })).items).toEqual([]);
  expect(await problemOf(max.showRun({ runId }))).toMatchObject({ status: 404 });
});
