// The agent of the tests that run whole processes. Its model plays by the goal: "look 7", "send 7" or "crash".

import { defineAgent, defineTool, ToolError } from "@holdpoint/runtime";
import { type ScriptedReply, type ScriptedTurn, scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

type Prompt = Parameters<Extract<ScriptedTurn, (...args: never[]) => unknown>>[0]["prompt"];

export const COURIER = { name: "courier", version: "1" } as const;

export async function openAgents(env: NodeJS.ProcessEnv) {
  const { OUTSIDE_URL: outside = "" } = env;
  const ask = async (
    path: string,
    query: Record<string, string>,
    signal: AbortSignal,
  ): Promise<{ found?: boolean }> => {
    const response = await fetch(`${outside}/${path}?${new URLSearchParams(query)}`, { signal });
    return response.json() as Promise<{ found?: boolean }>; // the outside of the same tests
  };
  const input = z.object({ order: z.string() });
  const look = defineTool({
    name: "look",
    description: "Looks an order up",
    input,
    effect: "read",
    execute: async ({ order }, { signal }) => {
      await ask("look", { order }, signal);
      return { order };
    },
  });
  const send = defineTool({
    name: "send",
    description: "Sends an order",
    input,
    effect: { lookUp: { settlesWithinMs: 0 } },
    execute: async ({ order }, { operationId, signal }) => {
      await ask("send", { order, operation: operationId }, signal);
      return { sent: order };
    },
    reconcile: async ({ order }, { operationId, signal }) => {
      const { found } = await ask("find", { order, operation: operationId }, signal);
      return found === true ? { answer: "happened", output: { sent: order } } : { answer: "did_not_happen" };
    },
  });
  const crash = defineTool({
    name: "crash",
    description: "Ends its own process",
    input,
    effect: "read",
    execute: async () => {
      process.kill(process.pid, "SIGKILL");
      throw new ToolError("It lives on.", { errorClass: "caller", code: "alive" });
    },
  });
  const agent = defineAgent({
    ...COURIER,
    model: scriptedModel([play("look"), play("send"), () => ({ text: "Done." })]),
    instructions: "You carry things.",
    tools: [look, send, crash],
    complete: () => ({ kind: "succeeded" }),
  });
  return { agents: [agent], close: async () => undefined };
}

function play(tool: "look" | "send"): (options: { prompt: Prompt }) => ScriptedReply {
  return ({ prompt }) => {
    const [verb = "", order = "0"] = goalOf(prompt).split(" ");
    if (verb === "crash") return { calls: [{ tool: "crash", input: { order } }] };
    if (tool === "send" && verb === "look") return { text: "Done." };
    return { calls: [{ tool, input: { order } }] };
  };
}

function goalOf(prompt: Prompt): string {
  const first = prompt.find(({ role }) => role === "user");
  const [part] = first === undefined || typeof first.content === "string" ? [] : first.content;
  return part?.type === "text" ? part.text : "";
}
