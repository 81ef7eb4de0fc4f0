import { randomBytes } from "node:crypto";
import {
  type ActResult,
  heartbeatTask,
  issueTaskToken,
  type Run,
  registerTask,
  reportTask,
  showId,
  startByToken,
  startTask,
  type TaskReported,
  type TaskStarted,
  tellParents,
} from "@holdpoint/store";
import { findTask, listTasks, readId, type TaskFilter } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { failureOf } from "../failure.ts";
import { isTaskRunner, seesAll } from "../parts.ts";
import { notFound, refusedRule, unauthenticated } from "../problem.ts";
import { pageRequest, runRefusal, showPage, visibleRun } from "../run-access.ts";
import type { Answer, Asked, Handlers } from "../serve.ts";
import { shown } from "../show.ts";
import { showTask } from "../show-task.ts";
import { type Caller, digest } from "../tokens.ts";

type TaskRoutes =
  | "listTasks"
  | "showTask"
  | "defineTask"
  | "startTask"
  | "issueTaskToken"
  | "heartbeatTask"
  | "completeTask"
  | "failTask"
  | "releaseTask";

/** Work that is done elsewhere: its executor speaks with a token of its own, and everything it says is judged on the row. */
export function taskHandlers(deps: HandlerDeps): Pick<Handlers, TaskRoutes> {
  const { store } = deps;
  return {
    async listTasks({ query }) {
      return { body: showPage(await listTasks(store, filterOf(query), pageRequest(query)), showTask) };
    },
    async showTask({ caller, params }) {
      return { body: await visibleTask(deps, caller, params.runId) };
    },
    async defineTask({ body }) {
      const { name, version, ...terms } = body;
      if (!(await registerTask(store, { name, version }, terms))) throw refusedRule("task_name_taken");
      return { body };
    },
    startTask: (asked) => start(deps, asked),
    async issueTaskToken({ caller, params }) {
      const { run } = await visibleRun(store, caller, params.runId);
      const token = mintToken();
      const issued = await issueTaskToken(store, { runId: run.id, tokenHash: digest(token), issuedBy: caller.user });
      if (issued.result === "not_found") throw notFound("task");
      if (issued.result === "run_ended") {
        throw await runRefusal(store, { result: "refused", rule: "run_ended", event: "Claimed", run });
      }
      return { body: { token, started: issued.started } };
    },
    async heartbeatTask({ params, taskToken, body: { progress } }) {
      const said = progress === undefined ? null : { percent: progress.percent ?? null, text: progress.text ?? null };
      const beat = await heartbeatTask(store, { runId: stored(params.runId), tokenHash: taskToken, progress: said });
      switch (beat.result) {
        case "renewed": {
          const { status, stop, pause, leaseUntilMs } = beat;
          return { body: { status, stop, pause, heartbeatDueAt: shown(leaseUntilMs) } };
        }
        case "refused":
          throw await runRefusal(store, beat);
        case "unknown_token":
        case "not_found":
          throw notOfThisTask();
      }
    },
    completeTask: ({ params, taskToken, body: { outcome, result } }) =>
      report(deps, {
        runId: stored(params.runId),
        tokenHash: taskToken,
        report: { kind: "complete", outcome },
        ...(result === undefined ? {} : { result }),
      }),
    failTask: ({ params, taskToken, body: { reason, retryable, stopped } }) =>
      report(deps, {
        runId: stored(params.runId),
        tokenHash: taskToken,
        report: stopped ? { kind: "stopped", reason } : { kind: "fail", reason, retryable },
      }),
    releaseTask: ({ params, taskToken, body: { reason = null } }) =>
      report(deps, { runId: stored(params.runId), tokenHash: taskToken, report: { kind: "release", reason } }),
  };
}

/** 256 bits that nobody can guess. */
function mintToken(): string {
  return `hpt_${randomBytes(32).toString("base64url")}`;
}

function filterOf({ agent, agentVersion, status }: Asked<"listTasks">["query"]): TaskFilter {
  return {
    ...(agent === undefined ? {} : { agentName: agent }),
    ...(agentVersion === undefined ? {} : { agentVersion }),
    ...(status === undefined ? {} : { statuses: status }),
  };
}

async function visibleTask({ store }: HandlerDeps, caller: Caller, runId: string) {
  const view = await findTask(store, stored(runId));
  const sees = view !== null && (isTaskRunner(caller) || seesAll(caller) || view.requester === caller.user);
  if (!sees) throw notFound("task");
  return showTask(view);
}

/** The stored form of a shown id. */
function stored(runId: string): string {
  const id = readId("run", runId);
  if (id === null) throw notFound("task");
  return id;
}

async function start(
  deps: HandlerDeps,
  { caller, taskToken, params, body: { executor }, idempotencyKey }: Asked<"startTask">,
): Promise<Answer<"startTask">> {
  const { store } = deps;
  const runId = stored(params.runId);
  if (caller === null) {
    if (taskToken === null) throw notOfThisTask();
    const byToken = { runId, tokenHash: taskToken, executor: executor ?? "whoever has the token" };
    return startReply(deps, await startByToken(store, byToken), null);
  }
  const token = mintToken();
  const started = await startTask(store, {
    runId,
    startedBy: caller.user,
    executor: executor ?? caller.user,
    tokenHash: digest(token),
    startKey: idempotencyKey === null ? null : digest(idempotencyKey),
  });
  return startReply(deps, started, token);
}

async function startReply(
  { store }: HandlerDeps,
  started: ActResult<TaskStarted>,
  token: string | null,
): Promise<Answer<"startTask">> {
  if (started.result === "refused") throw await runRefusal(store, started);
  if (started.result === "unknown_token") throw notOfThisTask();
  const view = started.result === "started" ? await findTask(store, started.run.id) : null;
  if (started.result !== "started" || view === null) throw notFound("task");
  const { repeated } = started;
  return { body: { token, repeated, task: showTask(view) }, ...(repeated ? { status: 200 } : {}) };
}

type EndRoutes = "completeTask" | "failTask" | "releaseTask";

async function report(deps: HandlerDeps, reported: TaskReported): Promise<Answer<EndRoutes>> {
  const { store } = deps;
  const said = await reportTask(store, reported);
  if (said.result === "refused") throw await runRefusal(store, said);
  if (said.result === "unknown_token" || said.result === "not_found") throw notOfThisTask();
  if (said.result === "accepted") await tellParent(deps, said.run);
  const { id, state } = said.run;
  const repeated = said.result !== "accepted";
  return { body: { runId: showId("run", id), status: state.status, outcome: state.outcome, repeated } };
}

/** Tells whoever waits for the task that it has ended, and wakes it. What fails here the sweeper does. */
async function tellParent({ store, wakeUps, log }: HandlerDeps, run: Run): Promise<void> {
  if (run.parent === null || run.state.endedAt === null) return;
  const told = await tellParents(store, [run.id], { kind: "worker", id: "api" }).catch((error: unknown) => {
    log.warn({ event: "parent.not_told", runId: run.id, ...failureOf(error) }, "parent not told");
    return { moved: [] };
  });
  for (const parent of told.moved) wakeUps.announce(parent);
}

/** The same for a token of nobody's, of another task, and for a task that is not there. */
function notOfThisTask() {
  return unauthenticated("the token of this task (from its start)");
}
