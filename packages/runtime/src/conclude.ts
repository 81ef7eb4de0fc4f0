import { backoffMs, type Call, type JsonValue, type StepBody } from "@holdpoint/core";
import type { Artifact, Settle } from "@holdpoint/store";
import type { Storable } from "./codec.ts";
import type { Tool, ToolOutcome } from "./define-tool.ts";
import type { LateOutcome } from "./execute-call.ts";
import { failureOutput, storeOutput, type Whole, withoutWhole } from "./output.ts";

const CALL_BACKOFF_CAP_MS = 60_000;

export type OutcomeBody = Extract<StepBody, { kind: "tool_result" | "call_failed" | "effect_pending" }>;

/** What a try that ended for certain means for the history, its attempt and the size limits. */
export interface Concluded {
  readonly body: OutcomeBody;
  readonly settle: Omit<Settle, "attemptId" | "settledBy">;
  readonly artifacts: readonly Artifact[];
  /** The same outcome without whatever the database may refuse: storing one never fails because of what belongs to it. */
  readonly spare: Omit<Concluded, "spare">;
}

interface Tried {
  readonly call: Call;
  readonly attempt: number;
  readonly tool: Tool;
  /** It finds out whether its service is back. */
  readonly probe: boolean;
}

export function conclude(outcome: LateOutcome, tried: Tried): Concluded {
  if (outcome.kind === "done") {
    const settle = { outcome: "succeeded", externalRef: outcome.externalRef } as const;
    return concludeDone(outcome.output, { ...tried, settle });
  }
  const { code, errorClass } = outcome;
  const settle = { outcome: "failed", errorClass, errorCode: code } as const;
  const body = isPassing(outcome)
    ? failedBody(outcome, tried)
    : resultOf(tried.call, "failed", { output: failureOutput(outcome) });
  const concluded = { body, settle, artifacts: [] };
  return { ...concluded, spare: concluded };
}

/** An effect that happened: done, or only accepted by the other side, which settles it later. */
export function concludeDone(
  raw: Storable,
  { call, tool, settle }: Pick<Tried, "call" | "tool"> & { readonly settle: Concluded["settle"] },
): Concluded {
  const isAccepted = call.effect.kind === "effect" && tool.isPending(raw);
  const stored = storeOutput(raw);
  const body = (output: JsonValue, whole: Whole): OutcomeBody =>
    isAccepted
      ? { kind: "effect_pending", callId: call.id, output }
      : resultOf(call, tool.outcome(raw), { output, ...whole });
  return {
    body: body(stored.output, stored.whole),
    settle,
    artifacts: stored.artifacts,
    spare: { body: body(stored.withoutArtifacts, withoutWhole(stored)), settle: { ...settle }, artifacts: [] },
  };
}

/** Whether another try may help. */
export function isPassing({ errorClass }: Extract<LateOutcome, { kind: "failed" }>): boolean {
  return errorClass === "transient" || errorClass === "throttled";
}

function resultOf(
  { id: callId }: Call,
  result: ToolOutcome | "failed",
  brought: Whole & { readonly output: JsonValue },
): OutcomeBody {
  return { kind: "tool_result", callId, result, ...brought };
}

function failedBody(
  { code, errorClass, retryAfterMs, trouble }: Extract<LateOutcome, { kind: "failed" }>,
  { call, attempt, tool, probe }: Tried,
): OutcomeBody {
  const backoff = { firstMs: tool.firstDelayMs, capMs: CALL_BACKOFF_CAP_MS };
  const retryInMs = retryAfterMs ?? backoffMs(attempt - 1, backoff);
  const failed = { kind: "call_failed", callId: call.id, attempt, errorClass, code, retryInMs } as const;
  return probe && trouble !== null ? { ...failed, probe: true } : failed;
}
