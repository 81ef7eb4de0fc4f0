import type { Next } from "./next.ts";
import type { Call, Step, StepBody } from "./step.ts";

/** A small cursor derived from the steps; not the history. At most 2 KB as JSON. */
export interface Checkpoint {
  readonly stepSeq: number;
  readonly turn: number;
  /** How many of the calls that were asked for have no result yet. */
  readonly openCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** What the last step completed, in words for the person who takes the run up. */
  readonly lastCompleted: string | null;
}

export const EMPTY_CHECKPOINT: Checkpoint = {
  stepSeq: 0,
  turn: 0,
  openCalls: 0,
  inputTokens: 0,
  outputTokens: 0,
  lastCompleted: null,
};

/** A run's calls: as a list, or by what finds one of them by its id. */
export type KnownCalls = readonly Call[] | ((callId: string) => Call | undefined);

/** Moves a checkpoint over one more step. Folding it over all steps of a run gives the one that its row carries. */
export function advance(checkpoint: Checkpoint, step: Omit<Step, "atMs">, calls: KnownCalls): Checkpoint {
  const { body, seq: stepSeq } = step;
  const lastCompleted = completed(body, calls) ?? checkpoint.lastCompleted;
  if (body.kind === "model_reply") {
    return {
      stepSeq,
      turn: body.turn,
      openCalls: body.callIds.length,
      inputTokens: checkpoint.inputTokens + body.usage.inputTokens,
      outputTokens: checkpoint.outputTokens + body.usage.outputTokens,
      lastCompleted,
    };
  }
  if (body.kind === "nodes_started") {
    const openCalls = checkpoint.openCalls + body.callIds.length;
    return { ...checkpoint, stepSeq, turn: body.turn, openCalls, lastCompleted };
  }
  const openCalls = Math.max(0, checkpoint.openCalls - (body.kind === "tool_result" ? 1 : 0));
  return { ...checkpoint, stepSeq, openCalls, lastCompleted };
}

/** The checkpoint of a run that has exactly these steps. */
export function rebuildCheckpoint(steps: readonly Omit<Step, "atMs">[], calls: readonly Call[]): Checkpoint {
  const byId = new Map(calls.map((call) => [call.id, call]));
  return steps.reduce((checkpoint, step) => advance(checkpoint, step, (id) => byId.get(id)), EMPTY_CHECKPOINT);
}

/** What comes next, in words for the person who takes the run up. */
export function nextInWords(next: Next): string {
  switch (next.do) {
    case "settle_attempt":
      return `settle attempt ${next.attempt.number} of ${next.call.tool}`;
    case "read_facts":
      return "take in what arrived meanwhile";
    case "call_model":
      return `ask the model, turn ${next.turn}`;
    case "execute":
      return `${next.call.tool}, attempt ${next.attempt}`;
    case "poll":
      return `ask what has become of ${next.call.tool}`;
    case "decide":
      return `ask the graph what is ready, turn ${next.turn}`;
    case "migrate":
      return `go on in version ${next.version}`;
    case "set_timer":
      return `${next.call.tool}: set its timer`;
    case "start_children":
      return `${next.call.tool}: start child runs`;
    case "stop_children":
      return `${next.call.tool}: stop the child runs that are not needed any more`;
    case "write_result":
      return `tell the model that ${next.call.tool} was ${next.result.replaceAll("_", " ")}`;
    case "hold":
      return `wait for ${next.hold.waitingFor.principal}`;
    case "end":
      return `end as ${next.outcome.kind}`;
  }
}

function completed(body: StepBody, calls: KnownCalls): string | null {
  switch (body.kind) {
    case "model_reply":
      return `model turn ${body.turn}`;
    case "tool_result":
      return `${toolName(body.callId, calls)} (${body.result.replaceAll("_", " ")})`;
    case "effect_pending":
      return `${toolName(body.callId, calls)} (accepted, not settled yet)`;
    case "nodes_started":
      return body.nodes.findLast(({ settled }) => settled !== null)?.node.slice(0, 64) ?? null;
    case "message":
      return `message from ${body.from.slice(0, 64)}`;
    case "model_failed":
    case "intent":
    case "migration":
    case "timer_set":
    case "children_started":
    case "call_failed":
    case "did_not_happen":
    case "finding":
    case "no_answer":
    case "callback":
    case "operator":
      return null;
  }
}

function toolName(callId: string, calls: KnownCalls): string {
  const call = typeof calls === "function" ? calls(callId) : calls.find(({ id }) => id === callId);
  return call?.tool ?? callId;
}
