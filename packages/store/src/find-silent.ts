import type { JsonObject, LivenessEvidence, OwnerEvidence, Status, WaitingFor } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { milliseconds } from "./run.ts";

/** A run that looks silent, with all that a verdict about it is made from; nothing is decided here. */
export interface SilentRun {
  readonly runId: string;
  /** The version that was seen: a verdict is about it and no other. */
  readonly version: number;
  readonly evidence: LivenessEvidence;
  /** The same for people and programs that ask later: names and instants, no contents. */
  readonly shown: JsonObject;
  /** The database's clock when it was found, and since when the leases are watched; milliseconds since the epoch. */
  readonly nowMs: number;
  readonly watchedSinceMs: number;
}

/**
 * Runs of which somebody might think that they are dead: their owner's lease is over or their progress is nearly due,
 * their owner has no row, they wait for children or the other side, nobody serves their queue. And those that were
 * judged unwell before and may be well again. At most `limit` of each kind.
 */
export async function findSilent(
  store: Store,
  { graceMs, limit }: { readonly graceMs: number; readonly limit: number },
): Promise<readonly SilentRun[]> {
  const rows = await execute<SilentRow>(store, FIND, [store.tenantId, limit, graceMs]);
  return rows.map((row) => ({
    runId: row.id,
    version: row.version,
    evidence: evidenceOf(row),
    shown: shownOf(row),
    nowMs: row.now.getTime(),
    watchedSinceMs: row.since.getTime(),
  }));
}

interface WorkerJson {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly kind: OwnerEvidence["kind"];
  readonly leaseUntil: string;
  readonly leaseMs: number;
  readonly graceMs: number | null;
  readonly goneReason: string | null;
}

type SilentRow = {
  id: string;
  version: number;
  status: Status;
  owned: boolean;
  worker: WorkerJson | null;
  progress_due_at: Date | null;
  waiting_for: WaitingFor | null;
  wait_deadline: Date | null;
  children: number;
  served_by: number;
  since: Date;
  now: Date;
};

function evidenceOf(row: SilentRow): LivenessEvidence {
  if (row.owned) {
    return { of: "owned", owner: ownerOf(row.worker), progressDueAtMs: row.progress_due_at?.getTime() ?? null };
  }
  if (row.status === "outcome_unknown") return { of: "settlement" };
  if (row.status === "queued") {
    // A check constraint gives every queued run its limit.
    return { of: "queued", servedBy: row.served_by, limitMs: row.wait_deadline?.getTime() ?? row.now.getTime() };
  }
  if (row.status !== "waiting_dependency") return { of: "rest" };
  if (row.waiting_for?.kind === "child") return { of: "child_wait", children: row.children };
  return row.waiting_for?.kind === "callback" ? { of: "settlement" } : { of: "rest" };
}

function ownerOf(worker: WorkerJson | null): OwnerEvidence | null {
  if (worker === null) return null;
  const { kind, leaseUntil, leaseMs, graceMs, goneReason } = worker;
  return { kind, leaseUntilMs: milliseconds(leaseUntil), leaseMs, graceMs, goneReason };
}

function shownOf(row: SilentRow): JsonObject {
  const { status, waiting_for: waitingFor } = row;
  const seen: JsonObject = { status };
  if (row.owned) {
    const progressDueAt = row.progress_due_at?.toISOString() ?? null;
    return { ...seen, worker: row.worker === null ? null : { ...row.worker }, progressDueAt };
  }
  if (status === "queued") return { ...seen, servedBy: row.served_by };
  if (waitingFor?.kind === "child") return { ...seen, waitsFor: "child", children: row.children };
  return waitingFor === null ? seen : { ...seen, waitsFor: waitingFor.kind };
}

const MS = "interval '1 millisecond'";

/** Nobody has judged the run as it is now. */
const UNJUDGED = "not exists (select from holdpoint.verdicts v where v.run_id = r.id and v.run_version = r.version)";

/** A process that is told to stay down takes nothing up any more. */
const SERVES = "w.tenant_id = $1::uuid and w.gone_at is null and w.kind = 'process' and not w.stay_down";

const ARMS = [
  `select r.id from holdpoint.workers w join holdpoint.runs r on r.owner = w.id
   where w.tenant_id = $1::uuid and w.gone_at is null and w.lease_until < holdpoint.now()`,
  `select r.id from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.owner is not null and not r.is_task
   and r.progress_due_at <= holdpoint.now() + $3::float8 * ${MS}`,
  `select r.id from holdpoint.runs r where r.tenant_id = $1::uuid and r.owner is not null
   and not exists (select from holdpoint.workers w where w.id = r.owner)`,
  `select r.id from holdpoint.runs r where r.tenant_id = $1::uuid and r.waiting_for is not null
   and r.waiting_for ->> 'kind' in ('child', 'callback') and r.status = 'waiting_dependency' and ${UNJUDGED}`,
  `select r.id from holdpoint.runs r where r.tenant_id = $1::uuid and r.next_reconcile_at is not null
   and r.owner is null and r.status = 'outcome_unknown' and ${UNJUDGED}`,
  // A fleet that is being restarted has nobody for a moment.
  `select r.id from holdpoint.agents a
   cross join lateral (select r.id from holdpoint.runs r where r.tenant_id = a.tenant_id and r.status = 'queued'
     and r.agent_name = a.name and r.agent_version = a.version
     and r.queued_since <= holdpoint.now() - $3::float8 * ${MS} and ${UNJUDGED}
     order by r.queued_since limit $2::int) r
   where a.tenant_id = $1::uuid and a.kind <> 'task'
     and not exists (select from served s where s.name = a.name and s.version = a.version)`,
  `select r.id from holdpoint.verdicts v join holdpoint.runs r on r.id = v.run_id
   where v.tenant_id = $1::uuid and v.verdict <> 'active' and r.ended_at is null and r.status <> 'lost'
     and (v.run_version <> r.version or (v.verdict in ('grace_pending', 'evidence_unreadable')
       and (v.reason is distinct from 'version_gone'
         or exists (select from served s where s.name = r.agent_name and s.version = r.agent_version))))`,
];

const FIND = statement(
  "find_silent",
  `with served as materialized (
     select distinct a.ref ->> 'name' as name, a.ref ->> 'version' as version
     from holdpoint.workers w cross join lateral jsonb_array_elements(w.agents) as a(ref) where ${SERVES}
   ),
   silent as (${ARMS.map((arm) => `(${arm} limit $2::int)`).join("\n union ")})
   select r.id, r.version, r.status, r.owner is not null as owned,
     -- A task lives by its heartbeat alone.
     case when not r.is_task then r.progress_due_at end as progress_due_at, r.waiting_for, r.wait_deadline,
     (select jsonb_build_object('id', w.id, 'host', w.host, 'pid', w.pid, 'kind', w.kind, 'leaseUntil', w.lease_until,
        'leaseMs', w.lease_ms, 'graceMs', w.grace_ms, 'goneReason', w.gone_reason)
      from holdpoint.workers w where w.id = r.owner) as worker,
     (select count(*)::int from holdpoint.runs c where r.waiting_for ->> 'kind' = 'child' and c.parent = r.id
        and c.told_parent_at is null and c.parent_call::text = coalesce(r.waiting_for ->> 'subject', c.parent_call::text)) as children,
     (select count(*)::int from holdpoint.workers w where r.status = 'queued' and ${SERVES} and w.agents @>
        jsonb_build_array(jsonb_build_object('name', r.agent_name, 'version', r.agent_version))) as served_by,
     coalesce((select l.since from holdpoint.lease_watch l where l.tenant_id = $1::uuid), holdpoint.clock()) as since,
     holdpoint.clock() as now
   from silent s join holdpoint.runs r on r.id = s.id
   order by r.id`,
);
