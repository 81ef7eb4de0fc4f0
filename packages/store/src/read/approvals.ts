import type { ApprovalOnDeadline, ApprovalRule, ApprovalState, JsonValue, RecordedDecision } from "@holdpoint/core";
import { and, desc, eq, getTableColumns, inArray, lt, or, type SQL, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import type { ShownRequest } from "../move.ts";
import { approvals, decisions, runs, sessions } from "../schema.ts";
import { idCursor, msOf, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";
import type { Approvers } from "./runs.ts";

/** A decision that somebody has given. */
export interface DecisionView extends RecordedDecision {
  readonly note: string | null;
  readonly atMs: number;
}

/** An approval request; the approvers are those of its present level. */
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
  readonly terms: ApprovalRule;
  readonly shown: ShownRequest;
  readonly state: ApprovalState;
  readonly level: number;
  /** How many have approved at the present level. */
  readonly given: number;
  readonly decided: readonly DecisionView[];
  readonly requestedAtMs: number;
  readonly deadlineMs: number;
  /** The time to decide is over, whether or not a sweep has come by. */
  readonly isOver: boolean;
  readonly onDeadline: ApprovalOnDeadline;
  readonly extended: boolean;
  readonly reminders: number;
  readonly remindAtMs: number | null;
  readonly editedBy: string | null;
  readonly decidedAtMs: number | null;
  readonly decidedBy: string | null;
  readonly note: string | null;
  readonly answer: JsonValue;
  readonly validUntilMs: number | null;
  readonly spentAtMs: number | null;
  readonly closedAtMs: number | null;
  readonly closedReason: string | null;
}

/** Which requests are wanted; what is left out does not matter. */
export interface ApprovalFilter {
  readonly states?: readonly ApprovalState[];
  readonly runId?: string;
  /** Only what waits for this person's decision: by a role or by name, not excluded, and not decided by it yet. */
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
  const wanted = and(eq(approvals.tenantId, store.tenantId), after(page), ...conditions(filter));
  const ways = waysTo(store, filter);
  const rows = await select(store)
    .where(ways.length === 0 ? wanted : sql`${approvals.id} = any(array(${newestOf(ways, { wanted, page })}))`)
    .orderBy(desc(approvals.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(viewOf), page, ({ id }) => id);
}

/** Conditions of which each request of the list meets one, and each of which has an index of its own. */
function waysTo(store: Store, { states, decidableBy, visibleTo }: ApprovalFilter): readonly SQL[] {
  if (visibleTo !== undefined) {
    return [
      // A run's requester is its session's.
      sql`${approvals.runId} in (select r.id from ${sessions} s join ${runs} r on r.session_id = s.id
        where s.tenant_id = ${store.tenantId} and s.requester = ${visibleTo})`,
      names(visibleTo),
    ];
  }
  if (decidableBy !== undefined) return [inOneOf(decidableBy.roles), names(decidableBy.user)];
  if (states !== undefined && states.length > 1) {
    return states.map((state) => eq(approvals.state, state));
  }
  return [];
}

/** The ids of the newest requests that some of these ways lead to. */
function newestOf(
  ways: readonly SQL[],
  { wanted, page }: { readonly wanted: SQL | undefined; readonly page: PageRequest },
): SQL {
  const each = ways.map(
    (way) => sql`(select ${approvals.id} as id from ${approvals} join ${runs} on ${runs.id} = ${approvals.runId}
      where ${and(wanted, way)} order by ${approvals.id} desc limit ${rowsFor(page)})`,
  );
  return sql`select w.id from (${sql.join(each, sql` union `)}) w order by w.id desc limit ${rowsFor(page)}`;
}

/** As the statement that stores a decision judges it: while a run is paused, at the pause's start. */
const IS_OVER = sql<boolean>`${approvals.deadline} < coalesce(${runs.pausedAt}, holdpoint.now())`;

const DECIDED = sql<readonly (RecordedDecision & { note: string | null; at: string })[]>`(
  select coalesce(jsonb_agg(jsonb_build_object('by', d.actor_id, 'kind', d.decision, 'level', d.level,
    'payload', d.payload, 'note', d.note, 'at', d.at) order by d.at, d.id), '[]')
  from ${decisions} d where d.approval_id = ${qualified(approvals.id)})`;

function select(store: Store) {
  return reader(store)
    .select({
      ...getTableColumns(approvals),
      sessionId: runs.sessionId,
      requester: runs.requester,
      isOver: IS_OVER,
      decided: DECIDED,
    })
    .from(approvals)
    .innerJoin(runs, eq(runs.id, approvals.runId))
    .$dynamic();
}

function viewOf(row: Awaited<ReturnType<typeof select>>[number]): ApprovalView {
  // The text is canonical JSON that this store wrote.
  const args = JSON.parse(row.args) as JsonValue;
  return {
    id: row.id,
    runId: row.runId,
    sessionId: row.sessionId,
    requester: row.requester,
    callId: row.callId,
    tool: row.tool,
    args,
    argsHash: row.argsHash,
    terms: row.terms,
    shown: { ...shownBefore(args), ...row.request },
    roles: row.roles,
    users: row.users,
    excluded: row.excluded,
    state: row.state,
    level: row.level,
    given: row.given,
    decided: row.decided.map(({ at, ...decision }) => ({ ...decision, atMs: Date.parse(at) })),
    requestedAtMs: msOf(row.requestedAt),
    deadlineMs: msOf(row.deadline),
    isOver: row.isOver,
    onDeadline: row.onDeadline,
    extended: row.extended,
    reminders: row.reminders,
    remindAtMs: msOf(row.remindAt),
    editedBy: row.editedBy,
    decidedAtMs: msOf(row.decidedAt),
    decidedBy: row.decidedBy,
    note: row.note,
    answer: row.answer,
    validUntilMs: msOf(row.validUntil),
    spentAtMs: msOf(row.spentAt),
    closedAtMs: msOf(row.closedAt),
    closedReason: row.closedReason,
  };
}

/** What a request shows that was made before requests carried it. */
function shownBefore(args: JsonValue): ShownRequest {
  return { redactedArgs: args, modelReason: null, amount: null, risk: null, evidence: [], editSchema: null };
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
  const decided = sql`exists (select from ${decisions} d
    where d.approval_id = ${qualified(approvals.id)} and d.actor_id = ${user} and d.level = ${qualified(approvals.level)})`;
  return and(
    eq(approvals.state, "pending"),
    or(inOneOf(roles), names(user)),
    sql`not ${user} = any(${approvals.excluded})`,
    sql`not ${decided}`,
  );
}

// Both as the indexes have it.
const inOneOf = (roles: readonly string[]): SQL => sql`${approvals.roles} && ${sql.param([...roles])}::text[]`;
const names = (user: string): SQL => sql`${approvals.users} @> ${sql.param([user])}::text[]`;
