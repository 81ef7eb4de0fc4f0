import type { AgentRef, JsonValue, Outcome, Status, TaskTerms } from "@holdpoint/core";
import { and, desc, eq, inArray, lt, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { agents, runs, tasks, workers } from "../schema.ts";
import type { LateTaskEvidence, TaskProgress, TaskReport } from "../task-writes.ts";
import { idCursor, isPast, msOf, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";

/** Whoever has a task in hands, or had it last. */
export interface ExecutorView {
  readonly executor: string;
  /** Who has asked for the token that it speaks with. */
  readonly startedBy: string;
  /** It has the task now; false: it gave it back, ended it, or was lost with it. */
  readonly inHands: boolean;
  readonly startedAtMs: number;
  readonly lastHeartbeatAtMs: number;
  /** By when it has to be heard of; null where it is not waited for. */
  readonly leaseUntilMs: number | null;
  /** That time is over, and it has not been given up yet. */
  readonly silent: boolean;
  readonly progress: TaskProgress | null;
  readonly report: TaskReport | null;
}

/** What somebody said when the task was not in their hands any more. */
export interface LateWordView extends LateTaskEvidence {
  readonly executor: string;
  readonly atMs: number;
}

/** A task as its readers see it. */
export interface TaskView {
  readonly runId: string;
  readonly agent: AgentRef;
  readonly requester: string;
  readonly goal: string;
  readonly input: JsonValue;
  readonly status: Status;
  readonly outcome: Outcome | null;
  readonly parent: string | null;
  readonly queuedAtMs: number | null;
  readonly stopRequested: boolean;
  readonly createdAtMs: number;
  readonly terms: TaskTerms;
  readonly last: ExecutorView | null;
  /** Whoever has it now, others who had it before may have done it as well: the newest first, at most five. */
  readonly late: readonly LateWordView[];
}

/** Which tasks are wanted; what is left out does not matter. */
export interface TaskFilter {
  readonly agentName?: string;
  readonly agentVersion?: string;
  readonly statuses?: readonly Status[];
}

/** A task as it is now; null if there is none with this id. */
export async function findTask(store: Store, runId: string): Promise<TaskView | null> {
  const [row] = await select(store).where(and(isTask(store), eq(runs.id, runId)));
  return row === undefined ? null : viewOf(row);
}

/** Tasks, the newest first. */
export async function listTasks(store: Store, filter: TaskFilter, page: PageRequest): Promise<Page<TaskView>> {
  const { agentName, agentVersion, statuses } = filter;
  const cursor = page.after === null ? undefined : idCursor(page.after);
  const rows = await select(store)
    .where(
      and(
        isTask(store),
        agentName === undefined ? undefined : eq(runs.agentName, agentName),
        agentVersion === undefined ? undefined : eq(runs.agentVersion, agentVersion),
        statuses === undefined ? undefined : inArray(runs.status, [...statuses]),
        cursor === null ? sql`false` : cursor === undefined ? undefined : lt(runs.id, cursor),
      ),
    )
    .orderBy(desc(runs.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ runId }) => runId);
}

function isTask(store: Store) {
  return and(eq(runs.tenantId, store.tenantId), eq(runs.isTask, true));
}

const LAST = sql`(select max(l.epoch) from ${tasks} l
  where l.run_id = ${qualified(runs.id)} and l.started_at is not null)`;

const LATE = sql<readonly LateRow[]>`(select coalesce(jsonb_agg(l.word order by l.late_at desc), '[]') from (
    select t.late_at, t.late_evidence || jsonb_build_object('executor', t.executor, 'at', t.late_at) as word
    from ${tasks} t where t.run_id = ${qualified(runs.id)} and t.late_at is not null
    order by t.late_at desc limit 5) l)`;

type LateRow = Omit<LateWordView, "atMs"> & { readonly at: string };

function select(store: Store) {
  return reader(store)
    .select({
      runId: runs.id,
      name: runs.agentName,
      version: runs.agentVersion,
      requester: runs.requester,
      goal: runs.goal,
      input: runs.input,
      status: runs.status,
      outcome: runs.outcome,
      parent: runs.parent,
      queuedSince: runs.queuedSince,
      stopRequested: sql<boolean>`${runs.cancelRequestedAt} is not null`,
      createdAt: runs.createdAt,
      owner: runs.owner,
      // A constraint gives every task its terms.
      terms: sql<TaskTerms>`${agents.task}`,
      last: tasks,
      late: LATE,
      leaseUntil: workers.leaseUntil,
      silent: isPast(workers.leaseUntil),
    })
    .from(runs)
    .innerJoin(
      agents,
      and(eq(agents.tenantId, runs.tenantId), eq(agents.name, runs.agentName), eq(agents.version, runs.agentVersion)),
    )
    .leftJoin(tasks, and(eq(tasks.runId, runs.id), eq(tasks.epoch, LAST)))
    .leftJoin(workers, eq(workers.id, tasks.workerId))
    .$dynamic();
}

type Row = Awaited<ReturnType<typeof select>>[number];

function viewOf(row: Row): TaskView {
  const { name, version, queuedSince, createdAt, owner, last, late, leaseUntil, silent, ...rest } = row;
  return {
    ...rest,
    agent: { name, version },
    queuedAtMs: msOf(queuedSince),
    createdAtMs: msOf(createdAt),
    last: last === null ? null : executorOf(last, { owner, leaseUntil, silent }),
    late: late.map(({ at, ...word }) => ({ ...word, atMs: Date.parse(at) })),
  };
}

function executorOf(
  last: NonNullable<Row["last"]>,
  { owner, leaseUntil, silent }: Pick<Row, "owner" | "leaseUntil" | "silent">,
): ExecutorView | null {
  const { executor, startedAt, lastHeartbeatAt } = last;
  if (executor === null || startedAt === null || lastHeartbeatAt === null) return null;
  const inHands = owner !== null && owner === last.workerId;
  return {
    executor,
    startedBy: last.issuedBy,
    inHands,
    startedAtMs: msOf(startedAt),
    lastHeartbeatAtMs: msOf(lastHeartbeatAt),
    leaseUntilMs: inHands ? msOf(leaseUntil) : null,
    silent: inHands && silent,
    progress: last.progress,
    report: last.report,
  };
}
