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
      settlement: null,
    });
    expect(tool).toMatchObject({ throttledForMs: 172_800_000, service: "tool:pay", abortable: false, rules: [] });
    expect(tool.externalRef("paid")).toBeNull();
    expect(tool.isPending("paid")).toBe(false);
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
      modelRetries: 1,
      modelThrottledForMs: 172_800_000,
      modelService: "model:holdpoint-testkit/scripted",
      idleMs: 180_000,
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
    [-5, null],
    [0, null],
    [1.5, 2],
    [Number.POSITIVE_INFINITY, 604_800_000],
    [86_400_000, 86_400_000],
  ])("bounds a wait of %s ms to %s", (retryAfterMs, kept) => {
    const fields = retryAfterMs === undefined ? {} : { retryAfterMs };
    expect(new ToolError("later", { errorClass: "throttled", code: "busy", ...fields }).retryAfterMs).toBe(kept);
  });
});

interface Paid {
  readonly [key: string]: string | Date | bigint;
  readonly id: string;
  readonly at: Date;
  readonly units: bigint;
}
const paid: Paid = { id: "p1", at: new Date(0), units: 2n };

// What must compile: an output's type comes from `execute`, wherever it stands, and takes what can be stored.
export const rightDefinitions = [
  () =>
    defineTool({
      ...base,
      effect: "unsafe",
      execute: async ({ amount }) => ({ ...paid, id: amount }),
      settlement: {
        isPending: (output) => output.at.getTime() === 0,
        poll: async ({ amount }, { output }) => ({
          answer: "settled",
          output: { ...output, id: amount, units: output.units + 1n },
        }),
      },
      externalRef: (output) => output.id,
    }),
  () =>
    defineTool({
      ...base,
      settlement: {
        isPending: (output: Paid) => output.at.getTime() === 0,
        poll: async (input: { amount: string }, { output }: { output: Paid }) => ({
          answer: "settled",
          output: { ...output, id: input.amount },
        }),
      },
      effect: "unsafe",
      externalRef: (output: Paid) => output.id,
      execute: async ({ amount }) => ({ ...paid, id: amount }),
    }),
  () =>
    defineTool({
      ...base,
      input: z.object({
        due: z.codec(z.iso.datetime(), z.date(), { decode: (text) => new Date(text), encode: String }),
      }),
      effect: "read",
      execute: async ({ due }) => due.getTime(),
    }),
];

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
  // @ts-expect-error a Map is no data that could be stored
  () => defineTool({ ...base, effect: "read", execute: async () => new Map([["a", 1]]) }),
  () =>
    defineTool({
      ...base,
      effect: "unsafe",
      execute: async () => ({ id: "p1", at: new Date() }),
      // @ts-expect-error a poll brings what execute gives
      settlement: { isPending: () => true, poll: async () => ({ answer: "settled", output: { id: "p1" } }) },
    }),
  // @ts-expect-error an effect is one of the known ones
  () => defineTool({ ...base, effect: "write" }),
  () =>
    defineTool({
      ...base,
      effect: "unsafe",
      // @ts-expect-error silence never releases an effect
      rules: [{ name: "r", ask: { roles: ["m"], onDeadline: "approve" } }],
    }),
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
