import type { JsonValue, StepBody } from "@holdpoint/core";
import { advance } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type LoadedRun, loadRun } from "./load-run.ts";
import type { Artifact, Move, Settle, Writes } from "./move.ts";
import { transitionOne } from "./transition.ts";

/** What a worker that was replaced, or a call that outlived its run's cancel, brings home. */
export interface LateEvidence {
  readonly runId: string;
  readonly attemptId: string;
  readonly workerId: string;
  readonly body: Extract<StepBody, { kind: "tool_result" | "call_failed" | "effect_pending" }>;
  readonly settle: Omit<Settle, "attemptId" | "settledBy">;
  readonly artifacts?: readonly Artifact[];
}

export type LateEvidenceResult =
  /** The attempt was open: it is settled by this. */
  | "settled"
  /** Somebody had settled it: what this says is kept on the attempt, for whoever compares. */
  | "finding"
  | "not_found";

const TRIES = 20;

/**
 * Stores what became of an attempt, from a worker that no longer owns its run. Fenced by the attempt: whoever holds it
 * writes it once. It never moves a run that has ended.
 */
export async function recordLateEvidence(store: Store, evidence: LateEvidence): Promise<LateEvidenceResult> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const result = await attempt(store, evidence);
    if (result !== null) return result;
  }
  throw new Error(`Run ${evidence.runId} changed ${TRIES} times while late evidence was being stored; try again`);
}

/** One try; null when the rows have changed since they were read. */
async function attempt(store: Store, evidence: LateEvidence): Promise<LateEvidenceResult | null> {
  const loaded = await loadRun(store, evidence.runId);
  if (loaded === null) return "not_found";
  const isOpen = loaded.openAttempts.some(({ id }) => id === evidence.attemptId);
  const settledAs = isOpen ? null : await outcomeOf(store, evidence);
  if (!isOpen && settledAs === null) return "not_found";
  const move = settledAs === null ? settling(loaded, evidence) : finding(loaded, evidence, settledAs);
  const moved = await transitionOne(store, move);
  if (moved.result === "accepted") return isOpen ? "settled" : "finding";
  return moved.result === "notFound" ? "not_found" : null;
}

function settling(loaded: LoadedRun, { workerId, attemptId, body, settle, artifacts }: LateEvidence): Move {
  return {
    run: loaded.run,
    events: [{ type: "EffectSettled", by: "late_evidence", wasOpen: true }],
    actor: { kind: "worker", id: workerId },
    reason: "late evidence",
    writes: {
      steps: [body],
      settles: [{ ...settle, attemptId, settledBy: `late:${workerId}` }],
      checkpoint: advance(loaded.run.checkpoint, { seq: loaded.run.stepSeq + 1, body }, loaded.calls),
      artifacts: artifacts ?? [],
    },
  };
}

/** What differs from how the attempt was settled is kept on the attempt; that it did happen, as a step as well. */
function finding(loaded: LoadedRun, late: LateEvidence, settledAs: string): Move {
  const { outcome, externalRef = null, errorClass = null, errorCode = null } = late.settle;
  const evidence: JsonValue = { outcome, externalRef, errorClass, errorCode };
  const isNews = HAPPENED.has(outcome) && !HAPPENED.has(settledAs);
  return {
    run: loaded.run,
    events: [{ type: "EffectSettled", by: "late_evidence", wasOpen: false }],
    actor: { kind: "worker", id: late.workerId },
    reason: "late evidence about a settled attempt",
    writes: { late: [{ attemptId: late.attemptId, evidence }], ...(isNews ? happenedAfterAll(loaded, late) : {}) },
  };
}

/**
 * Whoever plans an equal call, in this run or another of its line, must see that it has happened. What was only accepted
 * is followed as such, while its call has no result.
 */
function happenedAfterAll(loaded: LoadedRun, { body, artifacts = [] }: LateEvidence): Writes {
  const { callId } = body;
  const hasResult = loaded.steps.some((known) => known.body.kind === "tool_result" && known.body.callId === callId);
  const output = body.kind === "call_failed" ? null : body.output;
  const step: StepBody = body.kind === "effect_pending" && !hasResult ? body : { kind: "finding", callId, output };
  const seq = loaded.run.stepSeq + 1;
  return { steps: [step], checkpoint: advance(loaded.run.checkpoint, { seq, body: step }, loaded.calls), artifacts };
}

const HAPPENED: ReadonlySet<string> = new Set(["succeeded", "happened"]);

async function outcomeOf(store: Store, { runId, attemptId }: LateEvidence): Promise<string | null> {
  const [row] = await execute<{ outcome: string | null }>(store, OUTCOME, [store.tenantId, runId, attemptId]);
  return row?.outcome ?? null;
}

const OUTCOME = statement(
  "outcome_of_attempt",
  "select outcome from holdpoint.attempts where tenant_id = $1::uuid and run_id = $2::uuid and id = $3::uuid",
);
