import type { Actor, AgentRef } from "@holdpoint/core";
import { EMPTY_CHECKPOINT, storableText, submitted } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

export interface Submission {
  readonly sessionId: string;
  readonly agent: AgentRef;
  /** What is to be done, in the requester's words; becomes a message of the session. Null for a run that does another again. */
  readonly goal: string | null;
  readonly actor: Actor;
  /** The run that this one does again; it must have ended, and so must every other of its line. */
  readonly retryOf?: string;
  readonly idempotency?: { readonly principal: string; readonly key: string; readonly requestHash: string };
}

export type SubmitResult =
  | { readonly result: "submitted"; readonly run: Run }
  /** The same request came before under the same key: its run, as it is now. */
  | { readonly result: "repeated"; readonly run: Run }
  | { readonly result: "key_reused" }
  | { readonly result: "session_not_found" }
  | { readonly result: "agent_not_found" }
  /** Another run of the line is live, or has an attempt of which nobody knows the outcome. */
  | { readonly result: "line_is_live" }
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
    if (constraint === "runs_one_live_per_line") return (await byKey(store, submission)) ?? { result: "line_is_live" };
    if (constraint === "idempotency_keys_pkey") return explain(store, submission, NOTHING);
    throw error;
  }
}

type SubmitRow = { run: RunJson | null; session_found: boolean; agent_found: boolean; retried_found: boolean };

const NOTHING: SubmitRow = { run: null, session_found: true, agent_found: true, retried_found: true };

async function explain(store: Store, submission: Submission, row: SubmitRow): Promise<SubmitResult> {
  const known = await byKey(store, submission);
  if (known !== null) return known;
  if (!row.session_found) return { result: "session_not_found" };
  if (!row.retried_found) return { result: "retried_run_not_found" };
  return { result: "agent_not_found" };
}

async function byKey(store: Store, { idempotency }: Submission): Promise<SubmitResult | null> {
  if (idempotency === undefined) return null;
  const { principal, key, requestHash } = idempotency;
  const [known] = await execute<{ run: RunJson; same: boolean }>(store, BY_KEY, [
    store.tenantId,
    principal,
    key,
    requestHash,
  ]);
  if (known === undefined) return null;
  return known.same ? { result: "repeated", run: runOf(known.run) } : { result: "key_reused" };
}

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
  ];
}

const SUBMIT = statement(
  "submit_run",
  `
with at as materialized (select holdpoint.clock() as at),
agent as materialized (
  select name from holdpoint.agents where tenant_id = $1::uuid and name = $4 and version = $5
),
retried as materialized (
  select id, line, goal, input_seq from holdpoint.runs where tenant_id = $1::uuid and id = $11::uuid
),
key_free as materialized (
  select not exists (
    select from holdpoint.idempotency_keys k where k.tenant_id = $1::uuid and k.principal = $12 and k.key = $13
  ) as yes
),
allowed as materialized (
  select s.id, s.requester from holdpoint.sessions s
  where s.tenant_id = $1::uuid and s.id = $3::uuid and exists (select from agent) and (select yes from key_free)
    and ($11::uuid is null or exists (select from retried))
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
    input_seq, line, retry_of, status, version, checkpoint, queued_since, wait_deadline, created_at, updated_at)
  select $1::uuid, $2::uuid, s.id, $4, $5, s.requester, $8, coalesce($6, t.goal, ''), coalesce(t.input_seq, s.message_seq),
    coalesce(t.line, $2::uuid), $11::uuid, 'queued', 1, $9::jsonb, at.at,
    at.at + $10::float8 * interval '1 millisecond', at.at, at.at
  from session s cross join at left join retried t on true
  returning *
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, id, 1, null, status, 'Submitted', $7, $8, 0, null, created_at from submitted
),
keyed as (
  insert into holdpoint.idempotency_keys (tenant_id, principal, key, request_hash, run_id, created_at)
  select $1::uuid, $12, $13, $14, id, created_at from submitted where $13::text is not null
)
select (select to_jsonb(r) from submitted r) as run,
  exists (select from holdpoint.sessions s where s.tenant_id = $1::uuid and s.id = $3::uuid) as session_found,
  exists (select from agent) as agent_found,
  $11::uuid is null or exists (select from retried) as retried_found`,
);

const BY_KEY = statement(
  "run_by_idempotency_key",
  `select to_jsonb(r) as run, k.request_hash = $4 as same
   from holdpoint.idempotency_keys k join holdpoint.runs r on r.id = k.run_id
   where k.tenant_id = $1::uuid and k.principal = $2 and k.key = $3`,
);
