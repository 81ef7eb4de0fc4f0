import type { Task } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import type { ExecutorView, TaskView } from "@holdpoint/store/read";
import { shown } from "./show.ts";

/** A task as its reader sees it. */
export function showTask(view: TaskView): Task {
  const { runId, terms, parent, createdAtMs, queuedAtMs, last, late, ...task } = view;
  return {
    ...task,
    runId: showId("run", runId),
    description: terms.description,
    heartbeatMs: terms.heartbeatMs,
    graceMs: terms.graceMs,
    parent: parent === null ? null : showId("run", parent),
    createdAt: shown(createdAtMs),
    queuedSince: shown(queuedAtMs),
    executor: last === null ? null : showExecutor(last),
    late: late.map(({ status, atMs, ...word }) => ({ ...word, runStatus: status, at: shown(atMs) })),
  };
}

function showExecutor(view: ExecutorView): NonNullable<Task["executor"]> {
  const { executor, startedAtMs, lastHeartbeatAtMs, leaseUntilMs, report, ...rest } = view;
  return {
    ...rest,
    name: executor,
    startedAt: shown(startedAtMs),
    lastHeartbeatAt: shown(lastHeartbeatAtMs),
    heartbeatDueAt: shown(leaseUntilMs),
    said: report,
  };
}
