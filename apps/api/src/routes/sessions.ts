import { createHash } from "node:crypto";
import { canonicalJson } from "@holdpoint/core";
import type { Run } from "@holdpoint/protocol";
import { createSession, listAgents, runByKey, type SubmitResult, showId, submitRun } from "@holdpoint/store";
import { listMessages, readId } from "@holdpoint/store/read";
import { inputProblem } from "../check-input.ts";
import type { HandlerDeps } from "../deps.ts";
import { isOperator } from "../parts.ts";
import { ApiProblem, notFound, refusedRule, removedRun } from "../problem.ts";
import { pageRequest, runReply, showPage, visibleSession } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showMessage, showSession } from "../show.ts";
import type { Caller } from "../tokens.ts";

/** Conversations, and the runs that are submitted in them. */
export function sessionHandlers(
  deps: HandlerDeps,
): Pick<Handlers, "createSession" | "showSession" | "listMessages" | "submitRun"> {
  const { store } = deps;
  return {
    async createSession({ caller }) {
      return { body: showSession(await createSession(store, caller.user)) };
    },
    async showSession({ caller, params }) {
      return { body: showSession(await visibleSession(store, caller, params.sessionId)) };
    },
    async listMessages({ caller, params, query }) {
      const { id } = await visibleSession(store, caller, params.sessionId);
      return { body: showPage(await listMessages(store, id, pageRequest(query)), showMessage) };
    },
    async submitRun({ caller, params, body, idempotencyKey }) {
      const { agent, goal } = body;
      const given = givenOf(body);
      const { id: sessionId, requester } = await visibleSession(store, caller, params.sessionId).catch(
        async (error) => {
          // The conversation went with its last run; who sends the request again is told what became of that.
          const request = { sessionId: readId("session", params.sessionId), agent, goal, ...given };
          const known = await runByKey(store, idempotency(caller, idempotencyKey, request));
          throw known?.result === "removed" ? removedRun(known.runId, known.removedAtMs) : error;
        },
      );
      const kind = requester === caller.user || !isOperator(caller) ? "requester" : "operator";
      const key = idempotency(caller, idempotencyKey, { sessionId, agent, goal, ...given });
      const problem = await inputProblem(store, body);
      if (problem !== null) {
        // The same request may have been taken by what the workflow took then.
        const known = await runByKey(store, key);
        if (known === null) throw problem;
        return submitReply(deps, caller, known);
      }
      const actor = { kind, id: caller.user } as const;
      const result = await submitRun(store, { sessionId, agent, goal, actor, ...given, ...key });
      if (result.result === "agent_not_found") throw await unknownAgent(deps, agent);
      return submitReply(deps, caller, result);
    },
  };
}

/** What a submission may leave out: only what it says makes it the same as another. */
function givenOf({ input, instanceKey }: Asked<"submitRun">["body"]) {
  return {
    ...(input === undefined ? {} : { input }),
    ...(instanceKey === undefined ? {} : { instanceKey }),
  };
}

/** What makes a request the same as one that came before under the same key. */
export function idempotency(caller: Caller, key: string | null, request: Parameters<typeof canonicalJson>[0]) {
  if (key === null) return {};
  const requestHash = createHash("sha256").update(canonicalJson(request)).digest("hex");
  return { idempotency: { principal: caller.user, key, requestHash } };
}

/** Answers a submission that is no refusal: the new run, or the one that the same request made before. */
export async function submitReply(
  { store, wakeUps }: HandlerDeps,
  caller: Caller,
  submitted: SubmitResult,
): Promise<{ readonly body: Run; readonly status?: 200 }> {
  switch (submitted.result) {
    case "submitted":
      wakeUps.announce(submitted.run);
      return { body: await runReply(store, caller, submitted.run.id) };
    case "repeated":
      return { body: await runReply(store, caller, submitted.run.id), status: 200 };
    case "removed":
      throw removedRun(submitted.runId, submitted.removedAtMs);
    case "key_reused":
      throw new ApiProblem(422, "idempotency_key_reused", {
        detail: "This Idempotency-Key came with another request before. Use a new key for a new request.",
      });
    case "instance_is_live":
      throw refusedRule("instance_is_live", nameOf(submitted.runId));
    case "session_not_found":
      throw notFound("session");
    default:
      throw notFound("run");
  }
}

function nameOf(runId: string | null): string {
  return runId === null ? "It has ended meanwhile: send the request again." : `It is ${showId("run", runId)}.`;
}

const SHOWN_AGENTS = 20;

/** The problem of a run for an agent that no worker has registered; it says which there are. */
export async function unknownAgent({ store }: HandlerDeps, { name, version }: { name: string; version: string }) {
  const known = (await listAgents(store))
    .slice(0, SHOWN_AGENTS)
    .map((agent) => `"${agent.name}" version "${agent.version}"`);
  const choice = known.length === 0 ? "None is registered." : `Registered: ${known.join(", ")}.`;
  return new ApiProblem(422, "agent_unknown", {
    detail: `There is no agent "${name}" version "${version}". ${choice} Workers register their agents when they start.`,
  });
}
