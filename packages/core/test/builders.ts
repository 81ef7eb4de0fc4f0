import type { PlanInput } from "../src/plan.ts";
import type { Hold, Outcome, RunState } from "../src/state.ts";
import { NOW, submitted } from "../src/state.ts";
import type { Status } from "../src/status.ts";
import type {
  Approval,
  ApprovalRule,
  Call,
  EffectProperties,
  ErrorClass,
  Fact,
  OpenAttempt,
  Step,
  StepBody,
} from "../src/step.ts";

/** The time of the database in these tests. */
export const NOW_MS = 1_000_000;

export const HOLDS = {
  input: {
    kind: "input",
    waitingFor: { kind: "requester", principal: "user:ann", subject: null, reason: "question" },
    deadline: { inMs: 70_000 },
    onDeadline: "no_answer",
  },
  approval: {
    kind: "approval",
    waitingFor: { kind: "approvers", principal: "role:manager", subject: "call_1", reason: "refund_limit" },
    deadline: { inMs: 10_000 },
    onDeadline: "reject",
  },
  dependency: {
    kind: "dependency",
    waitingFor: { kind: "service", principal: "payments", subject: "call_1", reason: "pending" },
    deadline: { inMs: 20_000 },
    onDeadline: "operator",
  },
  operator: {
    kind: "operator",
    waitingFor: { kind: "operator", principal: "role:operator", subject: "call_1", reason: "call_failed" },
    deadline: { inMs: 30_000 },
    onDeadline: "escalate",
  },
} as const satisfies Record<Hold["kind"], Hold>;

export const SUCCEEDED: Outcome = { kind: "succeeded" };

/** What each status must have set, and nothing else. */
const COMPLETE: Readonly<Record<Status, Partial<RunState>>> = {
  queued: { queuedSince: NOW, waitDeadline: { inMs: 60_000 } },
  running: { owner: "worker_1" },
  waiting_input: heldAt(HOLDS.input),
  waiting_approval: heldAt(HOLDS.approval),
  waiting_dependency: heldAt(HOLDS.dependency),
  waiting_operator: heldAt(HOLDS.operator),
  retrying: { retryAt: { at: 5_000 } },
  outcome_unknown: {
    openAttempts: 1,
    nextReconcileAt: { at: 6_000 },
    waitDeadline: { at: 9_000 },
    lookUpsEndAt: { at: 9_000 },
  },
  paused: { pausedAt: { at: 1_000 }, pauseRequestedAt: NOW, resumeTo: { to: "queued" }, waitDeadline: { inMs: 1 } },
  lost: { lostAt: NOW, lostReason: "lease_expired", waitDeadline: { inMs: 2 } },
  cancelling: { cancelRequestedAt: NOW, owner: "worker_1", waitDeadline: { inMs: 3 } },
  completed: { endedAt: NOW, outcome: SUCCEEDED },
  failed: { endedAt: NOW, endReason: "no_such_order" },
  cancelled: { endedAt: NOW, cancelRequestedAt: NOW },
};

/** A run with this status and all that the status asks for. */
export function aRun(status: Status, patch: Partial<RunState> = {}): RunState {
  return { ...submitted(), queuedSince: null, waitDeadline: null, ...COMPLETE[status], status, ...patch };
}

/** The fields of a run that waits in this hold. */
export function heldAt({ waitingFor, deadline: waitDeadline, onDeadline }: Hold): Partial<RunState> {
  return { waitingFor, waitingSince: NOW, waitDeadline, onDeadline };
}

/** A run that waits for an operator because nobody could find out how its open attempt ended. */
export function anUnknownAtOperator(patch: Partial<RunState> = {}): RunState {
  const { waitingFor, ...held } = heldAt(HOLDS.operator);
  const reason = { kind: "operator", principal: "role:operator", subject: null, reason: "outcome_unknown" } as const;
  return aRun("waiting_operator", { ...held, waitingFor: reason, openAttempts: 1, lookUpsOver: true, ...patch });
}

export const READ: EffectProperties = { kind: "read" };

export function anEffect(patch: Partial<Extract<EffectProperties, { kind: "effect" }>> = {}): EffectProperties {
  return { kind: "effect", keyValidForMs: null, lookUpSettlesWithinMs: null, equalCallsAreDistinct: false, ...patch };
}

export const RULE: ApprovalRule = {
  rule: "refund_limit",
  approvers: { roles: ["manager"], users: ["user:bob"] },
  deadlineMs: 86_400_000,
  onDeadline: "reject",
  validForMs: 86_400_000,
};

export const NEEDS_APPROVAL = { kind: "needs_approval", approval: RULE } as const;

/** The call with this ordinal of turn 1, a read that is allowed; named `call_<ordinal>`, with arguments of its own. */
export function aCall(ordinal: number, patch: Partial<Call> = {}): Call {
  return {
    id: `call_${ordinal}`,
    turn: 1,
    ordinal,
    toolCallId: `t${ordinal}`,
    tool: "find_order",
    args: { ordinal },
    argsHash: `hash_${ordinal}`,
    operationId: `op_${ordinal}`,
    effect: READ,
    verdict: { kind: "allowed" },
    timeoutMs: 10_000,
    retries: 1,
    ...patch,
  };
}

export function anApproval(call: Call, patch: Partial<Approval> = {}): Approval {
  return {
    id: `approval_of_${call.id}`,
    callId: call.id,
    argsHash: call.argsHash,
    state: "pending",
    deadlineMs: NOW_MS + 500,
    validUntilMs: null,
    decidedBy: null,
    note: null,
    ...patch,
  };
}

export function anAttempt(callId: string, patch: Partial<OpenAttempt> = {}): OpenAttempt {
  return {
    id: `attempt_of_${callId}`,
    callId,
    number: 1,
    startedAtMs: 0,
    deadlineAtMs: 10_000,
    keyFirstUsedAtMs: 0,
    repeatRefused: false,
    ...patch,
  };
}

/** The steps with these bodies, numbered from 1. */
export function steps(...bodies: readonly StepBody[]): readonly Step[] {
  return bodies.map((body, index) => ({ seq: index + 1, body }));
}

export function aReply(
  callIds: readonly string[],
  patch: Partial<Extract<StepBody, { kind: "model_reply" }>> = {},
): StepBody {
  const usage = { inputTokens: 10, outputTokens: 5 };
  return { kind: "model_reply", turn: 1, message: {}, text: "", callIds, outcome: null, usage, ...patch };
}

export function aResult(
  callId: string,
  patch: Partial<Extract<StepBody, { kind: "tool_result" }>> = {},
): Extract<StepBody, { kind: "tool_result" }> {
  return { kind: "tool_result", callId, result: "succeeded", output: { done: callId }, ...patch };
}

export function aFailure(callId: string, attempt: number, retryInMs = 250): Extract<StepBody, { kind: "call_failed" }> {
  return { kind: "call_failed", callId, attempt, errorClass: "transient", code: "ECONNRESET", retryInMs };
}

export function aModelFailure(errorClass: ErrorClass = "transient", retryInMs = 400): StepBody {
  return { kind: "model_failed", errorClass, code: "overloaded", retryInMs };
}

export function anOrder(choice: "retry" | "skip", callId: string | null): Extract<StepBody, { kind: "operator" }> {
  return { kind: "operator", choice, callId };
}

export function aMessage(text = "hello"): Extract<StepBody, { kind: "message" }> {
  return { kind: "message", from: "user:ann", text };
}

export function aFact(body: Fact["body"] = aMessage()): Fact {
  return { id: `fact_${body.kind}`, body };
}

/** A run that has done nothing yet, with room for everything. */
export function anInput(patch: Partial<PlanInput> = {}): PlanInput {
  return {
    steps: [],
    calls: [],
    openAttempts: [],
    approvals: [],
    unread: [],
    lineEffects: [],
    limits: { turns: 10, tokens: 1_000 },
    onBlocked: "operator",
    modelRetries: 1,
    requester: "user:ann",
    nowMs: NOW_MS,
    ...patch,
  };
}
