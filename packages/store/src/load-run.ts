import type {
  Approval,
  ApprovalState,
  Call,
  EffectProperties,
  Fact,
  JsonValue,
  LineEffect,
  OpenAttempt,
  Step,
  Verdict,
} from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
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
  readonly openAttempts: readonly (OpenAttempt & { readonly lookUps: number })[];
  readonly approvals: readonly Approval[];
  readonly unread: readonly Fact[];
  readonly lineEffects: readonly LineEffect[];
  /** The database's clock at the load, in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Loads a run as it is, in one snapshot; null if there is none. */
export async function loadRun(store: Store, runId: string): Promise<LoadedRun | null> {
  const [row] = await execute<LoadedJson>(store, LOAD, [store.tenantId, runId]);
  return row === undefined ? null : loadedOf(row);
}

export type LoadedJson = {
  readonly run: RunJson;
  readonly messages: readonly SessionMessage[];
  readonly steps: readonly Step[];
  readonly calls: readonly CallJson[];
  readonly attempts: readonly AttemptJson[];
  readonly approvals: readonly ApprovalJson[];
  readonly unread: readonly { readonly id: string; readonly body: Fact["body"] }[];
  readonly line_effects: readonly LineEffect[];
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
}

interface ApprovalJson {
  readonly id: string;
  readonly call_id: string;
  readonly args_hash: string;
  readonly state: ApprovalState;
  readonly deadline: string;
  readonly valid_until: string | null;
  readonly decided_by: string | null;
  readonly note: string | null;
}

/** Reads the columns of `LOADED`. */
export function loadedOf(row: LoadedJson): LoadedRun {
  return {
    run: runOf(row.run),
    messages: row.messages,
    steps: row.steps,
    calls: row.calls.map(callOf),
    openAttempts: row.attempts.map((attempt) => ({
      id: attempt.id,
      callId: attempt.call_id,
      number: attempt.number,
      startedAtMs: milliseconds(attempt.started_at),
      deadlineAtMs: milliseconds(attempt.deadline_at),
      keyFirstUsedAtMs: milliseconds(attempt.first_started_at),
      repeatRefused: attempt.error_class !== null,
      lookUps: attempt.look_ups,
    })),
    approvals: row.approvals.map(approvalOf),
    unread: row.unread,
    lineEffects: row.line_effects,
    nowMs: milliseconds(row.now),
  };
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
  };
}

function approvalOf(row: ApprovalJson): Approval {
  return {
    id: row.id,
    callId: row.call_id,
    argsHash: row.args_hash,
    state: row.state,
    deadlineMs: milliseconds(row.deadline),
    validUntilMs: milliseconds(row.valid_until),
    decidedBy: row.decided_by,
    note: row.note,
  };
}

/** The columns that load what belongs to the run `r`: for the select list of a statement over `runs r`. */
export const LOADED = `
  (select coalesce(jsonb_agg(jsonb_build_object('seq', m.seq, 'role', m.role, 'text', m.text) order by m.seq), '[]')
   from holdpoint.messages m where m.session_id = r.session_id and m.seq <= r.input_seq) as messages,
  (select coalesce(jsonb_agg(jsonb_build_object('seq', s.seq, 'body', s.body) order by s.seq), '[]')
   from holdpoint.steps s where s.run_id = r.id) as steps,
  (select coalesce(jsonb_agg(to_jsonb(c) order by c.turn, c.ordinal), '[]')
   from holdpoint.calls c where c.run_id = r.id) as calls,
  (select coalesce(jsonb_agg(to_jsonb(a) || jsonb_build_object('first_started_at',
      (select min(f.started_at) from holdpoint.attempts f where f.run_id = a.run_id and f.call_id = a.call_id))
    order by a.id), '[]')
   from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null) as attempts,
  (select coalesce(jsonb_agg(to_jsonb(p) order by p.hold_seq, p.id), '[]')
   from holdpoint.approvals p where p.run_id = r.id) as approvals,
  (select coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'body', f.body) order by f.arrival), '[]')
   from holdpoint.inbox f where f.run_id = r.id and f.read_in_step is null) as unread,
  case when r.retry_of is null then '[]'::jsonb else
    (select coalesce(jsonb_agg(jsonb_build_object('callId', c.id, 'tool', c.tool, 'argsHash', c.args_hash,
        'happened', case when s.kind = 'finding' or s.body->>'result' = 'succeeded' then 'yes' else 'unknown' end,
        'output', s.body->'output')), '[]')
     from holdpoint.runs o
     join holdpoint.calls c on c.run_id = o.id and c.effect->>'kind' = 'effect'
     join holdpoint.steps s on s.run_id = o.id and s.body->>'callId' = c.id::text
       and (s.kind = 'finding' or (s.kind = 'tool_result' and s.body->>'result' in ('succeeded', 'not_established')))
     where o.line = r.line and o.id <> r.id) end as line_effects,
  to_jsonb(holdpoint.clock())#>>'{}' as now`;

const LOAD = statement(
  "load_run",
  `select to_jsonb(r) as run, ${LOADED} from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $2::uuid`,
);
