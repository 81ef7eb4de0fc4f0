import type { HoldReason } from "./decision.ts";
import type { Execution } from "./history.ts";
import type { Slot } from "./index-history.ts";
import type { GateNode, MapOver, Node, WorkNode } from "./node.ts";
import { isLeftToOperator, readAs, readVerdict } from "./read-output.ts";

/** What a person has to decide about. */
export interface Problem {
  readonly reason: HoldReason;
  readonly item: number | null;
  readonly callId: string | null;
  readonly message: string;
}

/** How a node stands in its present round. */
export type Standing =
  /** It waits for nodes before it. */
  | { readonly is: "waiting" }
  /** It may start. `again`: an operator wants it tried anew, so nothing is asked a second time. */
  | { readonly is: "ready"; readonly again: boolean }
  /** Its join cannot be met any more. */
  | { readonly is: "unneeded" }
  | { readonly is: "open" }
  /** A map with items to come; these may start, as far as there is room beside the open ones. */
  | { readonly is: "partway"; readonly hasBegun: boolean; readonly toStart: readonly number[] }
  | { readonly is: "complete"; readonly how: "done" | "skipped" | "passed_over"; readonly isPartial: boolean }
  | { readonly is: "held"; readonly problem: Problem }
  /** A gate has said no, and that ends the workflow. */
  | { readonly is: "blocking"; readonly why: string };

/** Whether a node runs once for each item of a list. */
export function isMap(node: Node): node is WorkNode & { readonly map: MapOver } {
  return "map" in node && node.map !== null;
}

/** How a position stands by what it has seen; null if that is nothing. */
export function standingAt(node: Node, { execution, choice }: Slot): Standing | null {
  if (execution === null) return choice === "skip" ? SKIPPED : null;
  if (execution.state === "open") return { is: "open" };
  if (execution.state === "skipped") return SKIPPED;
  if (execution.state === "passed_over") return { is: "complete", how: "passed_over", isPartial: false };
  const found = execution.state === "failed" ? failureOf(execution) : judgeOnce(node, execution);
  if (found === null) return { is: "complete", how: "done", isPartial: execution.result === "partial" };
  if (found.is === "blocking") return found;
  if (choice === "skip") return SKIPPED;
  return choice === "retry" ? { is: "ready", again: true } : found;
}

const SKIPPED: Standing = { is: "complete", how: "skipped", isPartial: false };

type Found = Extract<Standing, { is: "held" | "blocking" }>;

function failureOf(execution: Execution): Found {
  return held("node_failed", execution, execution.message ?? `it ended as ${execution.result ?? "failed"}`);
}

/** By execution, for the node that it was judged for last: neither ever changes, and judging reads all that was brought. */
const JUDGED = new WeakMap<Execution, { readonly node: Node; readonly found: Found | null }>();

function judgeOnce(node: Node, execution: Execution): Found | null {
  const before = JUDGED.get(execution);
  if (before?.node === node) return before.found;
  const found = judge(node, execution);
  JUDGED.set(execution, { node, found });
  return found;
}

/** What keeps a done execution from counting as complete; null: nothing. */
function judge(node: Node, execution: Execution): Found | null {
  const { item, output, result } = execution;
  if (result === "blocked") return held("node_blocked", execution, execution.message ?? "it ran, and achieved nothing");
  if (isMap(node) && item === null) {
    return Array.isArray(output) ? null : held("invalid_node_output", execution, "a map's list is no list");
  }
  if (node.kind === "gate") return judgeVerdict(node, execution);
  const read = readAs(node.output, output);
  if (!read.ok) return held("invalid_node_output", execution, read.message);
  return leftToOperator(node, execution);
}

function judgeVerdict(gate: GateNode, execution: Execution): Found | null {
  const verdict = readVerdict(gate, execution.output);
  if (!verdict.ok) return held("invalid_node_output", execution, verdict.message);
  if (verdict.value.pass) return null;
  const left = leftToOperator(gate, execution);
  if (left !== null) return left;
  const why = verdict.value.feedback;
  // What it has sent back is not its present round any more.
  if (gate.rework.length > 0) return held("rounds_exhausted", execution, why);
  return gate.otherwise === "block" ? { is: "blocking", why } : held("no_go", execution, why);
}

function leftToOperator(node: Node, execution: Execution): Found | null {
  if (!isLeftToOperator(node, execution.output)) return null;
  return held("deadline_passed", execution, "nobody has answered in time");
}

function held(reason: HoldReason, { item, callId }: Execution, message: string): Found {
  return { is: "held", problem: { reason, item, callId, message } };
}
