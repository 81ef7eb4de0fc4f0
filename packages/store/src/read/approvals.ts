import type { ApprovalState, JsonValue } from "@holdpoint/core";
import { and, desc, eq, getTableColumns, inArray, lt, or, type SQL, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { approvals, runs } from "../schema.ts";
import { idCursor, msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";
import type { Approvers } from "./runs.ts";

/** An approval request as the person who decides it must see it. */
export interface ApprovalView extends Approvers {
  readonly id: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly requester: string;
  readonly callId: string;
  readonly tool: string;
  /** The arguments as they will run. */
  readonly args: JsonValue;
  readonly argsHash: string;
  readonly rule: string;
  readonly state: ApprovalState;
  readonly requestedAtMs: number;
  readonly deadlineMs: number;
  readonly onDeadline: string;
  readonly decidedAtMs: number | null;
  readonly decidedBy: string | null;
  readonly note: string | null;
  readonly validUntilMs: number | null;
  readonly spentAtMs: number | null;
}

/** Which requests are wanted; what is left out does not matter. */
export interface ApprovalFilter {
  readonly states?: readonly ApprovalState[];
  readonly runId?: string;
  /** Only what this person may decide: by a role or by name, and not excluded. */
  readonly decidableBy?: { readonly user: string; readonly roles: readonly string[] };
  /** Only what this person may see without any other part: of its own runs, or where it is named. */
  readonly visibleTo?: string;
}

/** A request as it is now; null if there is none with this id. */
export async function findApproval(store: Store, approvalId: string): Promise<ApprovalView | null> {
  const [row] = await select(store).where(and(eq(approvals.tenantId, store.tenantId), eq(approvals.id, approvalId)));
  return row === undefined ? null : viewOf(row);
}

/** Requests, the newest first. */
export async function listApprovals(
  store: Store,
  filter: ApprovalFilter,
  page: PageRequest,
): Promise<Page<ApprovalView>> {
  const rows = await select(store)
    .where(and(eq(approvals.tenantId, store.tenantId), after(page), ...conditions(filter)))
    .orderBy(desc(approvals.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ id }) => id);
}

function select(store: Store) {
  return reader(store)
    .select({ ...getTableColumns(approvals), sessionId: runs.sessionId, requester: runs.requester })
    .from(approvals)
    .innerJoin(runs, eq(runs.id, approvals.runId))
    .$dynamic();
}

function viewOf(row: Awaited<ReturnType<typeof select>>[number]): ApprovalView {
  return {
    id: row.id,
    runId: row.runId,
    sessionId: row.sessionId,
    requester: row.requester,
    callId: row.callId,
    tool: row.tool,
    // The text is canonical JSON that this store wrote.
    args: JSON.parse(row.args) as JsonValue,
    argsHash: row.argsHash,
    rule: row.rule,
    roles: row.roles,
    users: row.users,
    excluded: row.excluded,
    // A check constraint lists the states.
    state: row.state as ApprovalState,
    requestedAtMs: msOf(row.requestedAt),
    deadlineMs: msOf(row.deadline),
    onDeadline: row.onDeadline,
    decidedAtMs: msOf(row.decidedAt),
    decidedBy: row.decidedBy,
    note: row.note,
    validUntilMs: msOf(row.validUntil),
    spentAtMs: msOf(row.spentAt),
  };
}

function after({ after: cursor }: PageRequest): SQL | undefined {
  if (cursor === null) return undefined;
  const id = idCursor(cursor);
  return id === null ? sql`false` : lt(approvals.id, id);
}

function conditions({ states, runId, decidableBy, visibleTo }: ApprovalFilter): readonly (SQL | undefined)[] {
  return [
    states === undefined ? undefined : inArray(approvals.state, [...states]),
    runId === undefined ? undefined : eq(approvals.runId, runId),
    decidableBy === undefined ? undefined : isDecidableBy(decidableBy),
    visibleTo === undefined ? undefined : or(eq(runs.requester, visibleTo), names(visibleTo)),
  ];
}

function isDecidableBy({ user, roles }: NonNullable<ApprovalFilter["decidableBy"]>): SQL | undefined {
  const inRole = sql`${approvals.roles} && ${sql.param([...roles])}::text[]`;
  return and(or(inRole, names(user)), sql`not ${user} = any(${approvals.excluded})`);
}

const names = (user: string): SQL => sql`${user} = any(${approvals.users})`;
