import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import { operatorHold } from "../src/rest.ts";
import type { StepBody } from "../src/step.ts";
import {
  aCall,
  aClosedService,
  aFact,
  aFailure,
  aMessage,
  aModelFailure,
  anEffect,
  anInput,
  anOrder,
  aReply,
  aResult,
  askedFor,
  type InputPatch,
  NOW_MS,
  steps,
} from "./builders.ts";

const CALL = aCall(1, { effect: anEffect({ settlement: { everyMs: 1, withinMs: 70_000 } }) });
const PENDING: StepBody = { kind: "effect_pending", callId: "call_1", output: "pending" };

function after(bodies: readonly StepBody[], patch: InputPatch = {}) {
  return plan(askedFor([CALL], { steps: steps(aReply(["call_1"]), ...bodies), ...patch }));
}

function closedFor(ms: number, reason: "throttled" | "unavailable" = "throttled") {
  const untilMs = NOW_MS + 5_000;
  return { services: [aClosedService({ reason, untilMs, sinceMs: untilMs - ms })] };
}

function heldFor(reason: string, callId: string | null) {
  return { do: "hold", hold: operatorHold(reason, callId), requests: [] };
}

describe("plan, a try that finds its service still down", () => {
  const probes = Array.from({ length: 30 }, (_, n): StepBody => ({ ...aFailure("call_1", n + 1), probe: true }));

  test("costs the call no try", () => {
    expect(after(probes)).toMatchObject({ do: "execute", attempt: 31 });
    expect(after([...probes, aFailure("call_1", 31)])).toMatchObject({ do: "execute", attempt: 32 });
    expect(after([...probes, aFailure("call_1", 31), aFailure("call_1", 32)])).toEqual(
      heldFor("call_failed", "call_1"),
    );
  });

  test("is counted once where it was throttled as well", () => {
    const both: StepBody = { ...aFailure("call_1", 1), errorClass: "throttled", probe: true };
    expect(after([both, both, aFailure("call_1", 3)])).toMatchObject({ do: "execute" });
    expect(after([both, both, aFailure("call_1", 3), aFailure("call_1", 4)])).toEqual(heldFor("call_failed", "call_1"));
  });

  test("costs the model no try", () => {
    const failed = aModelFailure();
    const probe = { ...failed, probe: true } as StepBody;
    expect(plan(anInput({ steps: steps(probe, probe, probe, failed) }))).toMatchObject({ do: "call_model" });
    expect(plan(anInput({ steps: steps(probe, failed, failed) }))).toEqual(heldFor("model_failed", null));
  });
});

describe("plan, a service that is closed for longer than a call may wait", () => {
  test.each([
    ["throttled", "throttled_too_long"],
    ["unavailable", "unavailable_too_long"],
  ] as const)("is shown to an operator: %s", (reason, shown) => {
    expect(after([], closedFor(60_000, reason))).toMatchObject({ hold: { kind: "dependency" } });
    expect(after([], closedFor(60_001, reason))).toEqual(heldFor(shown, "call_1"));
  });

  test("is waited for again after an operator's retry, from then on", () => {
    const ordered = [anOrder("retry", "call_1")];
    expect(after(ordered, closedFor(9_000_000))).toMatchObject({ hold: { kind: "dependency" } });
    expect(after([anOrder("retry", "call_2")], closedFor(9_000_000))).toEqual(heldFor("throttled_too_long", "call_1"));
  });

  test("is the model's as well", () => {
    const services = [aClosedService({ name: "model", sinceMs: NOW_MS - 55_001 })];
    expect(plan(anInput({ services }))).toEqual(heldFor("throttled_too_long", null));
    expect(plan(anInput({ services, steps: steps(anOrder("retry", null)) }))).toMatchObject({
      hold: { kind: "dependency", waitingFor: { principal: "model", subject: null } },
    });
  });
});

describe("plan, an accepted effect whose service is closed", () => {
  test("is not asked about before its time, unless its own time is over", () => {
    const hold = { kind: "dependency", waitingFor: { kind: "service", subject: "call_1" }, onDeadline: "continue" };
    expect(after([PENDING], closedFor(70_000))).toMatchObject({ do: "hold", hold });
    expect(after([PENDING], closedFor(70_001))).toEqual(heldFor("throttled_too_long", "call_1"));
    expect(after([PENDING], { ...closedFor(1), nowMs: NOW_MS + 70_001 })).toEqual(
      heldFor("settlement_overdue", "call_1"),
    );
  });

  test("is asked about when that is over", () => {
    expect(after([PENDING], { services: [aClosedService({ untilMs: NOW_MS })] })).toMatchObject({ do: "poll" });
  });
});

describe("plan, an effect that the other side reports as failed after it had happened", () => {
  const again = aCall(2, { turn: 2, tool: CALL.tool, args: CALL.args, argsHash: CALL.argsHash, effect: CALL.effect });
  const failed: StepBody = { kind: "callback", callId: "call_1", failed: true };
  const proposed = (...bodies: readonly StepBody[]) =>
    plan(
      anInput({
        calls: [CALL, again],
        steps: steps(aReply(["call_1"]), ...bodies, aMessage(), aReply(["call_2"], { turn: 2 })),
      }),
    );

  test("is not done again without a person, nor said to have been done", () => {
    expect(proposed(aResult("call_1"), failed)).toEqual(heldFor("equal_effect_unknown", "call_2"));
  });

  test.each([
    ["reports nothing of a failure", [aResult("call_1"), { kind: "callback", callId: "call_1" }]],
    ["speaks of another call", [aResult("call_1"), { ...failed, callId: "call_2" }]],
    ["came before its result: the tool was asked since", [failed, aResult("call_1")]],
  ] as const)("is answered from the record where the callback %s", (_when, bodies) => {
    expect(proposed(...bodies)).toMatchObject({ do: "write_result", result: "answered_from_record" });
  });

  test("is not said to have been done because an equal call was once answered from its record", () => {
    const same = { ...again, id: "call_3", turn: 3 };
    const next = (...reported: readonly StepBody[]) =>
      plan(
        anInput({
          calls: [CALL, again, same],
          steps: steps(
            aReply(["call_1"]),
            aResult("call_1"),
            aReply(["call_2"], { turn: 2 }),
            aResult("call_2", { result: "answered_from_record" }),
            ...reported,
            aMessage(),
            aReply(["call_3"], { turn: 3 }),
          ),
        }),
      );
    expect(next()).toMatchObject({ do: "write_result", result: "answered_from_record" });
    expect(next(failed)).toEqual(heldFor("equal_effect_unknown", "call_3"));
  });

  test("tells the model nothing by itself", () => {
    const done = aReply([], { turn: 2, outcome: { kind: "succeeded" } });
    const history = steps(aReply(["call_1"]), aResult("call_1"), done, failed);
    expect(plan(askedFor([CALL], { steps: history }))).toMatchObject({ do: "end" });
    expect(plan(askedFor([CALL], { steps: history, unread: [aFact()] }))).toMatchObject({ do: "read_facts" });
  });
});
