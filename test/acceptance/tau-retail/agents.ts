// The agents of the acceptance test's workers: the recorded model, and the store's tools over HTTP.
import { type Agent, defineAgent, defineTool, type Tool, type ToolContext } from "@holdpoint/runtime";
import { z } from "zod";
import { RETAIL_AGENT } from "./agent-name.ts";
import { createRecordedModel } from "./recorded-model.ts";
import { findRetailData, loadTasks } from "./retail-data.ts";
import { TOOL_OFFERS, type ToolName } from "./retail-store.ts";
import { isToolName, TOOL_INPUTS } from "./store/tool-inputs.ts";
import { createStoreClient, type StoreClient } from "./store-client.ts";
import { taskOfRequester } from "./task-requester.ts";

/** A call's deadline; a reply that is held back for longer than this is an unknown outcome. */
const TIMEOUT_MS = 8_000;
/** How long after the deadline a request of a dead process may still reach the store. */
const SETTLES_WITHIN_MS = 2_000;
const KEY_VALID_MS = 3_600_000;
const NO_RETRY = { retries: 0 } as const;

type Arguments = Record<string, string | string[]>;

/**
 * Opens the agents for a worker. Reads RETAIL_STORE_URL, and the tasks from where `findRetailData` finds them.
 *
 * @throws {Error} the store's address or the data is missing.
 */
export async function openAgents(
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly agents: readonly Agent[]; readonly close: () => Promise<void> }> {
  const url = z.url({ error: "RETAIL_STORE_URL must be the retail store's address" }).parse(env.RETAIL_STORE_URL);
  const folder = findRetailData(env);
  if (folder === null) throw new Error("the tau-retail data is absent: set HOLDPOINT_RETAIL_DATA");
  const store = createStoreClient(url);
  const agent = defineAgent({
    ...RETAIL_AGENT,
    model: createRecordedModel(await loadTasks(folder, "base")),
    instructions: "You serve the customers of a retail store.",
    tools: Object.keys(TOOL_INPUTS)
      .filter(isToolName)
      .map((name) => storeTool(store, name)),
    // The recording speaks only after its last call has a result, and refuses any other history.
    complete: () => ({ kind: "succeeded" }),
  });
  return { agents: [agent], close: async () => undefined };
}

function storeTool(store: StoreClient, name: ToolName): Tool {
  const input: z.ZodType<Arguments> = TOOL_INPUTS[name];
  const base = {
    name,
    description: name.replaceAll("_", " "),
    input,
    timeoutMs: TIMEOUT_MS,
    retry: NO_RETRY,
    execute: (args: Arguments, context: ToolContext) => callStore(store, { name, args }, context),
  };
  const rules = [{ name: "every_write", ask: { roles: ["manager"] } }];
  switch (TOOL_OFFERS[name]) {
    case "read":
      return defineTool({ ...base, effect: "read" });
    case "key":
      return defineTool({ ...base, rules, effect: { key: { validForMs: KEY_VALID_MS } } });
    case "look-up":
      return defineTool({
        ...base,
        rules,
        effect: { lookUp: { settlesWithinMs: SETTLES_WITHIN_MS } },
        reconcile: (_args, context) => lookUp(store, context),
      });
  }
}

/** A refusal by the store is a normal result: the model reads "Error: …" and goes on. */
async function callStore(
  store: StoreClient,
  { name, args }: { readonly name: ToolName; readonly args: Arguments },
  { requester, operationId, signal }: ToolContext,
): Promise<string> {
  const call = { task: taskOfRequester(requester), tool: name, arguments: args, operationId, workerPid: process.pid };
  return (await store.callTool(call, signal)).content;
}

async function lookUp(store: StoreClient, { operationId, signal }: ToolContext) {
  const [first] = await store.findExecutions(operationId, signal);
  if (first === undefined) return { answer: "did_not_happen" } as const;
  return { answer: "happened", output: first.result } as const;
}
