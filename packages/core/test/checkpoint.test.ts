import { describe, expect, test } from "vitest";
import { advance, EMPTY_CHECKPOINT, nextInWords, rebuildCheckpoint } from "../src/checkpoint.ts";
import { operatorHold } from "../src/rest.ts";
import type { StepBody } from "../src/step.ts";
import {
  aCall,
  aFailure,
  aMessage,
  aModelFailure,
  anAttempt,
  anOrder,
  aReply,
  aResult,
  SUCCEEDED,
  steps,
} from "./builders.ts";

const CALLS = [aCall(1), aCall(2, { tool: "send_refund" })];

describe("advance", () => {
  test("takes a reply's turn, calls and use of tokens", () => {
    const first = advance(EMPTY_CHECKPOINT, { seq: 1, body: aReply(["call_1", "call_2"]) }, CALLS);
    expect(first).toEqual({
      stepSeq: 1,
      turn: 1,
      openCalls: 2,
      inputTokens: 10,
      outputTokens: 5,
      lastCompleted: "model turn 1",
    });
    const second = advance(first, { seq: 2, body: aReply([], { turn: 2 }) }, CALLS);
    expect(second).toMatchObject({ turn: 2, openCalls: 0, inputTokens: 20, outputTokens: 10 });
  });

  test("closes a call with its result and says what was done", () => {
    const bodies = [aReply(["call_1", "call_2"]), aResult("call_1"), aResult("call_2", { result: "not_established" })];
    const cursor = (count: number) => rebuildCheckpoint(steps(...bodies.slice(0, count)), CALLS);
    expect(cursor(2)).toMatchObject({ openCalls: 1, lastCompleted: "find_order (succeeded)" });
    expect(cursor(3)).toMatchObject({ openCalls: 0, lastCompleted: "send_refund (not established)" });
    expect(rebuildCheckpoint(steps(aResult("call_9")), []).lastCompleted).toBe("call_9 (succeeded)");
  });

  test("says that an effect was accepted, and leaves its call open", () => {
    const pending: StepBody = { kind: "effect_pending", callId: "call_2", output: { secret: true } };
    const cursor = rebuildCheckpoint(steps(aReply(["call_2"]), pending), CALLS);
    expect(cursor).toMatchObject({ openCalls: 1, lastCompleted: "send_refund (accepted, not settled yet)" });
  });

  test("finds the name of a call in a list as it does by the call's id", () => {
    const step = { seq: 1, body: aResult("call_2") };
    const byId = (callId: string) => CALLS.find(({ id }) => id === callId);
    expect(advance(EMPTY_CHECKPOINT, step, CALLS)).toMatchObject({ lastCompleted: "send_refund (succeeded)" });
    expect(advance(EMPTY_CHECKPOINT, step, byId)).toEqual(advance(EMPTY_CHECKPOINT, step, CALLS));
  });

  test("names who wrote, not what", () => {
    expect(rebuildCheckpoint(steps(aMessage("secret")), []).lastCompleted).toBe("message from user:ann");
    const from = "x".repeat(1_000);
    expect(rebuildCheckpoint(steps({ kind: "message", from, text: "" }), []).lastCompleted).toHaveLength(77);
  });

  const unfinished: readonly StepBody[] = [
    aModelFailure(),
    { kind: "intent", callId: "call_1", attempt: 1 },
    { kind: "timer_set", callId: "call_1", dueAtMs: 1 },
    { kind: "migration", version: "2", by: "otto" },
    { kind: "children_started", callId: "call_1", try: 1, ordinals: [0], total: 1 },
    aFailure("call_1", 1),
    { kind: "did_not_happen", callId: "call_1", attempt: 1 },
    { kind: "finding", callId: "call_1", output: "re_1" },
    { kind: "callback", callId: "call_1" },
    { kind: "no_answer" },
    anOrder("retry", "call_1"),
  ];
  test.each(unfinished.map((body) => [body.kind, body] as const))(
    "completes nothing with %s, but moves on",
    (_kind, body) => {
      const before = rebuildCheckpoint(steps(aReply(["call_1"])), CALLS);
      expect(advance(before, { seq: 2, body }, CALLS)).toEqual({ ...before, stepSeq: 2 });
    },
  );

  test("stays below 2 KB however many calls a turn has", () => {
    const ids = Array.from({ length: 500 }, (_, index) => `call_${String(index).padStart(26, "0")}`);
    const cursor = rebuildCheckpoint(steps(aReply(ids)), []);
    expect(cursor.openCalls).toBe(500);
    expect(JSON.stringify(cursor).length).toBeLessThan(2_048);
  });

  test("starts with nothing", () => {
    expect(rebuildCheckpoint([], [])).toBe(EMPTY_CHECKPOINT);
  });
});

describe("nextInWords", () => {
  const call = aCall(1, { tool: "send_refund" });

  test("says what whoever takes the run up will do", () => {
    const attempt = anAttempt("call_1", { number: 2 });
    expect(nextInWords({ do: "settle_attempt", call, attempt })).toBe("settle attempt 2 of send_refund");
    expect(nextInWords({ do: "read_facts", facts: [] })).toBe("take in what arrived meanwhile");
    expect(nextInWords({ do: "call_model", turn: 3, afterMs: 0, service: null })).toBe("ask the model, turn 3");
    expect(nextInWords({ do: "execute", call, attempt: 2, approvalId: null, afterMs: 0, service: null })).toBe(
      "send_refund, attempt 2",
    );
    expect(nextInWords({ do: "poll", call, output: null, sinceMs: 0 })).toBe("ask what has become of send_refund");
    expect(nextInWords({ do: "set_timer", call })).toBe("send_refund: set its timer");
    expect(nextInWords({ do: "migrate", version: "2" })).toBe("go on in version 2");
    expect(nextInWords({ do: "start_children", call, try: 1, ordinals: null, approvalId: null })).toBe(
      "send_refund: start child runs",
    );
    expect(nextInWords({ do: "stop_children", call, children: [] })).toBe(
      "send_refund: stop the child runs that are not needed any more",
    );
    expect(nextInWords({ do: "write_result", call, result: "answered_from_record", output: null })).toBe(
      "tell the model that send_refund was answered from record",
    );
    expect(nextInWords({ do: "hold", hold: operatorHold("blocked", null), requests: [] })).toBe(
      "wait for role:operator",
    );
    expect(nextInWords({ do: "end", status: "completed", outcome: SUCCEEDED })).toBe("end as succeeded");
  });
});
