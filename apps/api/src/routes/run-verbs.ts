import type { ActorKind } from "@holdpoint/core";
import type { Run } from "@holdpoint/protocol";
import {
  type ActResult,
  decideAsOperator,
  recordFact,
  requestCancel,
  requestMigration,
  requestPause,
  resumeRun,
} from "@holdpoint/store";
import { readId } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { actorFor, isEndedWorkflow } from "../parts.ts";
import { notFound } from "../problem.ts";
import { actReply, visibleRun } from "../run-access.ts";
import type { Answer, Asked, Handlers } from "../serve.ts";
import type { Caller } from "../tokens.ts";
import { redo } from "./redo.ts";
import { unknownAgent } from "./sessions.ts";

type Verbs =
  | "sendMessage"
  | "answer"
  | "cancelRun"
  | "pauseRun"
  | "resumeRun"
  | "migrateRun"
  | "retryRun"
  | "decideAsOperator";

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
    async resumeRun(asked) {
      const view = await visibleRun(store, asked.caller, asked.params.runId);
      if (!isEndedWorkflow(view)) return act(asked, ["operator"], (target) => resumeRun(store, target));
      // What has ended never moves again: a failed workflow goes on as a run of its own.
      const { body } = await redo(deps, { caller: asked.caller, view, event: "Resumed", idempotencyKey: null });
      return { body };
    },
    migrateRun: (asked) => migrate(deps, asked),
    decideAsOperator: (asked) =>
      act(asked, ["operator"], (target) => decideAsOperator(store, { ...target, ...decisionOf(asked.body) })),
    retryRun: (asked) => retry(deps, asked),
  };
}

async function migrate(
  deps: HandlerDeps,
  { caller, params, body }: Asked<"migrateRun">,
): Promise<Answer<"migrateRun">> {
  const view = await visibleRun(deps.store, caller, params.runId);
  const actor = actorFor(caller, view, ["operator"]);
  const { version } = body;
  const result = await requestMigration(deps.store, { runId: view.run.id, version, actor });
  if (result.result === "version_unknown") throw await unknownAgent(deps, { name: view.run.agent.name, version });
  return { body: await actReply(deps, caller, result) };
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
  const view = await visibleRun(deps.store, caller, params.runId);
  return redo(deps, { caller, view, event: "Submitted", idempotencyKey });
}
