import type { Actor, OperatorChoice, RunEvent } from "./event.ts";
import { OPERATOR_CHOICES } from "./event.ts";
import { reduce } from "./reduce.ts";
import { presentHold } from "./rest.ts";
import type { RunState } from "./state.ts";
import { isTerminal } from "./status.ts";
import type { Rule } from "./table.ts";

/** Why something that a person may ask for is not offered now; the table's rules, and those of what has no event. */
export type ActionRule = Rule | "nothing_asked" | "no_approval_pending" | "run_not_ended";

export type Action =
  | "message"
  | "answer"
  | "decide"
  | "cancel"
  | "pause"
  | "resume"
  | "retry_as_new_run"
  | OperatorChoice;

/** What a caller may do with a run: `null` where it may, otherwise the rule that forbids it. */
export type Actions = Readonly<Record<Action, ActionRule | null>>;

/**
 * What this caller may do with a run in this state. `actors` are all the parts the caller may act in; an action is
 * offered if one of them may do it.
 */
export function actionsFor(state: RunState, actors: readonly Actor[]): Actions {
  const judge = (event: RunEvent): ActionRule | null => best(actors.map((actor) => verdict(state, event, actor)));
  const fact = (kind: "message" | "answer" | "decision") =>
    judge({ type: "FactArrived", fact: kind, completesHold: false });
  const choices = OPERATOR_CHOICES.map((choice) => [
    choice,
    judge({ type: "OperatorDecided", choice, notEstablished: 0 }),
  ]);
  return {
    message: fact("message"),
    answer: state.status === "waiting_input" ? fact("answer") : (endedRule(state) ?? "nothing_asked"),
    // Decisions are taken during a pause, too.
    decide: presentHold(state)?.kind === "approval" ? fact("decision") : (endedRule(state) ?? "no_approval_pending"),
    cancel: judge({ type: "CancelRequested", reason: null }),
    pause: judge({ type: "PauseRequested" }),
    resume: judge({ type: "Resumed" }),
    // Doing it again is a new run, in the same line, which has one live run.
    retry_as_new_run: isTerminal(state.status) ? null : "run_not_ended",
    // One entry for each choice, by the list that the type is made from.
    ...(Object.fromEntries(choices) as Record<OperatorChoice, ActionRule | null>),
  };
}

function verdict(state: RunState, event: RunEvent, actor: Actor): ActionRule | null {
  const decision = reduce(state, event, actor);
  return decision.verdict === "refused" ? decision.rule : null;
}

/** What one of the caller's parts may do, the caller may; otherwise the rule that says most. */
function best(rules: readonly (ActionRule | null)[]): ActionRule | null {
  if (rules.includes(null)) return null;
  return rules.find((rule) => rule !== "not_yours_to_raise") ?? "not_yours_to_raise";
}

function endedRule(state: RunState): ActionRule | null {
  return isTerminal(state.status) ? "run_ended" : null;
}
