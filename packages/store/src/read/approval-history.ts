import type { ApprovalState, JsonValue } from "@holdpoint/core";
import { and, asc, desc, eq, inArray, ne, or, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { approvals, calls, runs, steps } from "../schema.ts";
import { allCalls } from "../schema-views.ts";
import type { ApprovalView } from "./approvals.ts";
import { msOf, qualified, reader } from "./reader.ts";

/** Another request for the same call. */
export interface OtherRequest {
  readonly id: string;
  readonly state: ApprovalState;
  readonly argsHash: string;
  readonly requestedAtMs: number;
  readonly decidedBy: string | null;
  readonly note: string | null;
  readonly closedReason: string | null;
}

/** A call of the same line of runs with the same tool and arguments. */
export interface EqualCall {
  readonly runId: string;
  readonly callId: string;
  /** How it ended, as the model was told; null: it has not. */
  readonly result: string | null;
  readonly atMs: number;
}

/** What came before a request, and beside it. */
export interface ApprovalHistory {
  /** The arguments that the model had given. */
  readonly modelArgs: JsonValue;
  /** The oldest first. */
  readonly sameCall: readonly OtherRequest[];
  /** The newest first. */
  readonly equalCalls: readonly EqualCall[];
}

/** More of either than this is a fault somewhere; no more of them are shown. */
const MOST = 50;

/** What came before a request, and beside it. */
export async function findApprovalHistory(store: Store, view: ApprovalView): Promise<ApprovalHistory> {
  const [[call], sameCall, equalCalls] = await Promise.all([
    reader(store)
      .select({ args: calls.args })
      .from(calls)
      .where(and(eq(calls.tenantId, store.tenantId), eq(calls.runId, view.runId), eq(calls.id, view.callId))),
    requestsOfCall(store, view),
    callsLike(store, view),
  ]);
  // The text is canonical JSON that this store wrote.
  return { modelArgs: call === undefined ? view.args : (JSON.parse(call.args) as JsonValue), sameCall, equalCalls };
}

async function requestsOfCall(store: Store, { id, runId, callId }: ApprovalView): Promise<readonly OtherRequest[]> {
  const rows = await reader(store)
    .select({
      id: approvals.id,
      state: approvals.state,
      argsHash: approvals.argsHash,
      requestedAt: approvals.requestedAt,
      decidedBy: approvals.decidedBy,
      note: approvals.note,
      closedReason: approvals.closedReason,
    })
    .from(approvals)
    .where(
      and(
        eq(approvals.tenantId, store.tenantId),
        eq(approvals.runId, runId),
        eq(approvals.callId, callId),
        ne(approvals.id, id),
      ),
    )
    .orderBy(asc(approvals.holdSeq), asc(approvals.id))
    .limit(MOST);
  return rows.map(({ requestedAt, ...row }) => ({ ...row, requestedAtMs: msOf(requestedAt) }));
}

/** Asked for by themselves: of the view of all calls only the runs that are named are read, not those that a join would find. */
async function runsOfLine(store: Store, runId: string): Promise<string[]> {
  const line = sql`(select l.line from ${runs} l where l.id = ${runId})`;
  const rows = await reader(store)
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.tenantId, store.tenantId), sql`${runs.line} = ${line}`));
  return rows.map(({ id }) => id);
}

/** A person may have made equal arguments of others, too. */
async function callsLike(store: Store, view: ApprovalView): Promise<readonly EqualCall[]> {
  const runIds = await runsOfLine(store, view.runId);
  const edited = sql`exists (select from ${approvals} p
    where p.run_id = ${qualified(allCalls.runId)} and p.call_id = ${qualified(allCalls.id)} and p.args_hash = ${view.argsHash})`;
  const rows = await reader(store)
    .select({
      runId: allCalls.runId,
      callId: allCalls.id,
      at: allCalls.at,
      result: sql<string | null>`(select case when s.kind = 'finding' then 'succeeded' else s.body->>'result' end
        from ${steps} s where s.run_id = ${qualified(allCalls.runId)} and s.kind in ('tool_result', 'finding')
          and s.body->>'callId' = ${qualified(allCalls.id)}::text order by s.seq desc limit 1)`,
    })
    .from(allCalls)
    .where(
      and(
        eq(allCalls.tenantId, store.tenantId),
        inArray(allCalls.runId, runIds),
        eq(allCalls.tool, view.tool),
        ne(allCalls.id, view.callId),
        or(eq(allCalls.argsHash, view.argsHash), edited),
      ),
    )
    .orderBy(desc(allCalls.at), desc(allCalls.id))
    .limit(MOST);
  return rows.map(({ at, ...row }) => ({ ...row, atMs: msOf(at) }));
}
