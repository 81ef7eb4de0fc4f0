import type { Actor, AgentRef, JsonValue } from "@holdpoint/core";
import { EMPTY_CHECKPOINT, storable, storableText, submitted } from "@holdpoint/core";
import { announcedOf } from "./announce.ts";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

export interface Submission {
  readonly sessionId: string;
  readonly agent: AgentRef;
  /** What is to be done, in the requester's words; becomes a message of the session. Null for a run that does another again. */
  readonly goal: string | null;
  /** What a workflow is given; a run that does another again has that one's. */
  readonly input?: JsonValue;
  /** Of the live runs of one agent at most one has it; a run that does another again has that one's. */
  readonly instanceKey?: string;
  readonly actor: Actor;
  /** The run that this one does again; it must have ended, and so must every other of its line. */
  readonly retryOf?: string;
  readonly idempotency?: { readonly principal: string; readonly key: string; readonly requestHash: string };
}

export type SubmitResult =
  | { readonly result: "submitted"; readonly run: Run }
  /** The same request came before under the same key: its run, as it is now. */
  | { readonly result: "repeated"; readonly run: Run }
  /** The same request came before under the same key; its run is past its retention, and does not run again. */
  | { readonly result: "removed"; readonly runId: string; readonly removedAtMs: number }
  | { readonly result: "key_reused" }
  | { readonly result: "session_not_found" }
  | { readonly result: "agent_not_found" }
  /** Another run of the line is live, or has an attempt of which nobody knows the outcome. */
  | { readonly result: "line_is_live" }
  /** Another run of the agent is live under the same instance key; null if it has ended meanwhile. */
  | { readonly result: "instance_is_live"; readonly runId: string | null }
  /** A workflow that has completed, or was stopped, is never resumed. */
  | { readonly result: "retried_run_is_over" }
  | { readonly result: "retried_run_not_found" };

/**
 * Submits a run: the message, the run `queued`, its first transition and the idempotency key, in one statement. The row
 * is its own outbox; a wake-up may follow after this returns.
 */
export async function submitRun(store: Store, submission: Submission): Promise<SubmitResult> {
  const runId = newId();
  try {
    const [row] = await execute<SubmitRow>(store, SUBMIT, parameters(store, submission, runId));
    if (row?.run != null) return { result: "submitted", run: runOf(row.run) };
    return explain(store, submission, row ?? NOTHING);
  } catch (error) {
    const constraint = constraintOf(error);
    // The same request was in flight twice: the other one has won by now, and holds the line as well as the key.
    if (constraint === "runs_one_live_per_line")
      return (await runByKey(store, submission)) ?? { result: "line_is_live" };
    if (constraint === "runs_one_live_per_instance")
      return (await runByKey(store, submission)) ?? instanceIsLive(store, submission);
    if (constraint === "idempotency_keys_pkey") return explain(store, submission, NOTHING);
    // It was there when the statement began, and retention has removed it since.
    if (constraint === "retried_run_exists") return { result: "retried_run_not_found" };
    throw error;
  }
}

async function instanceIsLive(store: Store, { agent, instanceKey, retryOf }: Submission): Promise<SubmitResult> {
  const values = [store.tenantId, agent.name, instanceKey ?? null, retryOf ?? null];
  const [live] = await execute<{ id: string }>(store, LIVE_INSTANCE, values);
  return { result: "instance_is_live", runId: live?.id ?? null };
}

interface SubmitRow {
  readonly run: RunJson | null;
  readonly session_found: boolean;
  readonly agent_found: boolean;
  readonly retried_found: boolean;
  readonly retried_is_over: boolean;
}

const NOTHING: SubmitRow = {
  run: null,
  session_found: true,
  agent_found: true,
  retried_found: true,
  retried_is_over: false,
};

async function explain(store: Store, submission: Submission, row: SubmitRow): Promise<SubmitResult> {
  const known = await runByKey(store, submission);
  if (known !== null) return known;
  if (!row.session_found) return { result: "session_not_found" };
  if (!row.retried_found) return { result: "retried_run_not_found" };
  if (row.retried_is_over) return { result: "retried_run_is_over" };
  return { result: "agent_not_found" };
}

/** The run that the same request has made before; null if it has not come before, or names no key. */
export async function runByKey(
  store: Store,
  { idempotency }: Pick<Submission, "idempotency">,
): Promise<Extract<SubmitResult, { result: "repeated" | "removed" | "key_reused" }> | null> {
  if (idempotency === undefined) return null;
  const { principal, key, requestHash } = idempotency;
  const [known] = await execute<KeyRow>(store, BY_KEY, [store.tenantId, principal, key, requestHash]);
  if (known === undefined) return null;
  if (!known.same) return { result: "key_reused" };
  if (known.run !== null) return { result: "repeated", run: runOf(known.run) };
  return { result: "removed", runId: known.run_id, removedAtMs: known.removed_at.getTime() };
}

type KeyRow = { same: boolean; run_id: string } & (
  | { run: RunJson; removed_at: null }
  | { run: null; removed_at: Date }
);

function parameters(store: Store, submission: Submission, runId: string): readonly unknown[] {
  const state = submitted();
  const queueLimit = state.waitDeadline !== null && "inMs" in state.waitDeadline ? state.waitDeadline.inMs : 0;
  return [
    store.tenantId,
    runId,
    submission.sessionId,
    submission.agent.name,
    submission.agent.version,
    submission.goal === null ? null : storableText(submission.goal),
    submission.actor.kind,
    submission.actor.id,
    JSON.stringify(EMPTY_CHECKPOINT),
    queueLimit,
    submission.retryOf ?? null,
    submission.idempotency?.principal ?? null,
    submission.idempotency?.key ?? null,
    submission.idempotency?.requestHash ?? null,
    submission.input === undefined ? null : JSON.stringify(storable(submission.input)),
    submission.instanceKey ?? null,
  ];
}

const SUBMIT = statement(
  "submit_run",
  `
with at as materialized (select holdpoint.clock() as at),
agent as materialized (
  select name, kind from holdpoint.agents where tenant_id = $1::uuid and name = $4 and version = $5
),
retried as materialized (
  select r.id, r.line, r.goal, r.input_seq, r.input, r.instance_key,
    r.status in ('completed', 'cancelled') and exists (select from holdpoint.agents g
      where g.tenant_id = r.tenant_id and g.name = r.agent_name and g.version = r.agent_version and g.kind = 'workflow')
      as is_over
  from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $11::uuid
),
key_free as materialized (
  select not exists (
    select from holdpoint.idempotency_keys k where k.tenant_id = $1::uuid and k.principal = $12 and k.key = $13
  ) as yes
),
allowed as materialized (
  select s.id, s.requester from holdpoint.sessions s
  where s.tenant_id = $1::uuid and s.id = $3::uuid and exists (select from agent) and (select yes from key_free)
    and ($11::uuid is null or exists (select from retried where not is_over))
),
session as (
  update holdpoint.sessions s set message_seq = s.message_seq + ($6::text is not null)::int
  from allowed a where s.id = a.id
  returning s.id, s.requester, s.message_seq
),
said as (
  insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
  select $1::uuid, s.id, s.message_seq, 'user', $8, $6, $2::uuid, at.at from session s, at where $6::text is not null
),
submitted as (
  insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal,
    input_seq, line, retry_of, is_task, status, version, checkpoint, queued_since, wait_deadline, input,
    instance_key, created_at, updated_at)
  select $1::uuid, $2::uuid, s.id, $4, $5, s.requester, $8, coalesce($6, t.goal, ''), coalesce(t.input_seq, s.message_seq),
    coalesce(t.line, $2::uuid), $11::uuid, (select kind = 'task' from agent), 'queued', 1, $9::jsonb, at.at,
    at.at + $10::float8 * interval '1 millisecond', coalesce(nullif($15::jsonb, 'null'::jsonb), t.input),
    coalesce($16, t.instance_key), at.at, at.at
  from session s cross join at left join retried t on true
  returning *
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, id, 1, null, status, 'Submitted', $7, $8, 0, null, created_at from submitted
),
${announcedOf("submitted")},
keyed as (
  insert into holdpoint.idempotency_keys (tenant_id, principal, key, request_hash, run_id, created_at)
  select $1::uuid, $12, $13, $14, id, created_at from submitted where $13::text is not null
)
select (select to_jsonb(r) from submitted r) as run,
  exists (select from holdpoint.sessions s where s.tenant_id = $1::uuid and s.id = $3::uuid) as session_found,
  exists (select from agent) as agent_found,
  $11::uuid is null or exists (select from retried) as retried_found,
  exists (select from retried where is_over) as retried_is_over`,
);

const LIVE_INSTANCE = statement(
  "live_instance",
  `select r.id from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.agent_name = $2 and r.ended_at is null and r.instance_key = coalesce($3,
     (select t.instance_key from holdpoint.runs t where t.tenant_id = $1::uuid and t.id = $4::uuid))`,
);

const BY_KEY = statement(
  "run_by_idempotency_key",
  `select to_jsonb(r) as run, k.request_hash = $4 as same, k.run_id, t.removed_at
   from holdpoint.idempotency_keys k
   left join holdpoint.runs r on r.id = k.run_id left join holdpoint.tombstones t on t.run_id = k.run_id
   where (r.id is not null or t.run_id is not null) and k.tenant_id = $1::uuid and k.principal = $2 and k.key = $3`,
);
