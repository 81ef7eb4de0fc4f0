import type { Actor, OperatorChoice, StepBody } from "@holdpoint/core";
import { advance, isTerminal, type JsonValue } from "@holdpoint/core";
import { type ActResult, act, type Judged, readRow } from "./act.ts";
import type { Store } from "./db.ts";
import { newId } from "./ids.ts";
import { type LoadedRun, loadRun } from "./load-run.ts";
import type { Writes } from "./move.ts";

/** Asks a run to stop. The request is stored and sticky; whoever works on the run is told, and nobody starts anything more. */
export function requestCancel(
  store: Store,
  { runId, actor, reason }: { readonly runId: string; readonly actor: Actor; readonly reason: string | null },
): Promise<ActResult> {
  return act(store, { runId, event: "CancelRequested", actor, read: readRow }, ({ run }) => ({
    run,
    events: [{ type: "CancelRequested", reason }],
    actor,
    reason,
  }));
}

/** Asks a run to pause: it starts nothing new, and its deadlines stand still until it is resumed. */
export function requestPause(
  store: Store,
  { runId, actor }: { readonly runId: string; readonly actor: Actor },
): Promise<ActResult> {
  return act(store, { runId, event: "PauseRequested", actor, read: readRow }, ({ run }) => ({
    run,
    events: [{ type: "PauseRequested" }],
    actor,
  }));
}

/** Takes a pause back; every deadline moves by the time that it took. */
export function resumeRun(
  store: Store,
  { runId, actor }: { readonly runId: string; readonly actor: Actor },
): Promise<ActResult> {
  return act(store, { runId, event: "Resumed", actor, read: readRow }, ({ run }): Judged => {
    const { status, pauseRequestedAt } = run.state;
    // Who resumes what nobody has paused is mistaken about the run, and is told so.
    if (pauseRequestedAt === null && status !== "paused" && !isTerminal(status)) return { refuse: "not_paused" };
    return { run, events: [{ type: "Resumed" }], actor };
  });
}

/** What an operator decides about a run. */
export interface OperatorDecision {
  readonly runId: string;
  readonly choice: OperatorChoice;
  readonly actor: Actor;
  readonly reason: string;
  /** The attempts that the operator speaks of, by id: for `mark_done` and `not_established` the one, for `terminate` all that are open. */
  readonly attemptIds: readonly string[];
  /** For `mark_done`: what happened, as the model is to be told it. */
  readonly result?: JsonValue;
  /** For `mark_done`: the other side's name for the effect. */
  readonly externalRef?: string;
}

/** Carries out an operator's choice; what is not offered in the run's status is refused with the rule. */
export function decideAsOperator(store: Store, decision: OperatorDecision): Promise<ActResult> {
  const { runId, choice, actor, reason } = decision;
  return act(store, { runId, event: "OperatorDecided", actor, read: loadRun }, (loaded): Judged => {
    const named = loaded.openAttempts.filter(({ id }) => decision.attemptIds.includes(id));
    const settles = choice === "mark_done" || choice === "not_established" || choice === "terminate";
    const needsName = settles && choice !== "terminate" && loaded.openAttempts.length > 0;
    if (named.length < decision.attemptIds.length || (needsName && named.length !== 1)) {
      return isTerminal(loaded.run.state.status) ? { refuse: "run_ended" } : { refuse: "attempt_not_named" };
    }
    return {
      run: loaded.run,
      events: [{ type: "OperatorDecided", choice, notEstablished: named.length }],
      actor,
      reason: `${choice}: ${reason}`,
      writes: settles ? settlement(loaded, named, decision) : order(loaded, choice),
    };
  });
}

/** Holds for which an operator's word is something that the loop has to read. */
const READ_BY_THE_LOOP: ReadonlySet<string> = new Set([
  "call_failed",
  "limit_call_deadline",
  "throttled_too_long",
  "unavailable_too_long",
  "model_failed",
  "blocked",
  "limit_turns",
  "limit_tokens",
  "limit_cost",
  "limit_wall_time",
  "invalid_arguments",
  "equal_effect_unknown",
  "settlement_overdue",
  "child_blocked",
  "migration_refused",
  "backing_missing",
  "node_failed",
  "node_blocked",
  "invalid_node_output",
  "rounds_exhausted",
  "no_go",
  "node_deadline_passed",
  "graph_error",
  "limit_child_runs",
]);

function order({ run }: LoadedRun, choice: OperatorChoice): Writes {
  const { waitingFor } = run.state;
  if (choice !== "retry" && choice !== "skip") return {};
  if (waitingFor === null || !(READ_BY_THE_LOOP.has(waitingFor.reason) || choice === "skip")) return {};
  return { facts: [{ id: newId(), body: { kind: "operator", choice, callId: waitingFor.subject } }] };
}

function settlement(
  loaded: LoadedRun,
  named: LoadedRun["openAttempts"],
  { choice, actor, result, externalRef }: OperatorDecision,
): Writes {
  const done = choice === "mark_done";
  const steps = named.map(
    ({ callId }): StepBody => ({
      kind: "tool_result",
      callId,
      result: done ? "succeeded" : "not_established",
      output: done
        ? (result ?? null)
        : "NOT ESTABLISHED. Nobody could find out whether this call acted. Do not claim that it was done.",
    }),
  );
  const checkpoint = steps.reduce(
    (cursor, body, index) => advance(cursor, { seq: loaded.run.stepSeq + index + 1, body }, loaded.calls),
    loaded.run.checkpoint,
  );
  return {
    steps,
    checkpoint,
    settles: named.map(({ id }) => ({
      attemptId: id,
      outcome: done ? "happened" : "not_established",
      settledBy: `person:${actor.id}`,
      externalRef: externalRef ?? null,
    })),
  };
}
