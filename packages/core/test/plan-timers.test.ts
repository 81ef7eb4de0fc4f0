import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import type { Call, StepBody } from "../src/step.ts";
import {
  aCall,
  aDenial,
  aFact,
  anApproval,
  anInput,
  anOrder,
  aReply,
  aResult,
  type InputPatch,
  NEEDS_APPROVAL,
  NOW_MS,
  steps,
} from "./builders.ts";

const TIMER: Partial<Call> = { tool: "wait_a_week", effect: { kind: "timer" } };

function nextOf(bodies: readonly StepBody[], patch: InputPatch = {}, call: Partial<Call> = {}) {
  const calls = [aCall(1, { ...TIMER, ...call })];
  return plan(anInput({ calls, steps: steps(aReply(["call_1"]), ...bodies), ...patch }));
}

function setFor(dueAtMs: number, callId = "call_1"): StepBody {
  return { kind: "timer_set", callId, dueAtMs };
}

describe("plan, a timer", () => {
  test("is set once, and then only waited for until its moment", () => {
    expect(nextOf([])).toEqual({ do: "set_timer", call: aCall(1, TIMER) });
    const waitingFor = { kind: "timer", principal: "a timer", subject: "call_1", reason: "timer" };
    expect(nextOf([setFor(NOW_MS + 1)])).toEqual({
      do: "hold",
      hold: { kind: "dependency", waitingFor, deadline: { at: NOW_MS + 1 }, onDeadline: "continue" },
      requests: [],
    });
  });

  test("keeps its moment however often the run is taken up", () => {
    const dueAtMs = NOW_MS + 1_000;
    for (const nowMs of [NOW_MS, NOW_MS + 500, NOW_MS + 999])
      expect(nextOf([setFor(dueAtMs)], { nowMs })).toMatchObject({ do: "hold", hold: { deadline: { at: dueAtMs } } });
  });

  test.each([
    ["at its moment", NOW_MS],
    ["after it", NOW_MS - 1],
    ["though it was set for a time that was over", -1],
  ])("goes off %s", (_when, dueAtMs) => {
    const answer = { do: "write_result", result: "succeeded", output: "The time is over." };
    expect(nextOf([setFor(dueAtMs)])).toMatchObject(answer);
  });

  test("that is set goes on, whatever is forbidden or lapses since", () => {
    const approvals = [anApproval(aCall(1), { state: "withdrawn" })];
    const next = nextOf(
      [setFor(NOW_MS + 1)],
      { denials: [aDenial("wait_a_week")], approvals },
      { verdict: NEEDS_APPROVAL },
    );
    expect(next).toMatchObject({ do: "hold", hold: { waitingFor: { kind: "timer" } } });
  });

  test("is set only with what it needs", () => {
    expect(nextOf([], { denials: [aDenial("wait_a_week")] })).toMatchObject({ result: "denied" });
    expect(nextOf([], {}, { verdict: NEEDS_APPROVAL })).toMatchObject({ do: "hold", hold: { kind: "approval" } });
  });

  test("is overtaken by no message, and passed over by an operator's word", () => {
    expect(nextOf([setFor(NOW_MS + 1)], { unread: [aFact()] })).toMatchObject({ do: "hold" });
    const skip = anOrder("skip", "call_1");
    expect(nextOf([setFor(NOW_MS + 1), skip])).toMatchObject({ do: "write_result", result: "skipped" });
  });

  test("of another call is that call's", () => {
    expect(nextOf([setFor(NOW_MS - 1, "call_2")])).toMatchObject({ do: "set_timer" });
  });

  test("may be had again with the same arguments", () => {
    const calls = [aCall(1, { ...TIMER, argsHash: "same" }), aCall(2, { ...TIMER, argsHash: "same" })];
    const next = (verdict: Call["verdict"], ...more: readonly StepBody[]) =>
      plan(
        anInput({
          calls: calls.map((call) => ({ ...call, verdict })),
          steps: steps(aReply(["call_1", "call_2"]), ...more),
        }),
      );
    expect(next({ kind: "allowed" }, aResult("call_1"))).toMatchObject({ do: "set_timer", call: { id: "call_2" } });
    expect(next(NEEDS_APPROVAL)).toMatchObject({ requests: [{ call: { id: "call_1" } }, { call: { id: "call_2" } }] });
  });
});
