import type {
  AgentRef,
  Asked,
  Checkpoint,
  Instant,
  JsonValue,
  OnDeadline,
  Outcome,
  RunState,
  Status,
  WaitingFor,
} from "@holdpoint/core";

/** A run as its row says. Instants are milliseconds since the epoch, on the database's clock. */
export interface Run {
  readonly id: string;
  readonly sessionId: string;
  readonly agent: AgentRef;
  readonly requester: string;
  /** Who submitted it: not always the requester. */
  readonly submittedBy: string;
  readonly goal: string;
  readonly inputSeq: number;
  readonly line: string;
  readonly retryOf: string | null;
  readonly parent: string | null;
  /** The call of its parent that started it, its place among that call's children, and which try it is. */
  readonly parentCall: { readonly callId: string; readonly ordinal: number; readonly try: number } | null;
  /** From the root down to its parent. */
  readonly ancestors: readonly string[];
  /** What it was given beside its goal. */
  readonly input: JsonValue;
  /** What it has brought home. */
  readonly result: JsonValue;
  /** Of the live runs of one agent at most one has it. */
  readonly instanceKey: string | null;
  /** It is worked on elsewhere: none of our workers takes it, and nobody is woken for it. */
  readonly isTask: boolean;
  readonly version: number;
  readonly stepSeq: number;
  readonly epoch: number;
  readonly state: RunState;
  readonly currentStep: string | null;
  readonly checkpoint: Checkpoint;
  readonly progressDueAtMs: number | null;
  /** The transition that made the present hold; names the hold to whoever answers it. */
  readonly holdSeq: number | null;
  readonly externalRef: string | null;
  readonly claimedAtMs: number | null;
  /** For how long workers had it, in milliseconds, without the present claim. */
  readonly workedMs: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A row of `runs` as `to_jsonb` gives it. */
export interface RunJson {
  readonly id: string;
  readonly session_id: string;
  readonly agent_name: string;
  readonly agent_version: string;
  readonly requester: string;
  readonly submitted_by: string;
  readonly goal: string;
  readonly input_seq: number;
  readonly line: string;
  readonly retry_of: string | null;
  readonly parent: string | null;
  readonly parent_call: string | null;
  readonly parent_ordinal: number | null;
  readonly parent_try: number | null;
  readonly ancestors: readonly string[];
  readonly input: JsonValue;
  readonly result: JsonValue;
  readonly instance_key: string | null;
  readonly is_task: boolean;
  readonly status: Status;
  readonly version: number;
  readonly step_seq: number;
  readonly epoch: number;
  readonly owner: string | null;
  readonly current_step: string | null;
  readonly checkpoint: Checkpoint;
  readonly progress_due_at: string | null;
  readonly hold_seq: number | null;
  readonly external_ref: string | null;
  readonly open_attempts: number;
  readonly live_children: number;
  readonly takeovers: number;
  readonly queued_since: string | null;
  readonly waiting_for: WaitingFor | null;
  readonly waiting_since: string | null;
  readonly wait_deadline: string | null;
  readonly on_deadline: OnDeadline | null;
  readonly retry_at: string | null;
  readonly next_reconcile_at: string | null;
  readonly look_ups_end_at: string | null;
  readonly look_ups_over: boolean;
  readonly cancel_requested_at: string | null;
  readonly pause_requested_at: string | null;
  readonly paused_at: string | null;
  readonly resume_to: Asked | null;
  readonly lost_at: string | null;
  readonly lost_reason: string | null;
  readonly outcome: Outcome | null;
  readonly end_reason: string | null;
  readonly ended_at: string | null;
  readonly claimed_at: string | null;
  readonly worked_ms: number;
  readonly created_at: string;
  readonly updated_at: string;
}

/** Reads a row. */
export function runOf(row: RunJson): Run {
  return {
    id: row.id,
    sessionId: row.session_id,
    agent: { name: row.agent_name, version: row.agent_version },
    requester: row.requester,
    submittedBy: row.submitted_by,
    goal: row.goal,
    inputSeq: row.input_seq,
    line: row.line,
    retryOf: row.retry_of,
    parent: row.parent,
    parentCall: parentCallOf(row),
    ancestors: row.ancestors,
    input: row.input,
    result: row.result,
    instanceKey: row.instance_key,
    isTask: row.is_task,
    version: row.version,
    stepSeq: row.step_seq,
    epoch: row.epoch,
    state: stateOf(row),
    currentStep: row.current_step,
    checkpoint: row.checkpoint,
    holdSeq: row.hold_seq,
    progressDueAtMs: milliseconds(row.progress_due_at),
    externalRef: row.external_ref,
    claimedAtMs: milliseconds(row.claimed_at),
    workedMs: row.worked_ms,
    createdAtMs: Date.parse(row.created_at),
    updatedAtMs: Date.parse(row.updated_at),
  };
}

/**
 * A run after steps of its owner. Field by field, since every step makes one: a spread of more than twenty fields costs
 * several times as much.
 */
export function runAfterSteps(run: Run, to: Pick<Run, "stepSeq" | "state" | "currentStep" | "checkpoint">): Run {
  return {
    id: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    requester: run.requester,
    submittedBy: run.submittedBy,
    goal: run.goal,
    inputSeq: run.inputSeq,
    line: run.line,
    retryOf: run.retryOf,
    parent: run.parent,
    parentCall: run.parentCall,
    ancestors: run.ancestors,
    input: run.input,
    result: run.result,
    instanceKey: run.instanceKey,
    isTask: run.isTask,
    version: run.version,
    stepSeq: to.stepSeq,
    epoch: run.epoch,
    state: to.state,
    currentStep: to.currentStep,
    checkpoint: to.checkpoint,
    holdSeq: run.holdSeq,
    progressDueAtMs: run.progressDueAtMs,
    externalRef: run.externalRef,
    claimedAtMs: run.claimedAtMs,
    workedMs: run.workedMs,
    createdAtMs: run.createdAtMs,
    updatedAtMs: run.updatedAtMs,
  };
}

function parentCallOf({ parent_call: callId, parent_ordinal: ordinal, parent_try }: RunJson): Run["parentCall"] {
  return callId === null || ordinal === null || parent_try === null ? null : { callId, ordinal, try: parent_try };
}

/** Milliseconds since the epoch of an instant that was read from the database. */
export function milliseconds(text: string): number;
export function milliseconds(text: string | null): number | null;
export function milliseconds(text: string | null): number | null {
  return text === null ? null : Date.parse(text);
}

function stateOf(row: RunJson): RunState {
  return {
    status: row.status,
    owner: row.owner,
    openAttempts: row.open_attempts,
    liveChildren: row.live_children,
    takeovers: row.takeovers,
    queuedSince: instant(row.queued_since),
    waitingFor: row.waiting_for,
    waitingSince: instant(row.waiting_since),
    waitDeadline: instant(row.wait_deadline),
    onDeadline: row.on_deadline,
    retryAt: instant(row.retry_at),
    nextReconcileAt: instant(row.next_reconcile_at),
    lookUpsEndAt: instant(row.look_ups_end_at),
    lookUpsOver: row.look_ups_over,
    cancelRequestedAt: instant(row.cancel_requested_at),
    pauseRequestedAt: instant(row.pause_requested_at),
    pausedAt: instant(row.paused_at),
    resumeTo: row.resume_to,
    lostAt: instant(row.lost_at),
    lostReason: row.lost_reason,
    outcome: row.outcome,
    endReason: row.end_reason,
    endedAt: instant(row.ended_at),
  };
}

function instant(text: string | null): Instant | null {
  return text === null ? null : { at: Date.parse(text) };
}
