import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, resolveModel, ToolError } from "../src/index.ts";
import { anAgent, findOrder } from "./parts.ts";

const base = {
  name: "pay",
  description: "Pays",
  input: z.object({ amount: z.string() }),
  execute: async () => "paid",
};

describe("defineTool", () => {
  test("fills in the usual terms", () => {
    const tool = defineTool({
      ...base,
      effect: { key: { validForMs: 5 }, lookUp: {} },
      reconcile: async () => ({ answer: "unknown" }),
    });
    expect(tool).toMatchObject({ timeoutMs: 30_000, retries: 1, firstDelayMs: 1_000 });
    expect(tool.effect).toEqual({
      kind: "effect",
      keyValidForMs: 5,
      lookUpSettlesWithinMs: 60_000,
      equalCallsAreDistinct: false,
    });
    expect(tool.externalRef("paid")).toBeNull();
    expect(tool.policy({ amount: "1" }, "alice")).toBeNull();
  });

  test.each([
    ["a name that providers refuse", { name: "send refund" }, /Tool name "send refund"/],
    ["no timeout", { timeoutMs: 0 }, /timeoutMs is 0/],
    ["a timeout that no timer keeps", { timeoutMs: 2 ** 31 }, /timeoutMs is 2147483648/],
    ["half a millisecond", { timeoutMs: 0.5 }, /timeoutMs is 0.5/],
    ["negative retries", { retry: { retries: -1 } }, /retry.retries is -1/],
    ["a delay that is no number", { retry: { firstDelayMs: Number.NaN } }, /retry.firstDelayMs is NaN/],
  ])("refuses %s", (_what, wrong, message) => {
    expect(() => defineTool({ ...base, effect: "unsafe", ...wrong })).toThrow(message);
  });

  test("refuses a key without validity and a negative settle time", () => {
    expect(() => defineTool({ ...base, effect: { key: { validForMs: 0 } } })).toThrow(/key.validForMs is 0/);
    const reconcile = async () => ({ answer: "unknown" }) as const;
    expect(() => defineTool({ ...base, effect: { lookUp: { settlesWithinMs: -1 } }, reconcile })).toThrow(
      /settlesWithinMs is -1/,
    );
  });
});

describe("defineAgent", () => {
  test.each([
    ["a name with capitals", { name: "Desk" }, /Agent name "Desk"/],
    ["an empty version", { version: "" }, /version ""/],
    ["two tools of one name", { tools: [findOrder, findOrder] }, /two of its tools have one name/],
    ["no turns", { limits: { turns: 0 } }, /limits.turns is 0/],
    ["tokens that are no number", { limits: { tokens: Number.NaN } }, /limits.tokens is NaN/],
    ["a model timeout below a millisecond", { modelTimeoutMs: 0.1 }, /modelTimeoutMs is 0.1/],
    ["endless retries", { modelRetries: Number.POSITIVE_INFINITY }, /modelRetries is Infinity/],
  ])("refuses %s", (_what, wrong, message) => {
    expect(() => anAgent(wrong)).toThrow(message);
  });

  test("fills in the usual terms", () => {
    expect(anAgent({ limits: { turns: 3 } })).toMatchObject({
      onBlocked: "operator",
      limits: { turns: 3, tokens: 1_000_000 },
      modelTimeoutMs: 120_000,
      modelRetries: 2,
    });
  });
});

describe("resolveModel", () => {
  test.each([
    ["gpt", {}, /must be anthropic, openai or compatible/],
    ["openai/", {}, /has no model id/],
    ["mistral/large", {}, /must be anthropic, openai or compatible/],
    ["anthropic/claude", {}, /needs ANTHROPIC_API_KEY/],
    ["openai/gpt", { OPENAI_API_KEY: "" }, /needs OPENAI_API_KEY/],
    ["compatible/llama", {}, /needs HOLDPOINT_MODEL_BASE_URL/],
  ])("says what is wrong with %s", (name, env, message) => {
    expect(() => resolveModel(name, env)).toThrow(message);
  });

  test.each([
    ["anthropic/claude-x", { ANTHROPIC_API_KEY: "k" }, "claude-x"],
    ["openai/gpt-x", { OPENAI_API_KEY: "k" }, "gpt-x"],
    ["compatible/meta/llama", { HOLDPOINT_MODEL_BASE_URL: "http://127.0.0.1:1" }, "meta/llama"],
  ])("gives a model for %s", (name, env, modelId) => {
    expect(resolveModel(name, env)).toMatchObject({ modelId });
  });
});

describe("ToolError", () => {
  test.each([
    [undefined, null],
    [Number.NaN, null],
    [-5, 0],
    [1.5, 2],
    [Number.POSITIVE_INFINITY, 3_600_000],
  ])("bounds a wait of %s ms to %s", (retryAfterMs, kept) => {
    const fields = retryAfterMs === undefined ? {} : { retryAfterMs };
    expect(new ToolError("later", { errorClass: "throttled", code: "busy", ...fields }).retryAfterMs).toBe(kept);
  });
});

// What must not compile; tsc fails where an expected error is missing.
export const wrongDefinitions = [
  // @ts-expect-error a tool with a look-up must say how
  () => defineTool({ ...base, effect: { lookUp: {} } }),
  // @ts-expect-error without a look-up nobody would ask it
  () => defineTool({ ...base, effect: "unsafe", reconcile: async () => ({ answer: "unknown" }) }),
  // @ts-expect-error a read has nothing to look up
  () => defineTool({ ...base, effect: "read", reconcile: async () => ({ answer: "unknown" }) }),
  // @ts-expect-error the input has no order
  () => defineTool({ ...base, effect: "read", execute: async ({ order }: { order: string }) => order }),
  () =>
    defineTool({
      ...base,
      effect: { lookUp: {} },
      // @ts-expect-error a look-up gives what execute gives
      reconcile: async () => ({ answer: "happened", output: 7 }),
    }),
  // @ts-expect-error what is stored is JSON
  () => defineTool({ ...base, effect: "read", execute: async () => new Date() }),
  // @ts-expect-error an effect is one of the known ones
  () => defineTool({ ...base, effect: "write" }),
  // @ts-expect-error silence never releases an effect
  () => defineTool({ ...base, effect: "unsafe", approval: () => ({ rule: "r", roles: ["m"], onDeadline: "approve" }) }),
  () =>
    defineAgent({
      name: "a",
      version: "1",
      // @ts-expect-error a bare name would go to the SDK's gateway
      model: "openai/gpt",
      instructions: "",
      tools: [],
      complete: () => null,
    }),
];
