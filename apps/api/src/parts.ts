import { type Actions, type Actor, type ActorKind, actionsFor, isTerminal } from "@holdpoint/core";
import type { Run } from "@holdpoint/protocol";
import type { Approvers, RunView } from "@holdpoint/store/read";
import type { Bearer, Caller } from "./tokens.ts";

/** Operators and approvers see everything; who only requests sees what is theirs. */
export function seesAll(caller: Caller): boolean {
  return isOperator(caller) || caller.roles.length > 0;
}

export function isOperator({ access }: Bearer): boolean {
  return access.includes("operator");
}

export function isTaskRunner({ access }: Bearer): boolean {
  return access.includes("task_runner") || access.includes("operator");
}

export function isSubmitter({ access }: Bearer): boolean {
  return access.includes("requester") || access.includes("operator");
}

/** Whether a caller may see a run: it is theirs, it waits for them by name, or they see everything. */
export function sees(caller: Caller, { run, pending }: RunView): boolean {
  return seesAll(caller) || run.requester === caller.user || pending.some(({ users }) => users.includes(caller.user));
}

/** The parts in which a caller may act on a run. */
function partsOf(caller: Caller, { run, pending }: RunView): readonly Actor[] {
  const parts: ActorKind[] = [];
  if (run.requester === caller.user) parts.push("requester");
  if (isOperator(caller)) parts.push("operator");
  if (pending.some((approvers) => mayDecide(caller, approvers))) parts.push("approver");
  return parts.map((kind) => ({ kind, id: caller.user }));
}

/**
 * The part in which a caller does something that is open to these parts; if it has none of them, the part that it has:
 * the refusal then says who tried.
 */
export function actorFor(caller: Caller, view: RunView, kinds: readonly ActorKind[]): Actor {
  const parts = partsOf(caller, view);
  const fitting = kinds.flatMap((kind) => parts.filter((part) => part.kind === kind));
  return fitting[0] ?? parts[0] ?? { kind: "approver", id: caller.user };
}

/** What this caller may do with a run, and the rule that forbids the rest. */
export function actionsOf(caller: Caller, view: RunView): Run["actions"] {
  const parts = partsOf(caller, view);
  const actions = actionsFor(view.run.state, parts);
  return {
    ...actions,
    decide: decideRule(caller, view, actions),
    retry_as_new_run: retryRule(parts, view, actions),
    resume: resumeRule(parts, view, actions),
  };
}

function decideRule(caller: Caller, { pending }: RunView, { decide }: Actions): Run["actions"]["decide"] {
  const excluded = pending.some((approvers) => approvers.excluded.includes(caller.user));
  return decide === "not_yours_to_raise" && excluded ? "own_request" : decide;
}

/** A failed workflow is resumed by a run of its own, and one that is over never. */
function resumeRule(parts: readonly Actor[], view: RunView, actions: Actions): Run["actions"]["resume"] {
  const { status, pauseRequestedAt } = view.run.state;
  const isPaused = status === "paused" || pauseRequestedAt !== null;
  if (!isEndedWorkflow(view)) return actions.resume === null && !isPaused ? "not_paused" : actions.resume;
  return isOver(view) ? "retried_run_is_over" : retryRule(parts, view, actions);
}

/** Whether a run of a workflow has ended. */
export function isEndedWorkflow({ run, agentKind }: RunView): boolean {
  return agentKind === "workflow" && isTerminal(run.state.status);
}

/** Whether a run is one that nobody does again: of a workflow, and completed or stopped. */
export function isOver(view: RunView): boolean {
  return isEndedWorkflow(view) && view.run.state.status !== "failed";
}

function retryRule(parts: readonly Actor[], view: RunView, { retry_as_new_run: rule }: Actions) {
  const { lineLive } = view;
  if (rule === null && isOver(view)) return "retried_run_is_over";
  if (rule === null && lineLive) return "line_is_live";
  const mine = parts.some(({ kind }) => kind === "requester" || kind === "operator");
  return rule === null && !mine ? "not_yours_to_raise" : rule;
}

function mayDecide({ user, roles }: Caller, { users, roles: approving, excluded }: Approvers): boolean {
  return !excluded.includes(user) && (users.includes(user) || approving.some((role) => roles.includes(role)));
}
