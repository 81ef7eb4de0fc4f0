// The agent of the tests that run a whole worker: two look-ups, and an end.
import { defineAgent, defineTool } from "@holdpoint/runtime";
import { scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

export const CLERK = { name: "clerk", version: "1" } as const;

const look = defineTool({
  name: "look",
  description: "Looks something up",
  input: z.object({ order: z.string() }),
  effect: "read",
  execute: async ({ order }) => ({ order }),
});

const calls = ["1", "2"].map((order) => ({ tool: "look", input: { order } }));

export const openAgents = async () => ({
  agents: [
    defineAgent({
      ...CLERK,
      model: scriptedModel([{ calls }, { text: "done" }]),
      instructions: "You look things up.",
      tools: [look],
      complete: () => ({ kind: "succeeded" }),
    }),
  ],
  close: async () => undefined,
});
