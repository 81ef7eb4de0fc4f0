import type { AgentRef, EffectProperties, JsonObject, PolicyRule, Presentation, TaskTerms } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** Who works on an agent's runs: our workers, with a model or by a graph, or somebody else. */
export type AgentKind = "agent" | "workflow" | "task";

/** A tool as its agent has registered it: enough to judge edited arguments where no agent code runs. */
export interface RegisteredTool {
  readonly name: string;
  readonly description: string;
  readonly effect: EffectProperties["kind"];
  /** What arguments must look like, as JSON schema. */
  readonly inputSchema: JsonObject;
  readonly rules: readonly PolicyRule[];
  readonly presentation: Presentation;
}

/** An agent as workers have registered it: what a client can submit runs to. */
export interface RegisteredAgent extends AgentRef {
  readonly tools: readonly RegisteredTool[];
  /** `agent` if nothing is said. */
  readonly kind?: AgentKind;
  /** Of a task, and of nothing else. */
  readonly task?: TaskTerms | null;
  /** What the runs of a workflow are given, as JSON schema; null where nothing is checked. */
  readonly inputSchema?: JsonObject | null;
}

/**
 * Makes an agent known; the same name and version again takes the newer description.
 *
 * @throws {Error} the name and version are known as a task, or as what our workers do: the runs that are under way would
 * change hands.
 */
export async function registerAgent(store: Store, agent: RegisteredAgent): Promise<void> {
  if (await register(store, agent)) return;
  const other = agent.task == null ? "a task" : "no task";
  throw new Error(
    `${agent.name}@${agent.version} is registered already as ${other}. Register it under another name or version.`,
  );
}

/** Makes a task known. False if the name and version are known as what our workers do. */
export function registerTask(store: Store, { name, version }: AgentRef, task: TaskTerms): Promise<boolean> {
  return register(store, { name, version, tools: [], task });
}

async function register(store: Store, agent: RegisteredAgent): Promise<boolean> {
  const { name, version, tools, task = null, kind = task === null ? "agent" : "task", inputSchema = null } = agent;
  const terms = task === null ? null : JSON.stringify(task);
  const schema = inputSchema === null ? null : JSON.stringify(inputSchema);
  const rows = await execute(store, REGISTER, [
    store.tenantId,
    name,
    version,
    JSON.stringify(tools),
    kind,
    terms,
    schema,
  ]);
  return rows.length > 0;
}

/** Every agent that has been registered, by name and version. */
export function listAgents(store: Store): Promise<readonly RegisteredAgent[]> {
  return execute<Required<RegisteredAgent>>(store, LIST, [store.tenantId]);
}

/** An agent by name and version, as it was registered; null if it was not. */
export async function findAgent(store: Store, { name, version }: AgentRef): Promise<Required<RegisteredAgent> | null> {
  const [agent] = await execute<Required<RegisteredAgent>>(store, FIND, [store.tenantId, name, version]);
  return agent ?? null;
}

const REGISTER = statement(
  "register_agent",
  `insert into holdpoint.agents (tenant_id, name, version, tools, kind, task, input_schema)
   values ($1::uuid, $2, $3, $4::jsonb, $5, $6::jsonb, $7::jsonb)
   on conflict (tenant_id, name, version) do update
   set tools = excluded.tools, kind = excluded.kind, task = excluded.task, input_schema = excluded.input_schema,
     registered_at = holdpoint.clock()
   where (agents.kind = 'task') = (excluded.kind = 'task')
   returning name`,
);

const COLUMNS = `name, version, tools, kind, task, input_schema as "inputSchema"`;

const LIST = statement(
  "list_agents",
  `select ${COLUMNS} from holdpoint.agents where tenant_id = $1::uuid order by name, version`,
);

const FIND = statement(
  "find_agent",
  `select ${COLUMNS} from holdpoint.agents where tenant_id = $1::uuid and name = $2 and version = $3`,
);
