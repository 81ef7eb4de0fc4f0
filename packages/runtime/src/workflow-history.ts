import type { JsonValue, ResultKind, StartedNode, Step, StepBody } from "@holdpoint/core";
import type { LoadedRun } from "@holdpoint/store";
import {
  type Choice,
  type Execution,
  type ExecutionState,
  type History,
  type Position,
  retriesOf,
  type Workflow,
} from "@holdpoint/workflow";
import { toPlain } from "./codec.ts";
import { isPersonResult } from "./person-result.ts";
import type { Wholes } from "./whole-outputs.ts";

/**
 * What the graph decides from: the executions of this run, after those that earlier runs of its line have completed; what
 * stopped those is tried again, as an operator's retry would. Values are plain JSON, and whole: `wholes` has those of which
 * the steps have only the beginning.
 */
export function historyOf(
  workflow: Workflow,
  { run, steps, earlier }: Pick<LoadedRun, "run" | "steps" | "earlier">,
  wholes: Wholes,
): History {
  let executions: readonly Execution[] = [];
  let choices: readonly Choice[] = [];
  for (const before of earlier) {
    const chosen = choicesOf(before).filter(({ node }) => node !== null);
    const skipped = new Set(chosen.flatMap(({ choice, callId }) => (choice === "skip" ? [callId] : [])));
    const isKept = ({ state, callId }: Execution) => COMPLETE.has(state) || skipped.has(callId);
    executions = [...executions, ...executionsOf(workflow, before, wholes).filter(isKept)];
    choices = [...choices, ...chosen];
    choices = [...choices, ...retriesOf(workflow, { executions, choices })];
  }
  return {
    input: run.input,
    executions: [...executions, ...executionsOf(workflow, steps, wholes)],
    choices: [...choices, ...choicesOf(steps)],
  };
}

const COMPLETE: ReadonlySet<ExecutionState> = new Set(["done", "skipped", "passed_over"]);

function executionsOf({ nodes }: Workflow, steps: readonly Step[], wholes: Wholes): readonly Execution[] {
  const isChild = (name: string) => CHILDREN.has(nodes.get(name)?.kind ?? "");
  const results = new Map(
    steps.flatMap(({ body }) => (body.kind === "tool_result" ? [[body.callId, body] as const] : [])),
  );
  return steps.flatMap(({ body }) =>
    body.kind === "nodes_started"
      ? body.nodes.map((node) => executionOf(node, results.get(node.id), { wholes, isChild: isChild(node.node) }))
      : [],
  );
}

/** Nodes that are one child run each. What any other brings is passed on as it is, whatever it looks like. */
const CHILDREN: ReadonlySet<string> = new Set(["agent", "workflow"]);

interface Reading {
  readonly wholes: Wholes;
  readonly isChild: boolean;
}

type Result = Extract<StepBody, { kind: "tool_result" }>;

function executionOf(
  { id: callId, node, round, item, settled }: StartedNode,
  ended: Result | undefined,
  reading: Reading,
): Execution {
  const place = { callId, node, round, item };
  if (settled !== null) return { ...place, ...settled, result: "succeeded", message: null };
  if (ended === undefined) return { ...place, state: "open", result: null, output: null, message: null };
  return { ...place, result: ended.result, ...broughtBy(ended, reading) };
}

type Brought = Pick<Execution, "state" | "output" | "message">;

function broughtBy({ result, output: stored, artifact }: Result, { wholes, isChild }: Reading): Brought {
  const state = STATES[result];
  // A person's word is stored as it was said.
  if (isPersonResult(result, stored)) return { state: "done", output: stored, message: null };
  const whole = artifact === undefined ? undefined : wholes.get(artifact);
  const isCut = artifact !== undefined && whole === undefined;
  if (isCut && state === "done") return { state: "failed", output: null, message: NOT_WHOLE };
  const child = isChild ? childOf(stored) : null;
  if (child !== null) return { state, output: toPlain(whole ?? child.result), message: saidBy(child) };
  return { state, output: toPlain(whole ?? stored), message: state === "failed" ? messageOf(stored) : null };
}

const NOT_WHOLE = "what it brought is too large, or not there any more, and a part of it is not passed on";

const STATES: Readonly<Record<ResultKind, ExecutionState>> = {
  succeeded: "done",
  partial: "done",
  blocked: "done",
  answered: "done",
  answered_from_record: "done",
  skipped: "skipped",
  failed: "failed",
  invalid: "failed",
  denied: "failed",
  rejected: "failed",
  expired: "failed",
  not_established: "failed",
};

interface OnlyChild {
  readonly result: JsonValue;
  /** Of one that is blocked: at which step. */
  readonly step?: string;
  readonly reason: string | null;
}

function saidBy({ step, reason }: OnlyChild): string | null {
  return step === undefined || reason === null ? reason : `${step}: ${reason}`;
}

/** The child run of a node, as the result of its call says. */
function childOf(output: JsonValue): OnlyChild | null {
  if (output === null || typeof output !== "object" || !("children" in output)) return null;
  // Only `plan` writes results of calls that start runs, in this shape.
  const { children } = output as unknown as { children: readonly OnlyChild[] };
  const [child] = children;
  return child ?? null;
}

function messageOf(output: JsonValue): string | null {
  if (typeof output === "string") return output;
  const said = output !== null && typeof output === "object" && "message" in output ? output.message : null;
  return typeof said === "string" ? said : null;
}

/** Where something stands that no execution shows: what an operator's word is about then. */
export function placeOf({ node, round, item }: Omit<Position, "node"> & { readonly node: string | null }): string {
  return node === null ? "@result" : `@${node}/${round}${item === null ? "" : `/${item}`}`;
}

const PLACE = /^@([a-z][a-z0-9-]*)\/(\d+)(?:\/(\d+))?$/;

/** An operator's words that are about the graph: a word about a call that is still open is the call's own. */
function choicesOf(steps: readonly Step[]): readonly Choice[] {
  const { nodes, completeAt } = indexed(steps);
  return steps.flatMap(({ seq, body }) => {
    if (body.kind !== "operator" || body.callId === null) return [];
    const isComplete = (completeAt.get(body.callId) ?? Number.POSITIVE_INFINITY) < seq;
    const choice = choiceOf(body.choice, body.callId, isComplete ? (nodes.get(body.callId) ?? null) : null);
    return choice === null ? [] : [choice];
  });
}

/** The executions by their ids, and with which step each was complete. */
function indexed(steps: readonly Step[]) {
  const nodes = new Map<string, StartedNode>();
  const completeAt = new Map<string, number>();
  for (const { seq, body } of steps) {
    if (body.kind === "tool_result") completeAt.set(body.callId, seq);
    for (const node of body.kind === "nodes_started" ? body.nodes : []) {
      nodes.set(node.id, node);
      if (node.settled !== null) completeAt.set(node.id, seq);
    }
  }
  return { nodes, completeAt };
}

function choiceOf(choice: Choice["choice"], subject: string, about: StartedNode | null): Choice | null {
  if (subject === "@result") return { choice, node: null, round: 1, item: null, callId: null };
  const [, node, round, item] = PLACE.exec(subject) ?? [];
  if (node !== undefined) {
    return { choice, node, round: Number(round), item: item === undefined ? null : Number(item), callId: null };
  }
  if (about === null) return null;
  return { choice, node: about.node, round: about.round, item: about.item, callId: subject };
}
