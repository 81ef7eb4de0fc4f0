import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, defineTool } from "@holdpoint/runtime";
import { z } from "zod";
import { BUSY_WORK } from "./busy-work.ts";
import { stayingAgent } from "./staying-agent.ts";

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
  return stayingAgent(stay);
}
