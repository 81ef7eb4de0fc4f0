import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import { operatorHold } from "../src/rest.ts";
import { budgetReason, NO_FAILURES, withFailure } from "../src/retries.ts";
import { ERROR_CLASSES, type ErrorClass, type Step, type StepBody } from "../src/step.ts";
import {
  aCall,
  aClosedService,
  aFailure,
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
  LIMITS,
  NEEDS_APPROVAL,
  NOW_MS,
  steps,
} from "./builders.ts";

const CALL = aCall(1, { effect: anEffect() });

function heldFor(reason: string) {
  return { do: "hold", hold: operatorHold(reason, "call_1"), requests: [] };
}

function intent(attempt: number): StepBody {
  return { kind: "intent", callId: "call_1", attempt };
}

function throttled(attempt: number, retryInMs = 5_000): StepBody {
  return { ...aFailure("call_1", attempt, retryInMs), errorClass: "throttled", code: "429" };
}

/** What comes next for the call after these steps, which are a second apart and end now. */
function after(bodies: readonly StepBody[], patch: InputPatch = {}) {
  return plan(askedFor([CALL], { steps: steps(aReply(["call_1"]), ...bodies), ...patch }));
}

describe("plan, a call that failed", () => {
  test("is tried once more, after the wait that its failure asks for", () => {
    const next = after([intent(1), aFailure("call_1", 1, 700)]);
    expect(next).toEqual({ do: "execute", call: CALL, attempt: 2, approvalId: null, afterMs: 700, service: null });
  });

  test("is shown to an operator when its retries are used up", () => {
    expect(after([intent(1), aFailure("call_1", 1), intent(2), aFailure("call_1", 2)])).toEqual(heldFor("call_failed"));
  });

  test("because it was not done in time says so to the operator", () => {
    const late: StepBody = { ...aFailure("call_1", 2), code: "timeout" };
    expect(after([aFailure("call_1", 1), late])).toEqual(heldFor("limit_call_deadline"));
    expect(after([{ ...aFailure("call_1", 1), code: "timeout" }, aFailure("call_1", 2)])).toEqual(
      heldFor("call_failed"),
    );
    expect(after([late])).toMatchObject({ do: "execute", attempt: 3 });
  });

  test("has no try more than its tool allows", () => {
    const strict = { ...CALL, retries: 0 };
    const next = plan(askedFor([strict], { steps: steps(aReply(["call_1"]), aFailure("call_1", 1)) }));
    expect(next).toEqual(heldFor("call_failed"));
  });

  test("has its tries back after an operator's retry, and goes on numbering", () => {
    const failed = [aFailure("call_1", 1), aFailure("call_1", 2)];
    expect(after([...failed, anOrder("retry", "call_1")])).toMatchObject({ do: "execute", attempt: 3, afterMs: 0 });
    expect(after([...failed, anOrder("retry", "call_1"), aFailure("call_1", 3)])).toMatchObject({
      do: "execute",
      attempt: 4,
    });
    expect(after([...failed, anOrder("retry", "call_2")])).toMatchObject({ do: "hold" });
  });

  test("loses no try with its worker: an attempt that did not happen is no failure", () => {
    const nothing: StepBody = { kind: "did_not_happen", callId: "call_1", attempt: 1 };
    expect(after([intent(1), nothing])).toMatchObject({ do: "execute", attempt: 2, afterMs: 0 });
    const losses = Array.from({ length: 30 }, (_, n) => [intent(n + 1), { ...nothing, attempt: n + 1 }] as const);
    expect(after(losses.flat())).toMatchObject({ do: "execute", attempt: 31, afterMs: 0 });
  });

  test("loses a try with one that its worker saw fail, and that did not happen", () => {
    const nothing = (attempt: number, code = "unexpected_error"): StepBody => {
      return { kind: "did_not_happen", callId: "call_1", attempt, code };
    };
    expect(after([intent(1), nothing(1)])).toMatchObject({ do: "execute", attempt: 2, afterMs: 0 });
    const twice = [intent(1), nothing(1), intent(2), nothing(2)];
    expect(after(twice)).toEqual(heldFor("call_failed"));
    expect(after([intent(1), nothing(1), intent(2), nothing(2, "timeout")])).toEqual(heldFor("limit_call_deadline"));
    expect(after([intent(1), aFailure("call_1", 1), intent(2), nothing(2)])).toEqual(heldFor("call_failed"));
    expect(after([...twice, anOrder("retry", "call_1")])).toMatchObject({ do: "execute", attempt: 3 });
    const others = [intent(1), nothing(1), { ...nothing(1), callId: "call_2" } as StepBody];
    expect(after(others)).toMatchObject({ do: "execute", attempt: 2 });
  });

  test("does not count the failures of others", () => {
    const history = steps(aReply(["call_2", "call_1"]), aFailure("call_2", 1), aResult("call_2"), aMessage());
    const next = plan(anInput({ calls: [CALL, aCall(2)], steps: history }));
    expect(next).toMatchObject({ do: "execute", call: CALL, attempt: 1 });
  });

  test("is tried again under the approval that it has spent", () => {
    const gated = { ...CALL, verdict: NEEDS_APPROVAL };
    const history = steps(aReply(["call_1"]), intent(1), aFailure("call_1", 1));
    const approvals = [anApproval(gated, { state: "spent", validUntilMs: NOW_MS + 1 })];
    expect(plan(askedFor([gated], { steps: history, approvals }))).toMatchObject({
      do: "execute",
      attempt: 2,
      approvalId: "approval_of_call_1",
    });
  });
});

describe("plan, a call that is throttled", () => {
  const row = (count: number) => Array.from({ length: count }, (_, n) => throttled(n + 1));

  test("burns no tries, and waits as long as it was told to", () => {
    expect(after(row(50))).toMatchObject({ do: "execute", attempt: 51, afterMs: 5_000 });
    expect(after([...row(50), aFailure("call_1", 51)])).toMatchObject({ do: "execute", attempt: 52 });
    expect(after([aFailure("call_1", 1), ...row(50)])).toMatchObject({ do: "execute" });
    expect(after([...row(50), aFailure("call_1", 51), aFailure("call_1", 52)])).toEqual(heldFor("call_failed"));
  });

  test("is shown to an operator once it has been so for longer than its tool allows", () => {
    expect(after(row(56))).toMatchObject({ do: "execute" });
    expect(after(row(57))).toEqual(heldFor("throttled_too_long"));
    expect(after([...row(100), anOrder("retry", "call_1")])).toMatchObject({ do: "execute", attempt: 101, afterMs: 0 });
  });

  test("is not tried later than that by being told to wait: a person is asked at once", () => {
    expect(after([throttled(1, 60_000)])).toMatchObject({ do: "execute", afterMs: 60_000 });
    expect(after([throttled(1, 60_001)])).toEqual(heldFor("throttled_too_long"));
  });

  test("is not charged for the time in which nobody tried it: a pause is not the other side's doing", () => {
    const nowMs = NOW_MS + 9_000_000;
    expect(after([throttled(1)], { nowMs })).toMatchObject({ do: "execute", attempt: 2, afterMs: 5_000 });
    expect(after(row(56), { nowMs })).toMatchObject({ do: "execute", attempt: 57 });
    expect(after(row(57), { nowMs })).toEqual(heldFor("throttled_too_long"));
  });
});

describe("budgetReason", () => {
  const failure = fc.record({
    errorClass: fc.constantFrom(...ERROR_CLASSES),
    pauseMs: fc.nat(50_000),
    retryInMs: fc.nat(50_000),
  });

  const rowOf = (failures: readonly Step[]) => failures.reduce(withFailure, NO_FAILURES);

  interface Failure {
    readonly errorClass: ErrorClass;
    readonly pauseMs: number;
    readonly retryInMs: number;
  }

  /** The failures one after the other, each after the wait that the one before asked for. */
  function failuresOf(list: readonly Failure[]) {
    let atMs = 0;
    return list.map(({ errorClass, pauseMs, retryInMs }, index): Step & { readonly retryInMs: number } => {
      atMs += pauseMs;
      const step = {
        seq: index + 1,
        atMs,
        body: { ...aFailure("call_1", index + 1, retryInMs), errorClass },
        retryInMs,
      };
      atMs += retryInMs;
      return step;
    });
  }

  test("spends tries and the time of throttling apart, whatever fails in whatever order", () => {
    fc.assert(
      fc.property(fc.array(failure), fc.nat(5), fc.nat(200_000), (list, retries, throttledForMs) => {
        const failures = failuresOf(list);
        const turnedAway = failures.filter(({ body }) => "errorClass" in body && body.errorClass === "throttled");
        const [from, to] = [turnedAway[0], turnedAway.at(-1)];
        const spentTries = failures.length - turnedAway.length > retries;
        const lastsMs = from === undefined || to === undefined ? 0 : to.atMs + to.retryInMs - from.atMs;
        const reason = budgetReason(rowOf(failures), { retries, throttledForMs });
        expect(reason).toBe(spentTries ? "failed" : lastsMs > throttledForMs ? "throttled_too_long" : null);
      }),
    );
  });

  test("never takes a try for being throttled, and no time for failing otherwise", () => {
    fc.assert(
      fc.property(fc.array(failure), (list) => {
        const only = failuresOf(list.map((each) => ({ ...each, errorClass: "throttled" as const })));
        const none = failuresOf(list.map((each) => ({ ...each, errorClass: "transient" as const })));
        const [noTries, noTime] = [
          { retries: 0, throttledForMs: Number.MAX_SAFE_INTEGER },
          { retries: list.length, throttledForMs: 0 },
        ];
        expect(budgetReason(rowOf(only), noTries)).toBeNull();
        expect(budgetReason(rowOf(none), noTime)).toBeNull();
      }),
    );
  });

  test("takes a step that says nothing of how it failed for a try", () => {
    const silent: Step = { seq: 2, atMs: 9, body: { kind: "no_answer" } };
    expect(budgetReason(rowOf([silent]), { retries: 1, throttledForMs: 0 })).toBeNull();
    expect(budgetReason(rowOf([silent, silent]), { retries: 1, throttledForMs: 0 })).toBe("failed");
  });
});

describe("plan, a call whose service may not be called", () => {
  test("waits for it until it may be tried again, and burns no tries", () => {
    const services = [aClosedService({ name: "payments" }), aClosedService({ reason: "unavailable" })];
    const held = {
      do: "hold",
      requests: [],
      hold: {
        kind: "dependency",
        waitingFor: { kind: "service", principal: "orders", subject: "call_1", reason: "unavailable" },
        deadline: { at: NOW_MS + 5_000 },
        onDeadline: "continue",
      },
    };
    expect(after([], { services })).toEqual(held);
    expect(after([aFailure("call_1", 1)], { services })).toEqual(held);
    expect(after([aFailure("call_1", 1), aFailure("call_1", 2)], { services })).toEqual(held);
  });

  test("is tried when that is over, as the one that finds out whether it is back", () => {
    const service = aClosedService({ untilMs: NOW_MS });
    expect(after([], { services: [service] })).toMatchObject({ do: "execute", attempt: 1, service });
    expect(after([aFailure("call_1", 1)], { services: [service] })).toMatchObject({
      do: "execute",
      attempt: 2,
      service,
    });
    expect(after([], { services: [aClosedService({ untilMs: NOW_MS + 1 })] })).toMatchObject({ do: "hold" });
  });

  test("is not kept from being approved, denied or answered meanwhile", () => {
    const gated = { ...CALL, verdict: NEEDS_APPROVAL };
    const services = [aClosedService()];
    expect(plan(askedFor([gated], { services }))).toMatchObject({ hold: { kind: "approval" } });
    const approvals = [anApproval(gated, { state: "approved" })];
    expect(plan(askedFor([gated], { services, approvals }))).toMatchObject({ hold: { kind: "dependency" } });
    expect(after([anOrder("skip", "call_1")], { services })).toMatchObject({ do: "write_result", result: "skipped" });
  });
});

describe("plan, the time that a run may be worked on", () => {
  const limits = { ...LIMITS, wallMs: 1_000 };

  test("is judged before a call is started, and names the limit", () => {
    expect(after([], { limits, workedMs: 999 })).toMatchObject({ do: "execute" });
    expect(after([], { limits, workedMs: 1_000 })).toEqual(heldFor("limit_wall_time"));
    expect(after([], { limits, workedMs: 1_000, services: [aClosedService()] })).toEqual(heldFor("limit_wall_time"));
    expect(after([], { workedMs: 1e12 })).toMatchObject({ do: "execute" });
  });

  test("is judged there even where the model has used up its tokens, which do not stop a call", () => {
    const spent = { ...limits, tokens: 1 };
    expect(after([], { limits: spent, workedMs: 999 })).toMatchObject({ do: "execute" });
    expect(after([], { limits: spent, workedMs: 1_000 })).toEqual(heldFor("limit_wall_time"));
  });

  test("is granted once more by each of an operator's retries", () => {
    const retry = anOrder("retry", "call_1");
    expect(after([retry], { limits, workedMs: 1_999 })).toMatchObject({ do: "execute" });
    expect(after([retry], { limits, workedMs: 2_000 })).toEqual(heldFor("limit_wall_time"));
  });

  test("breaks nothing that is open or accepted, and needs no start to write an answer", () => {
    const openAttempts = [anAttempt("call_1")];
    expect(after([], { limits, workedMs: 9_999, openAttempts })).toMatchObject({ do: "settle_attempt" });
    expect(after([anOrder("skip", "call_1")], { limits, workedMs: 9_999 })).toMatchObject({ do: "write_result" });
    const settlement = { everyMs: 1, withinMs: 1 };
    const accepting = aCall(1, { effect: anEffect({ settlement }) });
    const history = steps(aReply(["call_1"]), { kind: "effect_pending", callId: "call_1", output: null });
    expect(plan(askedFor([accepting], { steps: history, limits, workedMs: 9_999 }))).toMatchObject({ do: "poll" });
  });
});
