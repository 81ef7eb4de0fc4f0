import type { Runnable, Task } from "@holdpoint/runtime";

/** What a worker runs, and what that holds open. */
export interface OpenedAgents {
  /** Agents, and workflows that are bound to their tools. */
  readonly agents: readonly Runnable[];
  /** What they have done elsewhere, to be made known. */
  readonly tasks?: readonly Task[];
  close(): Promise<void>;
}

/**
 * Loads the agents from a module's `openAgents(env)`.
 *
 * @throws {Error} the module cannot be loaded or does not give agents; says what is expected.
 */
export async function loadAgents(module: string, env: NodeJS.ProcessEnv): Promise<OpenedAgents> {
  const loaded: unknown = await load(module);
  const open = typeof loaded === "object" && loaded !== null && "openAgents" in loaded ? loaded.openAgents : undefined;
  if (typeof open !== "function") throw new Error(`${module} has no function openAgents(env)`);
  const opened: unknown = await open(env);
  if (!isOpened(opened)) {
    throw new Error(`openAgents of ${module} must give { agents, close }, and a list of tasks if it gives any`);
  }
  if (opened.agents.length === 0)
    throw new Error(`openAgents of ${module} gives no agent: a worker needs one at least`);
  const wrong = opened.agents.findIndex((agent) => !isRunnable(agent));
  if (wrong < 0) return opened;
  throw new Error(
    `agents[${wrong}] of openAgents of ${module} is none: give what defineAgent returns, or for a workflow bindWorkflow`,
  );
}

async function load(module: string): Promise<unknown> {
  try {
    return await import(module);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The agents' module ${module} cannot be loaded: ${why}`, { cause });
  }
}

function isOpened(value: unknown): value is OpenedAgents {
  if (typeof value !== "object" || value === null || !("agents" in value) || !("close" in value)) return false;
  const hasTasks = !("tasks" in value) || value.tasks === undefined || Array.isArray(value.tasks);
  return Array.isArray(value.agents) && hasTasks && typeof value.close === "function";
}

/** A workflow that nothing is bound to has no kind yet. */
function isRunnable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "kind" in value && KINDS.has(value.kind);
}

const KINDS: ReadonlySet<unknown> = new Set(["agent", "workflow"] satisfies Runnable["kind"][]);
