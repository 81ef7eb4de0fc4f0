import { type FailureRow, NO_FAILURES, withFailure } from "./retries.ts";
import type { Step, StepBody } from "./step.ts";

/** A step that is a model's reply. */
export type Reply = Step & { readonly body: Extract<StepBody, { kind: "model_reply" }> };

/** What the steps of a run come to, whichever calls they are about. */
export interface RunTotals {
  /** The last reply of a model, and how many there are. */
  readonly reply: Reply | null;
  readonly replies: number;
  /** Something has come after it that tells a model something new. */
  readonly isReplyOld: boolean;
  /** The model's failures since it has last answered, or anything else has happened. */
  readonly modelFailures: FailureRow;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** How often an operator has ordered a retry: each grants the run's limits once more. */
  readonly retriesOrdered: number;
  /** When that was last; 0 if it was never. */
  readonly retryOrderedMs: number;
  /** The last step by which somebody has said something; 0 if there is none. */
  readonly lastWordSeq: number;
  /** How often a graph has started something. */
  readonly graphTurns: number;
  /** The version in which an operator has last wanted the run to go on; null if nobody does any more. */
  readonly versionAsked: string | null;
}

export const NO_TOTALS: RunTotals = {
  reply: null,
  replies: 0,
  isReplyOld: false,
  modelFailures: NO_FAILURES,
  inputTokens: 0,
  outputTokens: 0,
  retriesOrdered: 0,
  retryOrderedMs: 0,
  lastWordSeq: 0,
  graphTurns: 0,
  versionAsked: null,
};

/** The subject of an operator's skip who does not want a refused migration any more. */
export const MIGRATION_SUBJECT = "@migration";

/** The totals after one more step. */
export function totalsAfter(totals: RunTotals, step: Step): RunTotals {
  const { body, seq, atMs } = step;
  const modelFailures = body.kind === "model_failed" ? withFailure(totals.modelFailures, step) : NO_FAILURES;
  // That the other side reported something is for the tool to judge; it tells the model nothing.
  const isReplyOld = totals.reply !== null && (totals.isReplyOld || body.kind !== "callback");
  // Most steps are results, of which only the first one changes something.
  const isSame = modelFailures === totals.modelFailures && isReplyOld === totals.isReplyOld;
  const next = isSame ? totals : { ...totals, modelFailures, isReplyOld };
  switch (body.kind) {
    case "model_reply":
      return {
        ...next,
        reply: { ...step, body },
        replies: totals.replies + 1,
        isReplyOld: false,
        inputTokens: totals.inputTokens + body.usage.inputTokens,
        outputTokens: totals.outputTokens + body.usage.outputTokens,
      };
    case "message":
      return { ...next, lastWordSeq: seq };
    case "nodes_started":
      return { ...next, graphTurns: totals.graphTurns + 1 };
    case "migration":
      return { ...next, versionAsked: body.version };
    case "operator":
      if (body.choice === "retry") {
        return { ...next, retriesOrdered: totals.retriesOrdered + 1, retryOrderedMs: atMs };
      }
      return body.callId === MIGRATION_SUBJECT ? { ...next, versionAsked: null } : next;
    default:
      return next;
  }
}
