import { type Agent, defineAgent, defineTool } from "@holdpoint/runtime";
import { z } from "zod";
import { type Content, scriptedModel } from "./bench-agent.ts";
import { BENCH_AGENT } from "./product.ts";
import { tellReached } from "./worker-channel.ts";

const look = defineTool({
  name: "look",
  description: "Looks one thing up",
  input: z.object({}),
  effect: "read",
  execute: async () => {
    tellReached("started"); // it is called when the reply that asks for it is durable
    return { ok: true };
  },
});

const pass = defineTool({
  name: "pass",
  description: "Passes what a manager has released",
  input: z.object({}),
  effect: "read",
  rules: [{ name: "a_manager", ask: { roles: ["manager"] } }],
  execute: async () => ({ ok: true }),
});

/** The agent of `HELD_WORK`. */
export function heldAgent(): Agent {
  return defineAgent({
    ...BENCH_AGENT,
    model: scriptedModel(replyOf),
    instructions: "Look, then pass.",
    tools: [look, pass],
    complete: () => ({ kind: "succeeded" }),
    limits: { turns: 3, tokens: Number.MAX_SAFE_INTEGER },
  });
}

function replyOf(turn: number): Content {
  const tool = [look, pass][turn];
  if (tool !== undefined) return [{ type: "tool-call", toolCallId: `call_${turn}`, toolName: tool.name, input: "{}" }];
  tellReached("continued"); // the model is asked again when the result of what was released is durable
  return [{ type: "text", text: "It is passed." }];
}
