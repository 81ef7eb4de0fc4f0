import { createHash } from "node:crypto";
import { type Actor, isTerminal, presentHold, type ResultKind, type RunState, storableText } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { openFollowUp, storeCallback } from "./follow-up.ts";
import { newId } from "./ids.ts";
import type { CallbackRecord, Move, Writes } from "./move.ts";
import { reportBuried } from "./report-buried.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { transitionOne } from "./transition.ts";

/** What the other side of a tool reports by itself; whoever calls this has checked its signature. */
export interface ProviderCallback {
  /** Who reports, by the name under which its secret is known: the name of the calls' service. */
  readonly source: string;
  /** The other side's own name for this event: it sends one several times. */
  readonly eventId: string;
  readonly status: CallbackRecord["status"];
  /** The effect, by the other side's name for it or by the id of its operation; one of the two. */
  readonly effect: { readonly externalRef: string } | { readonly operationId: string };
}

export type CallbackResult =
  /** The run of the effect, or the one of its line that was told, as it is now. */
  | { readonly result: "accepted"; readonly run: Run }
  /** The effect had happened, its run has ended, and now it has failed: a person is told by this new run. */
  | { readonly result: "followed_up"; readonly run: Run }
  /** The same of a run that was removed: it stands on its tombstone, where the audit finds it. */
  | { readonly result: "buried"; readonly runId: string; readonly isNews: boolean }
  /** The same event came before. */
  | { readonly result: "repeated" }
  /** Nothing that this names was ever sent, or not yet: the other side should send it again later. */
  | { readonly result: "not_found" }
  /** The run moved all the time: the other side should send it again. */
  | { readonly result: "busy" };

const TRIES = 20;
const TEXT_LIMIT = 200;

/**
 * Stores what the other side reports about an effect, once for each of its events, and passes it to the run. What it says
 * is never taken for the outcome: a run that waits for this is woken, and its tool asks. An effect that had happened and
 * is now said to have failed is told to the live run of its line; where all have ended, a follow-up is opened for a
 * person, once a call.
 */
export async function recordCallback(store: Store, callback: ProviderCallback): Promise<CallbackResult> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const seen = await find(store, callback);
    if (seen === null) {
      const buried = await reportBuried(store, callback);
      return buried === null ? { result: "not_found" } : { result: "buried", ...buried };
    }
    if (seen.isKnown) return { result: "repeated" };
    if (isEarly(callback, seen)) return { result: "not_found" };
    const stored = await unlessTaken(() => attempt(store, callback, seen));
    if (stored !== null) return stored;
  }
  return { result: "busy" };
}

/** The effect's call and its run, as they are now. */
interface Seen {
  readonly run: Run;
  readonly callId: string;
  readonly tool: string;
  readonly externalRef: string;
  /** How the call ended; null if it has not. */
  readonly result: ResultKind | null;
  /** The other side had accepted it for later. */
  readonly wasPending: boolean;
  /** Another run of the line, that has not ended. */
  readonly live: Run | null;
  /** This event was stored before. */
  readonly isKnown: boolean;
  /** People have been told that this call's effect has failed. */
  readonly isTold: boolean;
}

/** One try; null when the rows have changed since they were read. */
async function attempt(store: Store, callback: ProviderCallback, seen: Seen): Promise<CallbackResult | null> {
  const { source, eventId, status } = callback;
  const record = { source, eventId, status, runId: seen.run.id, callId: seen.callId };
  const text = mustBeTold(callback, seen) ? textOf(callback, seen) : null;
  if (!isTerminal(seen.run.state.status)) return pass(store, moveOf(seen, { record, text }));
  if (text === null) {
    await storeCallback(store, record);
    return { result: "accepted", run: seen.run };
  }
  const toldId = toldIdOf(seen.callId);
  if (seen.live !== null) return pass(store, telling({ run: seen.live, record, text }));
  const run = await openFollowUp(store, { callback: record, toldId, text });
  return run === null ? { result: "repeated" } : { result: "followed_up", run };
}

async function pass(store: Store, move: Move): Promise<CallbackResult | null> {
  const moved = await transitionOne(store, move);
  // A run that ended meanwhile refuses the fact: what it is told then is judged anew.
  return moved.result === "accepted" ? { result: "accepted", run: moved.run } : null;
}

/** Null where somebody else was first: the same event, another report about the call, or another run of the line. */
async function unlessTaken(store: () => Promise<CallbackResult | null>): Promise<CallbackResult | null> {
  try {
    return await store();
  } catch (error) {
    if (TAKEN.has(constraintOf(error) ?? "")) return null;
    throw error;
  }
}

const TAKEN: ReadonlySet<string> = new Set([
  "callbacks_pkey",
  "inbox_pkey",
  "runs_one_live_per_line",
  // The run has been removed since it was read.
  "retried_run_exists",
]);

/**
 * A failure that is reported before the run knows what it is of. Only who has an answer can be told that it does not count
 * any more, so it has to come again.
 */
function isEarly({ status }: ProviderCallback, { run, result, wasPending }: Seen): boolean {
  return status === "failed" && result === null && !wasPending && !isTerminal(run.state.status);
}

const DONE: ReadonlySet<ResultKind | null> = new Set(["succeeded", "answered_from_record"]);

/** Whether somebody believes that it was done, and nobody will ask the other side any more. */
function mustBeTold({ status }: ProviderCallback, { run, result, wasPending, isTold }: Seen): boolean {
  if (status !== "failed" || isTold) return false;
  return DONE.has(result) || (wasPending && result === null && isTerminal(run.state.status));
}

/** Written here: of what came from outside there are only names that the run's own tool had stored before. */
function textOf({ source }: ProviderCallback, { tool, externalRef, run }: Seen): string {
  const what = `${tool} (${externalRef}), which it had accepted`;
  const goal = run.goal.length > TEXT_LIMIT ? `${run.goal.slice(0, TEXT_LIMIT)}…` : run.goal;
  return storableText(
    `${source} reports that ${what}, has failed since. It counts as not done: do not claim that it was. It belongs to: ${goal}`,
  );
}

interface Report {
  readonly record: CallbackRecord;
  readonly text: string | null;
}

function moveOf(seen: Seen, { record, text }: Report): Move {
  const { run, callId } = seen;
  const failed = record.status === "failed" ? ({ failed: true } as const) : {};
  const fact = { id: newId(), body: { kind: "callback", callId, ...failed } } as const;
  const told = text === null ? [] : toldFacts(record, text);
  return factMove(run, { record, facts: [fact, ...told], completesHold: awaits(run.state, callId) });
}

/** The run that did it has ended; another of its line goes on with the same matter. */
function telling({ run, record, text }: Report & { readonly run: Run; readonly text: string }): Move {
  return factMove(run, { record, facts: toldFacts(record, text), completesHold: false });
}

function toldFacts({ source, callId }: CallbackRecord, text: string): NonNullable<Writes["facts"]> {
  return [{ id: toldIdOf(callId), body: { kind: "message", from: source, text } }];
}

function factMove(
  run: Run,
  {
    record,
    facts,
    completesHold,
  }: {
    readonly record: CallbackRecord;
    readonly facts: NonNullable<Writes["facts"]>;
    readonly completesHold: boolean;
  },
): Move {
  const actor: Actor = { kind: "provider", id: record.source };
  return {
    run,
    events: [{ type: "FactArrived", fact: "callback", completesHold }],
    actor,
    reason: `reported ${record.status}`,
    writes: { facts, callbacks: [record] },
  };
}

/** Whether the run waits for how this call settles. */
function awaits(state: RunState, callId: string): boolean {
  const hold = presentHold(state);
  if (hold?.kind !== "dependency") return false;
  // Without a subject it waits for several things at once: its owner sees which has come.
  const { kind, subject } = hold.waitingFor;
  return subject === null || (kind === "callback" && subject === callId);
}

/** The same for every report about a call, so that of all of them one tells. */
function toldIdOf(callId: string): string {
  const hex = createHash("sha256").update(`late settlement of ${callId}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

type SeenRow = {
  run: RunJson;
  call_id: string;
  tool: string;
  external_ref: string;
  result: ResultKind | null;
  was_pending: boolean;
  is_known: boolean;
};

async function find(store: Store, { source, eventId, effect }: ProviderCallback): Promise<Seen | null> {
  const externalRef = "externalRef" in effect ? effect.externalRef : null;
  const operationId = "operationId" in effect ? effect.operationId : null;
  const [row] = await execute<SeenRow>(store, FIND, [store.tenantId, externalRef, operationId, source, eventId]);
  if (row === undefined) return null;
  const run = runOf(row.run);
  const [around] = await execute<{ live: RunJson | null; is_told: boolean }>(store, AROUND, [
    store.tenantId,
    run.line,
    run.id,
    toldIdOf(row.call_id),
  ]);
  return {
    run,
    callId: row.call_id,
    tool: row.tool,
    externalRef: row.external_ref,
    result: row.result,
    wasPending: row.was_pending,
    live: around?.live == null ? null : runOf(around.live),
    isKnown: row.is_known,
    isTold: around?.is_told ?? false,
  };
}

/**
 * A source speaks for the calls of the service of its name alone. One name may stand for several of them: the one that
 * waits for its settlement, else the latest.
 */
const FIND = statement(
  "find_effect",
  `
with named as (
  select a.run_id, a.call_id, a.external_ref, a.started_at as at from holdpoint.attempts a
  where a.tenant_id = $1::uuid and a.external_ref = $2
  union all
  select c.run_id, c.id, coalesce((select a.external_ref from holdpoint.attempts a
    where a.run_id = c.run_id and a.call_id = c.id and a.external_ref is not null order by a.number desc limit 1),
    c.operation_id), c.at
  from holdpoint.calls c where c.tenant_id = $1::uuid and c.operation_id = $3 and c.effect ->> 'kind' <> 'read'
),
seen as (
  select to_jsonb(r) as run, n.call_id, c.tool, n.external_ref, n.at,
    (select s.body->>'result' from holdpoint.steps s where s.run_id = n.run_id and s.kind = 'tool_result'
       and s.body->>'callId' = n.call_id::text) as result,
    exists (select from holdpoint.steps s where s.run_id = n.run_id and s.kind = 'effect_pending'
       and s.body->>'callId' = n.call_id::text) as was_pending
  from named n
  join holdpoint.runs r on r.id = n.run_id
  join holdpoint.calls c on c.run_id = n.run_id and c.id = n.call_id
  where c.service = $4
)
select run, call_id, tool, external_ref, result, was_pending,
  exists (select from holdpoint.callbacks b where b.tenant_id = $1::uuid and b.source = $4 and b.event_id = $5) as is_known
from seen order by (was_pending and result is null) desc, at desc limit 1`,
);

const AROUND = statement(
  "around_effect",
  `select (select to_jsonb(l) from holdpoint.runs l where l.tenant_id = $1::uuid and l.line = $2::uuid
       and l.id <> $3::uuid and l.ended_at is null) as live,
     exists (select from holdpoint.inbox f where f.id = $4::uuid) as is_told`,
);
