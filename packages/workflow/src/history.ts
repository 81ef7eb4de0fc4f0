import type { JsonValue, ResultKind } from "@holdpoint/core";

/**
 * Where something stands in a workflow: the node, which time the node runs (from 1; a gate that sends work back begins
 * the next), and the place in the list of a map, from 0. `item` is null for nodes that are no maps, and for a map's own
 * list.
 */
export interface Position {
  readonly node: string;
  readonly round: number;
  readonly item: number | null;
}

/**
 * How far an execution is. `skipped`: a person let it go; `passed_over`: its condition, or its join, said that it is not
 * needed. Both are complete, and so is `done`.
 */
export type ExecutionState = "open" | "done" | "skipped" | "passed_over" | "failed";

/** One execution of a node: a call of the workflow's run, and what has become of it. */
export interface Execution extends Position {
  readonly callId: string;
  readonly state: ExecutionState;
  /** Null while it is open. Of a done one, `partial` and `blocked` are read: what a child run says that it achieved. */
  readonly result: ResultKind | null;
  readonly output: JsonValue;
  /** Why it failed, or at which step it is blocked and why; for people, never judged. */
  readonly message: string | null;
}

/**
 * What an operator chose where `decide` said hold; only what the executions do not show themselves. With a call's id it is
 * about that execution, and holds until there is a newer one at its position; with null it is about a position (or, where
 * `node` is null too, a result) that has no execution, because what would have started it threw.
 */
export interface Choice {
  readonly choice: "retry" | "skip";
  readonly node: string | null;
  readonly round: number;
  readonly item: number | null;
  readonly callId: string | null;
}

/** All that decisions are made from. Nothing else is kept: whoever reads these rows anew decides the same. */
export interface History {
  readonly input: JsonValue;
  /** In the order of their start; of several at one position the last one counts. */
  readonly executions: readonly Execution[];
  readonly choices: readonly Choice[];
}
