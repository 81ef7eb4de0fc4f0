import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { RequestedCall } from "../src/call-model.ts";
import { defineTool, type Policy } from "../src/index.ts";
import { hashOf, judgeCalls } from "../src/judge-calls.ts";
import { anAgent } from "./parts.ts";

const asked: unknown[] = [];

const refund = (policy: Policy = null) =>
  defineTool({
    name: "send_refund",
    description: "Sends money back",
    input: z.object({ order: z.string(), amount: z.string() }),
    effect: "unsafe",
    approval: (input) => {
      asked.push(input);
      return policy;
    },
    execute: async () => "sent",
  });

const request = (input: unknown, overrides: Partial<RequestedCall> = {}): RequestedCall => ({
  toolCallId: "t1",
  tool: "send_refund",
  input,
  problem: null,
  ...overrides,
});

function judge(requests: readonly RequestedCall[], policy: Policy = null) {
  asked.length = 0;
  return judgeCalls(anAgent({ tools: [refund(policy)] }), requests, { turn: 3, requester: "alice" });
}

describe("judgeCalls", () => {
  test("freezes what can be stored and read back: a value that is not there leaves no key", () => {
    const noted = defineTool({
      name: "send_refund",
      description: "Sends money back",
      // A schema may give `undefined`, which is no JSON.
      input: z.object({
        note: z
          .string()
          .nullish()
          .transform((note) => note ?? undefined),
      }) as unknown as z.ZodType<{ note: string }>,
      effect: "unsafe",
      execute: async () => "sent",
    });
    const agent = anAgent({ tools: [noted] });
    const [call] = judgeCalls(agent, [request({ note: null })], { turn: 1, requester: "alice" });
    expect(call?.args).toStrictEqual({});
    expect(call?.argsHash).toBe(hashOf("send_refund", {}));
  });

  test("cuts a name that the model made up to the length that tools may have", () => {
    const [call] = judge([request({}, { tool: "x".repeat(3_000) })]);
    expect(call).toMatchObject({ tool: "x".repeat(64), verdict: { kind: "invalid" } });
  });

  test.each([
    ["null", null],
    ["an array", [1]],
    ["a string", "4411"],
    ["nothing", undefined],
    ["a wrong type", { order: 4411, amount: "1.00" }],
    ["a missing field", { order: "4411" }],
    ["only a prototype", JSON.parse('{"__proto__":{"order":"4411","amount":"1.00"}}')],
  ])("makes %s an invalid call that policy never sees", (_what, input) => {
    const [call] = judge([request(input)], { rule: "all", roles: ["manager"] });
    expect(call?.verdict).toMatchObject({ kind: "invalid", message: expect.stringContaining("do not fit") });
    expect(call?.args).toEqual({});
    expect(asked).toEqual([]);
  });

  test("passes on what the SDK says of broken JSON", () => {
    const [call] = judge([request({}, { problem: "The arguments are not valid JSON." })]);
    expect(call?.verdict).toEqual({ kind: "invalid", message: "The arguments are not valid JSON." });
  });

  test("makes a call of an unknown tool invalid", () => {
    const [call] = judge([request({}, { tool: "rm_rf" })]);
    expect(call).toMatchObject({ tool: "rm_rf", verdict: { kind: "invalid", message: "There is no tool rm_rf." } });
  });

  test("freezes what the schema gives: extra fields and prototypes are not part of it", () => {
    const input = JSON.parse('{"order":"4411","amount":"1.00","note":"x","__proto__":{"admin":true}}');
    const [call] = judge([request(input)]);
    expect(call?.verdict).toEqual({ kind: "allowed" });
    expect(call?.args).toEqual({ order: "4411", amount: "1.00" });
    expect(asked).toEqual([{ order: "4411", amount: "1.00" }]);
    expect(Reflect.get(Object(call?.args), "admin")).toBeUndefined();
  });

  test("keeps model order and mints an operation id for each, also for equal calls", () => {
    const same = { order: "4411", amount: "1.00" };
    const calls = judge([request(same), request(same, { toolCallId: "t2" }), request(null, { toolCallId: "t3" })]);
    expect(calls.map(({ ordinal, toolCallId, turn }) => [ordinal, toolCallId, turn])).toEqual([
      [0, "t1", 3],
      [1, "t2", 3],
      [2, "t3", 3],
    ]);
    expect(new Set(calls.map(({ operationId }) => operationId)).size).toBe(3);
    expect(calls[0]?.argsHash).toBe(calls[1]?.argsHash);
  });

  test("hashes tool and arguments, whatever order the keys came in", () => {
    expect(hashOf("a", { x: 1, y: { b: 2, a: 1 } })).toBe(hashOf("a", { y: { a: 1, b: 2 }, x: 1 }));
    expect(hashOf("a", { x: 1 })).not.toBe(hashOf("b", { x: 1 }));
    expect(hashOf("a", { x: 1 })).not.toBe(hashOf("a", { x: "1" }));
  });

  test("freezes text that can be stored", () => {
    const [call] = judge([request({ order: "44\u000011", amount: "\ud800" })]);
    expect(call?.args).toEqual({ order: "44\ufffd11", amount: "\ufffd" });
  });

  const good = { order: "4411", amount: "1.00" };

  test("asks for an approval with the rule's own terms, or a day each", () => {
    const [own] = judge([request(good)], {
      rule: "r",
      users: ["mona"],
      deadlineMs: 5,
      validForMs: 7,
      onDeadline: "operator",
    });
    expect(own?.verdict).toEqual({
      kind: "needs_approval",
      approval: {
        rule: "r",
        approvers: { roles: [], users: ["mona"] },
        deadlineMs: 5,
        validForMs: 7,
        onDeadline: "operator",
      },
    });
    const [usual] = judge([request(good)], { rule: "r", roles: ["manager"] });
    expect(usual?.verdict).toMatchObject({
      approval: { deadlineMs: 86_400_000, validForMs: 86_400_000, onDeadline: "reject" },
    });
  });

  test("denies with the rule and what the model is told", () => {
    const [call] = judge([request(good)], { rule: "closed", deny: "The desk is closed." });
    expect(call?.verdict).toEqual({ kind: "denied", rule: "closed", message: "The desk is closed." });
  });

  test("does not ask for an approval that nobody could give", () => {
    expect(() => judge([request(good)], { rule: "nobody" })).toThrow(
      /send_refund: rule nobody names no role and no user/,
    );
  });
});
