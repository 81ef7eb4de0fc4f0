import type { ActorKind } from "@holdpoint/core";
import { isTerminal, mayRaise } from "@holdpoint/core";
import type { Run } from "@holdpoint/protocol";
import {
  type ActResult,
  decideAsOperator,
  recordFact,
  recordRefusal,
  requestCancel,
  requestPause,
  resumeRun,
  submitRun,
} from "@holdpoint/store";
import { type RunView, readId } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { actorFor } from "../parts.ts";
import { movedByOf, notFound, refused } from "../problem.ts";
import { actReply, visibleRun } from "../run-access.ts";
import type { Answer, Asked, Handlers } from "../serve.ts";
import type { Caller } from "../tokens.ts";
import { idempotency, submitReply, unknownAgent } from "./sessions.ts";

type Verbs = "sendMessage" | "answer" | "cancelRun" | "pauseRun" | "resumeRun" | "retryRun" | "decideAsOperator";

/** What can be asked of a run. Whether it is allowed is judged where it is carried out, on the row as it is then. */
export function runVerbHandlers(deps: HandlerDeps): Pick<Handlers, Verbs> {
  const { store } = deps;

  /** Finds the run and acts on it in the caller's part that may do this. */
  async function act(
    { caller, params }: { readonly caller: Caller; readonly params: { readonly runId: string } },
    kinds: readonly ActorKind[],
    verb: (target: { readonly runId: string; readonly actor: ReturnType<typeof actorFor> }) => Promise<ActResult>,
  ): Promise<{ body: Run }> {
    const view = await visibleRun(store, caller, params.runId);
    const result = await verb({ runId: view.run.id, actor: actorFor(caller, view, kinds) });
    return { body: await actReply(deps, caller, result) };
  }

  return {
    sendMessage: (asked) =>
      act(asked, ["requester", "operator"], (target) =>
        recordFact(store, { ...target, kind: "message", text: asked.body.text }),
      ),
    answer: (asked) => {
      const { text, hold } = asked.body;
      return act(asked, ["requester"], (target) =>
        recordFact(store, { ...target, kind: "answer", text, ...(hold === undefined ? {} : { holdSeq: hold }) }),
      );
    },
    cancelRun: (asked) =>
      act(asked, ["requester", "operator"], (target) =>
        requestCancel(store, { ...target, reason: asked.body.reason ?? null }),
      ),
    pauseRun: (asked) => act(asked, ["operator"], (target) => requestPause(store, target)),
    resumeRun: (asked) => act(asked, ["operator"], (target) => resumeRun(store, target)),
    decideAsOperator: (asked) =>
      act(asked, ["operator"], (target) => decideAsOperator(store, { ...target, ...decisionOf(asked.body) })),
    retryRun: (asked) => retry(deps, asked),
  };
}

function decisionOf({ choice, reason, attempts, result, externalRef }: Asked<"decideAsOperator">["body"]) {
  return {
    choice,
    reason,
    attemptIds: (attempts ?? []).map((shownId) => {
      const id = readId("attempt", shownId);
      if (id === null) throw notFound("attempt");
      return id;
    }),
    ...(result === undefined ? {} : { result }),
    ...(externalRef === undefined ? {} : { externalRef }),
  };
}

async function retry(
  deps: HandlerDeps,
  { caller, params, idempotencyKey }: Asked<"retryRun">,
): Promise<Answer<"retryRun">> {
  const { store } = deps;
  const view = await visibleRun(store, caller, params.runId);
  const { id: retryOf, agent, sessionId } = view.run;
  const actor = actorFor(caller, view, ["requester", "operator"]);
  if (!mayRaise({ type: "Submitted" }, actor.kind))
    throw await refuseRetry(deps, view, { actor, rule: "not_yours_to_raise" });
  const result = await submitRun(store, {
    sessionId,
    agent,
    goal: null,
    actor,
    retryOf,
    ...idempotency(caller, idempotencyKey, { retryOf }),
  });
  if (result.result === "agent_not_found") throw await unknownAgent(deps, agent);
  if (result.result === "line_is_live") {
    const rule = isTerminal(view.run.state.status) ? "line_is_live" : "run_not_ended";
    throw await refuseRetry(deps, view, { actor, rule });
  }
  return submitReply(deps, caller, result);
}

/** A submission has no run yet that could refuse it, so its refusal is recorded with the run that it wanted to do again. */
async function refuseRetry(
  { store }: HandlerDeps,
  { run, movedBy }: RunView,
  {
    actor,
    rule,
  }: {
    readonly actor: ReturnType<typeof actorFor>;
    readonly rule: "line_is_live" | "run_not_ended" | "not_yours_to_raise";
  },
) {
  const { status } = run.state;
  await recordRefusal(store, { runId: run.id, event: "Submitted", rule, status, actor });
  return refused({ rule, event: "Submitted", runStatus: status, decided: movedByOf(movedBy, status) });
}
