import { describe, expect, test } from "vitest";
import { asItRuns } from "../src/as-it-runs.ts";
import type { RequestedApproval } from "../src/next.ts";
import { plan } from "../src/plan.ts";
import { approvalFor } from "../src/plan-call.ts";
import { operatorHold } from "../src/rest.ts";
import type { Approval, Call, StepBody } from "../src/step.ts";
import {
  aCall,
  aDenial,
  aLineEffect,
  anApproval,
  anEffect,
  anInput,
  anOrder,
  aReply,
  aResult,
  askedFor,
  type InputPatch,
  NEEDS_APPROVAL,
  NOW_MS,
  RULE,
  steps,
} from "./builders.ts";

const GATED = aCall(1, { verdict: NEEDS_APPROVAL, effect: anEffect() });
const OTHER = aCall(2, { verdict: NEEDS_APPROVAL, effect: anEffect() });

function withApproval(patch: Partial<Approval>, more: InputPatch = {}) {
  return plan(askedFor([GATED], { approvals: [anApproval(GATED, patch)], ...more }));
}

function requested(call: Call, editedBy: string | null = null): RequestedApproval {
  return { call, approval: RULE, editedBy };
}

const EXECUTED = {
  do: "execute",
  call: GATED,
  attempt: 1,
  approvalId: "approval_of_call_1",
  afterMs: 0,
  service: null,
};

describe("plan, a call that needs approval", () => {
  test("holds for its approvers, until its rule's deadline and with its consequence", () => {
    expect(plan(askedFor([GATED]))).toEqual({
      do: "hold",
      requests: [requested(GATED)],
      hold: {
        kind: "approval",
        waitingFor: {
          kind: "approvers",
          principal: "role:manager or user:bob",
          subject: "call_1",
          reason: "refund_limit",
        },
        deadline: { at: NOW_MS + 86_400_000 },
        onDeadline: "reject",
      },
    });
  });

  test("asks for all requests of its turn in one hold, until the first of their deadlines", () => {
    const rule = { ...RULE, rule: "soon", deadlineMs: 60_000, onDeadline: "abort" } as const;
    const sooner = { kind: "needs_approval", approval: rule } as const;
    const calls = [aCall(1), OTHER, aCall(3), aCall(4, { verdict: sooner })] as const;
    const next = plan(
      askedFor(calls, { steps: steps(aReply(["call_1", "call_2", "call_3", "call_4"]), aResult("call_1")) }),
    );
    expect(next).toMatchObject({
      do: "hold",
      requests: [requested(OTHER), { call: calls[3], approval: rule, editedBy: null }],
      hold: {
        deadline: { at: NOW_MS + 60_000 },
        waitingFor: { subject: "call_4", reason: "soon" },
        onDeadline: "abort",
      },
    });
  });

  test("asks for nothing of another turn, nor for what is decided, pending, invalid or skipped", () => {
    const gated = { verdict: NEEDS_APPROVAL };
    const first = aCall(2, gated);
    const others = {
      earlier: aCall(1, gated),
      pending: aCall(3, gated),
      approved: aCall(4, gated),
      rejected: aCall(5, gated),
      expired: aCall(6, gated),
      invalid: aCall(7, { verdict: { kind: "invalid", message: "amount: expected a string" } }),
      skipped: aCall(8, gated),
      answered: aCall(9, gated),
      otherTurn: aCall(10, { ...gated, turn: 2 }),
    };
    const approvals = [
      anApproval(others.earlier, { state: "spent", validUntilMs: NOW_MS - 1 }),
      anApproval(others.pending),
      anApproval(others.approved, { state: "approved", validUntilMs: null }),
      anApproval(others.rejected, { state: "rejected" }),
      anApproval(others.expired, { state: "expired" }),
      anApproval(others.answered, { state: "answered" }),
    ];
    const calls = [first, ...Object.values(others)];
    const ids = Array.from({ length: 9 }, (_, index) => `call_${index + 1}`);
    const history = steps(aReply(ids), aResult("call_1"), anOrder("skip", "call_8"));
    const next = plan(anInput({ calls, approvals, steps: history }));
    expect(next).toMatchObject({ do: "hold", requests: [requested(first)] });
  });

  test("asks for nothing that is not to be done, or is left to an operator", () => {
    const gated = { verdict: NEEDS_APPROVAL, effect: anEffect() };
    const [done, unknown, denied, accepted] = [
      aCall(2, gated),
      aCall(3, gated),
      aCall(4, { ...gated, tool: "send_letter" }),
      aCall(5, gated),
    ];
    const pending: StepBody = { kind: "effect_pending", callId: "call_5", output: null };
    const next = plan(
      askedFor([GATED, done, unknown, denied, accepted], {
        lineEffects: [aLineEffect(done), aLineEffect(unknown, { result: "not_established" })],
        denials: [aDenial("send_letter")],
        steps: steps(aReply(["call_1", "call_2", "call_3", "call_4", "call_5"]), pending),
      }),
    );
    expect(next).toMatchObject({ do: "hold", requests: [requested(GATED)] });
  });

  test("asks again for those of its turn whose approval lapsed, was withdrawn or cannot be spent any more", () => {
    const calls = [1, 2, 3, 4].map((ordinal) => aCall(ordinal, { verdict: NEEDS_APPROVAL }));
    const [, second = GATED, third = GATED, fourth = GATED] = calls;
    const approvals = [
      anApproval(second, { state: "withdrawn" }),
      anApproval(third, { state: "approved", validUntilMs: NOW_MS }),
      anApproval(fourth, { state: "approved", rightsLost: true }),
    ];
    expect(plan(askedFor(calls, { approvals }))).toMatchObject({
      do: "hold",
      requests: calls.map((call) => requested(call)),
    });
  });

  test("goes on waiting while its request is pending, until the first pending deadline", () => {
    const approvals = [anApproval(GATED), anApproval(OTHER, { deadlineMs: NOW_MS + 200 })];
    expect(plan(askedFor([GATED, OTHER], { approvals }))).toMatchObject({
      do: "hold",
      requests: [],
      hold: { kind: "approval", deadline: { at: NOW_MS + 200 }, waitingFor: { subject: "call_2" } },
    });
    expect(withApproval({ deadlineMs: NOW_MS - 5 })).toMatchObject({ hold: { deadline: { at: NOW_MS - 5 } } });
  });

  test("waits together with what is pending, where it asks for more", () => {
    const approvals = [anApproval(OTHER)];
    expect(plan(askedFor([GATED, OTHER], { approvals }))).toMatchObject({
      requests: [requested(GATED)],
      hold: { deadline: { at: NOW_MS + 500 }, waitingFor: { subject: "call_2" } },
    });
  });

  test.each(["approved", "spent"] as const)("is executed under its approval while that is valid: %s", (state) => {
    expect(withApproval({ state, validUntilMs: NOW_MS + 1 })).toEqual(EXECUTED);
    expect(withApproval({ state, validUntilMs: null })).toEqual(EXECUTED);
  });

  test.each([
    { state: "approved", validUntilMs: NOW_MS },
    { state: "spent", validUntilMs: NOW_MS - 1 },
    { state: "approved", rightsLost: true },
    { state: "spent", rightsLost: true },
    { state: "withdrawn" },
    { state: "superseded" },
    { argsHash: "hash_of_other_arguments", state: "approved" },
    { callId: "call_2", state: "approved" },
  ] as const)("is asked for anew where the approval does not hold: %o", (patch) => {
    expect(withApproval(patch)).toMatchObject({ do: "hold", requests: [requested(GATED)] });
  });

  test("goes by the latest of its requests", () => {
    const lapsed = anApproval(GATED, { state: "approved", validUntilMs: NOW_MS });
    const anew = anApproval(GATED, { id: "approval_2", state: "approved", validUntilMs: NOW_MS + 1 });
    expect(plan(askedFor([GATED], { approvals: [lapsed, anew] }))).toMatchObject({
      do: "execute",
      approvalId: "approval_2",
    });
  });

  test("never overtakes: a call that needs none waits behind it", () => {
    expect(plan(askedFor([GATED, aCall(2)]))).toMatchObject({ do: "hold", requests: [requested(GATED)] });
  });
});

describe("plan, what the approvers decided instead", () => {
  test("is told to the model as a rejection, with its reason", () => {
    const output = (reason: string) =>
      `NOT EXECUTED. The approval request was rejected (${reason}). Do not repeat this call and do not claim that it was done.`;
    expect(withApproval({ state: "rejected", note: "wrong order" })).toEqual({
      do: "write_result",
      call: GATED,
      result: "rejected",
      output: output("reason given: wrong order"),
    });
    expect(withApproval({ state: "rejected" })).toMatchObject({ output: output("no reason was given") });
  });

  test("is told apart: nobody decided in time, passed over, answered", () => {
    const written = (state: Approval["state"], more: Partial<Approval> = {}) => withApproval({ state, ...more });
    const [result, silent] = [
      "write_result",
      "NOT EXECUTED. Nobody decided on the approval request before its deadline. Do not claim that it was done.",
    ];
    expect(written("expired")).toEqual({ do: result, call: GATED, result: "expired", output: silent });
    expect(written("skipped")).toEqual({
      do: result,
      call: GATED,
      result: "skipped",
      output: "NOT EXECUTED. Whoever was asked to approve it skipped this call: go on without it.",
    });
    const answer = { amount: "0.00", note: "refunded by phone" };
    expect(written("answered", { answer })).toEqual({ do: result, call: GATED, result: "answered", output: answer });
  });

  test("gives the model exactly one result for each call, in the model's order, whatever the mixture", () => {
    const states = ["approved", "rejected", "expired", "skipped", "answered"] as const;
    const calls = states.map((_, index) => aCall(index + 1, { verdict: NEEDS_APPROVAL, effect: anEffect() }));
    const approvals = calls.map((call, index) => anApproval(call, { state: states[index] ?? "pending" }));
    let history: readonly StepBody[] = [aReply(calls.map(({ id }) => id))];
    const told: string[] = [];
    for (let turn = 0; turn < calls.length; turn += 1) {
      const next = plan(askedFor(calls, { approvals, steps: steps(...history) }));
      if (next.do !== "execute" && next.do !== "write_result") throw new Error(`${next.do} is no end of a call`);
      const result = next.do === "execute" ? "succeeded" : next.result;
      told.push(`${next.call.id} ${result}`);
      history = [...history, aResult(next.call.id, { result })];
    }
    const results = ["succeeded", "rejected", "expired", "skipped", "answered"];
    expect(told).toEqual(results.map((result, index) => `call_${index + 1} ${result}`));
    expect(plan(askedFor(calls, { approvals, steps: steps(...history) }))).toMatchObject({ do: "call_model" });
  });
});

describe("plan, a call that a person has changed", () => {
  const terms = { ...RULE, rule: "small_refund", deadlineMs: 9_000 };
  const original = anApproval(GATED, { state: "superseded" });
  const edit = (patch: Partial<Approval> = {}) =>
    anApproval(GATED, {
      id: "edit_1",
      args: { amount: "5" },
      argsHash: "hash_5",
      editedBy: "user:bob",
      terms,
      ...patch,
    });
  const edited = {
    ...GATED,
    args: { amount: "5" },
    argsHash: "hash_5",
    verdict: { kind: "needs_approval", approval: terms },
  };
  const after = (...approvals: readonly Approval[]) => plan(askedFor([GATED], { approvals: [original, ...approvals] }));

  test("runs as it was changed, under the approval of that, and keeps its operation id", () => {
    const next = after(edit({ state: "approved", validUntilMs: NOW_MS + 1 }));
    expect(next).toEqual({ ...EXECUTED, call: edited, approvalId: "edit_1" });
    expect(edited.operationId).toBe(GATED.operationId);
  });

  test("is nothing that an approval of the model's arguments is for", () => {
    const approved = anApproval(GATED, { id: "approval_2", state: "approved" });
    expect(after(approved, edit())).toMatchObject({ do: "hold", requests: [] });
    expect(after(edit({ state: "rejected" }), approved)).toMatchObject({ do: "write_result", result: "rejected" });
  });

  test.each([
    ["lapsed", { state: "approved", validUntilMs: NOW_MS }],
    ["withdrawn", { state: "withdrawn" }],
    ["left by somebody who may not approve any more", { state: "approved", rightsLost: true }],
  ] as const)("is asked for anew as it was changed, by the rule that is for that, where that is %s", (_why, patch) => {
    expect(after(edit(patch))).toMatchObject({
      do: "hold",
      requests: [{ call: edited, approval: terms, editedBy: "user:bob" }],
      hold: { deadline: { at: NOW_MS + 9_000 }, waitingFor: { reason: "small_refund" } },
    });
  });

  test("runs with the last of the changes", () => {
    const second = edit({ id: "edit_2", argsHash: "hash_6", state: "approved", editedBy: "user:mia" });
    expect(after(edit({ state: "superseded" }), second)).toMatchObject({
      do: "execute",
      approvalId: "edit_2",
      call: { argsHash: "hash_6" },
    });
  });

  test("is asked for in its turn as it was changed", () => {
    const change = anApproval(OTHER, { argsHash: "hash_7", editedBy: "user:mia", state: "withdrawn" });
    const next = plan(askedFor([GATED, OTHER], { approvals: [change] }));
    expect(next).toMatchObject({
      requests: [requested(GATED), { call: { id: "call_2", argsHash: "hash_7" }, editedBy: "user:mia" }],
    });
  });

  test("is forbidden by what it became, not by what the model said", () => {
    const small = aDenial("find_order", [{ argument: "amount", is: "<=", value: 5 }]);
    const approvals = [original, edit({ state: "approved" })];
    const next = plan(askedFor([GATED], { approvals, denials: [small] }));
    expect(next).toEqual({ do: "hold", hold: operatorHold("policy_changed", "call_1"), requests: [] });
    const big = aDenial("find_order", [{ argument: "amount", is: ">", value: 5 }]);
    expect(plan(askedFor([GATED], { approvals, denials: [big] }))).toMatchObject({ do: "execute" });
  });

  test("is the call as the model said it where nobody changed it", () => {
    expect(asItRuns(GATED, [original, anApproval(OTHER, { editedBy: "user:bob" })])).toBe(GATED);
  });
});

describe("plan, a rule that forbids a call, stored since", () => {
  const denials = [aDenial("find_order")];

  test("is told to the model, whether the call needs an approval or not", () => {
    const denied = { do: "write_result", result: "denied", output: "NOT EXECUTED. It is off." };
    expect(plan(askedFor([aCall(1)], { denials }))).toEqual({ ...denied, call: aCall(1) });
    expect(plan(askedFor([GATED], { denials }))).toEqual({ ...denied, call: GATED });
    for (const state of ["pending", "withdrawn", "rejected", "superseded"] as const)
      expect(withApproval({ state }, { denials })).toMatchObject(denied);
    expect(plan(askedFor([aCall(1, { tool: "send_letter" })], { denials }))).toMatchObject({ do: "execute" });
  });

  test.each(["approved", "spent"] as const)("is shown to an operator where a person had released it: %s", (state) => {
    const held = { do: "hold", hold: operatorHold("policy_changed", "call_1"), requests: [] };
    expect(withApproval({ state }, { denials })).toEqual(held);
    expect(withApproval({ state, validUntilMs: NOW_MS }, { denials })).toEqual(held);
  });
});

describe("approvalFor", () => {
  const given = (patch: Partial<Approval>) =>
    approvalFor(GATED, { approvals: [anApproval(GATED, patch)], denials: [], nowMs: NOW_MS })?.state;

  test("is the one that a start may spend now", () => {
    expect(given({ state: "approved" })).toBe("approved");
    expect(given({ state: "spent" })).toBe("spent");
    expect(given({ state: "approved", validUntilMs: NOW_MS })).toBeUndefined();
    expect(given({ state: "spent", rightsLost: true })).toBeUndefined();
    for (const state of ["pending", "rejected", "expired", "withdrawn", "answered", "skipped", "superseded"] as const)
      expect(given({ state })).toBeUndefined();
    expect(approvalFor(GATED, { approvals: [], denials: [], nowMs: NOW_MS })).toBeUndefined();
  });

  test("is none for a call that needs none, and for one that is forbidden there is nothing to spend", () => {
    const now = { approvals: [anApproval(GATED, { state: "approved" })], nowMs: NOW_MS };
    expect(approvalFor(aCall(1), { ...now, denials: [] })).toBeNull();
    for (const call of [aCall(1), GATED])
      expect(approvalFor(call, { ...now, denials: [aDenial("find_order")] })).toBeUndefined();
  });
});
