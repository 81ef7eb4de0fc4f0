import type { RunState } from "@holdpoint/core";
import { MOVES_ANNOUNCED } from "./announce.ts";
import { KEPT, SAID, SETTLED, STEPPED } from "./append.ts";
import { statement } from "./db.ts";
import { type Composed, compose, type Made } from "./parts.ts";
import { TASKED } from "./task-writes.ts";

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

/**
 * Whom the rule of four eyes keeps from approving the request \`t\` of the moved run \`m\`: those it names, and whoever has
 * said anything of what the run's model was shown from the start. In a session that others have spoken in, or a run that
 * does another's again, that is more than who submitted this one; for what a schedule has started, whoever has said what
 * that does; for a child run, whoever had spoken to the runs that it was started for, or had kept a memory that those may
 * have been told, and whoever has edited what it was started with. A child that somebody has done again is a run of its own, and of the same line.
 */
const EXCLUDED = `case when (t.terms->>'fourEyes')::boolean then array(
           select x.person from unnest(t.excluded) as x(person)
           union select g.author from holdpoint.messages g
             where g.session_id = m.session_id and g.role = 'user' and g.seq <= (m.run->>'input_seq')::int
           union select g.author from holdpoint.runs p
             join holdpoint.messages g on g.session_id = p.session_id and g.role = 'user'
               and g.at <= (m.run->>'created_at')::timestamptz
             where p.id in (select unnest(l.ancestors) from holdpoint.runs l where l.line = (m.run->>'line')::uuid)
           union select y.created_by from holdpoint.runs p
             join holdpoint.memories y on y.tenant_id = p.tenant_id and y.subject = p.requester
               and y.created_at <= p.created_at and y.expires_at > p.created_at
               and (y.deleted_at is null or y.deleted_at > p.created_at)
             where p.id in (select unnest(l.ancestors) from holdpoint.runs l where l.line = (m.run->>'line')::uuid)
           union select p.edited_by from holdpoint.runs o
             join holdpoint.approvals p on p.run_id = o.parent and p.call_id = o.parent_call
               and p.edited_by is not null and p.state = 'spent'
             where o.id in (select unnest(l.ancestors || l.id) from holdpoint.runs l
               where l.line = (m.run->>'line')::uuid)
           union select unnest(k.causes) from holdpoint.schedule_slots k
             where k.session_id = m.session_id or k.session_id in (select o.session_id from holdpoint.runs l
               join holdpoint.runs o on o.id = l.ancestors[1] where l.line = (m.run->>'line')::uuid)
           order by 1)
         else t.excluded end`;

/** A resumed run gives the time of its pause back to whoever has not decided yet. */
const PROLONGED = `
prolonged as (
  update holdpoint.approvals a set deadline = a.deadline + (m.at - holdpoint.instant(m."resumedFrom")),
    remind_at = a.remind_at + (m.at - holdpoint.instant(m."resumedFrom"))
  from moved m
  where m."resumedFrom" ? 'at' and not m."closesApprovals" and a.run_id = m.run_id and a.state = 'pending'
)`;

/** The changes of approval requests. */
const JUDGED = `
judged as (
  update holdpoint.approvals a
  set state = t.state,
      decided_by = case when t.state = 'pending' then a.decided_by else t."decidedBy" end,
      note = case when t.state = 'pending' then a.note else t.note end,
      -- What nobody has decided has only ended.
      decided_at = case when t.state = 'pending' or t."decidedBy" is null then a.decided_at else m.at end,
      answer = coalesce(t.answer, a.answer), given = coalesce(t.given, a.given), level = coalesce(t.level, a.level),
      extended = coalesce(t.extended, a.extended),
      deadline = coalesce(to_timestamp(t."deadlineMs" / 1000), a.deadline),
      roles = case when t.approvers ? 'roles' then array(select jsonb_array_elements_text(t.approvers->'roles')) else a.roles end,
      users = case when t.approvers ? 'users' then array(select jsonb_array_elements_text(t.approvers->'users')) else a.users end,
      closed_at = case when t.state in ('superseded', 'withdrawn', 'expired') then m.at end,
      closed_reason = case when t.state in ('superseded', 'withdrawn', 'expired') then coalesce(m.reason, t.state) end,
      valid_until = case when t.state = 'approved' then m.at + a.valid_for_ms * interval '1 millisecond' end
  from moved m
  cross join lateral jsonb_to_recordset(m.approvals)
    as t(id uuid, state text, "decidedBy" text, note text, answer jsonb, given int, level int, approvers jsonb,
         extended boolean, "deadlineMs" float8)
  where (not m."closesApprovals" or t.state not in ('pending', 'approved')) and a.id = t.id and a.run_id = m.run_id
  returning 1
)`;

/** The requests that come with a hold. */
const REQUESTED = `
-- Reads the rows judged so that it comes after them: an edit closes one pending request of a call and makes another.
requested as (
  insert into holdpoint.approvals (tenant_id, id, run_id, call_id, hold_seq, tool, args, args_hash, rule, roles, users,
    excluded, state, requested_at, deadline, on_deadline, valid_for_ms, terms, request, quorum, edited_by, remind_at,
    given, decided_at, decided_by, note, valid_until)
  select $1::uuid, t.id, m.run_id, t."callId", m.version, t.tool, t.args, t."argsHash", t.terms->>'rule',
         array(select jsonb_array_elements_text(t.terms->'approvers'->'roles')),
         array(select jsonb_array_elements_text(t.terms->'approvers'->'users')),
         ${EXCLUDED}, case when g.suffices then 'approved' else 'pending' end, m.at,
         m.at + (t.terms->>'deadlineMs')::float8 * interval '1 millisecond', t.terms->>'onDeadline',
         (t.terms->>'validForMs')::bigint, t.terms, t.request, (t.terms->>'quorum')::int, t."editedBy",
         m.at + (t.terms->'remindAfterMs'->>0)::float8 * interval '1 millisecond', g.given,
         case when g.suffices then m.at end, case when g.suffices then t.approval->>'by' end,
         case when g.suffices then t.approval->>'note' end,
         case when g.suffices then m.at + (t.terms->>'validForMs')::float8 * interval '1 millisecond' end
  from moved m
  cross join lateral jsonb_to_recordset(m.requests)
    as t(id uuid, "callId" uuid, tool text, args text, "argsHash" text, terms jsonb, request jsonb, excluded text[],
         "editedBy" text, approval jsonb)
  cross join lateral (select coalesce((t.approval->>'suffices')::boolean, false) as suffices,
    (coalesce(t.approval, 'null'::jsonb) <> 'null'::jsonb)::int as given) g
  where not m."closesApprovals" and (select count(*) from judged) >= 0
)`;

/** The end of all requests of a run. */
const WITHDRAWN = `
withdrawn as (
  update holdpoint.approvals a set state = 'withdrawn', closed_at = m.at, closed_reason = 'run ' || m.status
  from moved m
  where m."closesApprovals" and a.run_id = m.run_id and a.state in ('pending', 'approved')
    and not exists (select from jsonb_to_recordset(m.approvals) as t(id uuid, state text)
                    where t.id = a.id and t.state not in ('pending', 'approved'))
)`;

const DECIDED = `
decided as (
  insert into holdpoint.decisions (tenant_id, id, approval_id, run_id, actor_id, decision, args_hash, note, at, level,
    payload)
  select $1::uuid, t.id, t."approvalId", m.run_id, m."actorId", t.decision, t."argsHash", t.note, m.at, t.level,
         coalesce(t.payload, 'null'::jsonb)
  from moved m
  cross join lateral jsonb_to_recordset(m.decisions)
    as t(id uuid, "approvalId" uuid, decision text, "argsHash" text, note text, level int, payload jsonb)
)`;

const ARRIVED = `
arrived as (
  insert into holdpoint.inbox (tenant_id, id, run_id, body, at)
  select $1::uuid, t.id, m.run_id, t.body, m.at
  from moved m cross join lateral jsonb_to_recordset(m.facts) as t(id uuid, body jsonb)
)`;

const LOOKED_UP = `
looked_up as (
  update holdpoint.attempts a set look_ups = a.look_ups + (t."errorCode" is null)::int, error_class = coalesce(t."errorClass", a.error_class),
    error_code = coalesce(t."errorCode", a.error_code)
  from moved m
  cross join lateral jsonb_to_recordset(m."lookUps") as t("attemptId" uuid, "errorClass" text, "errorCode" text)
  where a.run_id = m.run_id and a.id = t."attemptId" and a.ended_at is null
)`;

const REPORTED = `
reported as (
  update holdpoint.attempts a set late_at = m.at, late_evidence = t.evidence
  from moved m cross join lateral jsonb_to_recordset(m.late) as t("attemptId" uuid, evidence jsonb)
  where a.run_id = m.run_id and a.id = t."attemptId" and a.late_at is null
)`;

/** The version of the parent pins which children were still to be counted. */
const TOLD = `
told as (
  update holdpoint.runs c set told_parent_at = greatest(m.at, c.ended_at)
  from moved m cross join lateral jsonb_array_elements_text(m."toldChildren") as t(id)
  where c.id = t.id::uuid and c.parent = m.run_id and c.ended_at is not null and c.told_parent_at is null
)`;

const CALLED_BACK = `
called_back as (
  insert into holdpoint.callbacks (tenant_id, source, event_id, run_id, call_id, status, received_at)
  select $1::uuid, t.source, t."eventId", coalesce(t."runId", m.run_id), t."callId", t.status, m.at
  from moved m
  cross join lateral jsonb_to_recordset(m.callbacks)
    as t(source text, "eventId" text, "runId" uuid, "callId" uuid, status text)
)`;

const CORE = {
  ord: "int",
  runId: "uuid",
  expected: "int",
  stepSeq: "int",
  fenceOwner: "uuid",
  fenceEpoch: "int",
  notAfter: "jsonb",
  actorKind: "text",
  actorId: "text",
  reason: "text",
  next: "jsonb",
  takeovers: "int",
  attemptDelta: "int",
  childDelta: "int",
  agentVersion: "text",
  result: "jsonb",
  resultArtifact: "text",
  log: "jsonb",
  checkpoint: "jsonb",
  currentStep: "text",
  progressMs: "float8",
} as const;

const PARTS = {
  facts: { columns: { facts: "jsonb" }, text: ARRIVED },
  messages: { columns: { messages: "jsonb" }, text: SAID },
  steps: { columns: { steps: "jsonb" }, text: STEPPED },
  resumes: { columns: { resumedFrom: "jsonb", closesApprovals: "boolean" }, text: PROLONGED },
  approvals: { columns: { approvals: "jsonb", closesApprovals: "boolean" }, text: JUDGED },
  requests: { columns: { requests: "jsonb", closesApprovals: "boolean" }, text: REQUESTED, needs: "approvals" },
  closesApprovals: { columns: { approvals: "jsonb", closesApprovals: "boolean" }, text: WITHDRAWN },
  decisions: { columns: { decisions: "jsonb" }, text: DECIDED },
  settles: { columns: { settles: "jsonb" }, text: SETTLED },
  lookUps: { columns: { lookUps: "jsonb" }, text: LOOKED_UP },
  late: { columns: { late: "jsonb" }, text: REPORTED },
  toldChildren: { columns: { toldChildren: "jsonb" }, text: TOLD },
  callbacks: { columns: { callbacks: "jsonb" }, text: CALLED_BACK },
  task: { columns: { task: "jsonb" }, text: TASKED },
  artifacts: { columns: { artifacts: "jsonb" }, text: KEPT },
} as const;

/** What a move may carry beside the change of its run. */
export type TransitionPart = keyof typeof PARTS;

const BEGINS_TASK = `
    epoch = r.epoch + coalesce(i.task ? 'begin', false)::int,
    claimed_at = case when i.task ? 'begin' then holdpoint.clock() else r.claimed_at end,`;

const text = ({ has, input, handedOn, texts }: Made<TransitionPart>, lockOption: string): string => `
with ${input},
locked as materialized (
  -- Not an equality with the tenant: the only way to a row is its id, whatever the planner thinks.
  select i.* from input i cross join lateral (
    select r.id from holdpoint.runs r where r.id = i."runId" and r.tenant_id is not distinct from $1::uuid
    for update of r${lockOption}) l
),
moved as (
  update holdpoint.runs r set
    status = i.next->>'status',
    version = r.version + jsonb_array_length(i.log),${
      has("steps") ? "\n    step_seq = r.step_seq + coalesce(jsonb_array_length(i.steps), 0)," : ""
    }
    owner = (i.next->>'owner')::uuid,${has("task") ? BEGINS_TASK : ""}
    worked_ms = r.worked_ms + case when r.owner is not null and i.next->>'owner' is null
      then coalesce(extract(epoch from holdpoint.clock() - r.claimed_at) * 1000, 0) else 0 end,
    takeovers = coalesce(i.takeovers, r.takeovers),
    look_ups_over = (i.next->>'lookUpsOver')::boolean,
    open_attempts = r.open_attempts + i."attemptDelta",
    live_children = r.live_children + i."childDelta",
    result = coalesce(nullif(i.result, 'null'::jsonb), r.result),
    agent_version = coalesce(i."agentVersion", r.agent_version),
    result_artifact = coalesce(i."resultArtifact", r.result_artifact),
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
  from locked i
  where r.id = i."runId" and r.version is not distinct from i.expected
    and (i."stepSeq" is null or r.step_seq = i."stepSeq")
    and (i."fenceOwner" is null or (r.owner = i."fenceOwner" and r.epoch = i."fenceEpoch"))
    and (holdpoint.instant(i."notAfter") >= coalesce(r.paused_at, holdpoint.clock())) is not false
  returning i.ord, to_json(r) as run, r.id as run_id, r.session_id, r.epoch, r.version, r.status, r.updated_at as at,
    i.expected, i."actorKind", i."actorId", i.reason, i.log${
      has("steps") ? ", r.step_seq - coalesce(jsonb_array_length(i.steps), 0) as step_seq_before" : ""
    }${handedOn("i")}
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, m.run_id, m.expected + t.n, t.entry->>'from', t.entry->>'to', t.entry->>'event',
         m."actorKind", m."actorId", m.epoch, m.reason, m.at
  from moved m cross join lateral jsonb_array_elements(m.log) with ordinality as t(entry, n)
),
${MOVES_ANNOUNCED}${texts}
select ord, run from moved`;

/** Waits for rows that somebody else is moving. */
export const WAITING: Composed<TransitionPart> = compose({
  verb: "transition_waiting",
  core: CORE,
  parts: PARTS,
  text: (made) => text(made, ""),
});

/** Passes over rows that somebody else is moving. */
export const SKIPPING: Composed<TransitionPart> = compose({
  verb: "transition",
  core: CORE,
  parts: PARTS,
  text: (made) => text(made, " skip locked"),
});

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
