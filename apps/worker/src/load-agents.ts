import type { Agent, Task } from "@holdpoint/runtime";

/** The agents of a worker, and what they hold open. */
export interface OpenedAgents {
  readonly agents: readonly Agent[];
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
  if (!isOpened(opened) || opened.agents.length === 0) {
    throw new Error(
      `openAgents of ${module} must give { agents, close }, and { tasks } where it has any, with at least one agent`,
    );
  }
  return opened;
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
