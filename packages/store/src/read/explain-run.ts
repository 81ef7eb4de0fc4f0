import type { EffectProperties, JsonObject, LivenessVerdict, Status } from "@holdpoint/core";
import { type Store, statement } from "../db.ts";
import { execute } from "../execute.ts";
import { milliseconds, type Run, type RunJson, runOf } from "../run.ts";

/** How far down a tree of runs is explained. */
export const EXPLAINED_DEPTH = 5;
/** How many runs of a tree are explained at most. */
const EXPLAINED_RUNS = 100;

/** All that is known about why one run stands where it stands; instants in milliseconds since the epoch. */
export interface RunEvidence {
  readonly run: Run;
  /** 0 for the run itself, 1 for its children … */
  readonly depth: number;
  /** Since when it is in its present status. */
  readonly sinceMs: number;
  readonly owner: {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly kind: "process" | "task";
    readonly leaseUntilMs: number;
    readonly leaseMs: number;
    readonly graceMs: number | null;
    readonly goneReason: string | null;
    readonly drainRequestedAtMs: number | null;
  } | null;
  readonly attempts: readonly {
    readonly id: string;
    readonly tool: string;
    readonly number: number;
    readonly effect: EffectProperties;
    readonly operationId: string;
    readonly externalRef: string | null;
    readonly startedAtMs: number;
    readonly deadlineAtMs: number;
    readonly lookUps: number;
  }[];
  readonly approvals: readonly {
    readonly id: string;
    readonly tool: string;
    readonly roles: readonly string[];
    readonly users: readonly string[];
    readonly deadlineMs: number;
    /** People who have one of the roles or are named, and are not excluded. */
    readonly deciders: number;
  }[];
  readonly service: {
    readonly name: string;
    readonly reason: string;
    readonly sinceMs: number;
    readonly closedUntilMs: number | null;
  } | null;
  readonly servedBy: number;
  /** Runs of the same agent and version that are queued for longer; null while it is not queued. */
  readonly queuedBefore: number | null;
  readonly verdict: {
    readonly verdict: LivenessVerdict;
    readonly rule: string;
    readonly reason: string | null;
    readonly untilMs: number | null;
    readonly atMs: number;
    readonly evidence: JsonObject;
  } | null;
  /** The last three transitions, the newest first. */
  readonly recent: readonly {
    readonly seq: number;
    readonly from: Status | null;
    readonly to: Status;
    readonly event: string;
    readonly actorKind: string;
    readonly actorId: string;
    readonly reason: string | null;
    readonly atMs: number;
  }[];
}

/** A run's evidence, that of its live descendants, and the way up to its root, in one snapshot. */
export interface TreeEvidence {
  /** The run first, then those descendants whose end has not been counted, each parent before its children. */
  readonly runs: readonly RunEvidence[];
  /** There are more live descendants than are told. */
  readonly cut: boolean;
  /** From the parent up to the root. */
  readonly ancestors: readonly { readonly id: string; readonly status: Status }[];
  readonly nowMs: number;
  /** How the leases are watched; null: no sweeper has ever looked. */
  readonly watch: { readonly sinceMs: number; readonly graceMs: number; readonly seenAtMs: number } | null;
}

/** Everything that says why a run and its live descendants are not moving; null: there is no such run. */
export async function findEvidence(store: Store, runId: string): Promise<TreeEvidence | null> {
  const rows = await execute<EvidenceRow>(store, FIND, [store.tenantId, runId, EXPLAINED_DEPTH, EXPLAINED_RUNS + 1]);
  const [first] = rows;
  if (first === undefined) return null;
  return {
    runs: rows.slice(0, EXPLAINED_RUNS).map(evidenceOf),
    cut:
      rows.length > EXPLAINED_RUNS || rows.some(({ depth, run }) => depth === EXPLAINED_DEPTH && run.live_children > 0),
    ancestors: first.ancestors,
    nowMs: first.now.getTime(),
    watch: first.watch,
  };
}

type EvidenceRow = Pick<
  RunEvidence,
  "depth" | "owner" | "attempts" | "approvals" | "service" | "verdict" | "recent"
> & {
  run: RunJson;
  since: Date;
  served_by: number;
  queued_before: number | null;
  ancestors: TreeEvidence["ancestors"];
  watch: TreeEvidence["watch"];
  now: Date;
};

function evidenceOf(row: EvidenceRow): RunEvidence {
  const { run, depth, since, owner, attempts, approvals, service, verdict, recent } = row;
  const told = { depth, owner, attempts, approvals, service, verdict, recent };
  return {
    ...told,
    run: runOf(run),
    sinceMs: milliseconds(since.toISOString()),
    servedBy: row.served_by,
    queuedBefore: row.queued_before,
  };
}

/** An instant inside of a JSON document, as milliseconds since the epoch. */
const ms = (instant: string): string => `(extract(epoch from ${instant}) * 1000)::float8`;

const OWNER = `(select jsonb_build_object('id', w.id, 'host', w.host, 'pid', w.pid, 'kind', w.kind,
    'leaseUntilMs', ${ms("w.lease_until")}, 'leaseMs', w.lease_ms, 'graceMs', w.grace_ms, 'goneReason', w.gone_reason,
    'drainRequestedAtMs', ${ms("w.drain_requested_at")}) from holdpoint.workers w where w.id = r.owner)`;

const ATTEMPTS = `(select coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'tool', c.tool, 'number', a.number,
    'effect', c.effect, 'operationId', c.operation_id, 'externalRef', a.external_ref, 'startedAtMs', ${ms("a.started_at")},
    'deadlineAtMs', ${ms("a.deadline_at")}, 'lookUps', a.look_ups) order by a.started_at, a.id), '[]')
  from holdpoint.attempts a join holdpoint.calls c on c.run_id = a.run_id and c.id = a.call_id
  where a.run_id = r.id and a.ended_at is null and r.open_attempts > 0)`;

/** Whoever may decide now: the same that the decision's own statement asks. */
const DECIDERS = `(select count(*)::int from (
    select x.person from holdpoint.role_assignments ra cross join lateral (select ra.user_id as person) x
      where ra.tenant_id = p.tenant_id and ra.revoked_at is null and ra.role = any(p.roles)
    union select unnest(p.users)
  ) d where d.person <> all(p.excluded))`;

const APPROVALS = `(select coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'tool', p.tool, 'roles', p.roles, 'users', p.users,
    'deadlineMs', ${ms("p.deadline")}, 'deciders', ${DECIDERS}) order by p.id), '[]')
  from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`;

const SERVICE = `(select jsonb_build_object('name', s.name, 'reason', s.reason, 'sinceMs', ${ms("s.since")},
    'closedUntilMs', ${ms("s.closed_until")})
  from holdpoint.services s
  where s.tenant_id = r.tenant_id and s.name = r.waiting_for ->> 'principal' and r.waiting_for ->> 'kind' = 'service')`;

const VERDICT = `(select jsonb_build_object('verdict', v.verdict, 'rule', v.rule, 'reason', v.reason,
    'untilMs', ${ms("v.until")}, 'atMs', ${ms("v.at")}, 'evidence', v.evidence)
  from holdpoint.verdicts v where v.run_id = r.id)`;

const RECENT = `(select coalesce(jsonb_agg(jsonb_build_object('seq', t.seq, 'from', t.from_status, 'to', t.to_status,
    'event', t.event, 'actorKind', t.actor_kind, 'actorId', t.actor_id, 'reason', t.reason, 'atMs', ${ms("t.at")})
    order by t.seq desc), '[]')
  from (select * from holdpoint.transitions t where t.run_id = r.id order by t.seq desc limit 3) t)`;

const SERVED_BY = `(select count(*)::int from holdpoint.workers w
  where w.tenant_id = r.tenant_id and w.gone_at is null and w.kind = 'process' and not w.stay_down
    and w.agents @> jsonb_build_array(jsonb_build_object('name', r.agent_name, 'version', r.agent_version)))`;

const FIND = statement(
  "find_evidence",
  `with recursive tree as (
     select r.id, 0 as depth, array[r.id] as way from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $2::uuid
     union all
     select c.id, t.depth + 1, t.way || c.id from tree t join holdpoint.runs c on c.parent = t.id
     where c.told_parent_at is null and t.depth < $3::int
   )
   select to_jsonb(r) as run, t.depth,
     coalesce((select x.at from holdpoint.transitions x where x.run_id = r.id and x.from_status is distinct from x.to_status
       order by x.seq desc limit 1), r.updated_at) as since,
     ${OWNER} as owner, ${ATTEMPTS} as attempts, ${APPROVALS} as approvals, ${SERVICE} as service,
     ${SERVED_BY} as served_by, ${VERDICT} as verdict, ${RECENT} as recent,
     case when r.status = 'queued' then (select count(*)::int from holdpoint.runs q
       where q.tenant_id = r.tenant_id and q.status = 'queued' and q.agent_name = r.agent_name
         and q.agent_version = r.agent_version and q.queued_since < r.queued_since) end as queued_before,
     (select coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'status', a.status) order by o.place desc), '[]')
      from unnest(r.ancestors) with ordinality as o(id, place) join holdpoint.runs a on a.id = o.id) as ancestors,
     (select jsonb_build_object('sinceMs', ${ms("l.since")}, 'graceMs', l.grace_ms, 'seenAtMs', ${ms("l.seen_at")})
      from holdpoint.lease_watch l where l.tenant_id = r.tenant_id) as watch,
     holdpoint.clock() as now
   from tree t join holdpoint.runs r on r.id = t.id
   order by t.way limit $4::int`,
);
