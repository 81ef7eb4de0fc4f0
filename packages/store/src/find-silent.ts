import type { JsonObject, LivenessEvidence, OwnerEvidence, Status, WaitingFor } from "@holdpoint/core";
import { OWNERS } from "./candidates.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type List, type Looked, type Part, type Place, partStatement, sentFor } from "./round.ts";
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
 * their owner has no row, nobody serves their queue. And those that were judged so before and may be well again. At most
 * `limit` of each kind.
 */
export async function findSilent(
  store: Store,
  { graceMs, limit }: { readonly graceMs: number; readonly limit: number },
): Promise<readonly SilentRun[]> {
  const rows = await execute<SilentRow>(store, FIND_SILENT, [store.tenantId, limit, graceMs]);
  return rows.map(silentRunOf);
}

/** What was found in a part of the runs that only wait, and of the verdicts. */
export interface Waiting extends Looked<SilentRun> {
  /** Runs that have a verdict and have ended, or are not there any more. */
  readonly over: readonly string[];
}

/**
 * Runs that nobody has judged as they are now, of a part of those that wait for children or the other side or in a queue
 * that nobody serves; and of a part of the verdicts those that are about runs that have moved since. They only wait, and
 * move by other sweeps: how soon each of them is judged is no matter of life.
 */
export async function findWaiting(
  store: Store,
  { graceMs, part }: { readonly graceMs: number; readonly part: Part },
): Promise<Waiting> {
  const [row] = await execute<WaitingRow>(store, ...sentFor(FIND_WAITING, part, [store.tenantId, graceMs]));
  if (row === undefined) throw new Error("the statement about waiting runs gives one row");
  return { found: row.found.map((each) => silentRunOf(datesOf(each))), over: row.over, next: row.next };
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

/** In a document, an instant is a text. */
type WaitingRow = {
  found: readonly (Omit<SilentRow, "progress_due_at" | "wait_deadline" | "since" | "now"> & {
    readonly progress_due_at: string | null;
    readonly wait_deadline: string | null;
    readonly since: string;
    readonly now: string;
  })[];
  over: readonly string[];
  next: Place;
};

function datesOf({ progress_due_at, wait_deadline, since, now, ...row }: WaitingRow["found"][number]): SilentRow {
  const date = (text: string | null) => (text === null ? null : new Date(text));
  return {
    ...row,
    progress_due_at: date(progress_due_at),
    wait_deadline: date(wait_deadline),
    since: new Date(since),
    now: new Date(now),
  };
}

function silentRunOf(row: SilentRow): SilentRun {
  return {
    runId: row.id,
    version: row.version,
    evidence: evidenceOf(row),
    shown: shownOf(row),
    nowMs: row.now.getTime(),
    watchedSinceMs: row.since.getTime(),
  };
}

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

/** Nobody has judged the run as it is now. One look for each run: as `not exists`, it may be answered from all verdicts. */
const UNJUDGED = "(select v.run_version from holdpoint.verdicts v where v.run_id = r.id) is distinct from r.version";

/** A process that is told to stay down takes nothing up any more. */
const SERVES = "w.tenant_id = $1::uuid and w.gone_at is null and w.kind = 'process' and not w.stay_down";

const SERVED = `served as materialized (
     select distinct a.ref ->> 'name' as name, a.ref ->> 'version' as version
     from holdpoint.workers w cross join lateral jsonb_array_elements(w.agents) as a(ref) where ${SERVES}
   )`;

const IS_SERVED = "exists (select from served s where s.name = r.agent_name and s.version = r.agent_version)";

/** Of the runs `silent`, what a verdict is made from. */
const EVIDENCE = `select r.id, r.version, r.status, r.owner is not null as owned,
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
   from silent s join holdpoint.runs r on r.id = s.id`;

/** How many runs of each queue that nobody serves are looked at at once, the newest; the others come with the rounds. */
const NEWEST = 100;

const ARMS = [
  `select r.id from holdpoint.workers w join holdpoint.runs r on r.owner = w.id
   where w.tenant_id = $1::uuid and w.gone_at is null and w.lease_until < holdpoint.now()`,
  `select r.id from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.owner is not null and not r.is_task
   and r.progress_due_at <= holdpoint.now() + $3::float8 * ${MS}`,
  `select r.id from owners o join holdpoint.runs r on r.owner = o.id
   where r.tenant_id = $1::uuid and not exists (select from holdpoint.workers w where w.id = o.id)`,
  // A fleet that is being restarted has nobody for a moment.
  `select r.id from holdpoint.agents a
   cross join lateral (select r.id, r.version from holdpoint.runs r where r.tenant_id = a.tenant_id
     and r.status = 'queued' and r.agent_name = a.name and r.agent_version = a.version
     and r.queued_since <= holdpoint.now() - $3::float8 * ${MS}
     order by r.queued_since desc limit ${NEWEST}) r
   where a.tenant_id = $1::uuid and a.kind <> 'task' and ${UNJUDGED}
     and not exists (select from served s where s.name = a.name and s.version = a.version)`,
  `select r.id from holdpoint.verdicts v join holdpoint.runs r on r.id = v.run_id
   where v.tenant_id = $1::uuid and v.verdict in ('grace_pending', 'evidence_unreadable')
     and v.reason is distinct from 'version_gone' and r.ended_at is null and r.status <> 'lost'`,
];

const FIND_SILENT = statement(
  "find_silent",
  `with recursive ${OWNERS},
   ${SERVED},
   silent as (${ARMS.map((arm) => `(${arm} limit $2::int)`).join("\n union ")})
   ${EVIDENCE}
   order by r.id`,
);

const RUNS = "holdpoint.runs r where r.tenant_id = $1::uuid and";
const waitsFor = (kind: string) => `${RUNS} r.waiting_for is not null and r.waiting_for ->> 'kind' = '${kind}'`;

/** What is gone through, by the name of the list. */
const LISTS = {
  child: { id: "r.id", columns: ", r.version, r.status = 'waiting_dependency' as counts", from: waitsFor("child") },
  callback: {
    id: "r.id",
    columns: ", r.version, r.status = 'waiting_dependency' as counts",
    from: waitsFor("callback"),
  },
  unknown: {
    id: "r.id",
    columns: ", r.version, r.owner is null as counts",
    from: `${RUNS} r.status = 'outcome_unknown'`,
  },
  queued: {
    id: "r.id",
    columns: `, r.version, not r.is_task and r.queued_since <= holdpoint.now() - $2::float8 * ${MS} and not ${IS_SERVED} as counts`,
    // As a range, so that the only index that serves is the one in the order of the ids: by the one of the queued runs alone, a
    // long queue that the statistics do not know of yet would be read and sorted whole.
    from: `${RUNS} r.status between 'queued' and 'queued'`,
    order: "r.status, r.id",
  },
  judged: {
    id: "v.run_id",
    columns: ", v.run_version, v.verdict, v.reason",
    from: "holdpoint.verdicts v where v.tenant_id = $1::uuid and v.verdict <> 'active'",
  },
} as const satisfies Record<string, List>;

const FIND_WAITING = partStatement(
  "find_waiting",
  ({ list, next }) => `with ${SERVED},
   ${Object.entries(LISTS)
     .map(([name, each]) => list(name, each))
     .join(",\n   ")},
   silent as (
     select r.id from (${["child", "callback", "unknown", "queued"].map((list) => `select * from ${list}`).join(" union all ")}) r
     where r.counts and ${UNJUDGED}
     union
     select r.id from judged j join holdpoint.runs r on r.id = j.id
     where r.ended_at is null and r.status <> 'lost'
       and (j.run_version <> r.version or (j.verdict = 'grace_pending' and j.reason = 'version_gone' and ${IS_SERVED}))
   )
   select ${next(Object.keys(LISTS))} as next,
     array(select j.id from judged j left join holdpoint.runs r on r.id = j.id
       where r.id is null or r.ended_at is not null order by j.id) as over,
     (select coalesce(jsonb_agg(to_jsonb(f) order by f.id), '[]') from (${EVIDENCE}) f) as found`,
);
