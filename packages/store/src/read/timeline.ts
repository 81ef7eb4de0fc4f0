import type { JsonValue, Status, StepBody } from "@holdpoint/core";
import { and, eq, gte, type SQL, sql } from "drizzle-orm";
import { type PgColumn, unionAll } from "drizzle-orm/pg-core";
import type { Store } from "../db.ts";
import { approvals, calls, decisions, refusals, steps, transitions } from "../schema.ts";
import { type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";
import { type StepInShort, stepLine } from "./step-line.ts";

/** What happened to a run, by what it is. */
export type TimelineEntry =
  | (Transition & { readonly atMs: number })
  | (Decision & { readonly atMs: number })
  | (Refusal & { readonly atMs: number })
  | {
      readonly kind: "step";
      readonly atMs: number;
      readonly seq: number;
      readonly step: StepBody["kind"];
      /** What it says, in a short line without payloads. */
      readonly line: string;
      /** The whole step where it was asked for, else null. */
      readonly body: JsonValue;
    };

interface Transition {
  readonly kind: "transition";
  readonly seq: number;
  readonly from: Status | null;
  readonly to: Status;
  readonly event: string;
  readonly actorKind: string;
  readonly actorId: string;
  readonly reason: string | null;
}

interface Decision {
  readonly kind: "decision";
  readonly approvalId: string;
  readonly tool: string;
  readonly decision: "approve" | "reject";
  readonly actorId: string;
  readonly note: string | null;
}

interface Refusal {
  readonly kind: "refusal";
  readonly event: string;
  readonly rule: string;
  readonly status: Status;
  readonly actorKind: string;
  readonly actorId: string;
}

interface StepDetail {
  readonly kind: "step";
  readonly seq: number;
  readonly tool: string | null;
  readonly short: StepInShort;
  readonly body: JsonValue;
}

type Detail = Transition | Decision | Refusal | StepDetail;

export interface TimelineRequest extends PageRequest {
  /** Whether steps come with their bodies: what the model said, what tools answered. */
  readonly payloads: boolean;
}

/**
 * What happened to a run, from its start, ordered by time: transitions, steps, decisions on its approval requests, and
 * the answers that were refused.
 */
export async function findTimeline(store: Store, runId: string, page: TimelineRequest): Promise<Page<TimelineEntry>> {
  const cursor = page.after === null ? undefined : readCursor(page.after);
  if (cursor === null) return { items: [], next: null };
  const all = entries(store, { runId, since: cursor?.moment ?? null, payloads: page.payloads }).as("timeline");
  const later = (after: Cursor) =>
    sql`(${all.at}, ${all.rank}, ${all.place}) > (${after.moment}::timestamptz, ${after.rank}::int, ${after.place}::text)`;
  const rows = await reader(store)
    .select({ moment: all.moment, rank: all.rank, place: all.place, detail: all.detail })
    .from(all)
    .where(cursor === undefined ? undefined : later(cursor))
    .orderBy(all.at, all.rank, all.place)
    .limit(rowsFor(page));
  const { items, next } = pageOf(rows, page, writeCursor);
  return { items: items.map(entryOf), next };
}

/** At one moment: what an owner did, then a decision, the transition that it brought, and what was refused after it. */
const RANKS: Readonly<Record<Detail["kind"], number>> = { step: 0, decision: 1, transition: 2, refusal: 3 };

interface Wanted {
  readonly runId: string;
  /** Nothing before this moment, which is cheap to know for each table; the cursor itself is judged on all of them. */
  readonly since: string | null;
  readonly payloads: boolean;
}

function entries(store: Store, wanted: Wanted) {
  const read = reader(store);
  const within = (table: { readonly tenantId: PgColumn; readonly runId: PgColumn; readonly at: PgColumn }) =>
    and(
      eq(table.tenantId, store.tenantId),
      eq(table.runId, wanted.runId),
      wanted.since === null ? undefined : gte(table.at, sql`${wanted.since}::timestamptz`),
    );
  return unionAll(
    read
      .select(columns("step", steps.at, { place: numbered(steps.seq), detail: stepDetail(wanted.payloads) }))
      .from(steps)
      .where(within(steps)),
    read
      .select(columns("decision", decisions.at, { place: sql`${decisions.id}`, detail: DECISION }))
      .from(decisions)
      .where(within(decisions)),
    read
      .select(columns("transition", transitions.at, { place: numbered(transitions.seq), detail: TRANSITION }))
      .from(transitions)
      .where(within(transitions)),
    read
      .select(columns("refusal", refusals.at, { place: sql`${refusals.id}`, detail: REFUSAL }))
      .from(refusals)
      .where(within(refusals)),
  );
}

function columns(kind: Detail["kind"], at: PgColumn, { place, detail }: { place: SQL; detail: SQL }) {
  return {
    at: sql<string>`${at}`.as("at"),
    // Whole, and the same for every time zone and date style.
    moment: sql<string>`to_jsonb(${at}) #>> '{}'`.as("moment"),
    rank: sql<number>`${RANKS[kind]}::int`.as("rank"),
    place: sql<string>`${place}::text`.as("place"),
    detail: sql<Detail>`jsonb_build_object('kind', ${kind}::text) || ${detail}`.as("detail"),
  };
}

/** A number as text that sorts as the number does. */
const numbered = (seq: PgColumn): SQL => sql`lpad(${seq}::text, 10, '0')`;

const stepDetail = (payloads: boolean): SQL => sql`jsonb_build_object('seq', ${steps.seq},
  'tool', (select c.tool from ${calls} c where c.run_id = ${qualified(steps.runId)} and c.id = (${qualified(steps.body)} ->> 'callId')::uuid),
  'short', ${steps.body} - '{message,text,output,outcome}'::text[],
  'body', case when ${payloads}::boolean then ${steps.body} end)`;

const DECISION = sql`jsonb_build_object('approvalId', ${decisions.approvalId}, 'decision', ${decisions.decision},
  'actorId', ${decisions.actorId}, 'note', ${decisions.note},
  'tool', (select p.tool from ${approvals} p where p.id = ${qualified(decisions.approvalId)}))`;

const TRANSITION = sql`jsonb_build_object('seq', ${transitions.seq}, 'from', ${transitions.fromStatus},
  'to', ${transitions.toStatus}, 'event', ${transitions.event}, 'actorKind', ${transitions.actorKind},
  'actorId', ${transitions.actorId}, 'reason', ${transitions.reason})`;

const REFUSAL = sql`jsonb_build_object('event', ${refusals.event}, 'rule', ${refusals.rule}, 'status', ${refusals.status},
  'actorKind', ${refusals.actorKind}, 'actorId', ${refusals.actorId})`;

interface Cursor {
  readonly moment: string;
  readonly rank: number;
  readonly place: string;
}

function entryOf({ moment, detail }: Cursor & { readonly detail: Detail }): TimelineEntry {
  const atMs = Date.parse(moment);
  if (detail.kind !== "step") return { ...detail, atMs };
  const { kind, seq, short, tool, body } = detail;
  return { kind, atMs, seq, step: short.kind, line: stepLine(short, tool), body };
}

function writeCursor({ moment, rank, place }: Cursor): string {
  return Buffer.from([moment, rank, place].join("/")).toString("base64url");
}

const CURSOR = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d)\/([0-3])\/([0-9a-f-]{10,36})$/;

/** Null for a text that no page of ours gave. */
function readCursor(text: string): Cursor | null {
  const [, moment, rank, place] = CURSOR.exec(Buffer.from(text, "base64url").toString()) ?? [];
  return moment === undefined || rank === undefined || place === undefined
    ? null
    : { moment, rank: Number(rank), place };
}
