import type { Run } from "@holdpoint/protocol";
import { type ActResult, findSession, type Session, type Store } from "@holdpoint/store";
import { findOpenNodes, findRun, type Page, type PageRequest, type RunView, readId } from "@holdpoint/store/read";
import { readsPayloads } from "./approval-access.ts";
import type { HandlerDeps } from "./deps.ts";
import { actionsOf, sees, seesAll } from "./parts.ts";
import { movedByOf, notFound, refused } from "./problem.ts";
import { showRun } from "./show.ts";
import type { Caller } from "./tokens.ts";

/** The run with this shown id, if this caller may see it. */
export async function visibleRun(store: Store, caller: Caller, runId: string): Promise<RunView> {
  const id = readId("run", runId);
  const view = id === null ? null : await findRun(store, id);
  if (view === null || !sees(caller, view)) throw notFound("run");
  return view;
}

/** The session with this shown id, if this caller may see it. */
export async function visibleSession(store: Store, caller: Caller, sessionId: string): Promise<Session> {
  const id = readId("session", sessionId);
  const session = id === null ? null : await findSession(store, id);
  if (session === null || !(seesAll(caller) || session.requester === caller.user)) throw notFound("session");
  return session;
}

/** The run as it is now, for this caller. */
export async function runReply(store: Store, caller: Caller, runId: string): Promise<Run> {
  const view = await findRun(store, runId);
  if (view === null) throw notFound("run");
  return showAlone(store, caller, view);
}

/** A run with what no list has: the open nodes of a workflow, and for who may read payloads what came in and out. */
export async function showAlone(store: Store, caller: Caller, view: RunView): Promise<Run> {
  const { id, input, result } = view.run;
  const shown = showRun(view, actionsOf(caller, view));
  const openNodes = view.agentKind === "workflow" ? { openNodes: [...(await findOpenNodes(store, id))] } : {};
  const payloads = (await readsPayloads(store, caller, view)) ? { input, result } : {};
  return { ...shown, ...openNodes, ...payloads };
}

/** Answers what somebody asked of a run: the run as it is now, or the refusal; a run that is queued now is announced. */
export async function actReply({ store, wakeUps }: HandlerDeps, caller: Caller, result: ActResult): Promise<Run> {
  if (result.result === "not_found") throw notFound("run");
  if (result.result === "refused") throw await runRefusal(store, result);
  if (result.result === "accepted") wakeUps.announce(result.run);
  return runReply(store, caller, result.run.id);
}

/** The problem for a refusal, with what brought the run where it is. */
export async function runRefusal(store: Store, { rule, event, run }: Extract<ActResult, { result: "refused" }>) {
  const view = await findRun(store, run.id);
  const decided = view === null ? undefined : movedByOf(view.movedBy, view.run.state.status);
  return refused({ rule, event, runStatus: run.state.status, decided });
}

/** The page that a query asks for. */
export function pageRequest({
  limit,
  cursor,
}: {
  readonly limit: number;
  readonly cursor?: string | undefined;
}): PageRequest {
  return { limit, after: cursor ?? null };
}

/** A page as it crosses HTTP. */
export function showPage<Item, Shown>({ items, next }: Page<Item>, show: (item: Item) => Shown) {
  return { items: items.map(show), next };
}
