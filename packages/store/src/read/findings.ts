import type { Status } from "@holdpoint/core";
import { and, desc, eq, isNotNull, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { attempts, calls, runs } from "../schema.ts";
import { idCursor, type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";

/** Evidence that came after an attempt had been settled, and says otherwise. */
export interface FindingView {
  readonly attemptId: string;
  readonly runId: string;
  readonly runStatus: Status;
  readonly callId: string;
  readonly tool: string;
  readonly number: number;
  readonly workerId: string;
  readonly externalRef: string | null;
  readonly settledAs: string;
  readonly settledBy: string | null;
  readonly settledAtMs: number;
  /** Whether it happened outside, by the evidence. */
  readonly happened: boolean;
  readonly evidence: {
    readonly outcome: string;
    readonly externalRef: string | null;
    readonly errorClass: string | null;
    readonly errorCode: string | null;
  };
  readonly atMs: number;
}

const HAPPENED = sql`${attempts.lateEvidence} ->> 'outcome' in ('succeeded', 'happened')`;

/**
 * What was taken for the truth; null where nobody knew. An attempt that another has superseded acted if that one did:
 * both are one operation to the other side.
 */
const TAKEN_FOR = sql`case ${attempts.outcome} when 'succeeded' then true when 'happened' then true
  when 'superseded' then (select true from ${attempts} o where o.run_id = ${qualified(attempts.runId)}
    and o.call_id = ${qualified(attempts.callId)} and o.outcome in ('succeeded', 'happened') limit 1)
  when 'not_established' then null else false end`;

/** Findings, the newest first: a query over attempts, with an index on those that have late evidence. */
export async function listFindings(store: Store, page: PageRequest): Promise<Page<FindingView>> {
  const cursor = page.after === null ? undefined : readCursor(page.after);
  if (cursor === null) return { items: [], next: null };
  const rows = await reader(store)
    .select({
      attemptId: attempts.id,
      runId: attempts.runId,
      runStatus: runs.status,
      callId: attempts.callId,
      tool: calls.tool,
      number: attempts.number,
      workerId: attempts.worker,
      externalRef: attempts.externalRef,
      settledAs: sql<string>`${attempts.outcome}`,
      settledBy: attempts.settledBy,
      settledAt: sql<string>`to_jsonb(${attempts.endedAt}) #>> '{}'`,
      happened: sql<boolean>`${HAPPENED}`,
      evidence: sql<FindingView["evidence"]>`${attempts.lateEvidence}`,
      // Whole, and the same for every time zone and date style.
      moment: sql<string>`to_jsonb(${attempts.lateAt}) #>> '{}'`,
    })
    .from(attempts)
    .innerJoin(runs, eq(runs.id, attempts.runId))
    .innerJoin(calls, and(eq(calls.runId, attempts.runId), eq(calls.id, attempts.callId)))
    .where(
      and(
        eq(attempts.tenantId, store.tenantId),
        isNotNull(attempts.lateAt),
        sql`${HAPPENED} is distinct from ${TAKEN_FOR}`,
        cursor === undefined
          ? undefined
          : sql`(${attempts.lateAt}, ${attempts.id}) < (${cursor.moment}::timestamptz, ${cursor.id}::uuid)`,
      ),
    )
    .orderBy(desc(attempts.lateAt), desc(attempts.id))
    .limit(rowsFor(page));
  const { items, next } = pageOf(rows, page, ({ moment, attemptId }) => `${moment}/${attemptId}`);
  return { items: items.map(viewOf), next };
}

type Row = Omit<FindingView, "settledAtMs" | "atMs"> & { readonly settledAt: string; readonly moment: string };

function viewOf({ settledAt, moment, ...row }: Row): FindingView {
  return { ...row, settledAtMs: Date.parse(settledAt), atMs: Date.parse(moment) };
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d$/;

/** Null for a text that no page of ours gave. */
function readCursor(text: string): { readonly moment: string; readonly id: string } | null {
  const [moment = "", id = ""] = text.split("/");
  return MOMENT.test(moment) && idCursor(id) !== null ? { moment, id } : null;
}
