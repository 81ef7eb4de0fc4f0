import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, defineAgent, defineTool } from "@holdpoint/runtime";
import { z } from "zod";
import { scriptedModel } from "./bench-agent.ts";
import { BUSY_WORK } from "./busy-work.ts";
import { BENCH_AGENT } from "./product.ts";

const LONG_MS = 600_000;

/** An agent whose process is warm after some runs, and whose runs then keep their slots until the process is stopped. */
export function busyAgent(): Agent {
  let calls = 0;
  const stay = defineTool({
    name: "stay",
    description: "Keeps its run's slot",
    input: z.object({}),
    effect: "read",
    execute: async (_, { signal }) => {
      calls += 1;
      if (calls > BUSY_WORK.warmUpCalls) await sleep(LONG_MS, undefined, { signal });
      return { ok: true };
    },
  });
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
