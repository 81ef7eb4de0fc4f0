import type { JsonValue, ResultKind, StartedNode, Step, StepBody } from "@holdpoint/core";
import {
  type Choice,
  type Execution,
  type ExecutionState,
  growHistory,
  type History,
  type Indexed,
  type Position,
  retriesOf,
  type Workflow,
} from "@holdpoint/workflow";
import type { OwnedView } from "./after-commit.ts";
import { toPlain } from "./codec.ts";
import { isPersonResult } from "./person-result.ts";
import type { Wholes } from "./whole-outputs.ts";

/** What the graph of one run decides from, made as the run grows: each step is read once, and so is each value. */
export interface WorkflowHistory {
  /**
   * The executions of this run, after those that earlier runs of its line have completed; what stopped those is tried again,
   * as an operator's retry would. Values are plain JSON, and whole: `wholes` has those of which the steps have only the
   * beginning.
   *
   * @param view the run as it is by now: what was read before is in it.
   * @returns what goes on growing: it is decided from at once, and not kept.
   */
  of(view: HistoryOf, wholes: Wholes): History & Indexed;
}

type HistoryOf = Pick<OwnedView, "run" | "history" | "earlier">;

/** Begins to read; nothing has been read yet. */
export function openWorkflowHistory(workflow: Workflow): WorkflowHistory {
  let begun: { readonly earlier: OwnedView["earlier"]; readonly reader: StepReader } | null = null;
  let read = 0;
  return {
    of: (view, wholes) => {
      const { earlier, history } = view;
      if (begun?.earlier !== earlier) {
        begun = { earlier, reader: stepReader(workflow, lineOf(workflow, view, wholes)) };
        read = 0;
      }
      const { steps } = history.known;
      for (const step of steps.slice(read)) begun.reader.read(step, wholes);
      read = steps.length;
      return begun.reader.history;
    },
  };
}

/** What earlier runs of the line have completed, and what of them is tried again. */
function lineOf(workflow: Workflow, { run, earlier }: HistoryOf, wholes: Wholes): History {
  let executions: readonly Execution[] = [];
  let choices: readonly Choice[] = [];
  for (const steps of earlier) {
    const before = stepReader(workflow, { input: null, executions: [], choices: [] });
    for (const step of steps) before.read(step, wholes);
    const chosen = before.history.choices.filter(({ node }) => node !== null);
    const skipped = new Set(chosen.flatMap(({ choice, callId }) => (choice === "skip" ? [callId] : [])));
    const isKept = ({ state, callId }: Execution) => COMPLETE.has(state) || skipped.has(callId);
    executions = [...executions, ...before.history.executions.filter(isKept)];
    choices = [...choices, ...chosen];
    choices = [...choices, ...retriesOf(workflow, { executions, choices })];
  }
  return { input: run.input, executions, choices };
}

const COMPLETE: ReadonlySet<ExecutionState> = new Set(["done", "skipped", "passed_over"]);

/** Reads steps into a history, in their order. */
interface StepReader {
  readonly history: History & Indexed;
  read(step: Step, wholes: Wholes): void;
}

function stepReader({ nodes }: Workflow, from: History): StepReader {
  const history = growHistory(from.input, from);
  const started = new Map<string, StartedNode>();
  const results = new Map<string, Result>();
  const executionNow = (node: StartedNode, wholes: Wholes) => {
    const isChild = CHILDREN.has(nodes.get(node.node)?.kind ?? "");
    return executionOf(node, results.get(node.id), { wholes, isChild });
  };
  const start = (node: StartedNode, wholes: Wholes): void => {
    started.set(node.id, node);
    history.start(executionNow(node, wholes));
  };
  const end = (result: Result, wholes: Wholes): void => {
    results.set(result.callId, result);
    const node = started.get(result.callId);
    if (node !== undefined) history.settle(executionNow(node, wholes));
  };
  const choose = (choice: Choice["choice"], subject: string): void => {
    const node = started.get(subject);
    // A word about a call that is still open is the call's own.
    const isComplete = node !== undefined && (node.settled !== null || results.has(node.id));
    const chosen = choiceOf(choice, subject, isComplete ? node : null);
    if (chosen !== null) history.choose(chosen);
  };
  return {
    history,
    read: ({ body }, wholes) => {
      if (body.kind === "nodes_started") for (const node of body.nodes) start(node, wholes);
      if (body.kind === "tool_result") end(body, wholes);
      if (body.kind === "operator" && body.callId !== null) choose(body.choice, body.callId);
    },
  };
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

/** An operator's word, if it is about the graph. */
function choiceOf(choice: Choice["choice"], subject: string, about: StartedNode | null): Choice | null {
  if (subject === "@result") return { choice, node: null, round: 1, item: null, callId: null };
  const [, node, round, item] = PLACE.exec(subject) ?? [];
  if (node !== undefined) {
    return { choice, node, round: Number(round), item: item === undefined ? null : Number(item), callId: null };
  }
  if (about === null) return null;
  return { choice, node: about.node, round: about.round, item: about.item, callId: subject };
}
