import { and, asc, eq, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { roleAssignments } from "../schema.ts";
import { msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";

/** That somebody has a role, or had it. */
export interface AssignmentView {
  readonly user: string;
  readonly role: string;
  readonly grantedAtMs: number;
  /** A person, or `configuration`. */
  readonly grantedBy: string;
  readonly revokedAtMs: number | null;
  readonly revokedBy: string | null;
}

/** Assignments by user and role; what is left out of the filter does not matter. */
export async function findAssignments(
  store: Store,
  { user, role }: { readonly user?: string; readonly role?: string },
  page: PageRequest,
): Promise<Page<AssignmentView>> {
  const [afterUser = "", afterRole = ""] = page.after?.split(SEPARATOR) ?? [];
  const { userId } = roleAssignments;
  const rows = await reader(store)
    .select()
    .from(roleAssignments)
    .where(
      and(
        eq(roleAssignments.tenantId, store.tenantId),
        user === undefined ? undefined : eq(userId, user),
        role === undefined ? undefined : eq(roleAssignments.role, role),
        page.after === null ? undefined : sql`(${userId}, ${roleAssignments.role}) > (${afterUser}, ${afterRole})`,
      ),
    )
    .orderBy(asc(userId), asc(roleAssignments.role))
    .limit(rowsFor(page));
  const views = rows.map(({ userId: name, role: given, grantedAt, grantedBy, revokedAt, revokedBy }) => ({
    user: name,
    role: given,
    grantedAtMs: msOf(grantedAt),
    grantedBy,
    revokedAtMs: msOf(revokedAt),
    revokedBy,
  }));
  return pageOf(views, page, (last) => `${last.user}${SEPARATOR}${last.role}`);
}

/** Stands in no name of a user or a role. */
const SEPARATOR = "/";
