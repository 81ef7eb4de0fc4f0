import { and, asc, eq, isNull, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import type { Memory } from "../memories.ts";
import { memories } from "../schema-schedules.ts";
import { idCursor, msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";

/** What is kept about somebody and has not expired, the oldest first. */
export async function listMemories(store: Store, subject: string, page: PageRequest): Promise<Page<Memory>> {
  const after = page.after === null ? null : idCursor(page.after);
  const rows = await reader(store)
    .select()
    .from(memories)
    .where(
      and(
        eq(memories.tenantId, store.tenantId),
        eq(memories.subject, subject),
        isNull(memories.deletedAt),
        sql`${memories.expiresAt} > holdpoint.now()`,
        after === null ? undefined : sql`${memories.id} > ${after}`,
      ),
    )
    .orderBy(asc(memories.id))
    .limit(rowsFor(page));
  const views = rows.map((row) => ({
    id: row.id,
    subject: row.subject,
    key: row.key,
    value: row.value,
    createdAtMs: msOf(row.createdAt),
    createdBy: row.createdBy,
    expiresAtMs: msOf(row.expiresAt),
  }));
  return pageOf(views, page, ({ id }) => id);
}
