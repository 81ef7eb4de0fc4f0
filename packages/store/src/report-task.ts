import { createHash } from "node:crypto";
import { canonicalJson, type EventType, type JsonValue, operatorHold, type RunEvent, storable } from "@holdpoint/core";
import { type ActResult, type ActRule, act, type Judged } from "./act.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { readTask, type SeenTask, type TaskClaim } from "./find-task.ts";
import { actorOf, refusalOf, resumeTask } from "./heartbeat-task.ts";
import { keepResult } from "./keep-result.ts";
import type { Writes } from "./move.ts";
import type { Run } from "./run.ts";
import type { TaskReport } from "./task-writes.ts";

/** What an executor says of its task, and what it brings home. */
export interface TaskReported {
  readonly runId: string;
  readonly tokenHash: string;
  readonly report: TaskReport;
  /** Of a task that is complete. */
  readonly result?: JsonValue;
}

export type ReportAnswer =
  /** It has said just this before: the run as it is now. */
  { readonly result: "repeated"; readonly run: Run } | { readonly result: "unknown_token" };

const TRIES = 5;

/**
 * Takes the last word of whoever has a task in hands: fenced by that one's claim, so it counts once. The same again is
 * answered as the first time. After a loss it is heard of again first. What comes when the task is not in its hands any
 * more moves nothing, and is kept beside the claim for a person to compare.
 */
export async function reportTask(store: Store, reported: TaskReported): Promise<ActResult<ReportAnswer>> {
  for (let tries = 0; ; tries += 1) {
    const seen = await readTask(store, reported.runId, reported.tokenHash);
    if (seen === null) return { result: "not_found" };
    const { own } = seen;
    if (own === null) return { result: "unknown_token" };
    if (tries < TRIES && isLostWith(seen, own)) {
      await resumeTask(store, seen, own);
      continue;
    }
    const result = await say(store, reported, own);
    if (result.result !== "lost") return result;
    if (tries >= TRIES) return { result: "refused", rule: "busy", event: EVENTS[reported.report.kind], run: seen.run };
  }
}

/** The task was lost, and this is who was lost with it. */
function isLostWith(seen: SeenTask, own: TaskClaim): boolean {
  return seen.run.state.status === "lost" && refusalOf(seen, own) === null;
}

/** Says it where the task is in its hands. `lost`: it was, and is not any more. */
async function say(
  store: Store,
  reported: TaskReported,
  own: TaskClaim,
): Promise<ActResult<ReportAnswer | { readonly result: "lost" }>> {
  const { runId, tokenHash, report } = reported;
  const request = {
    runId,
    event: EVENTS[report.kind],
    actor: actorOf(own),
    read: () => readTask(store, runId, tokenHash),
  };
  const result = await act<SeenTask, ReportAnswer | { readonly result: "lost" }>(store, request, (now) =>
    judge(now, reported),
  );
  const isEvidence = report.kind === "complete" || report.kind === "fail";
  if (result.result === "refused" && isEvidence) {
    await keepLate(store, reported, { epoch: own.epoch, status: result.run.state.status });
  }
  return result;
}

const EVENTS = {
  complete: "Ended",
  fail: "Held",
  stopped: "Released",
  release: "Released",
} as const satisfies Readonly<Record<TaskReport["kind"], EventType>>;

function judge(seen: SeenTask, reported: TaskReported): Judged<ReportAnswer | { readonly result: "lost" }> {
  const { run, own } = seen;
  const { report, result } = reported;
  if (own === null) return { answer: { result: "unknown_token" } };
  const reportHash = hashOf(reported);
  if (own.reportHash === reportHash) return { answer: { result: "repeated", run } };
  const refuse: ActRule | null = refusalOf(seen, own);
  if (refuse !== null) return { refuse };
  if (own.workerId === null || isLostWith(seen, own)) return { answer: { result: "lost" } };
  if (report.kind === "stopped" && run.state.cancelRequestedAt === null) return { refuse: "stop_not_asked" };
  const task = { workerId: own.workerId, report, reportHash };
  return {
    run,
    events: [eventOf(seen, report)],
    actor: { kind: "worker", id: own.workerId },
    reason: reasonOf(report),
    writes: { task, ...broughtBy(report, result) },
  };
}

function broughtBy(
  report: TaskReport,
  given: JsonValue | undefined,
): Pick<Writes, "result" | "resultArtifact" | "artifacts"> {
  if (report.kind !== "complete" || given === undefined) return {};
  const { result, artifacts } = keepResult(given);
  const [whole] = artifacts;
  return whole === undefined ? { result } : { result, resultArtifact: whole.sha256, artifacts };
}

function eventOf({ terms, failures }: SeenTask, report: TaskReport): RunEvent {
  switch (report.kind) {
    case "complete":
      return { type: "Ended", status: "completed", outcome: report.outcome, reason: null };
    case "fail":
      if (report.retryable && failures < terms.retries) return { type: "Released", retryAt: null };
      return terms.onFailure === "end"
        ? { type: "Ended", status: "failed", outcome: null, reason: report.reason }
        : { type: "Held", hold: operatorHold("task_failed", null) };
    case "stopped":
    case "release":
      return { type: "Released", retryAt: null };
  }
}

function reasonOf(report: TaskReport): string {
  if (report.kind === "complete") return `complete: ${report.outcome.kind}`;
  return report.reason === null ? report.kind : `${report.kind}: ${report.reason}`;
}

function hashOf({ report, result = null }: TaskReported): string {
  // Reports are plain data of the types above.
  const said = storable({ report, result } as unknown as JsonValue);
  return createHash("sha256").update(canonicalJson(said)).digest("hex");
}

/** Beside the claim it was made with, once: what a person compares with what the run has come to. */
async function keepLate(
  store: Store,
  { runId, report, result = null }: TaskReported,
  { epoch, status }: { readonly epoch: number; readonly status: string },
): Promise<void> {
  const said = { report, result: keepResult(result).withoutArtifacts, status };
  const evidence = storable(said as unknown as JsonValue);
  await execute(store, KEEP, [store.tenantId, runId, epoch, JSON.stringify(evidence)]);
}

const KEEP = statement(
  "keep_late_task_evidence",
  `update holdpoint.tasks t set late_evidence = $4::jsonb, late_at = holdpoint.clock()
   where t.tenant_id = $1::uuid and t.run_id = $2::uuid and t.epoch = $3::int and t.late_at is null
     and t.started_at is not null`,
);
