import type { DecisionKind, JsonValue, Status, StepBody } from "@holdpoint/core";
import { and, eq, gte, isNotNull, type SQL, sql } from "drizzle-orm";
import { type PgColumn, unionAll } from "drizzle-orm/pg-core";
import type { Store } from "../db.ts";
import {
  approvals,
  attempts,
  callbacks,
  calls,
  decisions,
  refusals,
  reminders,
  steps,
  transitions,
} from "../schema.ts";
import { allCalls } from "../schema-views.ts";
import { type Page, type PageRequest, pageOf, qualified, reader, rowsFor } from "./reader.ts";
import { type StepInShort, stepLine } from "./step-line.ts";

/** What happened to a run, by what it is. */
export type TimelineEntry =
  | (Transition & { readonly atMs: number })
  | (Decision & { readonly atMs: number })
  | (Reminder & { readonly atMs: number })
  | (Callback & { readonly atMs: number })
  | (LateEvidence & { readonly atMs: number })
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
  readonly decision: DecisionKind;
  readonly level: number;
  readonly actorId: string;
  readonly note: string | null;
  /** What came with it, where that was asked for, else null: the arguments before and after an edit, or the answer. */
  readonly brought: { readonly said: JsonValue; readonly ran: JsonValue } | { readonly answer: JsonValue } | null;
}

interface Reminder {
  readonly kind: "reminder";
  readonly approvalId: string;
  readonly tool: string;
  readonly stage: number;
}

interface Callback {
  readonly kind: "callback";
  readonly source: string;
  readonly eventId: string;
  readonly tool: string;
  readonly status: "pending" | "settled" | "failed";
}

interface LateEvidence {
  readonly kind: "late_evidence";
  readonly attemptId: string;
  readonly tool: string;
  readonly number: number;
  readonly settledAs: string;
  readonly outcome: string;
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

type Detail = Transition | Decision | Reminder | Callback | LateEvidence | Refusal | StepDetail;

export interface TimelineRequest extends PageRequest {
  /** Whether steps and decisions come with their payloads: what the model said, what tools answered, what was edited. */
  readonly payloads: boolean;
}

/**
 * What happened to a run, from its start, ordered by time: transitions, steps, decisions on its approval requests and
 * reminders of them, what was reported from outside or came late, and the answers that were refused.
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

/** At one moment: what an owner did, then what came from outside, the transition that it brought, and what was refused after it. */
const RANKS: Readonly<Record<Detail["kind"], number>> = {
  step: 0,
  decision: 1,
  reminder: 1,
  callback: 1,
  late_evidence: 1,
  transition: 2,
  refusal: 3,
};

interface Wanted {
  readonly runId: string;
  /** Nothing before this moment, which is cheap to know for each table; the cursor itself is judged on all of them. */
  readonly since: string | null;
  readonly payloads: boolean;
}

function entries(store: Store, wanted: Wanted) {
  const read = reader(store);
  const within = (table: { readonly tenantId: PgColumn; readonly runId: PgColumn }, at: PgColumn) =>
    and(
      eq(table.tenantId, store.tenantId),
      eq(table.runId, wanted.runId),
      wanted.since === null ? undefined : gte(at, sql`${wanted.since}::timestamptz`),
    );
  return unionAll(
    read
      .select(columns("step", steps.at, { place: numbered(steps.seq), detail: stepDetail(wanted) }))
      .from(steps)
      .where(within(steps, steps.at)),
    read
      .select(
        columns("decision", decisions.at, { place: sql`${decisions.id}`, detail: decisionDetail(wanted.payloads) }),
      )
      .from(decisions)
      .where(within(decisions, decisions.at)),
    read
      .select(columns("reminder", reminders.at, { place: REMINDER_PLACE, detail: REMINDER }))
      .from(reminders)
      .where(within(reminders, reminders.at)),
    read
      .select(columns("callback", callbacks.receivedAt, { place: CALLBACK_PLACE, detail: CALLBACK }))
      .from(callbacks)
      .where(within(callbacks, callbacks.receivedAt)),
    read
      .select(columns("late_evidence", attempts.lateAt, { place: sql`${attempts.id}`, detail: LATE_EVIDENCE }))
      .from(attempts)
      .where(and(within(attempts, attempts.lateAt), isNotNull(attempts.lateAt))),
    read
      .select(columns("transition", transitions.at, { place: numbered(transitions.seq), detail: TRANSITION }))
      .from(transitions)
      .where(within(transitions, transitions.at)),
    read
      .select(columns("refusal", refusals.at, { place: sql`${refusals.id}`, detail: REFUSAL }))
      .from(refusals)
      .where(within(refusals, refusals.at)),
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

/** The tools of a run's calls by their ids: looked up once, however many steps there are. */
const toolsOf = (runId: string): SQL =>
  sql`(select jsonb_object_agg(c.id, c.tool) from ${allCalls} c where c.run_id = ${runId}::uuid)`;

const stepDetail = ({ runId, payloads }: Wanted): SQL => sql`jsonb_build_object('seq', ${steps.seq},
  'tool', ${toolsOf(runId)} ->> (${steps.body} ->> 'callId'),
  'short', ${steps.body} - '{message,text,output,outcome}'::text[],
  'body', case when ${payloads}::boolean then ${steps.body} end)`;

const toolOfApproval = (id: PgColumn): SQL => sql`(select p.tool from ${approvals} p where p.id = ${qualified(id)})`;

/** The tool of a call of a table's run. */
const toolOfCall = ({ runId, callId }: { readonly runId: PgColumn; readonly callId: PgColumn }): SQL =>
  sql`(select c.tool from ${calls} c where c.run_id = ${qualified(runId)} and c.id = ${qualified(callId)})`;

/** What an edit has made is another request for the same call, under the hash that the decision names. */
const BROUGHT = sql`case ${decisions.decision}
  when 'approve_with_edits' then (select jsonb_build_object('said', p.args::jsonb, 'ran', e.args::jsonb)
    from ${approvals} p join ${approvals} e on e.run_id = p.run_id and e.call_id = p.call_id
      and e.args_hash = ${qualified(decisions.payload)} ->> 'argsHash' and e.edited_by = ${qualified(decisions.actorId)}
    where p.id = ${qualified(decisions.approvalId)} order by e.hold_seq, e.id limit 1)
  when 'respond' then jsonb_build_object('answer', ${decisions.payload}) end`;

const decisionDetail = (payloads: boolean): SQL => sql`jsonb_build_object('approvalId', ${decisions.approvalId},
  'decision', ${decisions.decision}, 'level', ${decisions.level}, 'actorId', ${decisions.actorId}, 'note', ${decisions.note},
  'tool', ${toolOfApproval(decisions.approvalId)}, 'brought', case when ${payloads}::boolean then ${BROUGHT} end)`;

/** What names a row in a cursor: of one form, whatever is in the row's key. */
const REMINDER_PLACE = sql`md5(concat_ws('/', ${reminders.approvalId}, ${reminders.stage}))`;
const CALLBACK_PLACE = sql`md5(concat_ws('/', ${callbacks.source}, ${callbacks.eventId}))`;

const REMINDER = sql`jsonb_build_object('approvalId', ${reminders.approvalId}, 'stage', ${reminders.stage},
  'tool', ${toolOfApproval(reminders.approvalId)})`;

const CALLBACK = sql`jsonb_build_object('source', ${callbacks.source}, 'eventId', ${callbacks.eventId},
  'status', ${callbacks.status}, 'tool', ${toolOfCall(callbacks)})`;

const LATE_EVIDENCE = sql`jsonb_build_object('attemptId', ${attempts.id}, 'number', ${attempts.number},
  'settledAs', ${attempts.outcome}, 'outcome', ${attempts.lateEvidence} ->> 'outcome', 'tool', ${toolOfCall(attempts)})`;

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
