import type { AgentRef, JsonValue, Outcome } from "@holdpoint/core";

/** How far a task has come, as its executor says. */
export interface TaskProgress {
  /** From 0 to 100. */
  readonly percent: number | null;
  readonly text: string | null;
}

/** What an executor says of the task that it has in hands. */
export type TaskReport =
  | { readonly kind: "complete"; readonly outcome: Outcome }
  /** `retryable`: nothing was done, or it may be done again. */
  | { readonly kind: "fail"; readonly reason: string; readonly retryable: boolean }
  /** It has stopped, as it was asked to. */
  | { readonly kind: "stopped"; readonly reason: string | null }
  /** It has not done it, and does not: somebody else may. */
  | { readonly kind: "release"; readonly reason: string | null };

/** What an executor said when the task was not in its hands any more. */
export interface LateTaskEvidence {
  readonly report: TaskReport;
  readonly result: JsonValue;
  /** The run's status when it came. */
  readonly status: string;
}

/** Somebody takes a task in hands: from then on that is who owns its run. */
export interface TaskBegin {
  /** The worker row that stands for it, new for every time. */
  readonly workerId: string;
  readonly agents: readonly AgentRef[];
  /** Who does it, in words for people. */
  readonly executor: string;
  readonly tokenHash: string;
  readonly startedBy: string;
  readonly startKey: string | null;
  readonly heartbeatMs: number;
  readonly graceMs: number;
}

/** What is stored about a task with a transition of its run, in the same statement. */
export type TaskWrite =
  | { readonly begin: TaskBegin }
  | { readonly workerId: string; readonly report: TaskReport; readonly reportHash: string };

const MS = "* interval '1 millisecond'";

/**
 * The parts of `transition` that write `TaskWrite`s: the executor's worker row and its claim, which has the epoch that the
 * run has moved to; or its last word, with which it goes. Workers are locked last, after all that belongs to runs.
 */
export const TASKED = `
executor_came as (
  insert into holdpoint.workers (tenant_id, id, host, pid, agents, slots, started_at, lease_until, kind, lease_ms, grace_ms)
  select $1::uuid, b."workerId", b.executor, 0, b.agents, 1, m.at, m.at + b."heartbeatMs" ${MS}, 'task',
    b."heartbeatMs", b."graceMs"
  from moved m cross join lateral jsonb_to_record(m.task->'begin')
    as b("workerId" uuid, executor text, agents jsonb, "heartbeatMs" int, "graceMs" int)
  where b."workerId" is not null
),
task_begun as (
  insert into holdpoint.tasks (tenant_id, run_id, epoch, token_hash, issued_at, issued_by, worker_id, executor, start_key,
    heartbeat_ms, grace_ms, started_at, last_heartbeat_at)
  select $1::uuid, m.run_id, m.epoch, b."tokenHash", m.at, b."startedBy", b."workerId", b.executor, b."startKey",
    b."heartbeatMs", b."graceMs", m.at, m.at
  from moved m cross join lateral jsonb_to_record(m.task->'begin')
    as b("workerId" uuid, executor text, "tokenHash" text, "startedBy" text, "startKey" text, "heartbeatMs" int,
         "graceMs" int)
  where b."workerId" is not null
  -- A token that was given out in advance, for whoever would start it.
  on conflict (run_id, epoch) do update set token_hash = excluded.token_hash, worker_id = excluded.worker_id,
    executor = excluded.executor, start_key = excluded.start_key, heartbeat_ms = excluded.heartbeat_ms,
    grace_ms = excluded.grace_ms, started_at = excluded.started_at, last_heartbeat_at = excluded.last_heartbeat_at
),
task_reported as (
  update holdpoint.tasks t set report = m.task->'report', report_hash = m.task->>'reportHash', reported_at = m.at
  from moved m where m.task ? 'report' and t.run_id = m.run_id and t.epoch = m.epoch
),
executor_left as (
  update holdpoint.workers w set gone_at = m.at, gone_reason = 'retired'
  from moved m where m.task ? 'report' and w.id = (m.task->>'workerId')::uuid and w.gone_at is null
)`;
