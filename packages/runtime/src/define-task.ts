import { type AgentRef, DEFAULT_TASK_TERMS, TASK_LIMITS, type TaskTerms } from "@holdpoint/core";
import { checkRef } from "./define-agent.ts";
import { wholeNumbers } from "./whole-numbers.ts";

/** What `defineTask` takes; what is left out has the defaults of `DEFAULT_TASK_TERMS`. */
export interface TaskDefinition extends AgentRef, Partial<Omit<TaskTerms, "description">> {
  /** What the work is, for whoever is to do it. */
  readonly description: string;
}

/** Work that is done elsewhere: a CI job, a person's desk, another service. */
export interface Task extends AgentRef {
  readonly terms: TaskTerms;
}

/**
 * Defines a task. A run of it, submitted or started by `defineChildRuns`, waits for whoever starts it over the api and
 * lives by that one's heartbeats; no worker takes it. Workers make it known (`createWorker({ tasks })`), or an operator.
 *
 * @throws {TypeError} the name, the version, the description or a number is not usable.
 */
export function defineTask(definition: TaskDefinition): Task {
  const { name, version, ...given } = definition;
  checkRef("Task", definition);
  const terms: TaskTerms = { ...DEFAULT_TASK_TERMS, ...given };
  const check = wholeNumbers(`Task ${name}`);
  check("heartbeatMs", terms.heartbeatMs, TASK_LIMITS.heartbeatMs);
  check("graceMs", terms.graceMs, TASK_LIMITS.graceMs);
  check("retries", terms.retries, TASK_LIMITS.retries);
  const { least, most } = TASK_LIMITS.descriptionLength;
  if (terms.description.length < least || terms.description.length > most) {
    throw new TypeError(
      `Task ${name}: its description has ${terms.description.length} characters; ${least} to ${most}`,
    );
  }
  return { name, version, terms };
}
