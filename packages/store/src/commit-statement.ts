import { announcedOf } from "./announce.ts";
import { KEPT, SAID, SETTLED, STEPPED, STEPPED_WITH_CALLS } from "./append.ts";
import { statement } from "./db.ts";
import { editedHashOf } from "./load-run.ts";
import { type Composed, compose, fewIds, type Made } from "./parts.ts";

/** What a commit may carry beside its steps. */
export type CommitPart =
  | "start"
  | "children"
  | "settles"
  /** Calls with rows of their own. */
  | "calls"
  /** Calls that stand in the steps. */
  | "replyCalls"
  | "messages"
  | "usedApproval"
  | "readFacts"
  | "artifacts";

const CORE = {
  ord: "int",
  runId: "uuid",
  workerId: "uuid",
  epoch: "int",
  stepSeq: "int",
  steps: "jsonb",
  checkpoint: "jsonb",
  currentStep: "text",
  progressMs: "float8",
  progress: "boolean",
} as const;

/** Calls with rows of their own; the others come with their steps. */
const CALLED = `called as (
  insert into holdpoint.calls (tenant_id, run_id, id, turn, ordinal, tool_call_id, tool, args, args_hash, operation_id,
    effect, verdict, timeout_ms, retries, throttled_for_ms, service, at)
  select $1::uuid, m.run_id, t.id, t.turn, t.ordinal, t."toolCallId", t.tool, t.args, t."argsHash", t."operationId",
         t.effect, t.verdict, t."timeoutMs", t.retries, t."throttledForMs", t.service, m.at
  from moved m
  cross join lateral jsonb_to_recordset(m.calls)
    as t(id uuid, turn int, ordinal int, "toolCallId" text, tool text, args text, "argsHash" text, "operationId" text,
         effect jsonb, verdict jsonb, "timeoutMs" int, retries int, "throttledForMs" bigint, service text)
)`;

const BEGUN = `
superseded as (
  update holdpoint.attempts a set ended_at = m.at, outcome = 'superseded', settled_by = 'worker:' || m.owner
  from moved m
  where m.started and a.run_id = m.run_id and a.id = m.supersedes and a.ended_at is null
),
begun as (
  insert into holdpoint.attempts (tenant_id, run_id, id, call_id, number, worker, epoch, external_ref, args_hash,
    started_at, deadline_at)
  select $1::uuid, m.run_id, (m.start->>'attemptId')::uuid, (m.start->'body'->>'callId')::uuid,
         (m.start->'body'->>'attempt')::int, m.owner, m.epoch, m.start->>'externalRef',
         m.start->>'argsHash', m.at, m.at + (m.start->>'deadlineMs')::float8 * interval '1 millisecond'
  from moved m where m.started and m.start ? 'attemptId'
)`;

const CHILDREN = `
-- Each child in a session of its own: it sees what it is given, and nobody sees what it is told.
child_sessions as (
  insert into holdpoint.sessions (tenant_id, id, requester, message_seq, created_at)
  select $1::uuid, t."sessionId", m.requester, 1, m.at
  from moved m join to_start t on t."runId" = m.run_id where m.started
  returning id
),
child_goals as (
  insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
  select $1::uuid, s.id, 1, 'user', 'agent:' || m.agent_name, t.goal, t.id, m.at
  from moved m join to_start t on t."runId" = m.run_id join child_sessions s on s.id = t."sessionId"
),
children as (
  insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal,
    input_seq, input, line, retry_of, parent, parent_call, parent_ordinal, parent_try, ancestors, is_task, status, version,
    checkpoint, queued_since, wait_deadline, created_at, updated_at)
  select $1::uuid, t.id, s.id, t.agent->>'name', t.agent->>'version', m.requester, m.submitted_by, t.goal, 1,
    nullif(t.input, 'null'::jsonb), coalesce(t.earlier_line, t.id), t.earlier, m.run_id,
    (m.start->'body'->>'callId')::uuid, t.ordinal, (m.start->'body'->>'try')::int, m.ancestors || m.run_id,
    exists (select from holdpoint.agents g where g.tenant_id = $1::uuid and g.name = t.agent->>'name'
      and g.version = t.agent->>'version' and g.kind = 'task'), 'queued', 1,
    m.start->'emptyCheckpoint', m.at, m.at + (m.start->>'queueMs')::float8 * interval '1 millisecond', m.at, m.at
  from moved m join to_start t on t."runId" = m.run_id join child_sessions s on s.id = t."sessionId"
  returning *
),
child_submitted as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, c.id, 1, null, 'queued', 'Submitted', 'worker', m.owner::text, 0, null, c.created_at
  from children c join moved m on m.run_id = c.parent
),
${announcedOf("children")}`;

const USED = `
-- A read has no intent: its approval is spent with its result.
used as (
  update holdpoint.approvals p set state = 'spent', spent_at = m.at, spent_by = m.owner
  from moved m
  where p.id = m."usedApproval" and p.run_id = m.run_id and p.state = 'approved'
)`;

const READ_IN = `read_in as (
  update holdpoint.inbox f set read_in_step = m.step_seq
  from moved m cross join lateral jsonb_array_elements_text(m."readFacts") as t(id)
  where f.id = t.id::uuid and f.run_id = m.run_id and f.read_in_step is null
)`;

const PARTS = {
  start: { columns: { start: "jsonb", approvalId: "uuid", argsHash: "text", supersedes: "uuid" }, text: BEGUN },
  children: { columns: {}, text: CHILDREN },
  settles: { columns: { settles: "jsonb" }, text: SETTLED },
  calls: { columns: { calls: "jsonb" }, text: CALLED },
  replyCalls: { columns: { replyCalls: "jsonb" }, text: "" },
  messages: { columns: { messages: "jsonb" }, text: SAID },
  usedApproval: { columns: { usedApproval: "uuid" }, text: USED },
  readFacts: { columns: { readFacts: "jsonb" }, text: READ_IN },
  artifacts: { columns: { artifacts: "jsonb" }, text: KEPT },
} as const;

type Parts = Made<CommitPart>;

const ANCESTORS_HELD = `
-- A stop of any ancestor forbids every start from the moment it is stored: the cascade may not have come here yet.
ancestors_held as materialized (
  select a.id, a.cancel_requested_at
  from (
    select distinct t.id from input i
    cross join lateral (
      select unnest(r.ancestors) as id from holdpoint.runs r where r.id = i."runId" and r.parent is not null) t
    where nullif(i.start, 'null'::jsonb) is not null order by t.id) t
  cross join lateral (
    select a.id, a.cancel_requested_at from holdpoint.runs a where a.id = t.id for share of a) a
)`;

const BELOW_A_STOP =
  "exists (select from ancestors_held a where a.id = any(r.ancestors) and a.cancel_requested_at is not null)";

/** Whether a start is allowed, on the row that this statement locks. */
const MAY_START = `,
    r.cancel_requested_at is null and r.pause_requested_at is null and (
      r.status = 'running' or (r.status = 'outcome_unknown' and i.supersedes is not null))
      and not ${BELOW_A_STOP}
      -- What is forbidden or revoked since the plan was made is seen by the next one.
      and (i.start->>'policyRevision')::int is not distinct from
        (select t.policy_revision from holdpoint.tenants t where t.id = $1::uuid) as may_start,
    ${BELOW_A_STOP} as is_below_a_stop`;

/** The rows of the batch that are as their owners know them, each found by its id and locked in the order of the ids. */
const locked = ({ has }: Parts, lockOption: string): string => `
locked as materialized (
  select i.*${has("start") ? ", l.is_below_a_stop, l.may_start and nullif(i.start, 'null'::jsonb) is not null as may_start" : ""}
  from input i cross join lateral (
    select r.id${has("start") ? MAY_START : ""}
    from holdpoint.runs r
    where r.id = i."runId"
      -- Not equalities: the only way to a row is its id, whatever the planner thinks of tenants, owners and statuses. Only a
      -- run that is worked on has an owner.
      and r.tenant_id is not distinct from $1::uuid
      and r.owner is not distinct from i."workerId" and r.epoch is not distinct from i.epoch
      and r.step_seq is not distinct from i."stepSeq"
    for update of r${lockOption}) l
)`;

const NEEDED_BY_SETTLES = `
  select i."runId" as run_id, t."attemptId" as attempt_id
  from input i cross join lateral jsonb_to_recordset(i.settles) as t("attemptId" uuid) where ${fewIds('t."attemptId"')}`;
const NEEDED_BY_STARTS = `
  select i."runId" as run_id, i.supersedes as attempt_id from input i where i.supersedes is not null`;

/** Of what is to be settled or carried on, what is still open; and the rows of which all of that is. */
const valid = ({ has }: Parts): string => `
needed as materialized (${[
  ...(has("settles") ? [NEEDED_BY_SETTLES] : []),
  ...(has("start") ? [NEEDED_BY_STARTS] : []),
].join("\n  union all")}
),
still_open as materialized (
  select a.run_id, a.id from holdpoint.attempts a
  join needed n on n.run_id = a.run_id and n.attempt_id = a.id
  join locked l on l."runId" = a.run_id
  where a.ended_at is null order by a.id for update of a
),
valid as materialized (
  select l.* from locked l
  where (select count(*) from needed n where n.run_id = l."runId")
    = (select count(*) from still_open o where o.run_id = l."runId")
)`;

const SPENT = `
spent as (
  update holdpoint.approvals p
  set state = 'spent', spent_at = holdpoint.clock(),
    spent_by = coalesce(v.start->>'attemptId', v.start->'body'->>'callId')::uuid
  from valid v
  where v.may_start and p.id = v."approvalId" and p.run_id = v."runId" and p.args_hash = v."argsHash"
    and p.call_id = (v.start->'body'->>'callId')::uuid
    and p.state in ('approved', 'spent') and p.valid_until > holdpoint.clock()
  returning p.id
)`;

const TO_START = `
to_start as materialized (
  select v."runId", t.*, b.line as earlier_line, b.id as earlier
  from valid v
  cross join lateral jsonb_to_recordset(coalesce(nullif(v.start->'children', 'null'::jsonb), '[]'))
    as t(id uuid, "sessionId" uuid, ordinal int, agent jsonb, goal text, input jsonb)
  join holdpoint.runs p on p.id = v."runId"
  join holdpoint.calls c on c.run_id = v."runId" and c.id = (v.start->'body'->>'callId')::uuid
  -- Work that was begun before is done again in its own line: what it did is never done twice.
  left join lateral (
    select k.id, k.line from holdpoint.runs o
    join holdpoint.calls e on e.run_id = o.id and e.tool = c.tool and case c.effect->>'sameWork'
      when 'place' then split_part(e.tool_call_id, '@', 1) = split_part(c.tool_call_id, '@', 1)
      -- Where a person has edited the arguments, what counts is what ran.
      else e.id = c.id or (c.effect->>'equalCallsAreDistinct' is distinct from 'true'
        and v."argsHash" = coalesce(${editedHashOf("e")}, e.args_hash)) end
    join holdpoint.runs k on k.parent = o.id and k.parent_call = e.id and k.parent_ordinal = t.ordinal
    where o.line = p.line
    order by k.id desc limit 1
  ) b on true
),
refused as materialized (
  select v."runId", case
    when exists (select from to_start t where t."runId" = v."runId" and not exists (select from holdpoint.agents g
      where g.tenant_id = $1::uuid and g.name = t.agent->>'name' and g.version = t.agent->>'version'))
      then 'agent_unknown'
    when exists (select from to_start t join holdpoint.runs l on l.line = t.earlier_line and l.tenant_id = $1::uuid
      where t."runId" = v."runId" and l.ended_at is null) then 'line_is_live'
    when (select count(*) from holdpoint.runs d
        where d.parent is not null and d.ancestors[1] = coalesce(r.ancestors[1], r.id))
      + jsonb_array_length(v.start->'children') > (v.start->>'treeLimit')::int then 'tree_limit'
    end as why
  from valid v join holdpoint.runs r on r.id = v."runId"
  where v.may_start and v.start ? 'children'
)`;

/** A call that this very commit makes is not in the snapshot yet: its children start with the next. */
const CALL_IS_THERE = `
    and (select count(*) from to_start t where t."runId" = v."runId")
      = coalesce(jsonb_array_length(nullif(v.start->'children', 'null'::jsonb)), 0)`;

const judged = ({ has }: Parts): string => {
  const children = has("children");
  return `
judged as materialized (
  select v.*, case when v.is_below_a_stop then 'ancestor_stopped'${children ? " else f.why" : ""} end as refusal,
    ${children ? "f.why is null and " : ""}v.may_start${children ? CALL_IS_THERE : ""}
    and (s.id is not null or (v."approvalId" is null and not exists (
      -- Whoever brings no approval starts nothing that needs one, unless it goes on with what was released before.
      select from holdpoint.calls c
      where c.run_id = v."runId" and c.id = (v.start->'body'->>'callId')::uuid
        and c.verdict->>'kind' is distinct from 'allowed' and not exists (
          select from holdpoint.steps e where v.start->'body'->>'kind' = 'children_started'
            and e.run_id = c.run_id and e.kind = 'children_started' and e.body->>'callId' = c.id::text
            and e.body->>'try' = v.start->'body'->>'try')))) as started
  from valid v left join spent s on s.id = v."approvalId"${children ? ' left join refused f on f."runId" = v."runId"' : ""}
)`;
};

/** What the row becomes; a start counts only where it was judged to be one. */
const moved = ({ has, handedOn }: Parts): string => {
  const start = has("start");
  const from = start ? "judged" : has("settles") ? "valid" : "locked";
  const settled = has("settles") ? " - coalesce(jsonb_array_length(j.settles), 0)" : "";
  const stepSeq = `r.step_seq + jsonb_array_length(j.steps)${start ? " + j.started::int" : ""}`;
  return `
moved as (
  update holdpoint.runs r set
    step_seq = ${stepSeq},
    open_attempts = r.open_attempts${settled}${
      start ? "\n      + (j.started and j.start ? 'attemptId' and j.supersedes is null)::int" : ""
    },${
      has("children")
        ? `
    live_children = r.live_children
      + case when j.started and j.start ? 'children' then jsonb_array_length(j.start->'children') else 0 end,`
        : ""
    }
    external_ref = case${start ? " when j.started and j.start ? 'attemptId' then j.start->>'externalRef'" : ""}
      when r.open_attempts${settled} > 0 then r.external_ref end,
    takeovers = case when j.progress then 0 else r.takeovers end,
    checkpoint = jsonb_set(j.checkpoint, '{stepSeq}', to_jsonb(${stepSeq})),
    current_step = j."currentStep",
    progress_due_at = holdpoint.clock() + j."progressMs" * interval '1 millisecond',
    updated_at = greatest(holdpoint.clock(), r.updated_at)
  from ${from} j
  where r.id = j."runId"
  returning j.ord, r.id as run_id, r.session_id, r.epoch, r.status, r.step_seq, j."stepSeq" as step_seq_before,
    ${start ? "j.started, j.refusal" : "false as started, null::text as refusal"}, r.owner, r.agent_name, r.requester,
    r.submitted_by, r.ancestors, r.updated_at as at,
    r.cancel_requested_at is not null as cancel_requested, r.pause_requested_at is not null as pause_requested,
    ${start ? "case when j.started then j.steps || jsonb_build_array(j.start->'body') else j.steps end" : "j.steps"} as steps
    ${handedOn("j")}
)`;
};

const text = (made: Parts, lockOption: string): string => {
  const { has, input, texts } = made;
  const start = has("start");
  const expressions = [
    input,
    ...(start ? [ANCESTORS_HELD] : []),
    locked(made, lockOption),
    ...(start || has("settles") ? [valid(made)] : []),
    ...(start ? [SPENT] : []),
    ...(has("children") ? [TO_START] : []),
    ...(start ? [judged(made)] : []),
    moved(made),
    has("replyCalls") ? STEPPED_WITH_CALLS : STEPPED,
  ];
  return `with ${expressions.join(",\n")}${texts}
select ord, step_seq, started, refusal, status, cancel_requested, pause_requested, at as now,
  (select t.policy_revision from holdpoint.tenants t where t.id = $1::uuid) as policy_revision from moved`;
};

/**
 * One owner's progress on several runs. Fenced by owner, epoch and step_seq on the row itself; a start is taken only
 * where the run is running without a stop or pause request and its approval is spent by this very statement. A result
 * of an attempt is taken only if the attempt is still open: late evidence may have settled it. Waits for rows that
 * somebody else is moving.
 */
export const COMMIT: Composed<CommitPart> = compose({
  verb: "commit_steps_waiting",
  core: CORE,
  parts: PARTS,
  text: (made) => text(made, ""),
});

/** As `COMMIT`, but passes over rows that somebody else is moving. */
export const COMMIT_SKIPPING: Composed<CommitPart> = compose({
  verb: "commit_steps",
  core: CORE,
  parts: PARTS,
  text: (made) => text(made, " skip locked"),
});

/**
 * The row as it is now, to tell a lost answer from a lost run. `matched` counts the steps after $3 that are the ones this
 * commit would have written: late evidence and a person's word number steps of the same claim as well. A start is this
 * commit's only if its attempt or its first child ($5) is there: another of the same claim may look like it.
 */
export const STEP_READ_BACK = statement(
  "read_back_step",
  `select r.owner, r.epoch, r.step_seq, false as started, null as refusal, r.status, r.cancel_requested_at is not null as cancel_requested,
     r.pause_requested_at is not null as pause_requested, holdpoint.clock() as now,
     (select t.policy_revision from holdpoint.tenants t where t.id = $1::uuid) as policy_revision,
     (select count(*)::int from jsonb_array_elements($4::jsonb) with ordinality as t(body, n)
      join holdpoint.steps s on s.run_id = r.id and s.seq = $3::int + t.n and s.body = t.body
      where s.kind not in ('intent', 'children_started')
        or exists (select from holdpoint.attempts a where a.run_id = r.id and a.id = $5::uuid)
        or exists (select from holdpoint.runs k where k.parent = r.id and k.id = $5::uuid)) as matched
   from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $2::uuid`,
);
