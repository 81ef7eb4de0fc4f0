import type { AgentRef } from "@holdpoint/core";
import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { runs, workers } from "../schema.ts";
import { idCursor, isPast, msOf, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";

/** One process incarnation that owns runs, or did. */
export interface WorkerView {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly agents: readonly AgentRef[];
  readonly slots: number;
  readonly startedAtMs: number;
  readonly leaseUntilMs: number;
  /** Its lease is over, and nobody has declared it gone yet. */
  readonly silent: boolean;
  readonly goneAtMs: number | null;
  readonly goneReason: string | null;
  /** How far its clock is ahead of the database's, in milliseconds; null: it has not said. */
  readonly skewMs: number | null;
  /** When, and by whom, it was asked to give its runs back and to end. */
  readonly drainRequestedAtMs: number | null;
  readonly drainRequestedBy: string | null;
  /** No other is started in its place. */
  readonly stayDown: boolean;
  /** How many runs it owns now. */
  readonly ownedRuns: number;
}

/** Workers, the newest first; those that are gone only if asked for. */
export async function listWorkers(
  store: Store,
  { gone }: { readonly gone: boolean },
  page: PageRequest,
): Promise<Page<WorkerView>> {
  const cursor = page.after === null ? undefined : idCursor(page.after);
  const rows = await select(store)
    .where(
      and(
        ofProcess(store),
        gone ? undefined : isNull(workers.goneAt),
        cursor === null ? sql`false` : cursor === undefined ? undefined : lt(workers.id, cursor),
      ),
    )
    .orderBy(desc(workers.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ id }) => id);
}

/** A worker as it is now; null if there is none with this id. */
export async function findWorker(store: Store, workerId: string): Promise<WorkerView | null> {
  const [row] = await select(store).where(and(ofProcess(store), eq(workers.id, workerId)));
  return row === undefined ? null : viewOf(row);
}

/** A host has no more working processes than this that are told of at once. */
const MOST_OF_A_HOST = 64;

/** Workers of a host that have not gone, the newest first; at most 64. */
export async function findWorkersOf(store: Store, host: string): Promise<readonly WorkerView[]> {
  const rows = await select(store)
    .where(and(ofProcess(store), eq(workers.host, host), isNull(workers.goneAt)))
    .orderBy(desc(workers.id))
    .limit(MOST_OF_A_HOST);
  return rows.map(viewOf);
}

/** What works elsewhere has a row of the same kind, and is no process of ours. */
const ofProcess = (store: Store) => and(eq(workers.tenantId, store.tenantId), eq(workers.kind, "process"));

function select(store: Store) {
  return reader(store)
    .select({
      id: workers.id,
      host: workers.host,
      pid: workers.pid,
      agents: workers.agents,
      slots: workers.slots,
      startedAt: workers.startedAt,
      leaseUntil: workers.leaseUntil,
      silent: sql<boolean>`${isPast(workers.leaseUntil)} and ${workers.goneAt} is null`,
      goneAt: workers.goneAt,
      goneReason: workers.goneReason,
      skewMs: workers.skewMs,
      drainRequestedAt: workers.drainRequestedAt,
      drainRequestedBy: workers.drainRequestedBy,
      stayDown: workers.stayDown,
      ownedRuns: sql<number>`(select count(*)::int from ${runs} r where r.owner = ${qualified(workers.id)})`,
    })
    .from(workers)
    .$dynamic();
}

type Row = Awaited<ReturnType<typeof select>>[number];

function viewOf({ startedAt, leaseUntil, goneAt, drainRequestedAt, ...row }: Row): WorkerView {
  return {
    ...row,
    startedAtMs: msOf(startedAt),
    leaseUntilMs: msOf(leaseUntil),
    goneAtMs: msOf(goneAt),
    drainRequestedAtMs: msOf(drainRequestedAt),
  };
}
