import type { RunState } from "@holdpoint/core";
import { KEPT, SAID, SETTLED, STEPPED } from "./append.ts";
import { statement } from "./db.ts";

// The columns that a transition sets from the reduced state, by what they hold.
const INSTANTS = {
  queued_since: "queuedSince",
  waiting_since: "waitingSince",
  wait_deadline: "waitDeadline",
  retry_at: "retryAt",
  next_reconcile_at: "nextReconcileAt",
  look_ups_end_at: "lookUpsEndAt",
  cancel_requested_at: "cancelRequestedAt",
  pause_requested_at: "pauseRequestedAt",
  paused_at: "pausedAt",
  lost_at: "lostAt",
  ended_at: "endedAt",
} as const satisfies Record<string, keyof RunState>;

const TEXTS = {
  on_deadline: "onDeadline",
  lost_reason: "lostReason",
  end_reason: "endReason",
} as const satisfies Record<string, keyof RunState>;

const DOCUMENTS = {
  waiting_for: "waitingFor",
  resume_to: "resumeTo",
  outcome: "outcome",
} as const satisfies Record<string, keyof RunState>;

const SETS = [
  ...Object.entries(INSTANTS).map(([column, field]) => `${column} = holdpoint.instant(i.next->'${field}')`),
  ...Object.entries(TEXTS).map(([column, field]) => `${column} = i.next->>'${field}'`),
  ...Object.entries(DOCUMENTS).map(([column, field]) => `${column} = nullif(i.next->'${field}', 'null'::jsonb)`),
].join(",\n    ");

/** The approval requests that come with a hold, the changes to them, the decisions behind those, and the end of all. */
const APPROVALS = `
requested as (
  insert into holdpoint.approvals (tenant_id, id, run_id, call_id, hold_seq, tool, args, args_hash, rule, roles, users,
    excluded, state, requested_at, deadline, on_deadline, valid_for_ms)
  select $1::uuid, t.id, m.run_id, t."callId", m.version, t.tool, t.args, t."argsHash", t.rule, t.roles, t.users,
         t.excluded, 'pending', m.at, m.at + t."deadlineMs" * interval '1 millisecond', t."onDeadline", t."validForMs"
  from moved m
  cross join lateral jsonb_to_recordset(m.requests)
    as t(id uuid, "callId" uuid, tool text, args text, "argsHash" text, rule text, roles text[], users text[],
         excluded text[], "deadlineMs" float8, "onDeadline" text, "validForMs" bigint)
  where not m."closesApprovals"
),
-- A resumed run gives the time of its pause back to whoever has not decided yet.
prolonged as (
  update holdpoint.approvals a set deadline = a.deadline + (m.at - holdpoint.instant(m."resumedFrom"))
  from moved m
  where m."resumedFrom" ? 'at' and not m."closesApprovals" and a.run_id = m.run_id and a.state = 'pending'
),
judged as (
  update holdpoint.approvals a
  set state = t.state, decided_by = t."decidedBy", note = t.note, decided_at = m.at,
      valid_until = case when t.state = 'approved' then m.at + a.valid_for_ms * interval '1 millisecond' end
  from moved m
  cross join lateral jsonb_to_recordset(m.approvals) as t(id uuid, state text, "decidedBy" text, note text)
  where not m."closesApprovals" and a.id = t.id and a.run_id = m.run_id
),
withdrawn as (
  update holdpoint.approvals a set state = 'withdrawn'
  from moved m
  where m."closesApprovals" and a.run_id = m.run_id and a.state in ('pending', 'approved')
),
decided as (
  insert into holdpoint.decisions (tenant_id, id, approval_id, run_id, actor_id, decision, args_hash, note, at)
  select $1::uuid, t.id, t."approvalId", m.run_id, m."actorId", t.decision, t."argsHash", t.note, m.at
  from moved m
  cross join lateral jsonb_to_recordset(m.decisions)
    as t(id uuid, "approvalId" uuid, decision text, "argsHash" text, note text)
)`;

const text = (lockOption: string): string => `
with input as materialized (
  select * from jsonb_to_recordset($2::jsonb) as i(
    ord int, "runId" uuid, expected int, "stepSeq" int, "fenceOwner" uuid, "fenceEpoch" int, "notAfter" jsonb,
    "actorKind" text, "actorId" text, reason text, next jsonb, takeovers int, "attemptDelta" int, log jsonb,
    "closesApprovals" boolean, "resumedFrom" jsonb, checkpoint jsonb, "currentStep" text, "progressMs" float8, facts jsonb, messages jsonb, steps jsonb,
    settles jsonb, "lookUps" jsonb, requests jsonb, approvals jsonb, decisions jsonb, artifacts jsonb, late jsonb)
),
locked as materialized (
  select r.id from holdpoint.runs r join input i on i."runId" = r.id
  where r.tenant_id = $1::uuid order by r.id for update of r${lockOption}
),
moved as (
  update holdpoint.runs r set
    status = i.next->>'status',
    version = r.version + jsonb_array_length(i.log),
    step_seq = r.step_seq + jsonb_array_length(i.steps),
    owner = (i.next->>'owner')::uuid,
    takeovers = coalesce(i.takeovers, r.takeovers),
    look_ups_over = (i.next->>'lookUpsOver')::boolean,
    open_attempts = r.open_attempts + i."attemptDelta",
    external_ref = case when r.open_attempts + i."attemptDelta" > 0 then r.external_ref end,
    hold_seq = case
      when i.next->>'status' not like 'waiting_%'
        and (i.next->>'status' <> 'paused' or i.next->'resumeTo'->>'to' is distinct from 'hold') then null
      -- A pause does not make another hold of the one that it interrupts.
      when i.next->>'status' = r.status or 'paused' in (i.next->>'status', r.status)
        then coalesce(r.hold_seq, r.version + jsonb_array_length(i.log))
      else r.version + jsonb_array_length(i.log) end,
    progress_due_at = case when i.next->>'owner' is not null then
      coalesce(holdpoint.clock() + i."progressMs" * interval '1 millisecond', r.progress_due_at) end,
    checkpoint = coalesce(nullif(i.checkpoint, 'null'::jsonb), r.checkpoint),
    current_step = coalesce(i."currentStep", r.current_step),
    ${SETS},
    updated_at = greatest(holdpoint.clock(), r.updated_at)
  from input i join locked l on l.id = i."runId"
  where r.id = i."runId" and r.tenant_id = $1::uuid and r.version = i.expected
    and (i."stepSeq" is null or r.step_seq = i."stepSeq")
    and (i."fenceOwner" is null or (r.owner = i."fenceOwner" and r.epoch = i."fenceEpoch"))
    and (holdpoint.instant(i."notAfter") >= coalesce(r.paused_at, holdpoint.clock())) is not false
  returning i.ord, to_jsonb(r) as run, r.id as run_id, r.session_id, r.epoch, r.version, r.updated_at as at,
    r.step_seq - jsonb_array_length(i.steps) as step_seq_before, i.expected, i."actorKind", i."actorId", i.reason,
    i.log, i."closesApprovals", i."resumedFrom", i.facts, i.messages, i.steps, i.settles, i."lookUps", i.requests, i.approvals,
    i.decisions, i.artifacts, i.late
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, m.run_id, m.expected + t.n, t.entry->>'from', t.entry->>'to', t.entry->>'event',
         m."actorKind", m."actorId", m.epoch, m.reason, m.at
  from moved m cross join lateral jsonb_array_elements(m.log) with ordinality as t(entry, n)
),
arrived as (
  insert into holdpoint.inbox (tenant_id, id, run_id, body, at)
  select $1::uuid, t.id, m.run_id, t.body, m.at
  from moved m cross join lateral jsonb_to_recordset(m.facts) as t(id uuid, body jsonb)
),
${SAID},
${STEPPED},
${APPROVALS},
${SETTLED},
looked_up as (
  update holdpoint.attempts a set look_ups = a.look_ups + 1, error_class = coalesce(t."errorClass", a.error_class),
    error_code = coalesce(t."errorCode", a.error_code)
  from moved m
  cross join lateral jsonb_to_recordset(m."lookUps") as t("attemptId" uuid, "errorClass" text, "errorCode" text)
  where a.run_id = m.run_id and a.id = t."attemptId" and a.ended_at is null
),
reported as (
  update holdpoint.attempts a set late_at = m.at, late_evidence = t.evidence
  from moved m cross join lateral jsonb_to_recordset(m.late) as t("attemptId" uuid, evidence jsonb)
  where a.run_id = m.run_id and a.id = t."attemptId" and a.late_at is null
),
${KEPT}
select ord, run from moved`;

/** Waits for rows that somebody else is moving. */
export const WAITING = statement("transition", text(""));

/** Passes over rows that somebody else is moving. */
export const SKIPPING = statement("transition_skipping", text(" skip locked"));

/**
 * The row, and whether its transition at $3 is the one that this caller meant to make. One person may bring two facts at
 * once, and their transitions look alike: what tells them apart is the id ($8) of what was stored with it.
 */
export const READ_BACK = statement(
  "read_back_transition",
  `select to_jsonb(r) as run, exists (
     select from holdpoint.transitions t
     where t.run_id = r.id and t.seq = $3::int and t.event = $4 and t.actor_kind = $5 and t.actor_id = $6
       and ($7::int is null or t.epoch = $7::int)
   ) and ($8::uuid is null or exists (select from holdpoint.inbox f where f.id = $8::uuid)
     or exists (select from holdpoint.decisions d where d.id = $8::uuid)) as ours
   from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $2::uuid`,
);
