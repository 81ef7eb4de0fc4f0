/** What whoever works on a task elsewhere is held to. */
export interface TaskTerms {
  /** What the work is, for whoever is to do it. */
  readonly description: string;
  /** Its executor is heard of within this time, again and again, in milliseconds. */
  readonly heartbeatMs: number;
  /** How much longer it is waited for before the task is lost, in milliseconds. */
  readonly graceMs: number;
  /** What a failure leads to: an operator is asked, or the run ends as failed. */
  readonly onFailure: "operator" | "end";
  /** How many failures that say they may be tried again are, before that. */
  readonly retries: number;
}

const MINUTE_MS = 60_000;
const WEEK_MS = 7 * 24 * 60 * MINUTE_MS;

/** What holds where a definition says nothing. */
export const DEFAULT_TASK_TERMS = {
  heartbeatMs: MINUTE_MS,
  graceMs: MINUTE_MS,
  onFailure: "operator",
  retries: 1,
} as const satisfies Omit<TaskTerms, "description">;

/** Between what a definition may choose. A task at a person's desk is heard of once in days. */
export const TASK_LIMITS = {
  heartbeatMs: { least: 1_000, most: WEEK_MS },
  graceMs: { least: 0, most: WEEK_MS },
  retries: { least: 0, most: 100 },
  descriptionLength: { least: 1, most: 2_000 },
} as const;

/** The names and versions under which work is registered, whoever does it. */
export const AGENT_NAME = /^[a-z][a-z0-9-]{0,63}$/;
export const AGENT_VERSION = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;
