import { scriptedModel } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import { anAgent } from "./parts.ts";

const MINUTE_MS = 60_000;

const slow = (timeoutMs: number) =>
  defineTool({
    name: "build",
    description: "Takes its time",
    input: z.object({}),
    effect: "read",
    timeoutMs,
    execute: async () => null,
  });

test.each([
  ["the model", { modelTimeoutMs: 30 * MINUTE_MS }],
  ["a tool", { tools: [slow(30 * MINUTE_MS)] }],
] as const)("what %s may take is not taken for standing still", (_who, terms) => {
  expect(anAgent(terms).idleMs).toBe(31 * MINUTE_MS);
  expect(anAgent({ ...terms, idleMs: 30 * MINUTE_MS }).idleMs).toBe(30 * MINUTE_MS);
  expect(() => anAgent({ ...terms, idleMs: 30 * MINUTE_MS - 1 })).toThrow(/idleMs/);
});

test("a run is taken from a worker that stands still for a minute more than its longest call, unless it says otherwise", () => {
  const model = scriptedModel([]);
  expect(anAgent({ model, modelTimeoutMs: MINUTE_MS, tools: [] }).idleMs).toBe(2 * MINUTE_MS);
  expect(anAgent({ model, modelTimeoutMs: MINUTE_MS, tools: [slow(5 * MINUTE_MS)] }).idleMs).toBe(6 * MINUTE_MS);
});
