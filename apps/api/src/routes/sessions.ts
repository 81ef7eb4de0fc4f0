import { createHash } from "node:crypto";
import { canonicalJson } from "@holdpoint/core";
import type { Run } from "@holdpoint/protocol";
import { createSession, listAgents, type SubmitResult, submitRun } from "@holdpoint/store";
import { listMessages } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { isOperator } from "../parts.ts";
import { ApiProblem, notFound } from "../problem.ts";
import { pageRequest, runReply, showPage, visibleSession } from "../run-access.ts";
import type { Handlers } from "../serve.ts";
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
    async submitRun({ caller, params, body: { agent, goal }, idempotencyKey }) {
      const { id: sessionId, requester } = await visibleSession(store, caller, params.sessionId);
      const kind = requester === caller.user || !isOperator(caller) ? "requester" : "operator";
      const result = await submitRun(store, {
        sessionId,
        agent,
        goal,
        actor: { kind, id: caller.user },
        ...idempotency(caller, idempotencyKey, { sessionId, agent, goal }),
      });
      if (result.result === "agent_not_found") throw await unknownAgent(deps, agent);
      return submitReply(deps, caller, result);
    },
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
    case "key_reused":
      throw new ApiProblem(422, "idempotency_key_reused", {
        detail: "This Idempotency-Key came with another request before. Use a new key for a new request.",
      });
    case "session_not_found":
      throw notFound("session");
    default:
      throw notFound("run");
  }
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
