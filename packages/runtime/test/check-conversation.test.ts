import type { ModelMessage, ToolCallPart, ToolResultPart } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConversationError, checkConversation } from "../src/check-conversation.ts";

const SECRET = "card 4111";
const USER: ModelMessage = { role: "user", content: "Where is it?" };
const TEXT: ModelMessage = { role: "assistant", content: "Here." };

function call(toolCallId: string, overrides: Partial<ToolCallPart> = {}): ToolCallPart {
  return { type: "tool-call", toolCallId, toolName: "find", input: { secret: SECRET }, ...overrides };
}

function answer(toolCallId: string, toolName = "find"): ToolResultPart {
  return { type: "tool-result", toolCallId, toolName, output: { type: "text", value: SECRET } };
}

function reply(...content: ToolCallPart[]): ModelMessage {
  return { role: "assistant", content };
}

function results(...content: ToolResultPart[]): ModelMessage {
  return { role: "tool", content };
}

describe("checkConversation", () => {
  test.each<readonly [string, readonly ModelMessage[]]>([
    ["a question", [USER]],
    ["several turns", [USER, reply(call("a"), call("b")), results(answer("a"), answer("b")), TEXT, USER]],
    [
      "ids that an earlier turn had",
      [USER, reply(call("a")), results(answer("a")), reply(call("a")), results(answer("a"))],
    ],
    ["what the provider executed itself", [USER, reply(call("p", { providerExecuted: true })), USER]],
    ["two replies in a row, as a session has them", [USER, TEXT, TEXT, USER]],
  ])("takes %s", (_what, messages) => {
    expect(() => checkConversation(messages)).not.toThrow();
  });

  test.each<readonly [string, readonly ModelMessage[], string]>([
    ["nothing", [], "is empty"],
    ["a reply that stands last", [USER, TEXT], "Message 2 is a reply and stands last"],
    ["a call without a result", [USER, reply(call("a"))], "Message 2: call a has no result in its place"],
    ["one of two results missing", [USER, reply(call("a"), call("b")), results(answer("a"))], "call b has no result"],
    [
      "results in another order",
      [USER, reply(call("a"), call("b")), results(answer("b"), answer("a"))],
      "call a has no result",
    ],
    ["a message between", [USER, reply(call("a")), USER, results(answer("a"))], "call a has no result"],
    ["a result without a call", [USER, results(answer("a"))], "Message 2 has results, but no calls"],
    ["a result twice", [USER, reply(call("a")), results(answer("a"), answer("a"))], "has 1 results too many"],
    ["results twice", [USER, reply(call("a")), results(answer("a")), results(answer("a"))], "Message 4 has results"],
    ["an id twice", [USER, reply(call("a"), call("a")), results(answer("a"), answer("a"))], "two calls with the id a"],
    ["the result of another tool", [USER, reply(call("a")), results(answer("a", "pay"))], "is of another tool"],
    [
      "no object as arguments",
      [USER, reply(call("a", { input: null })), results(answer("a"))],
      "of call a are no object",
    ],
    ["a list as arguments", [USER, reply(call("a", { input: [1] })), results(answer("a"))], "of call a are no object"],
  ])("refuses %s, and tells nothing of what it holds", (_what, messages, problem) => {
    const check = () => checkConversation(messages);
    expect(check).toThrow(ConversationError);
    expect(check).toThrow(problem);
    expect(check).not.toThrow(SECRET);
  });

  test("refuses every conversation from which a result or a call was taken, or put elsewhere", () => {
    const turns = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(turns, fc.nat(), fc.nat(), fc.constantFrom(...FAULTS), (sizes, at, from, fault) => {
        const ids = sizes.map((size, turn) => Array.from({ length: size }, (_, ordinal) => `${turn}-${ordinal}`));
        checkConversation(conversation(ids, ids));
        const turn = at % sizes.length;
        const ordinal = from % (sizes[turn] ?? 1);
        fc.pre(fault !== "swap" || (sizes[turn] ?? 1) > 1);
        const spoiled = ids.map((each, index) => (index === turn ? spoil(each, ordinal, fault) : each));
        const faulty = fault === "unask" ? conversation(spoiled, ids) : conversation(ids, spoiled);
        expect(() => checkConversation(faulty)).toThrow(ConversationError);
      }),
    );
  });
});

const FAULTS = ["drop", "swap", "copy", "unask"] as const;

/** Turns that ask for calls of these ids, and have results of those. */
function conversation(asked: readonly string[][], answered: readonly string[][]): ModelMessage[] {
  const turns = asked.flatMap((ids, turn) => [
    reply(...ids.map((id) => call(id))),
    results(...(answered[turn] ?? []).map((id) => answer(id))),
  ]);
  return [USER, ...turns];
}

function spoil(ids: readonly string[], ordinal: number, fault: (typeof FAULTS)[number]): string[] {
  const id = ids[ordinal] ?? "";
  if (fault === "copy") return ids.toSpliced(ordinal, 0, id);
  const rest = ids.toSpliced(ordinal, 1);
  return fault === "swap" ? rest.toSpliced((ordinal + 1) % ids.length, 0, id) : rest;
}
