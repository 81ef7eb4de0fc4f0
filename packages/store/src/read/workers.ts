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
  const rows = await reader(store)
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
      ownedRuns: sql<number>`(select count(*)::int from ${runs} r where r.owner = ${qualified(workers.id)})`,
    })
    .from(workers)
    .where(
      and(
        eq(workers.tenantId, store.tenantId),
        gone ? undefined : isNull(workers.goneAt),
        cursor === null ? sql`false` : cursor === undefined ? undefined : lt(workers.id, cursor),
      ),
    )
    .orderBy(desc(workers.id))
    .limit(rowsFor(page));
  const views = rows.map(({ startedAt, leaseUntil, goneAt, ...row }) => ({
    ...row,
    startedAtMs: msOf(startedAt),
    leaseUntilMs: msOf(leaseUntil),
    goneAtMs: msOf(goneAt),
  }));
  return pageOf(views, page, ({ id }) => id);
}
