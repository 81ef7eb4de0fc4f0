// The agents of a worker that is killed: a call goes on until its process is, and is answered at once in the next.

import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineTool } from "@holdpoint/runtime";
import { z } from "zod";
import { stayingAgent } from "./staying-agent.ts";

const LONG_MS = 600_000;

export async function openAgents({ BENCH_FOLDER: folder = "" }: NodeJS.ProcessEnv) {
  const stay = defineTool({
    name: "stay",
    description: "Stays until its process is killed",
    input: z.object({}),
    effect: "read",
    execute: async (_, { operationId, signal }) => {
      const mark = join(folder, operationId);
      if (await exists(mark)) return { ok: true };
      await writeFile(mark, "");
      await sleep(LONG_MS, undefined, { signal });
      return { ok: false };
    },
  });
  const agent = stayingAgent(stay);
  return { agents: [agent], close: async () => undefined };
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}
