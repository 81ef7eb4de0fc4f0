// Many runs that wait, as a fleet leaves them over days: for tests and measurements of what is stored and not due.

import type { ClientBase } from "pg";

/** What is written. */
export interface HeldRuns {
  /** How many runs; every tenth begins a session. */
  readonly count: number;
  readonly tenantId: string;
  /** The agent's name; its version is 1. */
  readonly agent: string;
}

/** How many runs one statement writes. */
const AT_ONCE = 100_000;
const RUNS_A_SESSION = 10;

/** The holds of twenty runs in a row; a parent is followed by its child. */
const HOLDS = [
  ...Array.from({ length: 6 }, () => "input"),
  ...Array.from({ length: 5 }, () => "approval"),
  "callback",
  "callback",
  "timer",
  "parent",
  "child",
  "operator",
  "retrying",
  "paused",
  "unknown",
] as const;

const STATUS = `case h.hold when 'approval' then 'waiting_approval' when 'callback' then 'waiting_dependency'
  when 'timer' then 'waiting_dependency' when 'parent' then 'waiting_dependency' when 'operator' then 'waiting_operator'
  when 'retrying' then 'retrying' when 'paused' then 'paused' when 'unknown' then 'outcome_unknown'
  when 'stopping' then 'cancelling' else 'waiting_input' end`;

const EVENT = `case h.hold when 'retrying' then 'Released' when 'unknown' then 'EffectUnknown' when 'paused' then 'PauseRequested'
  when 'stopping' then 'CancelRequested' else 'Held' end`;

const QUESTION = `'{"kind": "requester", "principal": "alice", "subject": null, "reason": "question"}'::jsonb`;

const WAITING_FOR = `case h.hold when 'input' then ${QUESTION} when 'child' then ${QUESTION}
  when 'approval' then '{"kind": "approvers", "principal": "role:manager", "subject": null, "reason": "over_limit"}'
  when 'callback' then jsonb_build_object('kind', 'callback', 'principal', 'payments', 'subject', h.call, 'reason', 'pending')
  when 'timer' then '{"kind": "timer", "principal": "timer", "subject": null, "reason": "sleeping"}'
  when 'parent' then jsonb_build_object('kind', 'child', 'principal', 'refunds', 'subject', h.call, 'reason', 'children')
  when 'operator' then '{"kind": "operator", "principal": "role:operator", "subject": null, "reason": "call_failed"}' end`;

const RESUME_TO = `jsonb_build_object('to', 'hold', 'hold', jsonb_build_object('kind', 'input', 'waitingFor', ${QUESTION},
  'deadline', jsonb_build_object('inMs', 604800000), 'onDeadline', 'no_answer'))`;

const HAS_EFFECT = "h.hold in ('unknown', 'stopping')";
const HAS_CALL = `(${HAS_EFFECT} or h.hold in ('approval', 'callback', 'parent'))`;
const HAS_TWO_STEPS = `(${HAS_EFFECT} or h.hold = 'parent')`;

const TERMS = `'{"rule": "over_limit", "approvers": {"roles": ["manager"], "users": []}, "quorum": 1, "veto": true,
  "fourEyes": true, "decisions": ["approve", "reject"], "answerSchema": null, "deadlineMs": 604800000, "onDeadline": "reject",
  "remindAfterMs": [259200000], "escalation": [], "validForMs": 86400000}'::jsonb`;

/** Ids are as the application mints them (UUIDv7), each by its run's own instant, so that they lie where real ones would. */
const id = (kind: number, n: string, at: string) =>
  `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7${kind}008000' || lpad(to_hex(${n}), 12, '0'))::uuid`;

/** The latest run began an hour ago, each a tenth of a second after the one before it. */
const atOf = (n: string) => `(h.begun - (h.count - ${n}) * interval '100 milliseconds')`;
const sessionOf = (n: string) =>
  id(2, n, `(h.begun - (h.count - ${n} * ${RUNS_A_SESSION}) * interval '100 milliseconds')`);

const FILL_HELD = `
insert into held
select h.*, n, ${id(1, "n", atOf("n"))}, ${sessionOf(`(n / ${RUNS_A_SESSION})`)}, ${id(3, "n", atOf("n"))}, ${atOf("n")},
  case when n % 1000 = 1 then 'stopping' else (array['${HOLDS.join("', '")}'])[1 + n % ${HOLDS.length}] end
from begun h cross join generate_series($1::int, $2::int) n`;

const OF_ALL: readonly string[] = [
  `insert into holdpoint.agents (tenant_id, name, version, tools) select h.tenant, h.agent, '1', '[]' from begun h
   on conflict do nothing`,
  `insert into holdpoint.webhooks (tenant_id, id, name, url, secret, policy, created_at, created_by, changed_at, changed_by)
   select h.tenant, h.tenant, 'billing', 'https://example.com', repeat('s', 32), 'silent', h.begun, 'olga', h.begun, 'olga'
   from begun h on conflict do nothing`,
  `insert into holdpoint.sessions (tenant_id, id, requester, message_seq, created_at)
   select h.tenant, ${sessionOf("n")}, 'alice', ${RUNS_A_SESSION}, h.begun
   from begun h cross join generate_series(0, h.count / ${RUNS_A_SESSION}) n`,
];

/** A child's parent is the run before it. */
const PARENT = id(1, "(h.n - 1)", atOf("(h.n - 1)"));
const PARENT_CALL = id(3, "(h.n - 1)", atOf("(h.n - 1)"));

const OF_RUNS: readonly string[] = [
  `insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal, input_seq,
     line, parent, parent_call, parent_ordinal, parent_try, ancestors, status, version, step_seq, epoch, current_step,
     checkpoint, external_ref, open_attempts, live_children, waiting_for, waiting_since, hold_seq, wait_deadline, on_deadline,
     retry_at, next_reconcile_at, look_ups_end_at, cancel_requested_at, paused_at, resume_to, created_at, updated_at)
   select h.tenant, h.id, h.session, h.agent, '1', 'alice', 'alice', 'refund order ' || h.n, 1 + h.n % ${RUNS_A_SESSION}, h.id,
     p.id, p.call, p.ordinal, p.ordinal, case when p.id is null then '{}' else array[p.id] end,
     ${STATUS}, 3, s.steps, 1, 'waits',
     jsonb_build_object('stepSeq', s.steps, 'turn', 1, 'openCalls', 0, 'inputTokens', 10, 'outputTokens', 5, 'lastCompleted', null),
     case when ${HAS_EFFECT} then 'op-' || h.n end, (${HAS_EFFECT})::int, (h.hold = 'parent')::int, w.waiting_for,
     case when w.waiting_for is not null then h.at end, case when w.waiting_for is not null or h.hold = 'paused' then 3 end,
     case when h.hold <> 'retrying' then h.begun + interval '7 days' + h.n * interval '1 second' end,
     case when w.waiting_for is not null then 'operator' end,
     case when h.hold = 'retrying' then h.begun + interval '7 days' + h.n * interval '1 second' end,
     case when ${HAS_EFFECT} then h.begun + interval '7 days' + h.n * interval '1 second' end,
     case when ${HAS_EFFECT} then h.begun + interval '8 days' + h.n * interval '1 second' end,
     case when h.hold = 'stopping' then h.at end, case when h.hold = 'paused' then h.at end,
     case when h.hold = 'paused' then ${RESUME_TO} end, h.at, h.at
   from held h
   cross join lateral (select 1 + (${HAS_TWO_STEPS})::int as steps) s
   cross join lateral (select ${WAITING_FOR} as waiting_for) w
   left join lateral (select ${PARENT} as id, ${PARENT_CALL} as call, 1 as ordinal) p on h.hold = 'child'`,
  `insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
   select h.tenant, h.session, 1 + h.n % ${RUNS_A_SESSION}, 'user', 'alice', 'refund order ' || h.n, h.id, h.at from held h`,
  `insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
   select h.tenant, h.id, t.seq, t.before, t.after, t.event, 'worker', 'w', 1, h.at
   from held h cross join lateral (values (1, null, 'queued', 'Submitted'), (2, 'queued', 'running', 'Claimed'),
     (3, 'running', ${STATUS}, ${EVENT})) as t (seq, before, after, event)`,
  `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
   select h.tenant, h.id, 1, 1, 'model_reply', jsonb_build_object('kind', 'model_reply', 'turn', 1, 'message',
     '{"role": "assistant", "content": []}'::jsonb, 'text', '', 'callIds', case when ${HAS_CALL} then jsonb_build_array(h.call) else '[]' end,
     'outcome', null, 'usage', '{"inputTokens": 10, "outputTokens": 5}'::jsonb), h.at from held h
   union all
   select h.tenant, h.id, 2, 1, 'intent', jsonb_build_object('kind', 'intent', 'callId', h.call, 'attempt', 1), h.at
   from held h where ${HAS_EFFECT}
   union all
   select h.tenant, h.id, 2, 1, 'children_started', jsonb_build_object('kind', 'children_started', 'callId', h.call, 'try', 1,
     'ordinals', '[1]'::jsonb), h.at from held h where h.hold = 'parent'`,
  `insert into holdpoint.calls (tenant_id, run_id, id, turn, ordinal, tool_call_id, tool, args, args_hash, operation_id, effect,
     verdict, timeout_ms, retries, at, service, throttled_for_ms)
   select h.tenant, h.id, h.call, 1, 0, 'call_1', 'send_refund', '{}', 'hash', 'op-' || h.n,
     '{"kind": "effect", "keyValidForMs": null, "lookUpSettlesWithinMs": 60000, "equalCallsAreDistinct": false, "settlement": null}',
     case when h.hold = 'approval' then jsonb_build_object('kind', 'needs_approval', 'approval', ${TERMS}) else '{"kind": "allowed"}' end,
     10000, 1, h.at, 'payments', 86400000 from held h where ${HAS_CALL}`,
  `insert into holdpoint.attempts (tenant_id, run_id, id, call_id, number, worker, epoch, external_ref, started_at, deadline_at)
   select h.tenant, h.id, h.id, h.call, 1, h.id, 1, 'op-' || h.n, h.at, h.begun + interval '7 days'
   from held h where ${HAS_EFFECT}`,
  `insert into holdpoint.approvals (tenant_id, id, run_id, call_id, hold_seq, tool, args, args_hash, rule, roles, users, excluded,
     state, requested_at, deadline, on_deadline, valid_for_ms, terms, request, quorum, remind_at)
   select h.tenant, h.id, h.id, h.call, 3, 'send_refund', '{}', 'hash', 'over_limit', '{manager}', '{}', '{alice}', 'pending',
     h.at, h.begun + interval '7 days' + h.n * interval '1 second', 'reject', 86400000, ${TERMS},
     '{"redactedArgs": {}, "modelReason": null, "amount": null, "risk": null, "evidence": [], "editSchema": null}', 1,
     h.begun + interval '3 days' + h.n * interval '1 second'
   from held h where h.hold = 'approval'`,
  `insert into holdpoint.verdicts (tenant_id, run_id, run_version, verdict, rule, evidence, at)
   select h.tenant, h.id, 3, case h.hold when 'parent' then 'backing_present' else 'not_authoritative_here' end,
     case h.hold when 'parent' then 'backing_record' else 'provider_answer' end, '{"status": "waiting_dependency"}', h.at
   from held h where h.hold in ('callback', 'parent', 'unknown')`,
  `insert into holdpoint.deliveries (tenant_id, id, webhook_id, run_id, version, status, notice, state, attempts, created_at, delivered_at)
   select h.tenant, h.id, h.tenant, h.id, 3, ${STATUS}, '{"agent": {"name": "refunds", "version": "1"}, "parent": null,
     "reason": null, "waitingFor": null}', 'delivered', 1, h.at, h.at from held h where h.n % 5 = 0`,
];

const TABLES = [
  "sessions",
  "runs",
  "messages",
  "transitions",
  "steps",
  "calls",
  "attempts",
  "approvals",
  "verdicts",
  "deliveries",
];

/**
 * Fills a database with runs that wait and of which nothing is due for days, as valid as those of the store's own verbs,
 * each with a short history; some ten thousand runs a second. It ends with the vacuum that a server makes by itself.
 * The client has to be allowed to leave foreign keys unchecked, as the owner of an embedded server is.
 */
export async function writeHeldRuns(client: ClientBase, { count, tenantId, agent }: HeldRuns): Promise<void> {
  await client.query("set statement_timeout = 0");
  // The server's own vacuum may be at it already.
  await client.query("set lock_timeout = 0");
  await client.query("set session_replication_role = replica");
  await client.query("create temporary table begun (tenant uuid, agent text, count int, begun timestamptz)");
  await client.query("insert into begun values ($1, $2, $3, holdpoint.clock() - interval '1 hour')", [
    tenantId,
    agent,
    count,
  ]);
  await client.query(
    `create temporary table held (like begun, n int, id uuid, session uuid, call uuid, at timestamptz, hold text)`,
  );
  for (const text of OF_ALL) await client.query(text);
  for (let first = 0; first < count; first += AT_ONCE) {
    await client.query("truncate held");
    await client.query(FILL_HELD, [first, Math.min(first + AT_ONCE, count) - 1]);
    for (const text of OF_RUNS) await client.query(text);
  }
  await client.query("drop table held, begun");
  await client.query(`vacuum analyze ${TABLES.map((table) => `holdpoint.${table}`).join(", ")}`);
  await client.query("set session_replication_role = origin");
  await client.query("reset statement_timeout");
  await client.query("reset lock_timeout");
}
