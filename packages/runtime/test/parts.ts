import type { Call, Step, StepBody } from "@holdpoint/core";
import { scriptedModel } from "@holdpoint/testkit";
import { z } from "zod";
import { type Agent, type AgentDefinition, defineAgent, defineTool } from "../src/index.ts";

/** A call of the first turn, allowed and a read unless said otherwise. */
export function aCall(overrides: Partial<Call> = {}): Call {
  return {
    id: "call-1",
    turn: 1,
    ordinal: 0,
    toolCallId: "t1",
    tool: "find_order",
    args: { order: "4411" },
    argsHash: "hash",
    operationId: "op_1",
    effect: { kind: "read" },
    verdict: { kind: "allowed" },
    timeoutMs: 1_000,
    retries: 1,
    throttledForMs: 60_000,
    service: "orders",
    ...overrides,
  };
}

/** The properties of an effect with neither key nor look-up. */
export const UNSAFE = {
  kind: "effect",
  keyValidForMs: null,
  lookUpSettlesWithinMs: null,
  equalCallsAreDistinct: false,
  settlement: null,
} as const;

export function steps(...bodies: readonly StepBody[]): readonly Step[] {
  return bodies.map((body, index) => ({ seq: index + 1, atMs: 0, body }));
}

export const findOrder = defineTool({
  name: "find_order",
  description: "Finds an order",
  input: z.object({ order: z.string() }),
  effect: "read",
  execute: async ({ order }) => ({ order }),
});

/** An agent with one read, whose replies without calls end its runs. */
export function anAgent(overrides: Partial<AgentDefinition> = {}): Agent {
  return defineAgent({
    name: "desk",
    version: "1",
    model: scriptedModel([{ text: "done" }]),
    instructions: "You help.",
    tools: [findOrder],
    complete: () => ({ kind: "succeeded" }),
    ...overrides,
  });
}
