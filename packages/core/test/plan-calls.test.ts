import { describe, expect, test } from "vitest";
import { approvalFor, type PlanInput, plan } from "../src/plan.ts";
import type { Approval, Call, StepBody } from "../src/step.ts";
import {
  aCall,
  aFact,
  aFailure,
  aMessage,
  anApproval,
  anAttempt,
  anEffect,
  anInput,
  anOrder,
  aReply,
  aResult,
  NEEDS_APPROVAL,
  NOW_MS,
  RULE,
  steps,
} from "./builders.ts";

/** A run whose model has just asked for these calls. */
function asked(calls: readonly Call[], patch: Partial<PlanInput> = {}): PlanInput {
  return anInput({ calls, steps: steps(aReply(calls.map(({ id }) => id))), ...patch });
}

const GATED = aCall(1, { verdict: NEEDS_APPROVAL, effect: anEffect() });
const INVALID = { kind: "invalid", message: "amount: expected a string" } as const;

function withApproval(patch: Partial<Approval>, more: Partial<PlanInput> = {}) {
  return plan(asked([GATED], { approvals: [anApproval(GATED, patch)], ...more }));
}

describe("plan, the calls of a turn", () => {
  test("are executed one after the other, in the model's order", () => {
    const calls = [aCall(1), aCall(2), aCall(3)];
    const reply = aReply(["call_1", "call_2", "call_3"]);
    const next = (...results: readonly string[]) =>
      plan(anInput({ calls: calls.toReversed(), steps: steps(reply, ...results.map((id) => aResult(id))) }));
    expect(next()).toEqual({ do: "execute", call: calls[0], attempt: 1, approvalId: null, afterMs: 0 });
    expect(next("call_1")).toMatchObject({ do: "execute", call: calls[1] });
    expect(next("call_1", "call_2")).toMatchObject({ do: "execute", call: calls[2] });
    expect(next("call_1", "call_2", "call_3")).toEqual({ do: "call_model", turn: 2, afterMs: 0 });
  });

  test("come before a message that nobody has read; an operator's word comes before them", () => {
    const message = aFact();
    const order = aFact(anOrder("retry", null));
    expect(plan(asked([aCall(1)], { unread: [message] }))).toMatchObject({ do: "execute" });
    expect(plan(asked([aCall(1)], { unread: [message, order] }))).toEqual({ do: "read_facts", facts: [order] });
  });

  test("wait for the open attempt, which is settled first", () => {
    const attempt = anAttempt("call_1");
    const next = plan(asked([GATED], { openAttempts: [attempt], unread: [aFact(anOrder("retry", null))] }));
    expect(next).toEqual({ do: "settle_attempt", call: GATED, attempt });
  });

  test("must be among the run's calls", () => {
    expect(() => plan(anInput({ steps: steps(aReply(["call_9"])) }))).toThrow(
      new RangeError("A step names call call_9, which is not among the run's calls"),
    );
  });
});

describe("plan, a call that policy or validation stopped", () => {
  test.each([
    [INVALID, "invalid", "NOT EXECUTED. amount: expected a string"],
    [{ kind: "denied", rule: "refund_ban", message: "Refunds are off." }, "denied", "NOT EXECUTED. Refunds are off."],
  ] as const)("is answered at once: %o", (verdict, result, output) => {
    const call = aCall(1, { verdict });
    expect(plan(asked([call]))).toEqual({ do: "write_result", call, result, output });
  });
});

describe("plan, a call that needs approval", () => {
  test("holds for its approvers, with its rule's deadline and consequence", () => {
    expect(plan(asked([GATED]))).toEqual({
      do: "hold",
      requests: [GATED],
      hold: {
        kind: "approval",
        waitingFor: {
          kind: "approvers",
          principal: "role:manager or user:bob",
          subject: "call_1",
          reason: "refund_limit",
        },
        deadline: { inMs: 86_400_000 },
        onDeadline: "reject",
      },
    });
  });

  test("asks for all requests of its turn in one hold, until the first of their deadlines", () => {
    const sooner = { kind: "needs_approval", approval: { ...RULE, deadlineMs: 60_000 } } as const;
    const calls = [aCall(1), aCall(2, { verdict: NEEDS_APPROVAL }), aCall(3), aCall(4, { verdict: sooner })];
    const next = plan(
      asked(calls, { steps: steps(aReply(["call_1", "call_2", "call_3", "call_4"]), aResult("call_1")) }),
    );
    expect(next).toMatchObject({ do: "hold", requests: [calls[1], calls[3]], hold: { deadline: { inMs: 60_000 } } });
  });

  test("asks for nothing of another turn, nor for what is decided, pending, invalid or skipped", () => {
    const gated = { verdict: NEEDS_APPROVAL };
    const first = aCall(2, gated);
    const others = {
      earlier: aCall(1, gated),
      otherTurn: aCall(9, { ...gated, turn: 2 }),
      pending: aCall(3, gated),
      approved: aCall(4, gated),
      rejected: aCall(5, gated),
      expired: aCall(6, gated),
      invalid: aCall(7, { verdict: INVALID }),
      skipped: aCall(8, gated),
    };
    const approvals = [
      anApproval(others.earlier, { state: "spent", validUntilMs: NOW_MS - 1 }),
      anApproval(others.pending),
      anApproval(others.approved, { state: "approved", validUntilMs: null }),
      anApproval(others.rejected, { state: "rejected" }),
      anApproval(others.expired, { state: "expired" }),
    ];
    const calls = [first, ...Object.values(others)];
    const history = steps(
      aReply(["call_1", "call_2", "call_3", "call_4", "call_5", "call_6", "call_7", "call_8"]),
      aResult("call_1"),
      anOrder("skip", "call_8"),
    );
    const next = plan(anInput({ calls, approvals, steps: history }));
    expect(next).toMatchObject({ do: "hold", requests: [first] });
  });

  test("asks again for those of its turn whose approval lapsed or was withdrawn", () => {
    const calls = [GATED, aCall(2, { verdict: NEEDS_APPROVAL }), aCall(3, { verdict: NEEDS_APPROVAL })] as const;
    const approvals = [
      anApproval(calls[1], { state: "withdrawn" }),
      anApproval(calls[2], { state: "approved", validUntilMs: NOW_MS }),
    ];
    expect(plan(asked(calls, { approvals }))).toMatchObject({ do: "hold", requests: calls });
  });

  test("goes on waiting while its request is pending, until the first pending deadline", () => {
    const other = aCall(2, { verdict: NEEDS_APPROVAL });
    const approvals = [anApproval(GATED), anApproval(other, { deadlineMs: NOW_MS + 200 })];
    const next = plan(asked([GATED, other], { approvals }));
    expect(next).toMatchObject({ do: "hold", requests: [], hold: { kind: "approval", deadline: { inMs: 200 } } });
    expect(withApproval({ deadlineMs: NOW_MS - 5 })).toMatchObject({ do: "hold", hold: { deadline: { inMs: 0 } } });
  });

  test.each(["approved", "spent"] as const)("is executed under its approval while that is valid: %s", (state) => {
    const executed = { do: "execute", call: GATED, attempt: 1, approvalId: "approval_of_call_1", afterMs: 0 };
    expect(withApproval({ state, validUntilMs: NOW_MS + 1 })).toEqual(executed);
    expect(withApproval({ state, validUntilMs: null })).toEqual(executed);
  });

  test.each([
    { state: "approved", validUntilMs: NOW_MS },
    { state: "spent", validUntilMs: NOW_MS - 1 },
    { state: "withdrawn" },
    { argsHash: "hash_of_other_arguments", state: "approved" },
    { callId: "call_2", state: "approved" },
  ] as const)("is asked for anew where the approval does not hold: %o", (patch) => {
    expect(withApproval(patch)).toMatchObject({ do: "hold", requests: [GATED] });
  });

  test("goes by the latest of its requests", () => {
    const lapsed = anApproval(GATED, { state: "approved", validUntilMs: NOW_MS });
    const anew = anApproval(GATED, { id: "approval_2", state: "approved", validUntilMs: NOW_MS + 1 });
    expect(plan(asked([GATED], { approvals: [lapsed, anew] }))).toMatchObject({
      do: "execute",
      approvalId: "approval_2",
    });
  });

  test("tells the model of a rejection, with its reason", () => {
    const output = (reason: string) =>
      `NOT EXECUTED. The approval request was rejected (${reason}). Do not repeat this call and do not claim that it was done.`;
    const rejected = withApproval({ state: "rejected", note: "wrong order" });
    expect(rejected).toEqual({
      do: "write_result",
      call: GATED,
      result: "rejected",
      output: output("reason given: wrong order"),
    });
    expect(withApproval({ state: "rejected" })).toMatchObject({ output: output("no reason was given") });
  });

  test("tells the model that nobody decided in time", () => {
    const output =
      "NOT EXECUTED. Nobody decided on the approval request before its deadline. Do not claim that it was done.";
    expect(withApproval({ state: "expired" })).toEqual({ do: "write_result", call: GATED, result: "expired", output });
  });

  test("never overtakes: a call that needs none waits behind it", () => {
    expect(plan(asked([GATED, aCall(2)]))).toMatchObject({ do: "hold", requests: [GATED] });
  });
});

describe("plan, an effect that is equal to an earlier one", () => {
  const effect = anEffect();
  const earlier = aCall(1, { effect, argsHash: "same" });
  const call = aCall(2, { effect, argsHash: "same", verdict: NEEDS_APPROVAL });
  const inThisRun = (result: "succeeded" | "not_established" | "failed", patch: Partial<Call> = {}) =>
    plan(
      asked([earlier, { ...call, ...patch }], {
        steps: steps(aReply(["call_1", "call_2"]), aResult("call_1", { result })),
      }),
    );

  test("is answered from the record of this run, without an approval", () => {
    expect(inThisRun("succeeded")).toEqual({
      do: "write_result",
      call,
      result: "answered_from_record",
      output: { done: "call_1" },
    });
  });

  test("is not executed where nobody knows whether the earlier one acted", () => {
    const output = "NOT EXECUTED. An equal call was made before and nobody knows its outcome.";
    expect(inThisRun("not_established")).toEqual({ do: "write_result", call, result: "not_established", output });
  });

  test("is done where the earlier one did not happen, is another tool's, has other arguments or means to be another one", () => {
    expect(inThisRun("failed")).toMatchObject({ do: "hold" });
    expect(inThisRun("succeeded", { tool: "send_letter" })).toMatchObject({ do: "hold" });
    expect(inThisRun("succeeded", { argsHash: "other" })).toMatchObject({ do: "hold" });
    expect(inThisRun("succeeded", { effect: anEffect({ equalCallsAreDistinct: true }) })).toMatchObject({ do: "hold" });
  });

  test("is answered from the record of an earlier run of the line", () => {
    const line = { callId: "call_old", tool: call.tool, argsHash: "same", happened: "yes", output: "re_1" } as const;
    const next = plan(asked([call], { lineEffects: [line] }));
    expect(next).toMatchObject({ do: "write_result", result: "answered_from_record", output: "re_1" });
    const unknown = plan(asked([call], { lineEffects: [{ ...line, happened: "unknown" }] }));
    expect(unknown).toMatchObject({ do: "write_result", result: "not_established" });
  });

  test("is nothing special for a read", () => {
    const reads = [aCall(1, { argsHash: "same" }), aCall(2, { argsHash: "same" })];
    const next = plan(asked(reads, { steps: steps(aReply(["call_1", "call_2"]), aResult("call_1")) }));
    expect(next).toMatchObject({ do: "execute", call: reads[1] });
  });
});

describe("plan, a call that happened after all", () => {
  const call = aCall(1, { effect: anEffect() });
  const finding = { kind: "finding", callId: "call_1", output: { refund: "re_1" } } as const;
  const nothing = { kind: "did_not_happen", callId: "call_1", attempt: 1 } as const;

  test("is answered by the evidence, and not tried again", () => {
    const answered = { do: "write_result", call, result: "answered_from_record", output: { refund: "re_1" } };
    const input = { steps: steps(aReply(["call_1"]), nothing, finding) };
    expect(plan(asked([call], input))).toEqual(answered);
    const distinct = aCall(1, { effect: anEffect({ equalCallsAreDistinct: true }) });
    expect(plan(asked([distinct], input))).toEqual({ ...answered, call: distinct });
  });

  test("answers an equal call even where the first was told to be not established", () => {
    const again = aCall(2, { effect: anEffect(), argsHash: call.argsHash, turn: 2 });
    const unknown = aResult("call_1", { result: "not_established", output: "?" });
    const next = plan(asked([call, again], { steps: steps(aReply(["call_1"]), unknown, aReply(["call_2"]), finding) }));
    expect(next).toMatchObject({ do: "write_result", call: again, result: "answered_from_record" });
  });

  test("says nothing of a call that is not the run's", () => {
    const stray = { ...finding, callId: "call_9" };
    expect(plan(asked([call], { steps: steps(aReply(["call_1"]), stray) }))).toMatchObject({ do: "execute" });
  });
});

describe("approvalFor", () => {
  const given = (patch: Partial<Approval>) =>
    approvalFor(GATED, { approvals: [anApproval(GATED, patch)], nowMs: NOW_MS })?.state;

  test("is the one that a start may spend now, and none for a call that needs none", () => {
    expect(given({ state: "approved" })).toBe("approved");
    expect(given({ state: "spent" })).toBe("spent");
    expect(given({ state: "approved", validUntilMs: NOW_MS })).toBeUndefined();
    for (const state of ["pending", "rejected", "expired", "withdrawn"] as const)
      expect(given({ state })).toBeUndefined();
    expect(approvalFor(GATED, { approvals: [], nowMs: NOW_MS })).toBeUndefined();
    expect(approvalFor(aCall(1), { approvals: [], nowMs: NOW_MS })).toBeNull();
  });
});

describe("plan, a call that failed", () => {
  const call = aCall(1, { effect: anEffect() });
  const after = (...bodies: readonly StepBody[]) =>
    plan(asked([call], { steps: steps(aReply(["call_1"]), ...bodies) }));
  const intent = (attempt: number) => ({ kind: "intent", callId: "call_1", attempt }) as const;

  test("is tried once more, after the wait that its failure asks for", () => {
    const next = after(intent(1), aFailure("call_1", 1, 700));
    expect(next).toEqual({ do: "execute", call, attempt: 2, approvalId: null, afterMs: 700 });
  });

  test("is shown to an operator when its retries are used up", () => {
    expect(after(intent(1), aFailure("call_1", 1), intent(2), aFailure("call_1", 2))).toEqual({
      do: "hold",
      requests: [],
      hold: {
        kind: "operator",
        waitingFor: { kind: "operator", principal: "role:operator", subject: "call_1", reason: "call_failed" },
        deadline: { inMs: 86_400_000 },
        onDeadline: "escalate",
      },
    });
  });

  test("is not used up by being throttled, which has a budget of its own", () => {
    const throttled = (count: number) =>
      Array.from(
        { length: count },
        (_, n) => ({ ...aFailure("call_1", n + 1, 5_000), errorClass: "throttled" }) as const,
      );
    expect(after(...throttled(20))).toMatchObject({ do: "execute", attempt: 21, afterMs: 5_000 });
    expect(after(...throttled(20), aFailure("call_1", 21))).toMatchObject({ do: "execute", attempt: 22 });
    expect(after(...throttled(21))).toMatchObject({ do: "hold", hold: { waitingFor: { reason: "call_failed" } } });
  });

  test("has no try more than its tool allows", () => {
    const strict = { ...call, retries: 0 };
    const next = plan(asked([strict], { steps: steps(aReply(["call_1"]), aFailure("call_1", 1)) }));
    expect(next).toMatchObject({ do: "hold", hold: { waitingFor: { reason: "call_failed" } } });
  });

  test("has its tries back after an operator's retry, and goes on numbering", () => {
    const failed = [aFailure("call_1", 1), aFailure("call_1", 2)];
    expect(after(...failed, anOrder("retry", "call_1"))).toMatchObject({ do: "execute", attempt: 3, afterMs: 0 });
    expect(after(...failed, anOrder("retry", "call_1"), aFailure("call_1", 3))).toMatchObject({
      do: "execute",
      attempt: 4,
    });
    expect(after(...failed, anOrder("retry", "call_2"))).toMatchObject({ do: "hold" });
  });

  test("is answered as skipped after an operator's skip", () => {
    const output = "NOT EXECUTED. An operator skipped this call: go on without it.";
    expect(after(aFailure("call_1", 1), aFailure("call_1", 2), anOrder("skip", "call_1"))).toEqual({
      do: "write_result",
      call,
      result: "skipped",
      output,
    });
  });

  test("loses no try with its worker: an attempt that did not happen is no failure", () => {
    const nothing = { kind: "did_not_happen", callId: "call_1", attempt: 1 } as const;
    expect(after(intent(1), nothing)).toMatchObject({ do: "execute", attempt: 2, afterMs: 0 });
  });

  test("does not count the failures of others", () => {
    const other = aCall(2);
    const history = steps(aReply(["call_2", "call_1"]), aFailure("call_2", 1), aResult("call_2"), aMessage());
    expect(plan(anInput({ calls: [call, other], steps: history }))).toMatchObject({ do: "execute", call, attempt: 1 });
  });
});
