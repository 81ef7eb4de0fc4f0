import type { AgentRef, JsonObject, PolicyRule, Presentation } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** A tool as its agent has registered it: enough to judge edited arguments where no agent code runs. */
export interface RegisteredTool {
  readonly name: string;
  readonly description: string;
  readonly effect: "read" | "effect";
  /** What arguments must look like, as JSON schema. */
  readonly inputSchema: JsonObject;
  readonly rules: readonly PolicyRule[];
  readonly presentation: Presentation;
}

/** An agent as workers have registered it: what a client can submit runs to. */
export interface RegisteredAgent extends AgentRef {
  readonly tools: readonly RegisteredTool[];
}

/** Makes an agent known; the same name and version again takes the newer description. */
export async function registerAgent(store: Store, agent: RegisteredAgent): Promise<void> {
  await execute(store, REGISTER, [store.tenantId, agent.name, agent.version, JSON.stringify(agent.tools)]);
}

/** Every agent that has been registered, by name and version. */
export function listAgents(store: Store): Promise<readonly RegisteredAgent[]> {
  return execute<{ name: string; version: string; tools: readonly RegisteredTool[] }>(store, LIST, [store.tenantId]);
}

const REGISTER = statement(
  "register_agent",
  `insert into holdpoint.agents (tenant_id, name, version, tools) values ($1::uuid, $2, $3, $4::jsonb)
   on conflict (tenant_id, name, version) do update set tools = excluded.tools, registered_at = holdpoint.clock()`,
);

const LIST = statement(
  "list_agents",
  "select name, version, tools from holdpoint.agents where tenant_id = $1::uuid order by name, version",
);
