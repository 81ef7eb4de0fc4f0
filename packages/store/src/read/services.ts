import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { runs, services } from "../schema.ts";
import { msOf, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";

/** A service that has failed for everybody, and what its limiter does about it. */
export interface ServiceView {
  readonly name: string;
  readonly reason: "throttled" | "unavailable";
  readonly sinceMs: number;
  /** In a row, over all runs. */
  readonly failures: number;
  /** Nothing is sent to it now. */
  readonly closed: boolean;
  readonly closedUntilMs: number | null;
  /** One run is trying it. */
  readonly probing: boolean;
  readonly waitingRuns: number;
}

/** Services with failures, by name. */
export async function findServices(store: Store, page: PageRequest): Promise<Page<ServiceView>> {
  const rows = await reader(store)
    .select({
      name: services.name,
      reason: services.reason,
      since: services.since,
      failures: services.failures,
      closed: sql<boolean>`coalesce(${services.closedUntil} > holdpoint.now(), false)`,
      closedUntil: services.closedUntil,
      probing: sql<boolean>`coalesce(${services.probeUntil} > holdpoint.now(), false)`,
      waitingRuns: sql<number>`(select count(*)::int from ${runs} r
        where r.tenant_id = ${qualified(services.tenantId)} and r.waiting_for is not null
          and r.waiting_for ->> 'kind' = 'service' and r.waiting_for ->> 'principal' = ${qualified(services.name)})`,
    })
    .from(services)
    .where(
      and(
        eq(services.tenantId, store.tenantId),
        page.after === null ? undefined : gt(services.name, nameIn(page.after)),
      ),
    )
    .orderBy(asc(services.name))
    .limit(rowsFor(page));
  const views = rows.map(({ since, closedUntil, ...row }) => ({
    ...row,
    sinceMs: msOf(since),
    closedUntilMs: msOf(closedUntil),
  }));
  return pageOf(views, page, ({ name }) => Buffer.from(name).toString("base64url"));
}

/** A name may be of any text; a cursor is plain. */
function nameIn(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString().replaceAll("\0", "");
}
