// What no check constraint can say, since it spans rows or tables. A healthy database has no row of any of these.

import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** A run that breaks a rule which every run keeps. */
export interface Violation {
  readonly rule: string;
  readonly runId: string;
}

/** Looks for runs that break an invariant: at most 1 000 of them, all in one snapshot. Reads everything; not for hot paths. */
export async function findViolations(store: Store): Promise<readonly Violation[]> {
  const rows = await execute<{ rule: string; run_id: string }>(store, FIND, [store.tenantId]);
  return rows.map(({ rule, run_id: runId }) => ({ rule, runId }));
}

const ENDED = "('completed', 'failed', 'cancelled')";

const AWAITS_APPROVAL = `(r.status = 'waiting_approval'
  or (r.status = 'paused' and r.resume_to->>'to' = 'hold' and r.resume_to->'hold'->>'kind' = 'approval'))`;

/** Conditions on a run `r`. */
const OF_RUNS = {
  owner_is_no_worker: "r.owner is not null and not exists (select from holdpoint.workers w where w.id = r.owner)",
  running_without_owner: "r.status = 'running' and r.owner is null",
  ended_with_open_attempt: `r.ended_at is not null
    and exists (select from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null)`,
  open_attempts_differ: `r.open_attempts <>
    (select count(*) from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null)`,
  steps_have_a_gap: `r.step_seq <> (select count(*) from holdpoint.steps s where s.run_id = r.id)
    or r.step_seq <> (select coalesce(max(s.seq), 0) from holdpoint.steps s where s.run_id = r.id)`,
  checkpoint_is_behind: "(r.checkpoint->>'stepSeq')::int <> r.step_seq",
  transitions_have_a_gap: `r.version <> (select count(*) from holdpoint.transitions t where t.run_id = r.id)
    or r.version <> (select coalesce(max(t.seq), 0) from holdpoint.transitions t where t.run_id = r.id)`,
  status_is_not_the_last_transitions: `r.status <>
    (select t.to_status from holdpoint.transitions t where t.run_id = r.id order by t.seq desc limit 1)`,
  pending_approval_without_wait: `not ${AWAITS_APPROVAL}
    and exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`,
  waits_for_no_approval: `${AWAITS_APPROVAL}
    and not exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`,
  waits_past_an_approvals_deadline: `r.status = 'waiting_approval' and r.wait_deadline - interval '1 second' >
    (select min(p.deadline) from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`,
  completed_with_unanswered_call: `r.status = 'completed' and exists (
    select c.id::text from holdpoint.all_calls c where c.run_id = r.id
    except
    select s.body->>'callId' from holdpoint.steps s where s.run_id = r.id and s.kind = 'tool_result')`,
  ended_with_unspent_approval: `r.ended_at is not null
    and exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'approved')`,
  waits_without_deadline: `r.wait_deadline is null and r.status not in ('running', 'retrying', 'completed', 'failed', 'cancelled')`,
  queued_without_since: "r.status = 'queued' and r.queued_since is null",
  is_task_and_its_agent_is_not: `r.is_task <> exists (select from holdpoint.agents g
    where g.tenant_id = r.tenant_id and g.name = r.agent_name and g.version = r.agent_version and g.kind = 'task')`,
  task_in_hands_of_nobody: `r.is_task and r.owner is not null and not exists (select from holdpoint.tasks t
    join holdpoint.workers w on w.id = t.worker_id and w.kind = 'task'
    where t.run_id = r.id and t.epoch = r.epoch and t.worker_id = r.owner)`,
  executor_of_no_task: `not r.is_task and exists (select from holdpoint.workers w where w.id = r.owner and w.kind = 'task')`,
} as const;

/** Attempts, each with its call, for the conditions below. */
const ATTEMPT_OF_CALL = `select a.run_id from holdpoint.attempts a
  join holdpoint.calls c on c.run_id = a.run_id and c.id = a.call_id where a.tenant_id = $1::uuid`;

/** An approval request `p` that was for just the arguments that the attempt `a` of the call `c` has run. */
const FOR_WHAT_RAN = "p.run_id = c.run_id and p.call_id = c.id and p.args_hash = a.args_hash";

/** Selects of run ids: what was done, said of it, and allowed must agree. */
const OF_EFFECTS = {
  attempts_open_at_once: `select a.run_id from holdpoint.attempts a where a.tenant_id = $1::uuid and a.ended_at is null
    group by a.run_id, a.call_id having count(*) > 1`,
  calls_share_a_place: `select c.run_id from holdpoint.all_calls c where c.tenant_id = $1::uuid
    group by c.run_id, c.turn, c.ordinal having count(*) > 1`,
  asked_for_no_call: `select s.run_id from holdpoint.steps s
    cross join lateral jsonb_array_elements_text(s.body->'callIds') with ordinality as t(call_id, place)
    where s.tenant_id = $1::uuid and s.kind in ('model_reply', 'nodes_started')
      and coalesce(s.calls->(t.place::int - 1), 'null') = 'null' and not exists
        (select from holdpoint.calls c where c.run_id = s.run_id and c.id = t.call_id::uuid)`,
  attempt_without_call: `select a.run_id from holdpoint.attempts a where a.tenant_id = $1::uuid and not exists
    (select from holdpoint.calls c where c.run_id = a.run_id and c.id = a.call_id)`,
  attempt_without_approval: `${ATTEMPT_OF_CALL} and a.args_hash is not null and c.verdict->>'kind' = 'needs_approval'
    and not exists (select from holdpoint.approvals p where ${FOR_WHAT_RAN} and p.spent_at is not null)`,
  ran_what_nobody_has_seen: `${ATTEMPT_OF_CALL} and a.args_hash <> c.args_hash
    and not exists (select from holdpoint.approvals p where ${FOR_WHAT_RAN} and p.edited_by is not null)`,
  approval_spent_by_another_call: `select p.run_id from holdpoint.approvals p
    join holdpoint.calls c on c.run_id = p.run_id and c.id = p.call_id
    where p.tenant_id = $1::uuid and p.state = 'spent' and c.effect->>'kind' = 'effect' and not exists
      (select from holdpoint.attempts a where a.run_id = p.run_id and a.id = p.spent_by and a.call_id = p.call_id)`,
  late_without_evidence: `select a.run_id from holdpoint.attempts a
    where a.tenant_id = $1::uuid and (a.late_at is null) <> (a.late_evidence is null)`,
  result_twice: `select s.run_id from holdpoint.steps s where s.tenant_id = $1::uuid and s.kind = 'tool_result'
    group by s.run_id, s.body->>'callId' having count(*) > 1`,
  result_before_its_call: `select s.run_id from holdpoint.steps s
    where s.tenant_id = $1::uuid and s.kind in ('tool_result', 'intent', 'effect_pending') and not exists (
      select from holdpoint.steps m cross join lateral jsonb_array_elements_text(m.body->'callIds') as t(call_id)
      where m.run_id = s.run_id and m.seq < s.seq and m.kind in ('model_reply', 'nodes_started')
        and t.call_id = s.body->>'callId')`,
  replied_over_an_unanswered_call: `select m.run_id from holdpoint.steps m
    cross join lateral jsonb_array_elements_text(m.body->'callIds') as t(call_id)
    join holdpoint.steps n on n.run_id = m.run_id and n.seq > m.seq and n.kind = 'model_reply'
    where m.tenant_id = $1::uuid and m.kind = 'model_reply' and not exists (
      select from holdpoint.steps s where s.run_id = m.run_id and s.seq > m.seq and s.seq < n.seq
        and s.kind = 'tool_result' and s.body->>'callId' = t.call_id)`,
  pending_effect_never_settles: `select s.run_id from holdpoint.steps s
    join holdpoint.calls c on c.run_id = s.run_id and c.id::text = s.body->>'callId'
    where s.tenant_id = $1::uuid and s.kind = 'effect_pending'
      and (nullif(c.effect->'settlement', 'null'::jsonb) is null or exists
        (select from holdpoint.attempts a where a.run_id = c.run_id and a.call_id = c.id and a.ended_at is null))`,
} as const;

/** An approval at the level at which its request `p` stands. */
const APPROVING = "d.approval_id = p.id and d.level = p.level and d.decision = 'approve'";

/** Selects of run ids from the requests and the decisions about them. */
const OF_APPROVALS = {
  approved_by_too_few: `select p.run_id from holdpoint.approvals p
    where p.tenant_id = $1::uuid and p.state in ('approved', 'spent')
      and (select count(distinct d.actor_id) from holdpoint.decisions d where ${APPROVING}) < p.quorum`,
  approvals_given_differ: `select p.run_id from holdpoint.approvals p where p.tenant_id = $1::uuid
    and p.given <> (select count(*) from holdpoint.decisions d where ${APPROVING})`,
  approved_by_somebody_excluded: `select p.run_id from holdpoint.approvals p
    join holdpoint.decisions d on d.approval_id = p.id
    where p.tenant_id = $1::uuid and d.decision in ('approve', 'approve_with_edits', 'respond')
      and d.actor_id = any(p.excluded)`,
  closed_without_saying_why: `select p.run_id from holdpoint.approvals p where p.tenant_id = $1::uuid
    and p.state in ('expired', 'superseded', 'withdrawn') and (p.closed_at is null or p.closed_reason is null)`,
  edited_in_place_of_nothing: `select p.run_id from holdpoint.approvals p
    where p.tenant_id = $1::uuid and p.edited_by is not null and not exists (
      select from holdpoint.approvals b join holdpoint.decisions d on d.approval_id = b.id
      where b.run_id = p.run_id and b.call_id = p.call_id and b.state = 'superseded'
        and d.decision = 'approve_with_edits' and d.payload->>'argsHash' = p.args_hash)`,
} as const;

/** Selects of run ids: a run and those that it has started must agree. */
const OF_CHILDREN = {
  live_children_differ: `select p.id as run_id from holdpoint.runs p where p.tenant_id = $1::uuid and p.live_children <>
    (select count(*) from holdpoint.runs k where k.parent = p.id and k.told_parent_at is null)`,
  child_without_parent: `select k.id as run_id from holdpoint.runs k where k.tenant_id = $1::uuid and k.parent is not null
    and not exists (select from holdpoint.runs p where p.id = k.parent and p.ancestors || p.id = k.ancestors)`,
  child_nobody_has_started: `select k.id as run_id from holdpoint.runs k
    where k.tenant_id = $1::uuid and k.parent is not null and not exists (
      select from holdpoint.steps s where s.run_id = k.parent and s.kind = 'children_started'
        and s.body->>'callId' = k.parent_call::text and (s.body->>'try')::int = k.parent_try
        and s.body->'ordinals' @> to_jsonb(k.parent_ordinal))`,
  child_started_after_a_stop: `select k.id as run_id from holdpoint.runs k
    join holdpoint.runs a on a.id = any(k.ancestors) and a.cancel_requested_at < k.created_at
    where k.tenant_id = $1::uuid`,
  effect_started_after_a_stop: `select t.run_id from holdpoint.attempts t join holdpoint.runs r on r.id = t.run_id
    join holdpoint.runs a on a.id = any(r.ancestors || r.id) and a.cancel_requested_at < t.started_at
    where t.tenant_id = $1::uuid and t.args_hash is not null`,
} as const;

/** Selects of run ids from the tables that have no foreign key to runs, or that tell a run's history. */
const OF_HISTORY = {
  moved_after_its_end: `select t.run_id from holdpoint.transitions t
    where t.tenant_id = $1::uuid and t.from_status in ${ENDED} and (t.event <> 'EffectSettled' or t.to_status <> t.from_status)`,
  slot_without_its_run: `select k.run_id from holdpoint.schedule_slots k where k.tenant_id = $1::uuid
    and k.run_id is not null and not exists
      (select from holdpoint.runs r where r.id = k.run_id and r.session_id = k.session_id)
    -- A run that was removed leaves its slot to the conversation that goes on.
    and (exists (select from holdpoint.runs r where r.id = k.run_id)
      or not exists (select from holdpoint.sessions s where s.id = k.session_id))`,
  delivery_of_no_transition: `select d.run_id from holdpoint.deliveries d where d.tenant_id = $1::uuid and not exists
      (select from holdpoint.transitions t where t.run_id = d.run_id and t.seq = d.version and t.to_status = d.status)`,
  transitions_do_not_join: `select t.run_id from (
      select run_id, from_status, lag(to_status) over (partition by run_id order by seq) as before
      from holdpoint.transitions where tenant_id = $1::uuid) t
    where t.from_status is distinct from t.before`,
  removed_and_there: `select t.run_id from holdpoint.tombstones t where t.tenant_id = $1::uuid
    and exists (select from holdpoint.runs r where r.id = t.run_id)`,
  message_without_session: `select coalesce(m.run_id, m.session_id) as run_id from holdpoint.messages m
    where m.tenant_id = $1::uuid and not exists (select from holdpoint.sessions s where s.id = m.session_id)`,
  history_without_run: [
    "transitions",
    "steps",
    "calls",
    "attempts",
    "inbox",
    "approvals",
    "decisions",
    "reminders",
    "callbacks",
    "refusals",
    "artifact_uses",
    "tasks",
    "deliveries",
    "delivery_changes",
  ]
    .map(
      (table) => `select h.run_id from holdpoint.${table} h where h.tenant_id = $1::uuid
        and not exists (select from holdpoint.runs r where r.id = h.run_id)`,
    )
    .join(" union "),
} as const;

const SELECTS = [
  ...Object.entries(OF_RUNS).map(
    ([rule, condition]) =>
      `select '${rule}' as rule, r.id as run_id from holdpoint.runs r where r.tenant_id = $1::uuid and (${condition})`,
  ),
  ...Object.entries({ ...OF_EFFECTS, ...OF_APPROVALS, ...OF_CHILDREN, ...OF_HISTORY }).map(
    ([rule, found]) => `select '${rule}' as rule, f.run_id from (${found}) f`,
  ),
];

const FIND = statement("find_violations", `${SELECTS.join("\nunion ")}\norder by rule, run_id limit 1000`);
