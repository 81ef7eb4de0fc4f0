import type { StepBody } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { encode } from "../src/codec.ts";
import { buildPrompt } from "../src/prompt.ts";
import { aCall, steps } from "./parts.ts";

const METADATA = { openai: { itemId: "item_7", reasoning: ["x"] } };

const reply = (callIds: readonly string[]): StepBody => ({
  kind: "model_reply",
  turn: 1,
  message: {
    role: "assistant",
    content: [
      { type: "text", text: "Looking.", providerOptions: METADATA },
      ...callIds.map((id) => ({
        type: "tool-call",
        toolCallId: `t-${id}`,
        toolName: "find_order",
        input: { id },
        providerOptions: METADATA,
      })),
    ],
  },
  text: "Looking.",
  callIds,
  outcome: null,
  usage: { inputTokens: 1, outputTokens: 1 },
});

const calls = ["a", "b", "c"].map((id, ordinal) => aCall({ id, ordinal, toolCallId: `t-${id}` }));
const messages = [{ seq: 1, role: "user", text: "Where is it?" }] as const;
const result = (callId: string, kind: "succeeded" | "rejected", output: string | { n: number }): StepBody => ({
  kind: "tool_result",
  callId,
  result: kind,
  output,
});

describe("buildPrompt", () => {
  test("gives each call exactly one result, in model order, whatever order they were stored in", () => {
    const history = steps(
      reply(["a", "b", "c"]),
      result("c", "succeeded", "third"),
      { kind: "call_failed", callId: "a", attempt: 1, errorClass: "transient", code: "x", retryInMs: 0 },
      { kind: "intent", callId: "b", attempt: 1 },
      result("a", "succeeded", { n: 1 }),
      { kind: "message", from: "alice", text: "Hurry" },
      result("b", "rejected", "NOT EXECUTED."),
    );
    const prompt = buildPrompt({ messages, steps: history, calls });
    expect(prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(prompt[2]?.content).toEqual([
      { type: "tool-result", toolCallId: "t-a", toolName: "find_order", output: { type: "json", value: { n: 1 } } },
      {
        type: "tool-result",
        toolCallId: "t-b",
        toolName: "find_order",
        output: { type: "error-json", value: { result: "rejected", message: "NOT EXECUTED." } },
      },
      { type: "tool-result", toolCallId: "t-c", toolName: "find_order", output: { type: "text", value: "third" } },
    ]);
  });

  test("leaves the provider's metadata as it came", () => {
    const stored = reply(["a"]);
    const prompt = buildPrompt({ messages: [], steps: steps(stored, result("a", "succeeded", "x")), calls });
    expect(stored.kind === "model_reply" && prompt[0]).toEqual(stored.kind === "model_reply" && stored.message);
    expect(JSON.stringify(prompt[0])).toContain(JSON.stringify(METADATA));
  });

  test("tells of failures as errors, also where the output is an object", () => {
    const failed: StepBody = { kind: "tool_result", callId: "a", result: "failed", output: { code: "card_closed" } };
    const [, answer] = buildPrompt({ messages: [], steps: steps(reply(["a"]), failed), calls });
    expect(answer?.content).toMatchObject([{ output: { type: "error-json", value: { code: "card_closed" } } }]);
  });

  test("takes an answer of a person for the call's own", () => {
    const answered = { kind: "tool_result", callId: "a", result: "answered", output: "by hand" } as const;
    const [, answer] = buildPrompt({ messages: [], steps: steps(reply(["a"]), answered), calls });
    expect(answer?.content).toMatchObject([{ output: { type: "text", value: "by hand" } }]);
  });

  test("shows dates, large numbers and binary data as a model can read them", () => {
    const { json } = encode({ at: new Date(0), amount: 2n ** 63n, pdf: new Uint8Array(9) });
    const stored: StepBody = { kind: "tool_result", callId: "a", result: "succeeded", output: json };
    const [, answer] = buildPrompt({ messages: [], steps: steps(reply(["a"]), stored), calls });
    const value = { at: "1970-01-01T00:00:00.000Z", amount: "9223372036854775808", pdf: "[9 bytes of binary data]" };
    expect(answer?.content).toMatchObject([{ output: { type: "json", value } }]);
  });

  test("sends no text that a provider would not take", () => {
    const hostile = "a\u0000\ud83d";
    const history = steps(reply(["a"]), result("a", "succeeded", hostile), {
      kind: "message",
      from: "alice",
      text: hostile,
    });
    const prompt = JSON.stringify(
      buildPrompt({ messages: [{ seq: 1, role: "user", text: hostile }], steps: history, calls }),
    );
    expect(prompt.match(/a\ufffd\ufffd/g)).toHaveLength(3);
  });

  test("says that there was nothing, where a text has no words", () => {
    const history = steps(reply(["a"]), result("a", "succeeded", ""), { kind: "message", from: "alice", text: " \n" });
    const prompt = buildPrompt({ messages: [], steps: history, calls });
    expect(prompt.slice(1)).toMatchObject([
      { content: [{ output: { type: "text", value: "[Empty.]" } }] },
      { role: "user", content: "[Empty.]" },
    ]);
  });

  test("never lets two replies follow each other, nor one stand last, and says the same again later", () => {
    const first = steps(reply([]), { kind: "operator", choice: "retry", callId: null });
    const goOn = { role: "user", content: "[Go on.]" };
    const one = buildPrompt({ messages, steps: first, calls });
    expect(one.slice(2)).toEqual([goOn]);
    const two = buildPrompt({ messages, steps: [...first, ...steps(reply([]))], calls });
    expect(two.slice(0, 3)).toEqual(one);
    expect(two.slice(3)).toMatchObject([{ role: "assistant" }, goOn]);
  });

  test("says that nobody answered", () => {
    const prompt = buildPrompt({ messages, steps: steps(reply([]), { kind: "no_answer" }), calls });
    expect(prompt.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining("No answer arrived") });
  });

  test("refuses a conversation in which a call has no result", () => {
    expect(() =>
      buildPrompt({ messages, steps: steps(reply(["a", "b"]), result("a", "succeeded", "x")), calls }),
    ).toThrow(/Call b has no result/);
  });
});
