import type { Approval, StepBody } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { buildPrompt } from "../src/prompt.ts";
import { aCall, steps } from "./parts.ts";

const call = aCall({ id: "a", toolCallId: "t-a", args: { amount: "8" }, argsHash: "hash_8" });

const reply: StepBody = {
  kind: "model_reply",
  turn: 1,
  message: {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "t-a", toolName: "find_order", input: {} }],
  },
  text: "",
  callIds: ["a"],
  outcome: null,
  usage: { inputTokens: 1, outputTokens: 1 },
};

/** What a person has made of the call. */
function anEdit(patch: Partial<Approval> = {}): Approval {
  return {
    id: "approval_1",
    callId: "a",
    terms: {
      rule: "r",
      approvers: { roles: ["manager"], users: [] },
      quorum: 1,
      veto: true,
      fourEyes: true,
      decisions: [],
      answerSchema: null,
      deadlineMs: 1,
      onDeadline: "reject",
      remindAfterMs: [],
      escalation: [],
      validForMs: 1,
    },
    level: 0,
    extended: false,
    deadlineMs: 0,
    state: "spent",
    args: { amount: "4" },
    argsHash: "hash_4",
    editedBy: "mona",
    validUntilMs: null,
    decidedBy: "mona",
    note: null,
    answer: null,
    rightsLost: false,
    ...patch,
  };
}

function told(result: Partial<Extract<StepBody, { kind: "tool_result" }>>, approvals: readonly Approval[]) {
  const body: StepBody = { kind: "tool_result", callId: "a", result: "succeeded", output: "paid", ...result };
  const [, answer] = buildPrompt({ messages: [], steps: steps(reply, body), calls: [call], approvals });
  const part = typeof answer?.content === "string" ? null : answer?.content[0];
  return part?.type === "tool-result" ? part.output : null;
}

const RAN = '[A reviewer changed the arguments of this call. It ran with {"amount":"4"}]';
const NOT_RUN =
  '[A reviewer changed the arguments of this call. It was not run; it would have run with {"amount":"4"}]';

describe("buildPrompt, a call whose arguments a person has changed", () => {
  test("says with its result what ran, as text or beside it", () => {
    expect(told({}, [anEdit()])).toEqual({ type: "text", value: `${RAN}\npaid` });
    const value = { note: RAN, output: { refund: "re_1" } };
    expect(told({ output: { refund: "re_1" } }, [anEdit()])).toEqual({ type: "json", value });
    const failed = { result: "failed", code: "no" };
    expect(told({ result: "failed", output: failed }, [anEdit()])).toEqual({
      type: "error-json",
      value: { note: RAN, output: failed },
    });
  });

  test.each(["rejected", "expired", "skipped", "denied", "answered"] as const)(
    "does not say that it ran where it did not: %s",
    (result) => {
      expect(JSON.stringify(told({ result, output: "NOT EXECUTED." }, [anEdit()]))).toContain(
        JSON.stringify(`${NOT_RUN}\nNOT EXECUTED.`),
      );
    },
  );

  test("is told nothing where nobody changed them, or only those of another call", () => {
    const plain = { type: "text", value: "paid" };
    expect(told({}, [])).toEqual(plain);
    expect(told({}, [anEdit({ editedBy: null, argsHash: "hash_8" })])).toEqual(plain);
    expect(told({}, [anEdit({ callId: "b" })])).toEqual(plain);
  });

  test("is not flooded by what it was changed to", () => {
    const note = JSON.stringify(told({}, [anEdit({ args: { note: "x".repeat(90_000) } })]));
    expect(note.length).toBeLessThan(5_000);
  });
});
