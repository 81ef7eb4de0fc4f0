import { findTimeline, listCalls, listChildren, listRuns, type RunFilter, readId } from "@holdpoint/store/read";
import { readsPayloads } from "../approval-access.ts";
import type { HandlerDeps } from "../deps.ts";
import { actionsOf, seesAll } from "../parts.ts";
import { notFound } from "../problem.ts";
import { pageRequest, showAlone, showPage, visibleRun } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showCall, showRun } from "../show.ts";
import { showEntry } from "../show-timeline.ts";

/** What can be seen of runs. */
export function runHandlers({
  store,
}: HandlerDeps): Pick<Handlers, "listRuns" | "showRun" | "listChildren" | "showTimeline" | "listCalls"> {
  return {
    async listRuns({ caller, query }) {
      const page = await listRuns(store, filterOf(query, seesAll(caller) ? null : caller.user), pageRequest(query));
      return { body: showPage(page, (view) => showRun(view, actionsOf(caller, view))) };
    },
    async showRun({ caller, params }) {
      const view = await visibleRun(store, caller, params.runId);
      return { body: await showAlone(store, caller, view) };
    },
    async listChildren({ caller, params, query }) {
      // Whoever asked for a run asked for its children, so who sees the one sees the others.
      const { run } = await visibleRun(store, caller, params.runId);
      const page = await listChildren(store, run.id, pageRequest(query));
      return { body: showPage(page, (view) => showRun(view, actionsOf(caller, view))) };
    },
    async showTimeline({ caller, params, query }) {
      const view = await visibleRun(store, caller, params.runId);
      const payloads = query.payloads && (await readsPayloads(store, caller, view));
      const page = await findTimeline(store, view.run.id, { ...pageRequest(query), payloads });
      return { body: showPage(page, showEntry) };
    },
    async listCalls({ caller, params, query }) {
      const { run } = await visibleRun(store, caller, params.runId);
      return { body: showPage(await listCalls(store, run.id, pageRequest(query)), showCall) };
    },
  };
}

function filterOf(query: Asked<"listRuns">["query"], visibleTo: string | null): RunFilter {
  const { status, waitingForKind, waitingFor, overdue, agent, agentVersion, sessionId, parent } = query;
  const { externalRef, operationId } = query;
  return {
    ...(status === undefined ? {} : { statuses: status }),
    ...(waitingForKind === undefined ? {} : { waitingForKind }),
    ...(waitingFor === undefined ? {} : { waitingForPrincipal: waitingFor }),
    ...(overdue === undefined ? {} : { overdue }),
    ...(agent === undefined ? {} : { agentName: agent }),
    ...(agentVersion === undefined ? {} : { agentVersion }),
    ...(sessionId === undefined ? {} : { sessionId: stored("session", sessionId) }),
    ...(parent === undefined ? {} : { parent: stored("run", parent) }),
    ...(externalRef === undefined ? {} : { externalRef }),
    ...(operationId === undefined ? {} : { operationId }),
    ...(visibleTo === null ? {} : { visibleTo }),
  };
}

/** The stored form of an id in a filter. */
function stored(kind: "session" | "run", shownId: string): string {
  const id = readId(kind, shownId);
  if (id === null) throw notFound(kind);
  return id;
}
