import type { EffectProperties, Verdict } from "@holdpoint/core";
import { and, asc, eq, inArray, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { attempts } from "../schema.ts";
import { allCalls as calls } from "../schema-views.ts";
import type { AttemptView } from "./attempt-view.ts";
import { idCursor, msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";
import { triesOfReads } from "./tries-of-reads.ts";

/** A tool call of a run, and what happened outside for it. */
export interface CallView {
  readonly id: string;
  readonly turn: number;
  readonly ordinal: number;
  readonly tool: string;
  readonly argsHash: string;
  readonly operationId: string;
  readonly effect: EffectProperties["kind"];
  readonly verdict: Verdict["kind"];
  readonly atMs: number;
  readonly attempts: readonly AttemptView[];
}

/** A run's calls in the order in which they were asked for, each with its attempts. */
export async function listCalls(store: Store, runId: string, page: PageRequest): Promise<Page<CallView>> {
  const cursor = page.after === null ? undefined : idCursor(page.after);
  const ofRun = and(eq(calls.tenantId, store.tenantId), eq(calls.runId, runId));
  // A call's place in its run, compared with the place of the call that the page before ended with.
  const later = sql`(${calls.turn}, ${calls.ordinal}) > (
    select c.turn, c.ordinal from ${calls} c where c.run_id = ${runId} and c.id = ${cursor ?? null})`;
  const rows = await reader(store)
    .select({
      id: calls.id,
      turn: calls.turn,
      ordinal: calls.ordinal,
      tool: calls.tool,
      argsHash: calls.argsHash,
      operationId: calls.operationId,
      effect: sql<EffectProperties["kind"]>`${calls.effect} ->> 'kind'`,
      verdict: sql<Verdict["kind"]>`${calls.verdict} ->> 'kind'`,
      at: calls.at,
    })
    .from(calls)
    .where(and(ofRun, cursor === null ? sql`false` : cursor === undefined ? undefined : later))
    .orderBy(asc(calls.turn), asc(calls.ordinal))
    .limit(rowsFor(page));
  const ofEffects = await attemptsOf(
    store,
    runId,
    rows.map(({ id }) => id),
  );
  const reads = rows.filter(({ id, effect }) => effect === "read" && !ofEffects.has(id)).map(({ id }) => id);
  const ofReads = await triesOfReads(store, runId, reads);
  const views = rows.map(({ at, ...row }) => ({
    ...row,
    atMs: msOf(at),
    attempts: ofEffects.get(row.id) ?? ofReads.get(row.id) ?? [],
  }));
  return pageOf(views, page, ({ id }) => id);
}

/** More tries than this of one call are a fault somewhere; a page shows no more of them. */
const MAX_ATTEMPTS = 100;

async function attemptsOf(
  store: Store,
  runId: string,
  callIds: readonly string[],
): Promise<ReadonlyMap<string, readonly AttemptView[]>> {
  if (callIds.length === 0) return new Map();
  const rows = await reader(store)
    .select({
      callId: attempts.callId,
      id: attempts.id,
      number: attempts.number,
      workerId: attempts.worker,
      externalRef: attempts.externalRef,
      startedAt: attempts.startedAt,
      deadlineAt: attempts.deadlineAt,
      endedAt: attempts.endedAt,
      outcome: attempts.outcome,
      settledBy: attempts.settledBy,
      errorClass: attempts.errorClass,
      errorCode: attempts.errorCode,
      lookUps: attempts.lookUps,
      lateAt: attempts.lateAt,
    })
    .from(attempts)
    .where(
      and(eq(attempts.tenantId, store.tenantId), eq(attempts.runId, runId), inArray(attempts.callId, [...callIds])),
    )
    .orderBy(asc(attempts.number))
    .limit(callIds.length * MAX_ATTEMPTS);
  const grouped = Map.groupBy(rows, ({ callId }) => callId);
  return new Map([...grouped].map(([callId, group]) => [callId, group.map(attemptOf)]));
}

type AttemptRow = Omit<AttemptView, "startedAtMs" | "deadlineAtMs" | "endedAtMs" | "lateAtMs"> & {
  readonly callId: string;
  readonly startedAt: Date;
  readonly deadlineAt: Date;
  readonly endedAt: Date | null;
  readonly lateAt: Date | null;
};

function attemptOf({ callId: _, startedAt, deadlineAt, endedAt, lateAt, ...row }: AttemptRow): AttemptView {
  return {
    ...row,
    startedAtMs: msOf(startedAt),
    deadlineAtMs: msOf(deadlineAt),
    endedAtMs: msOf(endedAt),
    lateAtMs: msOf(lateAt),
  };
}
