import type {
  Approval,
  ApprovalRule,
  ApprovalState,
  Call,
  Child,
  ClosedService,
  DenyRule,
  EffectProperties,
  Fact,
  JsonValue,
  LineEffect,
  OpenAttempt,
  Step,
  Verdict,
} from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { asError, execute } from "./execute.ts";
import { showId } from "./ids.ts";
import type { Memory } from "./memories.ts";
import { fewIds } from "./parts.ts";
import { callsIn, type StoredStep } from "./reply-calls.ts";
import { milliseconds, type Run, type RunJson, runOf } from "./run.ts";

/** What was said in the session before the run was submitted. */
export interface SessionMessage {
  readonly seq: number;
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** All rows that a worker needs to go on with a run. */
export interface LoadedRun {
  readonly run: Run;
  readonly messages: readonly SessionMessage[];
  readonly steps: readonly Step[];
  readonly calls: readonly Call[];
  readonly openAttempts: readonly (OpenAttempt & {
    readonly lookUps: number;
    /** Why its worker could not tell what became of it; null where it has said nothing. */
    readonly errorCode: string | null;
  })[];
  readonly approvals: readonly Approval[];
  /** The runs that this one has started, each try by itself. */
  readonly children: readonly Child[];
  /** Of each failed run of a workflow's line that this one goes on with: what tells which nodes it need not do again. */
  readonly earlier: readonly (readonly Step[])[];
  readonly unread: readonly Fact[];
  readonly lineEffects: readonly LineEffect[];
  /** What operators have forbidden. */
  readonly denials: readonly DenyRule[];
  /** The revision of deny rules and assignments that all this was loaded with; an intent names it. */
  readonly policyRevision: number;
  /** What was kept about its requester when it was created, the newest first; the same for every claim. */
  readonly memories: readonly Pick<Memory, "key" | "value" | "createdBy">[];
  readonly services: readonly TroubledService[];
  /** The database's clock at the load, in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** A service with failures in a row; nobody may call it freely once it is closed. */
export type TroubledService = Omit<ClosedService, "untilMs"> & { readonly untilMs: number | null };

/** Loads a run as it is, in one snapshot; null if there is none. */
export async function loadRun(store: Store, runId: string): Promise<LoadedRun | null> {
  const loaded = (await loadRuns(store, [runId])).get(runId) ?? null;
  if (loaded instanceof Error) throw loaded;
  return loaded;
}

/** Loads runs as they are, in one snapshot; those that are there, each with what it is or why it cannot be read. */
export async function loadRuns(
  store: Store,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, LoadedRun | Error>> {
  const rows = await execute<LoadedJson>(store, LOAD, [store.tenantId, runIds]);
  return new Map(rows.map((row) => [row.run.id, readOne(row)]));
}

/** What a row says, or why it cannot be read. */
export function readOne(row: LoadedJson): LoadedRun | Error {
  try {
    return loadedOf(row);
  } catch (error) {
    return asError(error);
  }
}

export type LoadedJson = {
  readonly run: RunJson;
  readonly messages: readonly SessionMessage[];
  readonly steps: readonly StoredStep[];
  /** Those with rows of their own; the others stand in the steps. */
  readonly calls: readonly CallJson[];
  readonly attempts: readonly AttemptJson[];
  readonly approvals: readonly ApprovalJson[];
  readonly children: readonly ChildJson[];
  readonly earlier: LoadedRun["earlier"];
  readonly unread: readonly { readonly id: string; readonly body: Fact["body"] }[];
  readonly line_effects: readonly LineEffect[];
  readonly denials: readonly DenyRule[];
  readonly policy_revision: number;
  readonly memories: LoadedRun["memories"];
  readonly services: readonly TroubledService[];
  readonly now: string;
};

interface CallJson {
  readonly id: string;
  readonly turn: number;
  readonly ordinal: number;
  readonly tool_call_id: string;
  readonly tool: string;
  readonly args: string;
  readonly args_hash: string;
  readonly operation_id: string;
  readonly effect: EffectProperties;
  readonly verdict: Verdict;
  readonly timeout_ms: number;
  readonly retries: number;
  readonly throttled_for_ms: number;
  readonly service: string;
}

interface AttemptJson {
  readonly id: string;
  readonly call_id: string;
  readonly number: number;
  readonly started_at: string;
  readonly deadline_at: string;
  readonly first_started_at: string;
  readonly look_ups: number;
  readonly error_class: string | null;
  readonly error_code: string | null;
}

/** A child as the statements that read it give it. */
export type ChildJson = Omit<Child, "shownId">;

interface ApprovalJson {
  readonly id: string;
  readonly call_id: string;
  readonly args: string;
  readonly args_hash: string;
  readonly terms: ApprovalRule;
  readonly level: number;
  readonly extended: boolean;
  readonly state: ApprovalState;
  readonly deadline: string;
  readonly edited_by: string | null;
  readonly valid_until: string | null;
  readonly decided_by: string | null;
  readonly note: string | null;
  readonly answer: JsonValue;
  readonly rights_lost: boolean;
}

/** Reads the columns of `LOADED`. */
function loadedOf(row: LoadedJson): LoadedRun {
  return {
    run: runOf(row.run),
    messages: row.messages,
    steps: row.steps.map(stepOf),
    calls: [...row.calls.map(callOf), ...row.steps.flatMap(callsIn)].sort(byPlace),
    openAttempts: row.attempts.map((attempt) => ({
      id: attempt.id,
      callId: attempt.call_id,
      number: attempt.number,
      startedAtMs: milliseconds(attempt.started_at),
      deadlineAtMs: milliseconds(attempt.deadline_at),
      keyFirstUsedAtMs: milliseconds(attempt.first_started_at),
      repeatRefused: attempt.error_class !== null,
      lookUps: attempt.look_ups,
      errorCode: attempt.error_code,
    })),
    approvals: row.approvals.map(approvalOf),
    children: row.children.map(childOf),
    earlier: row.earlier,
    unread: row.unread,
    lineEffects: row.line_effects,
    denials: row.denials,
    policyRevision: row.policy_revision,
    memories: row.memories,
    services: row.services,
    nowMs: milliseconds(row.now),
  };
}

function stepOf(stored: StoredStep): Step {
  const { seq, atMs, body, calls } = stored;
  return calls === undefined ? stored : { seq, atMs, body };
}

/** In the order in which they were asked for. */
function byPlace(a: Call, b: Call): number {
  return a.turn - b.turn || a.ordinal - b.ordinal;
}

function callOf(row: CallJson): Call {
  return {
    id: row.id,
    turn: row.turn,
    ordinal: row.ordinal,
    toolCallId: row.tool_call_id,
    tool: row.tool,
    // The text is canonical JSON that this store wrote.
    args: JSON.parse(row.args) as JsonValue,
    argsHash: row.args_hash,
    operationId: row.operation_id,
    effect: row.effect,
    verdict: row.verdict,
    timeoutMs: row.timeout_ms,
    retries: row.retries,
    throttledForMs: row.throttled_for_ms,
    service: row.service,
  };
}

/** Reads a child. */
export function childOf(row: ChildJson): Child {
  return { ...row, shownId: showId("run", row.id) };
}

function approvalOf(row: ApprovalJson): Approval {
  return {
    id: row.id,
    callId: row.call_id,
    // The text is canonical JSON that this store wrote.
    args: JSON.parse(row.args) as JsonValue,
    argsHash: row.args_hash,
    terms: row.terms,
    level: row.level,
    extended: row.extended,
    state: row.state,
    deadlineMs: milliseconds(row.deadline),
    editedBy: row.edited_by,
    validUntilMs: milliseconds(row.valid_until),
    decidedBy: row.decided_by,
    note: row.note,
    answer: row.answer,
    rightsLost: row.rights_lost,
  };
}

function msOf(instant: string): string {
  return `(extract(epoch from ${instant}) * 1000)::bigint`;
}

/** Whether somebody whose approval counts for the request `p` may not approve any more. */
const RIGHTS_LOST = `exists (
        select from holdpoint.decisions d
        where d.approval_id = p.id and d.level = p.level and d.decision in ('approve', 'approve_with_edits')
          and not d.actor_id = any(p.users) and not exists (
            select from holdpoint.role_assignments g
            where g.tenant_id = p.tenant_id and g.user_id = d.actor_id and g.role = any(p.roles) and g.revoked_at is null))`;

/** The hash of what a person has made of the arguments of the call of this alias. */
export const editedHashOf = (call: string): string => `(select p.args_hash from holdpoint.approvals p
         where p.run_id = ${call}.run_id and p.call_id = ${call}.id and p.edited_by is not null and p.state <> 'withdrawn'
         order by p.hold_seq desc, p.id desc limit 1)`;

/** Whether the other side has reported that what a step `s` says of the call `c` has failed after all. */
const FAILED_SINCE = `(s.kind = 'finding' or s.body->>'result' in ('succeeded', 'partial')) and exists (
          select from holdpoint.callbacks b where b.run_id = o.id and b.call_id = c.id and b.status = 'failed')`;

/** Whether the run ended while the other side had accepted the call `c` and not settled it. */
const NEVER_SETTLED = `not exists (select from holdpoint.steps e
           where e.run_id = o.id and e.kind = 'tool_result' and e.body->>'callId' = c.id::text)`;

/** The children `k` of the run `r`, or of one of its calls. */
export const childrenOf = (condition: string): string => `
  (select coalesce(jsonb_agg(jsonb_build_object('id', k.id, 'callId', k.parent_call, 'ordinal', k.parent_ordinal,
      'try', k.parent_try, 'agent', jsonb_build_object('name', k.agent_name, 'version', k.agent_version),
      'ended', k.told_parent_at is not null, 'status', k.status, 'outcome', k.outcome, 'endReason', k.end_reason,
      'result', k.result, 'resultArtifact', k.result_artifact, 'stopRequested', k.cancel_requested_at is not null)
    order by k.parent_call, k.parent_ordinal, k.parent_try), '[]')
   from holdpoint.runs k where ${condition})`;

/** The most that a run is told of what was kept, the newest: a prompt stays small whatever is kept. */
const MOST_MEMORIES = 50;
const MOST_MEMORY_BYTES = 16_384;

/** What was kept about the requester of the run `r` when that was created; what has changed since is for later runs. */
const MEMORIES = `
  (select coalesce(jsonb_agg(jsonb_build_object('key', k.key, 'value', k.value, 'createdBy', k.created_by) order by k.place), '[]')
   from (select e.key, e.value, e.created_by, row_number() over newest as place,
           sum(octet_length(e.key) + octet_length(e.value)) over newest as bytes
         from holdpoint.memories e
         where e.tenant_id = r.tenant_id and e.subject = r.requester and e.created_at <= r.created_at
           and e.expires_at > r.created_at and (e.deleted_at is null or e.deleted_at > r.created_at)
         window newest as (order by e.created_at desc, e.id desc)
         order by place limit ${MOST_MEMORIES}) k
   where k.bytes <= ${MOST_MEMORY_BYTES})`;

/** What every run is told: what was said before it, and how things stand where it works. */
const GENERAL = `
  (select coalesce(jsonb_agg(jsonb_build_object('seq', m.seq, 'role', m.role, 'text', m.text) order by m.seq), '[]')
   from holdpoint.messages m where m.session_id = r.session_id and m.seq <= r.input_seq) as messages,
  (select coalesce(jsonb_agg(d.rule order by d.id), '[]') from holdpoint.deny_rules d
   where d.tenant_id = $1::uuid and d.lifted_at is null) as denials,
  (select t.policy_revision from holdpoint.tenants t where t.id = $1::uuid) as policy_revision,
  ${MEMORIES} as memories,
  (select coalesce(jsonb_agg(jsonb_build_object('name', v.name, 'reason', v.reason, 'sinceMs', ${msOf("v.since")},
      'untilMs', ${msOf("v.closed_until")})), '[]')
   from holdpoint.services v where v.tenant_id = $1::uuid) as services,
  to_jsonb(holdpoint.clock())#>>'{}' as now`;

/** A step `s`, without the calls that stand in it. */
const STEP = `jsonb_build_object('seq', s.seq, 'atMs', ${msOf("s.at")}, 'body', s.body)`;

/** What has happened to the run `r`. One without a step has nothing yet that steps bring; that is not even looked for. */
const HISTORY = `
  case when r.step_seq = 0 then '[]'::jsonb else (select coalesce(jsonb_agg(case when s.calls is null then ${STEP}
      else ${STEP} || jsonb_build_object('calls', s.calls) end order by s.seq), '[]')
   from holdpoint.steps s where s.run_id = r.id) end as steps,
  case when r.step_seq = 0 then '[]'::jsonb else (select coalesce(jsonb_agg(to_jsonb(c)), '[]')
   from holdpoint.calls c where c.run_id = r.id) end as calls,
  case when r.open_attempts = 0 then '[]'::jsonb else (select coalesce(jsonb_agg(to_jsonb(a) || jsonb_build_object('first_started_at',
      (select min(f.started_at) from holdpoint.attempts f where f.run_id = a.run_id and f.call_id = a.call_id))
    order by a.id), '[]')
   from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null) end as attempts,
  (select coalesce(jsonb_agg((to_jsonb(p) - 'request') || jsonb_build_object('rights_lost', ${RIGHTS_LOST})
      order by p.hold_seq, p.id), '[]')
   from holdpoint.approvals p where p.run_id = r.id) as approvals,
  case when r.step_seq = 0 then '[]'::jsonb else ${childrenOf("k.parent = r.id")} end as children,
  (select coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'body', f.body) order by f.arrival), '[]')
   from holdpoint.inbox f where f.run_id = r.id and f.read_in_step is null) as unread`;

/** As `HISTORY` gives it of a run to which nothing has happened; the statement has none of its look-ups. */
const NO_HISTORY = `
  '[]'::jsonb as steps, '[]'::jsonb as calls, '[]'::jsonb as attempts, '[]'::jsonb as approvals, '[]'::jsonb as children,
  '[]'::jsonb as unread`;

/** What the runs before the run `r` have done that does what they were to do again. */
const LINE = `
  case when r.retry_of is null then '[]'::jsonb else
    (select coalesce(jsonb_agg(e.steps order by e.id), '[]') from (
     select o.id, jsonb_agg(${STEP} order by s.seq) as steps
     from holdpoint.runs o
     join holdpoint.agents g on g.tenant_id = o.tenant_id and g.name = o.agent_name and g.version = o.agent_version
       and g.kind = 'workflow'
     join holdpoint.steps s on s.run_id = o.id and s.kind in ('nodes_started', 'tool_result', 'operator')
     -- Only what failed is gone on with, and with what it was given: after one that has completed or was stopped, all is
     -- done again, by what its effects have left in the line.
     where o.line = r.line and o.id <> r.id and o.status = 'failed' and o.input is not distinct from r.input
       and not exists (select from holdpoint.runs n
         where n.line = r.line and n.id <> r.id and n.created_at > o.created_at
           and (n.status <> 'failed' or n.input is distinct from r.input))
     group by o.id) e) end as earlier,
  case when r.retry_of is null then '[]'::jsonb else
    (select coalesce(jsonb_agg(jsonb_build_object('callId', c.id, 'tool', c.tool, 'argsHash', coalesce(${editedHashOf("c")}, c.args_hash),
        'result', case when s.kind = 'effect_pending' or ${FAILED_SINCE} then 'not_established'
          when s.kind = 'finding' then 'succeeded' else s.body->>'result' end,
        'output', s.body->'output') || case when s.body ? 'artifact' then jsonb_build_object('artifact', s.body->'artifact')
          else '{}' end order by c.id, s.seq), '[]')
     from holdpoint.runs o
     join holdpoint.calls c on c.run_id = o.id
     join holdpoint.steps s on s.run_id = o.id and s.body->>'callId' = c.id::text
       and (s.kind = 'finding' or (s.kind = 'tool_result' and s.body->>'result' = 'rejected') or (s.kind = 'tool_result'
         and c.effect->>'kind' in ('effect', 'children')
         and s.body->>'result' in ('succeeded', 'partial', 'answered', 'not_established'))
         or (s.kind = 'effect_pending' and ${NEVER_SETTLED}))
     where o.line = r.line and o.id <> r.id) end as line_effects`;

/** As `LINE` gives it of a run that does nothing again. */
const NO_LINE = "'[]'::jsonb as earlier, '[]'::jsonb as line_effects";

/**
 * The columns that load what belongs to the run `r`: for the select list of a statement over `runs r` whose first parameter
 * is the tenant. Each look-up costs the statement its start-up, whether the run has what it looks for or not.
 */
const LOADED = `${HISTORY}, ${LINE}, ${GENERAL}`;

/** As `LOADED`, for a run of which `IS_ALONE` is true. */
export const LOADED_ALONE = `${HISTORY}, ${NO_LINE}, ${GENERAL}`;

/** As `LOADED`, for a run of which `IS_NEW` is true. */
export const LOADED_NEW = `${NO_HISTORY}, ${NO_LINE}, ${GENERAL}`;

/** Whether the run `r` does not do again what another was to do. */
export const IS_ALONE = "r.retry_of is null";

/**
 * Whether nothing has happened to the run `r` but its submission and the claim that this statement makes: all that can be
 * loaded moves its version, or is a step.
 */
export const IS_NEW = `r.version = 2 and r.step_seq = 0 and ${IS_ALONE}`;

const LOAD = statement(
  "load_run",
  // One by one, so that each is found by its id.
  `select to_jsonb(r) as run, ${LOADED} from unnest($2::uuid[]) as t(id) cross join lateral (
     select r.* from holdpoint.runs r where r.id = t.id and r.tenant_id is not distinct from $1::uuid limit 1) r
   where ${fewIds("t.id")}`,
);
