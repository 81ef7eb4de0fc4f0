import type { Call, JsonObject, JsonValue } from "@holdpoint/core";
import { hashArgs, type LoadedRun } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { approvalRequest } from "../src/approval-request.ts";
import { defineTool, type StorableObject, type ToolContext, type ToolRule } from "../src/index.ts";
import { isWhole, judgeCalls, misfitOf } from "../src/judge-calls.ts";
import type { RequestedCall } from "../src/read-calls.ts";
import { anAgent } from "./parts.ts";

const refund = (rules: readonly ToolRule[] = []) =>
  defineTool({
    name: "send_refund",
    description: "Sends money back",
    input: z.object({ order: z.string(), amount: z.string() }),
    effect: "unsafe",
    rules,
    execute: async () => "sent",
  });

const request = (input: unknown, overrides: Partial<RequestedCall> = {}): RequestedCall => ({
  toolCallId: "t1",
  tool: "send_refund",
  input,
  problem: null,
  ...overrides,
});

function judge(requests: readonly RequestedCall[], rules: readonly ToolRule[] = []) {
  return judgeCalls(anAgent({ tools: [refund(rules)] }), requests, 3);
}

const ASKS_ALWAYS: readonly ToolRule[] = [{ name: "all", ask: { roles: ["manager"] } }];

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
    const [call] = judgeCalls(agent, [request({ note: null })], 1);
    expect(call?.args).toStrictEqual({});
    expect(call?.argsHash).toBe(hashArgs("send_refund", {}));
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
    const [call] = judge([request(input)], ASKS_ALWAYS);
    expect(call?.verdict).toMatchObject({ kind: "invalid", message: expect.stringContaining("do not fit") });
    expect(call?.args).toEqual({});
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
    expect(hashArgs("a", { x: 1, y: { b: 2, a: 1 } })).toBe(hashArgs("a", { y: { a: 1, b: 2 }, x: 1 }));
    expect(hashArgs("a", { x: 1 })).not.toBe(hashArgs("b", { x: 1 }));
    expect(hashArgs("a", { x: 1 })).not.toBe(hashArgs("a", { x: "1" }));
  });

  test("freezes text that can be stored", () => {
    const [call] = judge([request({ order: "44\u000011", amount: "\ud800" })]);
    expect(call?.args).toEqual({ order: "44\ufffd11", amount: "\ufffd" });
  });

  const good = { order: "4411", amount: "1.00" };

  test("asks for an approval with the rule's own terms, or the usual ones", () => {
    const [own] = judge(
      [request(good)],
      [{ name: "r", ask: { users: ["mona", "max"], quorum: 2, deadlineMs: 5, validForMs: 7, onDeadline: "escalate" } }],
    );
    const verdict = {
      kind: "needs_approval",
      approval: { rule: "r", approvers: { roles: [], users: ["mona", "max"] } },
    };
    expect(own?.verdict).toMatchObject(verdict);
    expect(own?.verdict).toMatchObject({
      approval: { quorum: 2, deadlineMs: 5, validForMs: 7, onDeadline: "escalate" },
    });
    const [usual] = judge([request(good)], ASKS_ALWAYS);
    expect(usual?.verdict).toMatchObject({
      approval: { quorum: 1, fourEyes: true, deadlineMs: 86_400_000, validForMs: 86_400_000, onDeadline: "reject" },
    });
  });

  test("judges the frozen arguments: the first rule that is met asks, one that denies wins wherever it stands", () => {
    const above = (value: number) => [{ argument: "amount", is: ">", value }] as const;
    const rules: readonly ToolRule[] = [
      { name: "two", when: above(1_000), ask: { roles: ["finance"], quorum: 2 } },
      { name: "one", when: above(100), ask: { roles: ["manager"] } },
      { name: "never", when: above(10_000), deny: "Not by us." },
    ];
    const verdicts = ["99", "101", "1001", "10001"].map((amount) => {
      const [call] = judge([request({ order: "1", amount })], rules);
      return call?.verdict.kind === "needs_approval" ? call.verdict.approval.rule : call?.verdict.kind;
    });
    expect(verdicts).toEqual(["allowed", "one", "two", "denied"]);
  });

  test("denies with the rule and what the model is told", () => {
    const [call] = judge([request(good)], [{ name: "closed", deny: "The desk is closed." }]);
    expect(call?.verdict).toEqual({ kind: "denied", rule: "closed", message: "The desk is closed." });
  });

  test("freezes the terms of its tool: its service, its tries and how long it may be throttled", () => {
    const [call] = judge([request(good)]);
    expect(call).toMatchObject({ service: "tool:send_refund", retries: 1, throttledForMs: 172_800_000 });
  });
});

const day = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
});
const units = z.codec(z.string().regex(/^\d+$/), z.bigint(), { decode: BigInt, encode: String });
const written = { due: "2026-10-21T07:28:00.000Z", units: "9007199254740993" };

/** A payment whose arguments are no plain JSON, and what it was given. */
function aDuePayment() {
  const given: unknown[] = [];
  const tool = defineTool({
    name: "pay_later",
    description: "",
    input: z.object({ due: day, units }),
    effect: { lookUp: {} },
    presentation: { amount: { minor: "units", currency: "units" } },
    rules: [{ name: "all", ask: { roles: ["m"] } }],
    execute: async (input) => {
      given.push(input);
      return { at: input.due };
    },
    reconcile: async (input) => {
      given.push(input);
      return { answer: "unknown" };
    },
    settlement: {
      isPending: () => true,
      poll: async (input, { output }) => {
        given.push(input, output);
        return { answer: "still_pending" };
      },
    },
  });
  const agent = anAgent({ tools: [tool] });
  const [call] = judgeCalls(agent, [request(written, { tool: "pay_later" })], 1);
  if (call === undefined) throw new Error("no call was judged");
  return { tool, given, agent, call, args: call.args as JsonObject };
}

describe("arguments that are no plain JSON", () => {
  test("are frozen as they are stored, and given to the tool as its schema gave them", async () => {
    const { tool, given, args } = aDuePayment();
    expect(args).toStrictEqual({ due: { $date: written.due }, units: { $bigint: written.units } });
    expect(misfitOf(tool, args)).toBeNull();
    const input = { due: new Date(written.due), units: 9_007_199_254_740_993n };
    const context = {} as ToolContext;
    expect(await tool.execute(args, context)).toEqual({ at: input.due });
    await tool.reconcile(args, context);
    await tool.settle(args, { ...context, output: { at: { $date: written.due } } });
    expect(given).toStrictEqual([input, input, input, { at: input.due }]);
  });

  test("are shown to people as text, and are not theirs to edit", () => {
    const { agent, call } = aDuePayment();
    if (call.verdict.kind !== "needs_approval") throw new Error("nobody is asked");
    const run = { requester: "mara", submittedBy: "mara" } as LoadedRun["run"];
    const { approval } = call.verdict;
    const request = approvalRequest(
      { run, steps: [], calls: [call], memories: [] },
      { call, approval, editedBy: null, agent },
    );
    const dueText = expect.stringContaining("2026");
    expect(request.request).toMatchObject({ redactedArgs: { due: dueText, units: written.units }, editSchema: null });
    expect(request.terms.decisions).not.toContain("approve_with_edits");
    expect(approval.decisions).toContain("approve_with_edits");
  });

  test("do not fit where a transform goes one way only, unless it changes nothing the second time", () => {
    const tool = (input: z.ZodType<StorableObject>) =>
      defineTool({ name: "pay", description: "", input, effect: "unsafe", execute: async () => "paid" });
    const oneWay = tool(z.object({ due: z.iso.datetime().transform((text) => new Date(text)) }));
    const trims = tool(z.object({ note: z.string().transform((text) => text.trim()) }));
    expect(misfitOf(oneWay, { due: { $date: written.due } })).toContain("at due");
    expect(misfitOf(trims, { note: "x" })).toBeNull();
  });

  test("are refused where the schema gives what is no data", () => {
    const input = z.object({ order: z.string().transform((text) => new Map([[text, 1]])) });
    const tool = defineTool({
      name: "send_refund",
      description: "",
      input: input as unknown as z.ZodType<StorableObject>,
      effect: "unsafe",
      execute: async () => "sent",
    });
    const [call] = judgeCalls(anAgent({ tools: [tool] }), [request({ order: "1" })], 1);
    expect(call).toMatchObject({ args: {}, verdict: { kind: "invalid", message: expect.stringContaining("stored") } });
  });
});

describe("defineTool, its rules", () => {
  test.each([
    ["an approval that nobody could give", [{ name: "r", ask: {} }], /rule r names no role and no user/],
    [
      "more approvals than people are asked",
      [{ name: "r", ask: { users: ["a"], quorum: 2 } }],
      /rule r: 2 have to approve, and fewer are asked/,
    ],
    [
      "an escalation to nobody",
      [{ name: "r", ask: { roles: ["m"], escalation: [{ deadlineMs: 1 }] } }],
      /rule r names no role and no user/,
    ],
    ["reminders that do not ascend", [{ name: "r", ask: { roles: ["m"], remindAfterMs: [2, 2] } }], /must ascend/],
    ["two rules of one name", [ASKS_ALWAYS[0], ASKS_ALWAYS[0]] as ToolRule[], /two of its rules have one name/],
  ] as const)("do not ask for %s", (_what, rules, message) => {
    expect(() => refund(rules)).toThrow(message);
  });
});

describe("isWhole", () => {
  test("takes a call as it was frozen, or loaded again, and none whose row was changed", () => {
    const [call] = judge([request({ order: "4411", amount: "1.00" })]);
    if (call === undefined) throw new Error("no call was judged");
    const loaded = JSON.parse(JSON.stringify(call));
    expect([call, loaded, loaded].map(isWhole)).toEqual([true, true, true]);
    const changed = [
      { ...call, args: { order: "4411", amount: "100.00" } },
      { ...call, tool: "send_money" },
      { ...call, argsHash: hashArgs("send_refund", {}) },
    ];
    expect([...changed, ...changed].map(isWhole)).toEqual(Array(6).fill(false));
  });

  test("hashes the arguments of one call once, however often it is looked at", () => {
    const [call] = judge([request({ order: "4411", amount: "1.00" })]);
    if (call === undefined) throw new Error("no call was judged");
    let hashed = 0;
    const counted = (order: JsonValue): Call => ({
      ...call,
      args: {
        get order() {
          hashed += 1;
          return order;
        },
        amount: "1.00",
      },
    });
    const [same, other] = [counted("4411"), counted("4412")];
    expect([same, same, same, other, other].map(isWhole)).toEqual([true, true, true, false, false]);
    expect(hashed).toBe(3);
  });
});

describe("misfitOf", () => {
  const tool = defineTool({
    name: "pay",
    description: "",
    input: z.object({ amount: z.string().regex(/^\d+$/), note: z.string().default("none") }),
    effect: "unsafe",
    execute: async () => "paid",
  });

  test.each([
    ["nothing for what is as it would read it", { amount: "5", note: "x" }, null],
    ["nothing for another order of the keys", { note: "x", amount: "5" }, null],
    ["what it would add", { amount: "5" }, "otherwise"],
    ["what it would leave out", { amount: "5", note: "x", extra: 1 }, "otherwise"],
    ["a check of its own that fails", { amount: "five", note: "x" }, "at amount"],
    ["what is no object", null, "expected object"],
  ])("says %s", (_what, args, misfit) => {
    const found = misfitOf(tool, args);
    if (misfit === null) expect(found).toBeNull();
    else expect(found).toContain(misfit);
  });
});
