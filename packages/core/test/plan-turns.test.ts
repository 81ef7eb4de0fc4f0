import { describe, expect, test } from "vitest";
import type { PlanInput } from "../src/next.ts";
import { endWithReply, plan } from "../src/plan.ts";
import { operatorHold } from "../src/rest.ts";
import { DEFAULT_DEADLINES, type Outcome } from "../src/state.ts";
import type { StepBody } from "../src/step.ts";
import {
  aCall,
  aClosedService,
  aFact,
  aMessage,
  aModelFailure,
  anAttempt,
  anInput,
  anOrder,
  aReply,
  aResult,
  type InputPatch,
  LIMITS,
  NOW_MS,
  PARTIAL,
  SUCCEEDED,
  steps,
} from "./builders.ts";

const BLOCKED: Outcome = { kind: "blocked", step: "find_order", reason: "no such order" };

const { model: MODEL } = anInput();

function heldFor(reason: string) {
  return { do: "hold", hold: operatorHold(reason, null), requests: [] };
}

function after(bodies: readonly StepBody[], patch: InputPatch = {}) {
  return plan(anInput({ steps: steps(...bodies), ...patch }));
}

describe("plan, the model", () => {
  test("is asked first of all, once what came before has been read", () => {
    expect(plan(anInput())).toEqual({ do: "call_model", turn: 1, afterMs: 0, service: null });
    const message = aFact();
    expect(plan(anInput({ unread: [message] }))).toEqual({ do: "read_facts", facts: [message] });
    expect(after([aMessage()])).toEqual({ do: "call_model", turn: 1, afterMs: 0, service: null });
  });

  test("is asked again after a request that failed, after the wait that the failure asks for", () => {
    expect(after([aModelFailure("transient", 900)])).toEqual({
      do: "call_model",
      turn: 1,
      afterMs: 900,
      service: null,
    });
    expect(after([aModelFailure(), aModelFailure()])).toEqual(heldFor("model_failed"));
    expect(after([aModelFailure(), aModelFailure()], { model: { ...MODEL, retries: 2 } })).toMatchObject({
      do: "call_model",
    });
  });

  test("is asked again however often it is throttled, for as long as that may take", () => {
    const throttled = (count: number) => Array.from({ length: count }, () => aModelFailure("throttled", 9_000));
    expect(after(throttled(52))).toEqual({ do: "call_model", turn: 1, afterMs: 9_000, service: null });
    expect(after(throttled(53))).toEqual(heldFor("throttled_too_long"));
    expect(after([...throttled(52), aModelFailure()])).toMatchObject({ do: "call_model" });
    expect(after([...throttled(53), anOrder("retry", null)])).toMatchObject({ do: "call_model", afterMs: 0 });
  });

  test("waits for its service where nobody may call that, and is the one that finds out whether it is back", () => {
    const service = aClosedService({ name: "model" });
    const waitingFor = { kind: "service", principal: "model", subject: null, reason: "throttled" };
    for (const bodies of [[], [aModelFailure(), aModelFailure()]])
      expect(after(bodies, { services: [aClosedService(), service] })).toMatchObject({
        do: "hold",
        requests: [],
        hold: { kind: "dependency", waitingFor, deadline: { at: service.untilMs }, onDeadline: "continue" },
      });
    const open = { ...service, untilMs: NOW_MS };
    expect(after([], { services: [open] })).toEqual({ do: "call_model", turn: 1, afterMs: 0, service: open });
    expect(after([aModelFailure()], { services: [open] })).toMatchObject({ afterMs: 400, service: open });
  });

  test.each(["caller", "refused"] as const)("is not asked the same again where that cannot help: %s", (errorClass) => {
    expect(after([aModelFailure(errorClass)])).toEqual(heldFor("model_failed"));
  });

  test("has its tries back after an operator's retry and after a reply", () => {
    const failed = [aModelFailure(), aModelFailure()];
    expect(after([...failed, anOrder("retry", null)])).toEqual({
      do: "call_model",
      turn: 1,
      afterMs: 0,
      service: null,
    });
    const calls = [aCall(1)];
    const next = after([aModelFailure(), aReply(["call_1"]), aResult("call_1"), aModelFailure()], { calls });
    expect(next).toMatchObject({ do: "call_model", turn: 2 });
  });
});

describe("plan, a reply without calls", () => {
  test("ends the run with its outcome", () => {
    expect(after([aReply([], { outcome: SUCCEEDED })])).toEqual({ do: "end", status: "completed", outcome: SUCCEEDED });
    const partial: Outcome = { kind: "partial", reason: "one of two refunded" };
    expect(after([aReply([], { outcome: partial })])).toMatchObject({ do: "end", outcome: partial });
  });

  test("that achieved nothing is shown to an operator, or ends the run where the agent says so", () => {
    const reply = aReply([], { outcome: BLOCKED });
    expect(after([reply])).toEqual(heldFor("blocked"));
    expect(after([reply], { onBlocked: "end" })).toEqual({ do: "end", status: "completed", outcome: BLOCKED });
    expect(after([reply, anOrder("retry", null)])).toMatchObject({ do: "call_model", turn: 2 });
  });

  test("and without an outcome is a question to the requester", () => {
    expect(after([aReply([])])).toEqual({
      do: "hold",
      requests: [],
      hold: {
        kind: "input",
        waitingFor: { kind: "requester", principal: "user:ann", subject: null, reason: "question" },
        deadline: { inMs: DEFAULT_DEADLINES.inputMs },
        onDeadline: "no_answer",
      },
    });
  });

  test("is followed by another turn once there is an answer, or nobody answered", () => {
    expect(after([aReply([]), aMessage("4411")])).toEqual({ do: "call_model", turn: 2, afterMs: 0, service: null });
    expect(after([aReply([]), { kind: "no_answer" }])).toEqual({
      do: "call_model",
      turn: 2,
      afterMs: 0,
      service: null,
    });
  });

  test("is not undone by what the other side reports, which tells the model nothing", () => {
    const reported: StepBody = { kind: "callback", callId: "call_1" };
    const ending = aReply([], { outcome: SUCCEEDED });
    const unread = [aFact({ kind: "callback", callId: "call_1" })];
    expect(after([ending], { unread })).toEqual({ do: "read_facts", facts: unread });
    expect(after([ending, reported, reported])).toEqual({ do: "end", status: "completed", outcome: SUCCEEDED });
    expect(after([aReply([]), reported])).toMatchObject({ do: "hold", hold: { kind: "input" } });
    expect(after([ending, reported, aMessage()])).toMatchObject({ do: "call_model", turn: 2 });
  });

  test("does not end the run over a fact that nobody has read: that makes another turn", () => {
    const ending = aReply([], { outcome: SUCCEEDED });
    const late = aFact(aMessage("and order 4412, please"));
    expect(after([ending], { unread: [late] })).toEqual({ do: "read_facts", facts: [late] });
    expect(after([ending, aMessage()])).toEqual({ do: "call_model", turn: 2, afterMs: 0, service: null });
    const limits = { ...LIMITS, turns: 1, tokens: 1_000 };
    expect(after([ending, aMessage()], { limits })).toEqual(heldFor("limit_turns"));
  });
});

describe("plan, limits", () => {
  const calls = [aCall(1), aCall(2)];
  const turn = (id: string) => [aReply([id]), aResult(id)] as const;

  test("of turns and tokens are judged before the model is asked", () => {
    const history = [...turn("call_1"), ...turn("call_2")];
    expect(after(history, { calls, limits: { ...LIMITS, turns: 2, tokens: 1_000 } })).toEqual(heldFor("limit_turns"));
    expect(after(history, { calls, limits: { ...LIMITS, turns: 3, tokens: 30 } })).toEqual(heldFor("limit_tokens"));
    expect(after(history, { calls, limits: { ...LIMITS, turns: 3, tokens: 31 } })).toMatchObject({
      do: "call_model",
      turn: 3,
    });
  });

  test("of cost and time are judged there as well, where they are set and the price is known", () => {
    const history = [...turn("call_1"), ...turn("call_2")];
    const costs = (costUsd: number | null, price: PlanInput["price"] = { inputUsd: 3, outputUsd: 15 }) =>
      after(history, { calls, limits: { ...LIMITS, costUsd }, price });
    // Twice 10 tokens at 3 dollars and 5 at 15, for a million of them.
    expect(costs(0.000_21)).toEqual(heldFor("limit_cost"));
    expect(costs(0.000_211)).toMatchObject({ do: "call_model" });
    expect(costs(0, null)).toMatchObject({ do: "call_model" });
    expect(costs(null)).toMatchObject({ do: "call_model" });
    const time = (workedMs: number) => after(history, { calls, limits: { ...LIMITS, wallMs: 100 }, workedMs });
    expect(time(99)).toMatchObject({ do: "call_model" });
    expect(time(100)).toEqual(heldFor("limit_wall_time"));
  });

  test("never break a call of the turn that is under way", () => {
    const next = after([aReply(["call_1"])], { calls, limits: { ...LIMITS, turns: 1, tokens: 1 } });
    expect(next).toMatchObject({ do: "execute" });
  });

  test("are widened by an operator's retry: one more turn, and once more the tokens, the cost and the time", () => {
    const history = [...turn("call_1"), anOrder("retry", null)];
    expect(after(history, { calls, limits: { ...LIMITS, turns: 1, tokens: 1_000 } })).toMatchObject({
      do: "call_model",
      turn: 2,
    });
    expect(after(history, { calls, limits: { ...LIMITS, turns: 9, tokens: 15 } })).toMatchObject({
      do: "call_model",
      turn: 2,
    });
    const spent = { ...LIMITS, costUsd: 0.000_1, wallMs: 100 };
    const price = { inputUsd: 3, outputUsd: 15 };
    expect(after(history, { calls, limits: spent, price, workedMs: 199 })).toMatchObject({ do: "call_model" });
    expect(after(turn("call_1"), { calls, limits: spent, price })).toEqual(heldFor("limit_cost"));
    expect(after(history, { calls, limits: spent, price, workedMs: 200 })).toEqual(heldFor("limit_wall_time"));
    const again = [...history, ...turn("call_2")];
    expect(after(again, { calls, limits: { ...LIMITS, turns: 1, tokens: 1_000 } })).toEqual(heldFor("limit_turns"));
    expect(after(again, { calls, limits: { ...LIMITS, turns: 9, tokens: 15 } })).toEqual(heldFor("limit_tokens"));
  });
});

describe("plan, arguments that a tool does not take", () => {
  const verdict = { kind: "invalid", message: "amount: expected a string" } as const;
  const calls = [aCall(1, { verdict }), aCall(2, { verdict }), aCall(3), aCall(4, { verdict })];
  const turn = (id: string) => [aReply([id]), aResult(id, { result: "invalid" })] as const;

  test("twice in a row are shown to an operator", () => {
    expect(after([...turn("call_1")], { calls })).toMatchObject({ do: "call_model", turn: 2 });
    expect(after([...turn("call_1"), ...turn("call_2")], { calls })).toEqual(heldFor("invalid_arguments"));
  });

  test("with a good turn between them are not, nor after an operator's retry", () => {
    expect(after([...turn("call_1"), ...turn("call_3"), ...turn("call_4")], { calls })).toMatchObject({
      do: "call_model",
    });
    const retried = [...turn("call_1"), ...turn("call_2"), anOrder("retry", null)];
    expect(after(retried, { calls })).toMatchObject({ do: "call_model", turn: 3 });
    expect(after([...retried, ...turn("call_4")], { calls })).toMatchObject({ do: "call_model", turn: 4 });
  });
});

describe("endWithReply", () => {
  const asked = [aReply(["call_1"]), aResult("call_1")];
  const calls = [aCall(1)];
  const OUTCOMES: readonly (Outcome | null)[] = [SUCCEEDED, PARTIAL, BLOCKED, null];
  const INPUTS: readonly (readonly [string, InputPatch])[] = [
    ["with nothing else", {}],
    ["at an operator's desk for what is blocked", { onBlocked: "operator" }],
    ["that ends although blocked", { onBlocked: "end" }],
    ["with a message that nobody has read", { unread: [aFact()] }],
    ["with an order that nobody has read", { unread: [aFact(anOrder("retry", null))] }],
    ["with live children", { liveChildren: 1 }],
    ["with an open attempt", { openAttempts: [anAttempt("call_1")] }],
  ];

  test.each(INPUTS)("says of a run %s what plan says once the reply is stored", (_, patch) => {
    for (const outcome of OUTCOMES) {
      const before = anInput({ steps: steps(...asked), calls, ...patch });
      const next = plan(anInput({ steps: steps(...asked, aReply([], { turn: 2, outcome })), calls, ...patch }));
      expect(endWithReply(before, outcome)).toEqual(next.do === "end" ? next : null);
    }
  });

  test("ends with what the reply was found to have achieved", () => {
    expect(endWithReply(anInput({ steps: steps(...asked), calls }), PARTIAL)).toEqual({
      do: "end",
      status: "completed",
      outcome: PARTIAL,
    });
  });
});
