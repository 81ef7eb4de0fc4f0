import { isTerminal, mayRaise } from "@holdpoint/core";
import type { RefusalRule, Run } from "@holdpoint/protocol";
import { recordRefusal, submitRun } from "@holdpoint/store";
import type { RunView } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { actorFor, isOver } from "../parts.ts";
import { movedByOf, refused } from "../problem.ts";
import type { Caller } from "../tokens.ts";
import { idempotency, submitReply, unknownAgent } from "./sessions.ts";

/** What is asked of a run that has ended: to be done again, or as a failed workflow to go on. Both are a new run of its line. */
export interface Redo {
  readonly caller: Caller;
  readonly view: RunView;
  readonly event: "Submitted" | "Resumed";
  readonly idempotencyKey: string | null;
}

/** Does an ended run again, as a new run of the same line; of a workflow it keeps what was completed. */
export async function redo(
  deps: HandlerDeps,
  { caller, view, event, idempotencyKey }: Redo,
): Promise<{ readonly body: Run; readonly status?: 200 }> {
  const { store } = deps;
  const { id: retryOf, agent, sessionId } = view.run;
  const actor = actorFor(caller, view, ["requester", "operator"]);
  const refuse = (rule: RefusalRule) => refusal(deps, view, { actor, rule, event });
  if (!mayRaise({ type: "Submitted" }, actor.kind)) throw await refuse("not_yours_to_raise");
  if (isOver(view)) throw await refuse("retried_run_is_over");
  const result = await submitRun(store, {
    sessionId,
    agent,
    goal: null,
    actor,
    retryOf,
    ...idempotency(caller, idempotencyKey, { retryOf }),
  });
  if (result.result === "agent_not_found") throw await unknownAgent(deps, agent);
  if (result.result === "retried_run_is_over") throw await refuse("retried_run_is_over");
  if (result.result === "line_is_live") {
    throw await refuse(isTerminal(view.run.state.status) ? "line_is_live" : "run_not_ended");
  }
  return submitReply(deps, caller, result);
}

/** A submission has no run yet that could refuse it, so its refusal is recorded with the run that it wanted to do again. */
async function refusal(
  { store }: HandlerDeps,
  { run, movedBy }: RunView,
  {
    actor,
    rule,
    event,
  }: Pick<Redo, "event"> & { readonly actor: ReturnType<typeof actorFor>; readonly rule: RefusalRule },
) {
  const { status } = run.state;
  await recordRefusal(store, { runId: run.id, event, rule, status, actor });
  return refused({ rule, event, runStatus: status, decided: movedByOf(movedBy, status) });
}
