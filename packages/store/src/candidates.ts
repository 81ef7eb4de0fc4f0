import type { AgentRef, PendingRequest } from "@holdpoint/core";
import { type Statement, type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** A run that a sweep may have to move; its version and step_seq pin what was seen. */
export interface Candidate {
  readonly run: Run;
  /** The database's clock when it was found, in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** A run whose deadline has passed, with the approvals it waits for. */
export interface OverdueRun extends Candidate {
  readonly approvals: readonly PendingRequest[];
}

/** Runs whose deadline has passed, the longest overdue first. */
export async function findOverdue(store: Store, limit: number): Promise<readonly OverdueRun[]> {
  const rows = await execute<OverdueRow>(store, OVERDUE, [store.tenantId, limit]);
  return rows.map((row) => ({
    ...candidateOf(row),
    approvals: row.approvals.map(({ deadline, ...approval }) => ({ ...approval, deadlineMs: Date.parse(deadline) })),
  }));
}

/** A run whose owner is gone, with what that owner's row says of its end. */
export interface ForsakenRun extends Candidate {
  readonly goneReason: string;
  /** What is known of the owner, for whoever asks later. */
  readonly owner: { readonly id: string; readonly host: string; readonly pid: number; readonly leaseUntil: string };
}

/** Runs whose owner is gone: a fact that can't become false, so a run missed now is found again. */
export async function findForsaken(store: Store, limit: number): Promise<readonly ForsakenRun[]> {
  const rows = await execute<ForsakenRow>(store, FORSAKEN, [store.tenantId, limit]);
  return rows.map(({ gone_reason: goneReason, owner, ...row }) => ({ ...candidateOf(row), goneReason, owner }));
}

/** Runs of one gone worker, for the supervisor that saw its process end. */
export async function findOwnedBy(store: Store, workerId: string, limit: number): Promise<readonly Candidate[]> {
  const rows = await execute<CandidateRow>(store, OWNED_BY, [store.tenantId, limit, workerId]);
  return rows.map(candidateOf);
}

/** Runs whose owner lives but has shown no progress in time. */
export function findWedged(store: Store, limit: number): Promise<readonly Candidate[]> {
  return find(store, WEDGED, limit);
}

/** Runs that wait to be tried again and may be now. */
export function findRetriesDue(store: Store, limit: number): Promise<readonly Candidate[]> {
  return find(store, RETRIES_DUE, limit);
}

/** Runs that are being stopped although nothing of them is open and nobody works on them. */
export function findIdleCancelling(store: Store, limit: number): Promise<readonly Candidate[]> {
  return find(store, IDLE_CANCELLING, limit);
}

/** Live runs of a parent that is being stopped, which have not been asked to stop yet. */
export function findMissedByCascade(store: Store, limit: number): Promise<readonly Candidate[]> {
  return find(store, MISSED_BY_CASCADE, limit);
}

/** What a wake-up says: look at this run, at this version. */
export interface DueWakeUp {
  readonly runId: string;
  readonly version: number;
  readonly agent: AgentRef;
}

/** Runs with an open attempt whose next look-up is due, at most `limit` of each agent; a worker does it on a claimed run. */
export function findLookUpsDue(store: Store, limit: number): Promise<readonly DueWakeUp[]> {
  return findWakeUps(store, LOOK_UPS_DUE, [limit]);
}

/**
 * Runs that have been queued for longer than `olderThanMs`, the oldest first, at most `limit` of each agent: their
 * wake-ups may be gone.
 */
export function findUnclaimed(store: Store, olderThanMs: number, limit: number): Promise<readonly DueWakeUp[]> {
  return findWakeUps(store, UNCLAIMED, [limit, olderThanMs]);
}

/** Those of these runs for which a worker of ours can be woken: queued, and no tasks. */
export function findWakeable(store: Store, runIds: readonly string[]): Promise<readonly DueWakeUp[]> {
  return findWakeUps(store, WAKEABLE, [runIds]);
}

type CandidateRow = { run: RunJson; now: Date };

type ForsakenRow = CandidateRow & Pick<ForsakenRun, "owner"> & { gone_reason: string };

type OverdueRow = CandidateRow & {
  approvals: readonly (Omit<PendingRequest, "deadlineMs"> & { deadline: string })[];
};

async function find(store: Store, which: Statement, limit: number): Promise<readonly Candidate[]> {
  return (await execute<CandidateRow>(store, which, [store.tenantId, limit])).map(candidateOf);
}

async function findWakeUps(store: Store, which: Statement, values: readonly unknown[]): Promise<readonly DueWakeUp[]> {
  const rows = await execute<{ id: string; version: number; agent_name: string; agent_version: string }>(store, which, [
    store.tenantId,
    ...values,
  ]);
  return rows.map((row) => ({
    runId: row.id,
    version: row.version,
    agent: { name: row.agent_name, version: row.agent_version },
  }));
}

function candidateOf(row: CandidateRow): Candidate {
  return { run: runOf(row.run), nowMs: row.now.getTime() };
}

const candidates = (verb: string, condition: string, order = "r.id"): Statement =>
  statement(
    verb,
    `select to_jsonb(r) as run, holdpoint.clock() as now from holdpoint.runs r
     where r.tenant_id = $1::uuid and ${condition} order by ${order} limit $2::int`,
  );

const OVERDUE = statement(
  "find_overdue",
  `select to_jsonb(r) as run, holdpoint.clock() as now,
     (select coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'callId', p.call_id, 'terms', p.terms,
        'level', p.level, 'extended', p.extended, 'deadline', p.deadline)), '[]')
      from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending') as approvals
   from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.wait_deadline <= holdpoint.now() and r.ended_at is null
   order by r.wait_deadline limit $2::int`,
);

/**
 * Who owns runs, each once: from one owner to the next in the index. Workers that are gone stay as rows, and one owns many
 * runs, so neither of them is gone through.
 */
export const OWNERS = `owners (id) as (
     (select r.owner from holdpoint.runs r where r.owner is not null order by r.owner limit 1)
     union all
     select (select r.owner from holdpoint.runs r where r.owner > o.id order by r.owner limit 1)
     from owners o where o.id is not null
   )`;

const FORSAKEN = statement(
  "find_forsaken",
  `with recursive ${OWNERS}
   select to_jsonb(r) as run, holdpoint.clock() as now, w.gone_reason,
     jsonb_build_object('id', w.id, 'host', w.host, 'pid', w.pid, 'leaseUntil', w.lease_until) as owner
   from owners o join holdpoint.workers w on w.id = o.id and w.gone_at is not null
   join holdpoint.runs r on r.owner = w.id
   where r.tenant_id = $1::uuid order by r.id limit $2::int`,
);

const OWNED_BY = candidates("find_owned_by", "r.owner = $3::uuid");

/** Whoever works elsewhere stores no steps: it lives by its heartbeat alone. */
const WEDGED = candidates(
  "find_wedged",
  "r.owner is not null and r.progress_due_at <= holdpoint.now() and not r.is_task",
);

const RETRIES_DUE = candidates(
  "find_retries_due",
  "r.status = 'retrying' and r.retry_at <= holdpoint.now()",
  "r.retry_at",
);

/** Few runs are being stopped: all of them are looked at. */
const ofStopping = (verb: string, condition: string, found: string): Statement =>
  statement(
    verb,
    `with stopping as materialized (
       select s.id from holdpoint.runs s where s.tenant_id = $1::uuid and s.status = 'cancelling' and ${condition}
     )
     select to_jsonb(r) as run, holdpoint.clock() as now from stopping s ${found} order by r.id limit $2::int`,
  );

const IDLE_CANCELLING = ofStopping(
  "find_idle_cancelling",
  "s.owner is null and s.live_children = 0",
  "join holdpoint.runs r on r.id = s.id where r.open_attempts = 0",
);

const MISSED_BY_CASCADE = ofStopping(
  "find_missed_by_cascade",
  "s.live_children > 0",
  `cross join lateral (select * from holdpoint.runs c
     where c.parent = s.id and c.ended_at is null and c.cancel_requested_at is null order by c.id limit $2::int) r`,
);

/** The limit is per agent: a backlog of one, or one without workers, must not hide the runs of another. */
const wakeUps = (verb: string, condition: string, order: string): Statement =>
  statement(
    verb,
    `select r.id, r.version, r.agent_name, r.agent_version
     from holdpoint.agents a
     cross join lateral (
       select * from holdpoint.runs r
       where r.tenant_id = a.tenant_id and r.agent_name = a.name and r.agent_version = a.version and ${condition}
       order by ${order} limit $2::int
     ) r
     where a.tenant_id = $1::uuid and a.kind <> 'task'
     order by ${order}`,
  );

const WAKEABLE = statement(
  "find_wakeable",
  `select r.id, r.version, r.agent_name, r.agent_version from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.id = any($2::uuid[]) and r.status = 'queued' and not r.is_task order by r.id`,
);

const LOOK_UPS_DUE = wakeUps(
  "find_look_ups_due",
  `r.next_reconcile_at <= holdpoint.now() and r.owner is null and r.status in ('outcome_unknown', 'cancelling')
   and not r.look_ups_over`,
  "r.next_reconcile_at",
);

const UNCLAIMED = wakeUps(
  "find_unclaimed",
  "r.status = 'queued' and r.queued_since <= holdpoint.now() - $3::float8 * interval '1 millisecond'",
  "r.queued_since",
);
