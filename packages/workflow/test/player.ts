import type { JsonValue } from "@holdpoint/core";
import { decide } from "../src/decide.ts";
import type { Decision, NodeStart, WorkStart } from "../src/decision.ts";
import type { Choice, Execution, History } from "../src/history.ts";
import type { Workflow } from "../src/workflow.ts";

/** What comes of an execution. */
export type Result = Partial<Pick<Execution, "state" | "result" | "output" | "message">>;

const STEPS = 2_000;

/** A history in which nothing has happened. */
export function started(input: JsonValue = {}): History {
  return { input, executions: [], choices: [] };
}

/** The history once these have been started; what settles by itself is complete at once. */
export function start(history: History, nodes: readonly NodeStart[]): History {
  const added = nodes.map((node, index): Execution => {
    const { node: name, round, item } = node;
    const callId = `call-${history.executions.length + index + 1}`;
    const at = { node: name, round, item, callId, message: null };
    if (!("settled" in node)) return { ...at, state: "open", result: null, output: null };
    return { ...at, ...node.settled, result: "succeeded" };
  });
  return { ...history, executions: [...history.executions, ...added] };
}

/** The history once an execution has ended; without a name, the open one that was started first. */
export function settle(history: History, result: Result, callId = firstOpen(history)): History {
  const executions = history.executions.map((each) =>
    each.callId === callId ? { ...each, state: "done" as const, result: "succeeded" as const, ...result } : each,
  );
  return { ...history, executions };
}

/** The history once an operator has chosen what to do about a hold. */
export function choose(history: History, choice: Choice["choice"], decision: Decision): History {
  if (decision.do !== "hold") throw new Error(`no hold: ${JSON.stringify(decision)}`);
  const { node, round, item, callId } = decision;
  return { ...history, choices: [...history.choices, { choice, node, round, item, callId }] };
}

function firstOpen({ executions }: History): string {
  const open = executions.find(({ state }) => state === "open");
  if (open === undefined) throw new Error("nothing is open");
  return open.callId;
}

export interface Played {
  readonly history: History;
  readonly last: Decision;
  /** What was started, in order: `draft`, `draft#2` in its second round, `label[0]` for the first item. */
  readonly started: readonly string[];
}

/**
 * Plays a workflow until it ends or is held. `work` says what comes of each start; what is open ends in the order of the
 * starts, when nothing more can be started.
 */
export function play(workflow: Workflow, work: (start: WorkStart) => Result, from: History = started()): Played {
  let history = from;
  const results = new Map<string, Result>();
  for (let step = 0; step < STEPS; step += 1) {
    const decision = decide(workflow, history);
    if (decision.do === "start") {
      const before = history.executions.length;
      history = start(history, decision.nodes);
      decision.nodes.forEach((node, index) => {
        if (!("settled" in node)) results.set(`call-${before + index + 1}`, work(node));
      });
    } else if (decision.do === "wait") {
      const callId = firstOpen(history);
      const result = results.get(callId);
      if (result === undefined) throw new Error(`${callId} was open before: settle it first`);
      history = settle(history, result, callId);
    } else {
      return { history, last: decision, started: history.executions.map(nameOf) };
    }
  }
  throw new Error(`no end after ${STEPS} steps`);
}

/** The history after the decision that is due: whatever starts, starts. */
export function proceed(workflow: Workflow, history: History): History {
  const decision = decide(workflow, history);
  if (decision.do !== "start") throw new Error(`nothing starts: ${JSON.stringify(decision)}`);
  return start(history, decision.nodes);
}

export function nameOf({ node, round, item }: Pick<Execution, "node" | "round" | "item">): string {
  return `${node}${round > 1 ? `#${round}` : ""}${item === null ? "" : `[${item}]`}`;
}
