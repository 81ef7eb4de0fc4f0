import { type Agent, defineAgent, type Tool } from "@holdpoint/runtime";
import { scriptedModel } from "./bench-agent.ts";
import { BENCH_AGENT } from "./product.ts";

/** An agent that calls a tool which stays, and says afterwards that it has. */
export function stayingAgent(stay: Tool): Agent {
  return defineAgent({
    ...BENCH_AGENT,
    model: scriptedModel((turn) =>
      turn === 0
        ? [{ type: "tool-call", toolCallId: "call_0", toolName: stay.name, input: "{}" }]
        : [{ type: "text", text: "It has stayed." }],
    ),
    instructions: "Stay.",
    tools: [stay],
    complete: () => ({ kind: "succeeded" }),
    limits: { turns: 2, tokens: Number.MAX_SAFE_INTEGER },
  });
}
