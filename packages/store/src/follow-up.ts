import { EMPTY_CHECKPOINT, operatorHold, rest, submitted } from "@holdpoint/core";
import { announcedOf } from "./announce.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { newId } from "./ids.ts";
import type { CallbackRecord } from "./move.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** What is opened where an effect of a run that has ended turns out to have failed. */
export interface FollowUp {
  readonly callback: CallbackRecord & { readonly runId: string };
  /** Names what people are told, so that they are told it once. */
  readonly toldId: string;
  /** What they are told; the follow-up's goal, and what its agent reads if an operator lets it go on. */
  readonly text: string;
}

/**
 * Stores a callback about a call of a run that has ended, and opens a run of the same line that waits for an operator at
 * once: terminal is absorbing, and a person has to know.
 *
 * @returns null if the event was stored before.
 * @throws a unique violation: another run of the line is live, or people have been told already.
 */
export async function openFollowUp(store: Store, { callback, toldId, text }: FollowUp): Promise<Run | null> {
  const state = rest(submitted(), { to: "hold", hold: operatorHold("late_settlement", null) });
  const [row] = await execute<{ run: RunJson }>(store, OPEN, [
    store.tenantId,
    newId(),
    callback.source,
    callback.eventId,
    callback.runId,
    callback.callId,
    callback.status,
    text,
    JSON.stringify({ ...state, toldId, checkpoint: EMPTY_CHECKPOINT }),
    JSON.stringify({ kind: "message", from: callback.source, text }),
  ]);
  return row === undefined ? null : runOf(row.run);
}

/** Stores a callback that nobody has to be told; nothing if it was stored before, or its run was removed meanwhile. */
export async function storeCallback(store: Store, callback: FollowUp["callback"]): Promise<void> {
  const { source, eventId, runId, callId, status } = callback;
  await execute(store, STORE, [store.tenantId, source, eventId, runId, callId, status]);
}

const OPEN = statement(
  "open_follow_up",
  `
with at as materialized (select holdpoint.clock() as at),
state as materialized (select $9::jsonb as s),
recorded as (
  insert into holdpoint.callbacks (tenant_id, source, event_id, run_id, call_id, status, received_at)
  select $1::uuid, $3, $4, $5::uuid, $6::uuid, $7, at from at
  on conflict do nothing
  returning run_id
),
opened as (
  insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal,
    input_seq, line, retry_of, status, version, checkpoint, waiting_for, waiting_since, wait_deadline, on_deadline,
    hold_seq, created_at, updated_at)
  select $1::uuid, $2::uuid, e.session_id, e.agent_name, e.agent_version, e.requester, $3, $8,
    (select s.message_seq from holdpoint.sessions s where s.id = e.session_id), e.line, e.id, s->>'status', 1,
    s->'checkpoint', s->'waitingFor', holdpoint.instant(s->'waitingSince'), holdpoint.instant(s->'waitDeadline'),
    s->>'onDeadline', 1, at, at
  from recorded c join holdpoint.runs e on e.id = c.run_id and e.tenant_id = $1::uuid cross join at cross join state
  returning *
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, id, 1, null, status, 'Submitted', 'provider', $3, 0, 'late settlement', created_at from opened
),
${announcedOf("opened")},
told as (
  insert into holdpoint.inbox (tenant_id, id, run_id, body, at)
  select $1::uuid, (s->>'toldId')::uuid, o.id, $10::jsonb, o.created_at from opened o cross join state
)
select to_jsonb(o) as run from opened o`,
);

const STORE = statement(
  "store_callback",
  `insert into holdpoint.callbacks (tenant_id, source, event_id, run_id, call_id, status, received_at)
   select $1::uuid, $2, $3, r.id, $5::uuid, $6, holdpoint.clock()
   from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $4::uuid for key share
   on conflict do nothing`,
);
