import type { JsonValue } from "./json.ts";
import type { Call, ResultKind, Step } from "./step.ts";

/** How a call has ended, as far as that says something about an equal one. */
export interface End {
  readonly seq: number;
  readonly callId: string;
  readonly result: ResultKind;
  readonly output: JsonValue;
  readonly artifact?: string;
}

/** How the equal calls of a run have ended. */
export interface Work {
  /** Those that happened, or may have, in the order of the steps. */
  readonly happened: readonly End[];
  /** The last one that a person has rejected. */
  readonly rejected: End | null;
  /** The last one over which somebody was silent, or passed. */
  readonly passed: End | null;
}

/** The same while it is being made. */
export interface GrowingWork extends Work {
  readonly happened: End[];
  rejected: End | null;
  passed: End | null;
}

/** Results that say that it was done. */
export const HAPPENED: ReadonlySet<ResultKind> = new Set(["succeeded", "partial", "answered", "answered_from_record"]);
/** Results that say that it was done, or that nobody knows. */
export const MAY_HAVE_HAPPENED: ReadonlySet<ResultKind> = new Set([...HAPPENED, "not_established"]);

/** One name for all calls that are equal: it has what they have in common. */
export function workOf({ tool, argsHash }: Pick<Call, "tool" | "argsHash">): string {
  return `${tool}\u0000${argsHash}`;
}

/** Work of which no call has ended. */
export function noWork(): GrowingWork {
  return { happened: [], rejected: null, passed: null };
}

/** Takes in how one more of the calls has ended. */
export function addEnd(work: GrowingWork, end: End): void {
  if (MAY_HAVE_HAPPENED.has(end.result)) work.happened.push(end);
  if (end.result === "rejected") work.rejected = end;
  if (end.result === "expired" || end.result === "skipped") work.passed = end;
}

/** What a step says of how a call has ended; null if it says nothing of that. */
export function endOf({ seq, body }: Step): End | null {
  if (body.kind === "finding") return { seq, callId: body.callId, result: "succeeded", output: body.output };
  if (body.kind !== "tool_result") return null;
  const { callId, result, output, artifact } = body;
  return { seq, callId, result, output, ...(artifact === undefined ? {} : { artifact }) };
}

/** Whether calls of this kind do something, once: a read and a timer may be had again. */
export function isDone(effect: Call["effect"]): effect is Extract<Call["effect"], { kind: "effect" | "children" }> {
  return effect.kind === "effect" || effect.kind === "children";
}

/** Whether what an equal call before it has done is the answer to this one. */
export function isDoneOnce({ effect }: Call): boolean {
  return isDone(effect) && !effect.equalCallsAreDistinct;
}
