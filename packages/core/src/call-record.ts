import type { JsonValue } from "./json.ts";
import { type FailureRow, isFailedTry, NO_FAILURES, withFailure } from "./retries.ts";
import type { Step, StepBody } from "./step.ts";
import { type End, endOf } from "./work.ts";

/** A step that says that children of a call have been started. */
export type ChildrenStarted = Extract<StepBody, { kind: "children_started" }>;

/** That the other side has accepted a call and settles it later. */
export interface Acceptance {
  readonly output: JsonValue;
  readonly sinceMs: number;
}

/** All that the steps of a run say of one call. */
export interface CallRecord {
  readonly result: Extract<StepBody, { kind: "tool_result" }> | null;
  /** Its result and what was found out after it. */
  readonly ends: readonly End[];
  /** The last evidence that it happened after all. */
  readonly finding: Extract<StepBody, { kind: "finding" }> | null;
  readonly acceptance: Acceptance | null;
  /** The step that has said so last; 0 if none has. */
  readonly acceptedSeq: number;
  readonly timerDueAtMs: number | null;
  /** The last step by which the other side has reported that it failed after all; 0 if there is none. */
  readonly reportedFailedSeq: number;
  /** The greatest number of an attempt: effects are numbered by their intents, reads by their failures. */
  readonly attempts: number;
  /** The failed tries since an operator has last ordered another one. */
  readonly failures: FailureRow;
  readonly starts: readonly ChildrenStarted[];
  readonly isSkipOrdered: boolean;
  /** How often an operator has ordered it to be tried again. */
  readonly retriesOrdered: number;
  /** When that was last; 0 if it was never. */
  readonly retryOrderedMs: number;
  /** That was after the last start of children. */
  readonly isRetryNewer: boolean;
}

/** What is said of a call that no step has named. */
export const NO_RECORD: CallRecord = {
  result: null,
  ends: [],
  finding: null,
  acceptance: null,
  acceptedSeq: 0,
  timerDueAtMs: null,
  reportedFailedSeq: 0,
  attempts: 0,
  failures: NO_FAILURES,
  starts: [],
  isSkipOrdered: false,
  retriesOrdered: 0,
  retryOrderedMs: 0,
  isRetryNewer: false,
};

/** A step that names a call. */
export type StepOfCall = Step & { readonly body: Extract<StepBody, { readonly callId: string | null }> };

/** A record after one more step that names its call. */
export function recordAfter(record: CallRecord, step: StepOfCall): CallRecord {
  const { body, seq, atMs } = step;
  const failures = isFailedTry(body) ? withFailure(record.failures, step) : record.failures;
  const end = endOf(step);
  const ends = end === null ? record.ends : [...record.ends, end];
  switch (body.kind) {
    case "tool_result":
      return { ...record, result: body, ends };
    case "finding":
      return { ...record, finding: body, ends };
    case "effect_pending":
      return {
        ...record,
        acceptance: record.acceptance ?? { output: body.output, sinceMs: atMs },
        acceptedSeq: seq,
      };
    case "timer_set":
      return { ...record, timerDueAtMs: record.timerDueAtMs ?? body.dueAtMs };
    case "callback":
      return body.failed === true ? { ...record, reportedFailedSeq: seq } : record;
    case "intent":
      return { ...record, attempts: Math.max(record.attempts, body.attempt) };
    case "call_failed":
      return { ...record, attempts: Math.max(record.attempts, body.attempt), failures };
    case "did_not_happen":
      return { ...record, failures };
    case "children_started":
      return { ...record, starts: [...record.starts, body], isRetryNewer: false };
    case "operator":
      return body.choice === "skip" ? { ...record, isSkipOrdered: true } : afterRetry(record, atMs);
  }
}

function afterRetry(record: CallRecord, atMs: number): CallRecord {
  const retriesOrdered = record.retriesOrdered + 1;
  return { ...record, failures: NO_FAILURES, retriesOrdered, retryOrderedMs: atMs, isRetryNewer: true };
}
