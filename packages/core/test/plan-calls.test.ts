import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import { operatorHold } from "../src/rest.ts";
import type { Call, ResultKind, StepBody } from "../src/step.ts";
import {
  aCall,
  aFact,
  aFailure,
  aLineEffect,
  aMessage,
  anApproval,
  anAttempt,
  anEffect,
  anInput,
  anOrder,
  aReply,
  aResult,
  askedFor,
  type InputPatch,
  NEEDS_APPROVAL,
  steps,
} from "./builders.ts";

const GATED = aCall(1, { verdict: NEEDS_APPROVAL, effect: anEffect() });
const REPEATED = " This is the answer to an equal call before it.";

function heldFor(reason: string, callId: string) {
  return { do: "hold", hold: operatorHold(reason, callId), requests: [] };
}

describe("plan, the calls of a turn", () => {
  test("are executed one after the other, in the model's order", () => {
    const calls = [aCall(1), aCall(2), aCall(3)];
    const reply = aReply(["call_1", "call_2", "call_3"]);
    const next = (...results: readonly string[]) =>
      plan(anInput({ calls: calls.toReversed(), steps: steps(reply, ...results.map((id) => aResult(id))) }));
    expect(next()).toEqual({
      do: "execute",
      call: calls[0],
      attempt: 1,
      approvalId: null,
      afterMs: 0,
      service: null,
    });
    expect(next("call_1")).toMatchObject({ do: "execute", call: calls[1] });
    expect(next("call_1", "call_2")).toMatchObject({ do: "execute", call: calls[2] });
    expect(next("call_1", "call_2", "call_3")).toEqual({ do: "call_model", turn: 2, afterMs: 0, service: null });
  });

  test("come before a message that nobody has read; an operator's word comes before them", () => {
    const message = aFact();
    const order = aFact(anOrder("retry", null));
    expect(plan(askedFor([aCall(1)], { unread: [message] }))).toMatchObject({ do: "execute" });
    expect(plan(askedFor([aCall(1)], { unread: [message, order] }))).toEqual({ do: "read_facts", facts: [order] });
  });

  test("wait for the open attempt, which is settled first", () => {
    const attempt = anAttempt("call_1");
    const next = plan(askedFor([GATED], { openAttempts: [attempt], unread: [aFact(anOrder("retry", null))] }));
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
    [{ kind: "invalid", message: "amount: expected a string" }, "invalid", "NOT EXECUTED. amount: expected a string"],
    [{ kind: "denied", rule: "refund_ban", message: "Refunds are off." }, "denied", "NOT EXECUTED. Refunds are off."],
  ] as const)("is answered at once: %o", (verdict, result, output) => {
    const call = aCall(1, { verdict });
    expect(plan(askedFor([call]))).toEqual({ do: "write_result", call, result, output });
  });

  test("is answered so even where an equal call has happened, and where an operator passes over it", () => {
    const call = aCall(2, { effect: anEffect(), verdict: { kind: "denied", rule: "ban", message: "Off." } });
    const lineEffects = [aLineEffect(call)];
    const skipped = steps(aReply(["call_2"]), anOrder("skip", "call_2"));
    expect(plan(askedFor([call], { lineEffects, steps: skipped }))).toMatchObject({ result: "denied" });
  });
});

describe("plan, a call that an operator skips", () => {
  test("is answered as skipped, whatever it failed with, and before an equal one", () => {
    const call = aCall(1, { effect: anEffect() });
    const history = steps(aReply(["call_1"]), aFailure("call_1", 1), aFailure("call_1", 2), anOrder("skip", "call_1"));
    const output = "NOT EXECUTED. An operator skipped this call: go on without it.";
    const skipped = { do: "write_result", call, result: "skipped", output };
    expect(plan(askedFor([call], { steps: history }))).toEqual(skipped);
    expect(plan(askedFor([call], { steps: history, lineEffects: [aLineEffect(call)] }))).toEqual(skipped);
  });

  test("is the one that is named", () => {
    const history = steps(aReply(["call_1"]), anOrder("skip", "call_2"), anOrder("skip", null));
    expect(plan(askedFor([aCall(1)], { steps: history }))).toMatchObject({ do: "execute" });
  });
});

/** A turn with an earlier call that ended so, and an equal one that is next. */
function repeat(result: ResultKind, patch: Partial<Call> = {}, more: readonly StepBody[] = []) {
  const same = { effect: anEffect(), argsHash: "same", tool: "send_refund" };
  const calls = [aCall(1, same), aCall(2, { ...same, verdict: NEEDS_APPROVAL, ...patch })];
  const output = result === "succeeded" || result === "answered" ? { refund: "re_1" } : "NOT EXECUTED. No.";
  const history = steps(aReply(["call_1", "call_2"]), aResult("call_1", { result, output }), ...more);
  return { call: calls[1], next: plan(askedFor(calls, { steps: history })) };
}

describe("plan, an effect that is equal to an earlier one", () => {
  const effect = anEffect();

  test.each(["succeeded", "answered"] as const)("is answered from the record, without an approval: %s", (result) => {
    const { call, next } = repeat(result);
    expect(next).toEqual({ do: "write_result", call, result: "answered_from_record", output: { refund: "re_1" } });
  });

  test("is answered from the record again, once it has been", () => {
    const first = aResult("call_1", { result: "answered_from_record", output: "re_1" });
    const calls = [aCall(1, { effect, argsHash: "same" }), aCall(2, { effect, argsHash: "same" })];
    const history = steps(aReply(["call_1", "call_2"]), first);
    expect(plan(askedFor(calls, { steps: history }))).toMatchObject({ result: "answered_from_record", output: "re_1" });
  });

  test.each(["rejected", "expired", "skipped"] as const)(
    "gets the answer of one that was %s, by reference",
    (result) => {
      const { call, next } = repeat(result);
      expect(next).toEqual({ do: "write_result", call, result, output: `NOT EXECUTED. No.${REPEATED}` });
    },
  );

  test("that is asked for over and over gets the same answer, which does not grow", () => {
    const calls = [1, 2, 3].map((ordinal) => aCall(ordinal, { effect, argsHash: "same" }));
    const rejected = (id: string, output: string) => aResult(id, { result: "rejected", output });
    const history = steps(
      aReply(["call_1", "call_2", "call_3"]),
      rejected("call_1", "NO."),
      rejected("call_2", `NO.${REPEATED}`),
    );
    expect(plan(askedFor(calls, { steps: history }))).toMatchObject({ output: `NO.${REPEATED}` });
  });

  test.each(["expired", "skipped"] as const)(
    "is asked for anew after a message where the earlier one was %s, and not before",
    (result) => {
      expect(repeat(result, {}, [aMessage()]).next).toMatchObject({ do: "hold", hold: { kind: "approval" } });
      expect(repeat(result, {}, [{ kind: "no_answer" }]).next).toMatchObject({ do: "write_result", result });
    },
  );

  test("is not asked for anew after a message where it was rejected", () => {
    expect(repeat("rejected", {}, [aMessage()]).next).toMatchObject({ do: "write_result", result: "rejected" });
  });

  test("that was silent after the message is not asked for anew", () => {
    const calls = [aCall(1, { effect, argsHash: "same" }), aCall(2, { effect, argsHash: "same" })];
    const history = steps(aMessage(), aReply(["call_1", "call_2"]), aResult("call_1", { result: "expired" }));
    expect(plan(askedFor(calls, { steps: history }))).toMatchObject({ result: "expired" });
  });

  test("is left to an operator where nobody knows whether the earlier one acted", () => {
    expect(repeat("not_established").next).toEqual(heldFor("equal_effect_unknown", "call_2"));
    expect(repeat("not_established", {}, [anOrder("retry", "call_1")]).next).toMatchObject({
      hold: { waitingFor: { reason: "equal_effect_unknown" } },
    });
    const ordered = repeat("not_established", {}, [anOrder("retry", "call_2")]);
    expect(ordered.next).toMatchObject({ do: "hold", hold: { kind: "approval" }, requests: [{ call: ordered.call }] });
    const allowed = repeat("not_established", { verdict: { kind: "allowed" } }, [anOrder("retry", "call_2")]);
    expect(allowed.next).toMatchObject({ do: "execute", call: allowed.call });
    const skipped = repeat("not_established", {}, [anOrder("skip", "call_2")]);
    expect(skipped.next).toMatchObject({ do: "write_result", result: "skipped" });
  });

  test.each(["failed", "invalid", "denied"] as const)("is done where the earlier one did nothing: %s", (result) => {
    expect(repeat(result).next).toMatchObject({ do: "hold", hold: { kind: "approval" } });
  });

  test("is another one where its tool, its arguments or the tool's word say so", () => {
    for (const patch of [
      { tool: "send_letter" },
      { argsHash: "other" },
      { effect: anEffect({ equalCallsAreDistinct: true }) },
    ])
      for (const result of ["succeeded", "rejected", "not_established"] as const)
        expect(repeat(result, patch).next).toMatchObject({ do: "hold", hold: { kind: "approval" } });
  });

  test("is judged by the arguments that ran, where a person had changed them", () => {
    const calls = [aCall(1, { effect, verdict: NEEDS_APPROVAL }), aCall(2, { effect, argsHash: "edited" })];
    const edit = anApproval(calls[0] ?? GATED, { argsHash: "edited", editedBy: "user:bob", state: "spent" });
    const history = steps(aReply(["call_1", "call_2"]), aResult("call_1"));
    const next = plan(askedFor(calls, { steps: history, approvals: [edit] }));
    expect(next).toMatchObject({ do: "write_result", result: "answered_from_record" });
    const original = [calls[0] ?? GATED, aCall(2, { effect, argsHash: "hash_1" })];
    expect(plan(askedFor(original, { steps: history, approvals: [edit] }))).toMatchObject({ do: "execute" });
  });

  test("is found in an earlier run of the line", () => {
    const call = aCall(1, { effect });
    const next = (...results: readonly ResultKind[]) =>
      plan(askedFor([call], { lineEffects: results.map((result) => aLineEffect(call, { result })) }));
    expect(next("succeeded")).toEqual({ do: "write_result", call, result: "answered_from_record", output: "re_1" });
    expect(next("rejected")).toMatchObject({ result: "rejected", output: `re_1${REPEATED}` });
    expect(next("not_established")).toEqual(heldFor("equal_effect_unknown", "call_1"));
    expect(next("failed")).toMatchObject({ do: "execute" });
    // What happened counts before what nobody knows, and that before what was turned down.
    expect(next("not_established", "succeeded", "rejected")).toMatchObject({ result: "answered_from_record" });
    expect(next("rejected", "not_established")).toMatchObject({ do: "hold" });
  });

  test("gets words where the earlier answer has none", () => {
    const call = aCall(1, { effect });
    const lineEffects = [aLineEffect(call, { result: "skipped", output: { by: "user:bob" } })];
    expect(plan(askedFor([call], { lineEffects }))).toMatchObject({ output: `NOT EXECUTED.${REPEATED}` });
  });
});

describe("plan, a read that is equal to an earlier one", () => {
  const reads = [aCall(1, { argsHash: "same" }), aCall(2, { argsHash: "same" })];
  const after = (result: ResultKind) =>
    plan(askedFor(reads, { steps: steps(aReply(["call_1", "call_2"]), aResult("call_1", { result })) }));

  test("is done again, unless a person turned the earlier one down", () => {
    for (const result of ["succeeded", "failed", "answered", "not_established"] as const)
      expect(after(result)).toMatchObject({ do: "execute", call: reads[1] });
    for (const result of ["rejected", "expired", "skipped"] as const)
      expect(after(result)).toMatchObject({ do: "write_result", result });
  });
});

describe("plan, a call that happened after all", () => {
  const call = aCall(1, { effect: anEffect() });
  const finding = { kind: "finding", callId: "call_1", output: { refund: "re_1" } } as const;
  const nothing = { kind: "did_not_happen", callId: "call_1", attempt: 1 } as const;
  const answered = { do: "write_result", call, result: "answered_from_record", output: { refund: "re_1" } };

  test("is answered by the evidence, and not tried again", () => {
    const input = { steps: steps(aReply(["call_1"]), nothing, finding) };
    expect(plan(askedFor([call], input))).toEqual(answered);
    const distinct = aCall(1, { effect: anEffect({ equalCallsAreDistinct: true }) });
    expect(plan(askedFor([distinct], input))).toEqual({ ...answered, call: distinct });
  });

  test("is answered by the evidence though an operator passed over it: nobody may be told that it was not executed", () => {
    const skip = anOrder("skip", "call_1");
    for (const bodies of [
      [finding, skip],
      [skip, finding],
    ])
      expect(plan(askedFor([call], { steps: steps(aReply(["call_1"]), nothing, ...bodies) }))).toEqual(answered);
  });

  test("answers an equal call even where the first was told to be not established", () => {
    const again = aCall(2, { effect: anEffect(), argsHash: call.argsHash, turn: 2 });
    const unknown = aResult("call_1", { result: "not_established", output: "?" });
    const history = steps(aReply(["call_1"]), unknown, aReply(["call_2"]), finding);
    expect(plan(askedFor([call, again], { steps: history }))).toMatchObject({
      do: "write_result",
      call: again,
      result: "answered_from_record",
    });
  });

  test("says nothing of a call that is not the run's", () => {
    const stray = { ...finding, callId: "call_9" };
    expect(plan(askedFor([call], { steps: steps(aReply(["call_1"]), stray) }))).toMatchObject({ do: "execute" });
  });
});

describe("plan, an effect that the other side settles later", () => {
  const settlement = { everyMs: 1_000, withinMs: 5_000 };
  const call = aCall(1, { effect: anEffect({ settlement }), verdict: NEEDS_APPROVAL });
  const pending = { kind: "effect_pending", callId: "call_1", output: { status: "pending" } } as const;
  const after = (patch: InputPatch, ...more: readonly StepBody[]) => {
    const history = steps(aReply(["call_1"]), pending, ...more);
    const sinceMs = history[1]?.atMs ?? 0;
    return { sinceMs, at: (nowMs: number) => plan(askedFor([call], { steps: history, nowMs, ...patch })) };
  };

  test("is asked about until its time is over, and then left to an operator", () => {
    const { sinceMs, at } = after({});
    const poll = { do: "poll", call, output: { status: "pending" }, sinceMs };
    expect(at(sinceMs)).toEqual(poll);
    expect(at(sinceMs + 5_000)).toEqual(poll);
    expect(at(sinceMs + 5_001)).toEqual(heldFor("settlement_overdue", "call_1"));
  });

  test("is asked about whatever has become of its approval, and of the rules, since", () => {
    const approvals = [anApproval(call, { state: "withdrawn" })];
    const denials = [{ name: "off", tools: ["*"], when: [], action: "deny", message: "Off." }] as const;
    const lineEffects = [aLineEffect(call)];
    const finding = { kind: "finding", callId: "call_1", output: "re_1" } as const;
    const { sinceMs, at } = after({ approvals, denials, lineEffects }, finding);
    expect(at(sinceMs)).toMatchObject({ do: "poll", sinceMs });
  });

  test("has its time again after an operator's retry", () => {
    const { sinceMs, at } = after({}, { kind: "callback", callId: "call_1" }, anOrder("retry", "call_1"));
    const orderedMs = sinceMs + 2_000;
    expect(at(orderedMs + 5_000)).toMatchObject({ do: "poll", sinceMs });
    expect(at(orderedMs + 5_001)).toMatchObject({ do: "hold" });
  });

  test("is not established where an operator passes over it: nobody says that it was not executed", () => {
    const output =
      "NOT ESTABLISHED. The other side accepted this call, and nobody knows how it has settled. Do not claim that it was done.";
    const { sinceMs, at } = after({}, anOrder("skip", "call_1"));
    expect(at(sinceMs)).toEqual({ do: "write_result", call, result: "not_established", output });
  });

  test("has no time at all where its tool says that it does not settle later", () => {
    const history = steps(aReply(["call_1"]), pending);
    for (const effect of [anEffect(), { kind: "read" } as const]) {
      const final = aCall(1, { effect });
      const nowMs = (history[1]?.atMs ?? 0) + 1;
      expect(plan(askedFor([final], { steps: history, nowMs }))).toEqual(heldFor("settlement_overdue", "call_1"));
    }
  });

  test("is another call's affair for the others", () => {
    const other = aCall(2, { effect: anEffect() });
    const history = steps(aReply(["call_2"]), pending);
    expect(plan(askedFor([other, call], { steps: history }))).toMatchObject({ do: "execute", call: other });
  });
});
