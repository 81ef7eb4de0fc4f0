/** Sizes that keep a definition and its decisions readable, and one decision cheap. */
export const LIMITS = {
  nodes: 200,
  /** Open at once: nodes of a workflow, items of a map. */
  atOnce: 100,
  items: 10_000,
  rounds: 100,
  retries: 100,
  /** Characters of what a person is told. */
  message: 500,
  /** Problems that one refusal names. */
  problems: 20,
} as const;

export const DEFAULT_ITEMS = 1_000;
export const DEFAULT_ROUNDS = 2;
