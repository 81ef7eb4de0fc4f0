import type { ApprovalRule, DecidableRequest, GivenDecision, PendingRequest } from "../src/approval.ts";
import { runHistory } from "../src/history.ts";
import type { PlanInput } from "../src/next.ts";
import type { Condition, DenyRule } from "../src/policy.ts";
import type { Hold, Outcome, RunState } from "../src/state.ts";
import { NOW, submitted } from "../src/state.ts";
import type { Status } from "../src/status.ts";
import type {
  Approval,
  Call,
  Child,
  ChildrenProperties,
  ClosedService,
  EffectProperties,
  ErrorClass,
  Fact,
  Limits,
  LineEffect,
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
  return {
    kind: "effect",
    keyValidForMs: null,
    lookUpSettlesWithinMs: null,
    equalCallsAreDistinct: false,
    settlement: null,
    ...patch,
  };
}

/** Child runs of which every one has to end, three at once; a blocked one is shown to an operator. */
export function childRuns(patch: Partial<ChildrenProperties> = {}): ChildrenProperties {
  return {
    kind: "children",
    wait: "all",
    atOnce: 3,
    onBlocked: "operator",
    equalCallsAreDistinct: false,
    withinMs: 3_600_000,
    ...patch,
  };
}

/** The child at this place of `call_1`, of its first try, that works; named `run_<place>`. */
export function aChild(ordinal: number, patch: Partial<Child> = {}): Child {
  return {
    id: `child_${ordinal}`,
    shownId: `run_${ordinal}`,
    callId: "call_1",
    ordinal,
    try: 1,
    agent: { name: "clerk", version: "1" },
    ended: false,
    status: "running",
    outcome: null,
    endReason: null,
    result: null,
    resultArtifact: null,
    stopRequested: false,
    ...patch,
  };
}

/** How a child ends whose outcome this is. */
export function endedWith(outcome: Outcome, result: Child["result"] = null): Partial<Child> {
  return { ended: true, status: "completed", outcome, result };
}

export const PARTIAL: Outcome = { kind: "partial", reason: "one of two orders" };
export const BLOCKED: Outcome = { kind: "blocked", step: "find_order", reason: "no permission" };

export const RULE: ApprovalRule = {
  rule: "refund_limit",
  approvers: { roles: ["manager"], users: ["user:bob"] },
  quorum: 1,
  veto: true,
  fourEyes: true,
  decisions: ["approve", "approve_with_edits", "reject", "reject_and_abort", "respond", "skip", "escalate"],
  answerSchema: null,
  deadlineMs: 86_400_000,
  onDeadline: "reject",
  remindAfterMs: [],
  escalation: [],
  validForMs: 86_400_000,
};

/** Next in line: the directors, for ten minutes; then the board, for twenty. */
export const ESCALATION = [
  { approvers: { roles: ["director"], users: [] }, deadlineMs: 600_000 },
  { approvers: { roles: ["board"], users: [] }, deadlineMs: 1_200_000 },
] as const;

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
    throttledForMs: 60_000,
    service: "orders",
    ...patch,
  };
}

/** A request of level 0 that nobody has decided, due in half a second. */
export function aRequest(callId: string, patch: Partial<PendingRequest> = {}): PendingRequest {
  return {
    id: `approval_of_${callId}`,
    callId,
    terms: RULE,
    level: 0,
    extended: false,
    deadlineMs: NOW_MS + 500,
    ...patch,
  };
}

/** The same as a decision sees it: asked for by Ann, who may not approve it herself. */
export function aDecidable(patch: Partial<DecidableRequest> = {}): DecidableRequest {
  return {
    ...aRequest("call_1"),
    state: "pending",
    argsHash: "hash_1",
    requester: "user:ann",
    excluded: ["user:ann"],
    decided: [],
    ...patch,
  };
}

/** A manager who approves what was shown. */
export function aDecision(patch: Partial<GivenDecision> = {}): GivenDecision {
  return { kind: "approve", by: "user:mia", roles: ["manager"], argsHash: "hash_1", payload: null, ...patch };
}

export function anApproval(call: Call, patch: Partial<Approval> = {}): Approval {
  return {
    ...aRequest(call.id),
    args: call.args,
    argsHash: call.argsHash,
    state: "pending",
    editedBy: null,
    validUntilMs: null,
    decidedBy: null,
    note: null,
    answer: null,
    rightsLost: false,
    ...patch,
  };
}

/** A rule that forbids all calls of a tool, or those whose arguments meet the conditions. */
export function aDenial(tool: string, when: readonly Condition[] = []): DenyRule {
  return { name: `no_${tool}`, tools: [tool], when, action: "deny", message: "It is off." };
}

/** A service that may not be called for another five seconds. */
export function aClosedService(patch: Partial<ClosedService> = {}): ClosedService {
  return { name: "orders", reason: "throttled", sinceMs: NOW_MS - 9_000, untilMs: NOW_MS + 5_000, ...patch };
}

/** How an equal call of an earlier run ended. */
export function aLineEffect(call: Call, patch: Partial<LineEffect> = {}): LineEffect {
  return {
    callId: "call_of_earlier_run",
    tool: call.tool,
    argsHash: call.argsHash,
    result: "succeeded",
    output: "re_1",
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

/** The steps with these bodies, numbered from 1, a second apart; the last was stored just now. */
export function steps(...bodies: readonly StepBody[]): readonly Step[] {
  return bodies.map((body, index) => ({
    seq: index + 1,
    atMs: NOW_MS - 1_000 * (bodies.length - 1 - index),
    body,
  }));
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

/** The children at these places have been started. */
export function theStart(
  ordinals: readonly number[],
  patch: Partial<Extract<StepBody, { kind: "children_started" }>> = {},
): StepBody {
  return { kind: "children_started", callId: "call_1", try: 1, ordinals, total: ordinals.length, ...patch };
}

export function aMessage(text = "hello"): Extract<StepBody, { kind: "message" }> {
  return { kind: "message", from: "user:ann", text };
}

export function aFact(body: Fact["body"] = aMessage()): Fact {
  return { id: `fact_${body.kind}`, body };
}

export const LIMITS: Limits = { turns: 10, tokens: 1_000, costUsd: null, wallMs: null };

/** What is said of a run: its steps and calls as lists. */
export type InputPatch = Partial<
  Omit<PlanInput, "history"> & { readonly steps: readonly Step[]; readonly calls: readonly Call[] }
>;

/** A run that has done nothing yet, with room for everything. */
export function anInput({ steps: rows = [], calls = [], ...patch }: InputPatch = {}): PlanInput {
  return {
    history: runHistory(rows, calls),
    openAttempts: [],
    children: [],
    liveChildren: 0,
    isGraph: false,
    version: "1",
    approvals: [],
    unread: [],
    lineEffects: [],
    denials: [],
    services: [],
    limits: LIMITS,
    price: null,
    workedMs: 0,
    onBlocked: "operator",
    model: { retries: 1, throttledForMs: 60_000, service: "model" },
    requester: "user:ann",
    nowMs: NOW_MS,
    ...patch,
  };
}

/** A run whose model has just asked for these calls. */
export function askedFor(calls: readonly Call[], patch: InputPatch = {}): PlanInput {
  return anInput({ calls, steps: steps(aReply(calls.map(({ id }) => id))), ...patch });
}
