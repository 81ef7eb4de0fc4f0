import type { Status, WaitingFor } from "@holdpoint/core";
import { and, asc, desc, eq, gt, inArray, lt, or, type SQL, sql } from "drizzle-orm";
import type { AgentKind } from "../agents.ts";
import type { Store } from "../db.ts";
import { type Run, type RunJson, runOf } from "../run.ts";
import { approvals, attempts, calls, runs, sessions, transitions, workers } from "../schema.ts";
import {
  AGENT_KIND,
  AWAITED,
  type AwaitedChildren,
  BLOCKED_BY,
  type BlockedChild,
  NOT_STOPPED,
  PARENT_TOOL,
  type UnstoppedRun,
} from "./family.ts";
import { idCursor, isPast, msOf, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";

/** Who may decide a request: anybody in one of the roles or named, and not excluded. */
export interface Approvers {
  readonly roles: readonly string[];
  readonly users: readonly string[];
  readonly excluded: readonly string[];
}

/** A transition in short: what happened, by whose hand, when. */
export interface MovedBy {
  readonly event: string;
  readonly actorKind: string;
  readonly actorId: string;
  readonly reason: string | null;
  readonly atMs: number;
}

/** A run with what its readers need beside its row. */
export interface RunView {
  readonly run: Run;
  /** The worker that owns the run. `silent`: its lease is over, and nobody has declared it gone yet. */
  readonly owner: {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly leaseUntilMs: number;
    readonly silent: boolean;
  } | null;
  /** The transition that brought the present status. */
  readonly movedBy: MovedBy;
  /** A deadline, a retry or a look-up is due, and nobody has come by yet. */
  readonly overdue: boolean;
  /** For how long workers have had it, the present one included, in milliseconds. */
  readonly workedMs: number;
  /** A run of the same line has not ended. */
  readonly lineLive: boolean;
  /** The approval requests that nobody has decided yet. */
  readonly pending: readonly Approvers[];
  /** Who works on the runs of its agent. */
  readonly agentKind: AgentKind;
  /** The tool of its parent's call that started it; null for one that has no parent. */
  readonly parentTool: string | null;
  /** Of a run that waits for children: those that have not ended by now. */
  readonly awaited: AwaitedChildren | null;
  /** Of a run that waits for an operator since children of a call are blocked: the first ten of these. */
  readonly blockedBy: readonly BlockedChild[];
  /** Of a run that is being stopped: the first ten below it that have not stopped yet. */
  readonly notStopped: readonly UnstoppedRun[];
}

/** Which runs are wanted; what is left out does not matter. */
export interface RunFilter {
  readonly statuses?: readonly Status[];
  readonly waitingForKind?: string;
  readonly waitingForPrincipal?: string;
  readonly overdue?: boolean;
  readonly agentName?: string;
  readonly agentVersion?: string;
  readonly sessionId?: string;
  /** The run that has started them. */
  readonly parent?: string;
  /** Any name that an effect of the run has outside. */
  readonly externalRef?: string;
  /** The id that is sent with each attempt of one of the run's calls. */
  readonly operationId?: string;
  /** Only what this person may see without any other part: its own runs, and those that wait for it by name. */
  readonly visibleTo?: string;
}

/** A run as it is now; null if there is none with this id. */
export async function findRun(store: Store, runId: string): Promise<RunView | null> {
  const [row] = await select(store).where(and(eq(runs.tenantId, store.tenantId), eq(runs.id, runId)));
  return row === undefined ? null : viewOf(row);
}

/** Runs, the newest first. */
export async function listRuns(store: Store, filter: RunFilter, page: PageRequest): Promise<Page<RunView>> {
  const wanted = and(eq(runs.tenantId, store.tenantId), after(page), ...conditions(filter));
  const ways = waysTo(store, filter);
  const rows = await select(store)
    .where(ways.length === 0 ? wanted : sql`${runs.id} = any(array(${newestOf(ways, { wanted, page })}))`)
    .orderBy(desc(runs.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ run }) => run.id);
}

/** The runs that a run has started, the oldest first. */
export async function listChildren(store: Store, parentId: string, page: PageRequest): Promise<Page<RunView>> {
  const cursor = page.after === null ? undefined : idCursor(page.after);
  const rows = await select(store)
    .where(
      and(
        eq(runs.tenantId, store.tenantId),
        eq(runs.parent, parentId),
        cursor === null ? sql`false` : cursor === undefined ? undefined : gt(runs.id, cursor),
      ),
    )
    .orderBy(asc(runs.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ run }) => run.id);
}

/**
 * Conditions of which each run of the list meets one, and each of which has an index in the order of the list. One by one,
 * since no index gives the newest of several values: what is rare, and old, would be looked for among all runs.
 */
function waysTo(store: Store, filter: RunFilter): readonly SQL[] {
  const { waitingForKind: kind, waitingForPrincipal: principal, visibleTo, statuses } = filter;
  if (principal !== undefined && kind === undefined) return WAITS.map((each) => waitsFor(each, principal));
  if (visibleTo !== undefined) {
    return [
      // A run's requester is its session's.
      sql`${runs.sessionId} in (select s.id from ${sessions} s where s.tenant_id = ${store.tenantId} and s.requester = ${visibleTo})`,
      sql`${runs.id} in (select p.run_id from ${approvals} p where p.state = 'pending' and p.users @> ${sql.param([visibleTo])}::text[])`,
    ];
  }
  if (kind === undefined && statuses !== undefined && statuses.length > 1) {
    return statuses.map((status) => eq(runs.status, status));
  }
  return [];
}

const WAITS = Object.keys({
  requester: true,
  approvers: true,
  child: true,
  timer: true,
  callback: true,
  service: true,
  operator: true,
} satisfies Record<WaitingFor["kind"], true>);

const waitsFor = (kind: string, principal: string): SQL =>
  sql`${runs.waitingFor} ->> 'kind' = ${kind} and ${runs.waitingFor} ->> 'principal' = ${principal}`;

/** The ids of the newest runs that some of these ways lead to. */
function newestOf(
  ways: readonly SQL[],
  { wanted, page }: { readonly wanted: SQL | undefined; readonly page: PageRequest },
): SQL {
  const each = ways.map(
    (way) =>
      sql`(select ${runs.id} as id from ${runs} where ${and(wanted, way)} order by ${runs.id} desc limit ${rowsFor(page)})`,
  );
  return sql`select w.id from (${sql.join(each, sql` union `)}) w order by w.id desc limit ${rowsFor(page)}`;
}

/** The condition that somebody without any other part may see a run. */
function isVisibleTo(user: string): SQL | undefined {
  return or(
    eq(runs.requester, user),
    sql`exists (select from ${approvals} p where p.run_id = ${qualified(runs.id)} and p.state = 'pending' and ${user} = any(p.users))`,
  );
}

/** Each arm stands on an index of its own: the deadlines', the retries', the look-ups' and the running ones'. */
const DUE = sql<boolean | null>`(${runs.waitDeadline} < holdpoint.now()
  or (${runs.status} = 'retrying' and ${runs.retryAt} < holdpoint.now())
  or (${runs.owner} is null and ${runs.nextReconcileAt} < holdpoint.now())
  or (${runs.status} = 'running' and ${runs.progressDueAt} < holdpoint.now()))`;

const MOVED_BY = sql<{ event: string; actorKind: string; actorId: string; reason: string | null; at: string }>`(
  select jsonb_build_object('event', t.event, 'actorKind', t.actor_kind, 'actorId', t.actor_id, 'reason', t.reason, 'at', t.at)
  from ${transitions} t where t.run_id = ${qualified(runs.id)} and t.from_status is distinct from t.to_status
  order by t.seq desc limit 1)`;

/** One look for each run that is shown: as `exists`, it may be answered from a table of all lines that live. */
const LINE_LIVE = sql<boolean>`coalesce((select true
  from ${runs} l where l.tenant_id = ${qualified(runs.tenantId)} and l.line = ${qualified(runs.line)} and l.ended_at is null
  limit 1), false)`;

const PENDING = sql<readonly Approvers[]>`(
  select coalesce(jsonb_agg(jsonb_build_object('roles', p.roles, 'users', p.users, 'excluded', p.excluded) order by p.id), '[]')
  from ${approvals} p where p.run_id = ${qualified(runs.id)} and p.state = 'pending')`;

const WORKED_MS = sql<string>`(${runs.workedMs} + case when ${runs.owner} is null then 0
  else coalesce(extract(epoch from holdpoint.now() - ${runs.claimedAt}) * 1000, 0) end)::bigint`;

/** Of reads nothing is ever asked by their operation: their index has only what is none. */
const IS_NO_READ = sql.raw("c.effect ->> 'kind' <> 'read'");

/** Both arms stand on an index of their own; a run names outside only what one of its attempts does. */
const isKnownAs = (name: string): SQL => sql`${runs.id} = any(array(
  select a.run_id from ${attempts} a where a.external_ref = ${name}
  union select c.run_id from ${calls} c where c.operation_id = ${name} and ${IS_NO_READ}))`;

const hasOperation = (id: string): SQL =>
  sql`${runs.id} = any(array(select c.run_id from ${calls} c where c.operation_id = ${id} and ${IS_NO_READ}))`;

function select(store: Store) {
  return reader(store)
    .select({
      run: sql<RunJson>`to_jsonb(${runs}.*)`,
      host: workers.host,
      pid: workers.pid,
      leaseUntil: workers.leaseUntil,
      silent: isPast(workers.leaseUntil),
      movedBy: MOVED_BY,
      overdue: sql<boolean>`coalesce(${DUE}, false)`,
      workedMs: WORKED_MS,
      lineLive: LINE_LIVE,
      pending: PENDING,
      agentKind: AGENT_KIND,
      parentTool: PARENT_TOOL,
      awaited: AWAITED,
      blockedBy: BLOCKED_BY,
      notStopped: NOT_STOPPED,
    })
    .from(runs)
    .leftJoin(workers, eq(workers.id, runs.owner))
    .$dynamic();
}

type Row = Awaited<ReturnType<typeof select>>[number];

function viewOf(row: Row): RunView {
  const run = runOf(row.run);
  const { at, ...moved } = row.movedBy;
  const { host, pid, leaseUntil, lineLive, pending, agentKind, parentTool, awaited, blockedBy, notStopped } = row;
  const known = run.state.owner !== null && host !== null && pid !== null && leaseUntil !== null;
  return {
    run,
    owner: known ? { id: run.state.owner, host, pid, leaseUntilMs: msOf(leaseUntil), silent: row.silent } : null,
    movedBy: { ...moved, atMs: Date.parse(at) },
    overdue: row.overdue,
    workedMs: Number(row.workedMs),
    lineLive,
    pending,
    agentKind,
    parentTool,
    awaited,
    blockedBy,
    notStopped,
  };
}

function after({ after: cursor }: PageRequest): SQL | undefined {
  if (cursor === null) return undefined;
  const id = idCursor(cursor);
  return id === null ? sql`false` : lt(runs.id, id);
}

function conditions(filter: RunFilter): readonly (SQL | undefined)[] {
  const { statuses, waitingForKind: kind, waitingForPrincipal: principal } = filter;
  const given = <Value>(value: Value | undefined, condition: (value: Value) => SQL | undefined) =>
    value === undefined ? undefined : condition(value);
  return [
    given(statuses, (list) => inArray(runs.status, [...list])),
    // The first condition is the index's own.
    kind === undefined && principal === undefined ? undefined : sql`${runs.waitingFor} is not null`,
    given(kind, (value) => sql`${runs.waitingFor} ->> 'kind' = ${value}`),
    given(principal, (value) => sql`${runs.waitingFor} ->> 'principal' = ${value}`),
    given(filter.overdue, (wanted) => (wanted ? DUE : sql`${DUE} is not true`)),
    given(filter.agentName, (value) => eq(runs.agentName, value)),
    given(filter.agentVersion, (value) => eq(runs.agentVersion, value)),
    given(filter.sessionId, (value) => eq(runs.sessionId, value)),
    given(filter.parent, (value) => eq(runs.parent, value)),
    given(filter.externalRef, isKnownAs),
    given(filter.operationId, hasOperation),
    given(filter.visibleTo, isVisibleTo),
  ];
}
