import type { JsonValue, StepBody } from "@holdpoint/core";
import { advance } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type LoadedRun, loadRun } from "./load-run.ts";
import { type Artifact, type Move, type Settle, transitionOne } from "./transition.ts";

/** What a worker that was replaced, or a call that outlived its run's cancel, brings home. */
export interface LateEvidence {
  readonly runId: string;
  readonly attemptId: string;
  readonly workerId: string;
  readonly body: Extract<StepBody, { kind: "tool_result" | "call_failed" }>;
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
    const loaded = await loadRun(store, evidence.runId);
    if (loaded === null) return "not_found";
    const wasOpen = loaded.openAttempts.some(({ id }) => id === evidence.attemptId);
    if (!wasOpen && !(await attemptExists(store, evidence))) return "not_found";
    const moved = await transitionOne(store, wasOpen ? settling(loaded, evidence) : finding(loaded, evidence));
    if (moved.result === "accepted") return wasOpen ? "settled" : "finding";
    if (moved.result === "notFound") return "not_found";
  }
  throw new Error(`Run ${evidence.runId} changed ${TRIES} times while late evidence was being stored; try again`);
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

function finding(loaded: LoadedRun, { workerId, attemptId, settle }: LateEvidence): Move {
  const { outcome, externalRef, errorClass, errorCode } = settle;
  const evidence: JsonValue = {
    outcome,
    externalRef: externalRef ?? null,
    errorClass: errorClass ?? null,
    errorCode: errorCode ?? null,
  };
  return {
    run: loaded.run,
    events: [{ type: "EffectSettled", by: "late_evidence", wasOpen: false }],
    actor: { kind: "worker", id: workerId },
    reason: "late evidence about a settled attempt",
    writes: { late: [{ attemptId, evidence }] },
  };
}

async function attemptExists(store: Store, { runId, attemptId }: LateEvidence): Promise<boolean> {
  return (await execute(store, ATTEMPT, [store.tenantId, runId, attemptId])).length > 0;
}

const ATTEMPT = statement(
  "find_attempt",
  "select id from holdpoint.attempts where tenant_id = $1::uuid and run_id = $2::uuid and id = $3::uuid",
);
