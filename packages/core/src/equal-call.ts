import { asItRuns } from "./as-it-runs.ts";
import { recordOf } from "./history.ts";
import type { PlanInput } from "./next.ts";
import type { Call, LineEffect, ResultKind } from "./step.ts";
import { addEnd, type End, HAPPENED, isDone, MAY_HAVE_HAPPENED, noWork, type Work, workOf } from "./work.ts";

/**
 * How an equal call of this line of runs ended: what it did is never done twice, and who refused it is not asked again.
 * One that happened counts more than one of which nobody knows, that more than one that was turned down.
 */
export function equalCall(input: PlanInput, call: Call): LineEffect | null {
  const { effect } = call;
  if (isDone(effect) && effect.equalCallsAreDistinct) return null;
  const counts = resultsThatCount(input, effect);
  if (counts.size === 0) return null;
  const { tool, argsHash } = call;
  const line = input.lineEffects.filter(
    (each) => counts.has(each.result) && each.tool === tool && each.argsHash === argsHash,
  );
  const work = ownWork(input, call);
  if (line.length === 0 && work === NO_WORK) return null;
  const happened = isDone(effect) ? work.happened : [];
  const first = (...results: readonly ResultKind[]): LineEffect | null => {
    const before = line.find(({ result }) => results.includes(result));
    if (before !== undefined) return before;
    const own = happened.find((end) => results.includes(asKnown(input, end)));
    return own === undefined ? null : lineEffect(call, { ...own, result: asKnown(input, own) });
  };
  const done = first("succeeded", "partial", "answered") ?? first("not_established");
  // An answer from the record is as good as the record is now, which may say otherwise since.
  const any = done ?? first("answered_from_record");
  if (any !== null) return any;
  const refused = counts.has("rejected") ? lastRefusal(input, work) : null;
  return refused === null ? (line.at(-1) ?? null) : lineEffect(call, refused);
}

function lineEffect({ tool, argsHash }: Call, { seq: _, ...end }: End): LineEffect {
  return { ...end, tool, argsHash };
}

const TURNED_DOWN: ReadonlySet<ResultKind> = new Set(["rejected", "expired", "skipped"]);
const ANY_RESULT: ReadonlySet<ResultKind> = new Set([...MAY_HAVE_HAPPENED, ...TURNED_DOWN]);
const NO_RESULT: ReadonlySet<ResultKind> = new Set();

/**
 * A model must not ask again for what a person has turned down. A graph asks again only where a gate sent the work back, or
 * an operator wants it: then people are asked anew, and only what happened counts.
 */
function resultsThatCount({ isGraph }: PlanInput, effect: Call["effect"]): ReadonlySet<ResultKind> {
  if (isGraph) return isDone(effect) ? MAY_HAVE_HAPPENED : NO_RESULT;
  return isDone(effect) ? ANY_RESULT : TURNED_DOWN;
}

/** How the calls of this run have ended that are equal to this one, as they run. */
function ownWork(input: PlanInput, call: Call): Work {
  const { workByName, callsByWork, callById } = input.history.known;
  const name = workOf(call);
  const edits = input.approvals.filter(({ editedBy }) => editedBy !== null);
  if (edits.length === 0) return workByName.get(name) ?? NO_WORK;
  const edited = new Map(edits.flatMap(({ callId }) => callById.get(callId) ?? []).map((each) => [each.id, each]));
  const isEqual = (each: Call): boolean => workOf(asItRuns(each, edits)) === name;
  const isAsAsked = [...edited.values()].every((each) => workOf(each) !== name && !isEqual(each));
  if (isAsAsked) return workByName.get(name) ?? NO_WORK;
  // A person has made other work of a call that was equal, or this of one that was not.
  const asked = (callsByWork.get(name) ?? []).filter(({ id }) => !edited.has(id));
  const equal = [...asked, ...[...edited.values()].filter(isEqual)];
  const ends = equal.flatMap(({ id }) => recordOf(input.history, id).ends);
  const work = noWork();
  for (const end of ends.toSorted((a, b) => a.seq - b.seq)) addEnd(work, end);
  return work;
}

const NO_WORK: Work = noWork();

/** What a person has last said against this work, as far as it still holds. */
function lastRefusal({ history }: PlanInput, { rejected, passed }: Work): End | null {
  // Who was silent, or passed over it, is asked again once somebody has said something new.
  const holds = passed !== null && passed.seq >= history.known.totals.lastWordSeq ? passed : null;
  if (rejected === null || holds === null) return rejected ?? holds;
  return rejected.seq > holds.seq ? rejected : holds;
}

/** The other side may have reported since that what had happened has failed after all. */
function asKnown({ history }: PlanInput, { seq, callId, result }: End): ResultKind {
  const hasFailed = HAPPENED.has(result) && recordOf(history, callId).reportedFailedSeq > seq;
  return hasFailed ? "not_established" : result;
}
