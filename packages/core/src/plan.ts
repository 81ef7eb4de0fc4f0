import type { JsonValue } from "./json.ts";
import { operatorHold } from "./rest.ts";
import { DEFAULT_DEADLINES, type Hold, type Outcome } from "./state.ts";
import type {
  Approval,
  Call,
  Fact,
  Limits,
  LineEffect,
  OpenAttempt,
  ResultKind,
  Step,
  StepBody,
  Verdict,
} from "./step.ts";

/** All that the loop knows of a run when it decides what comes next. */
export interface PlanInput {
  readonly steps: readonly Step[];
  readonly calls: readonly Call[];
  readonly openAttempts: readonly OpenAttempt[];
  readonly approvals: readonly Approval[];
  /** Facts that no step has taken in yet, in order of arrival. */
  readonly unread: readonly Fact[];
  /** Effects of the earlier runs of the line. */
  readonly lineEffects: readonly LineEffect[];
  readonly limits: Limits;
  readonly onBlocked: "operator" | "end";
  /** Tries after a model request that failed, before a person is asked. */
  readonly modelRetries: number;
  readonly requester: string;
  /** The database's clock at the load. */
  readonly nowMs: number;
}

/** What the owner does next. */
export type Next =
  | { readonly do: "settle_attempt"; readonly call: Call; readonly attempt: OpenAttempt }
  | { readonly do: "read_facts"; readonly facts: readonly Fact[] }
  /** A wait of `afterMs` milliseconds belongs before it, counted from the failure that is the last step. */
  | { readonly do: "call_model"; readonly turn: number; readonly afterMs: number }
  | {
      readonly do: "execute";
      readonly call: Call;
      readonly attempt: number;
      readonly approvalId: string | null;
      readonly afterMs: number;
    }
  | { readonly do: "write_result"; readonly call: Call; readonly result: ResultKind; readonly output: JsonValue }
  /** `requests` are the calls for which an approval has to be asked for in this hold. */
  | { readonly do: "hold"; readonly hold: Hold; readonly requests: readonly Call[] }
  | { readonly do: "end"; readonly status: "completed"; readonly outcome: Outcome };

/** A turn whose calls were invalid this many times in a row is shown to a person. */
const INVALID_ROUNDS_LIMIT = 2;

/**
 * Decides what a run does next, from its rows alone. Resuming is not a special path: whoever takes a run up asks the
 * same question of the same rows.
 */
export function plan(input: PlanInput): Next {
  const open = input.openAttempts[0];
  if (open !== undefined) return { do: "settle_attempt", call: callOf(input, open.callId), attempt: open };
  const orders = input.unread.filter((fact) => fact.body.kind === "operator");
  if (orders.length > 0) return { do: "read_facts", facts: orders };
  const reply = lastReply(input.steps);
  const call = reply === null ? null : nextCall(input, reply.body.callIds);
  if (call !== null) return planCall(input, call);
  if (input.unread.length > 0) return { do: "read_facts", facts: input.unread };
  return reply === null || reply.body.callIds.length > 0 ? planModel(input) : planReply(input, reply);
}

function planCall(input: PlanInput, call: Call): Next {
  const written = writtenAnswer(input, call);
  if (written !== null) return { do: "write_result", call, ...written };
  if (!isGated(call)) return execute(input, call, null);
  const approval = latestApproval(input, call);
  if (approval === null) return askForApproval(input, call);
  switch (approval.state) {
    case "pending":
      return { do: "hold", hold: approvalHold(input, call, []), requests: [] };
    case "approved":
    case "spent": {
      const lapsed = approval.validUntilMs !== null && approval.validUntilMs <= input.nowMs;
      return lapsed ? askForApproval(input, call) : execute(input, call, approval.id);
    }
    case "withdrawn":
      return askForApproval(input, call);
    case "rejected":
      return { do: "write_result", call, result: "rejected", output: rejection(approval) };
    case "expired":
      return { do: "write_result", call, result: "expired", output: NOT_DECIDED };
  }
}

const NOT_DECIDED =
  "NOT EXECUTED. Nobody decided on the approval request before its deadline. Do not claim that it was done.";

function rejection(approval: Approval): string {
  const note = approval.note === null ? "no reason was given" : `reason given: ${approval.note}`;
  return `NOT EXECUTED. The approval request was rejected (${note}). Do not repeat this call and do not claim that it was done.`;
}

/** The answer that a call gets without being executed, if it gets one. */
function writtenAnswer(input: PlanInput, call: Call): { result: ResultKind; output: JsonValue } | null {
  const { verdict } = call;
  if (verdict.kind === "invalid") return { result: "invalid", output: `NOT EXECUTED. ${verdict.message}` };
  if (verdict.kind === "denied") return { result: "denied", output: `NOT EXECUTED. ${verdict.message}` };
  const skipped = input.steps.some(
    ({ body }) => body.kind === "operator" && body.choice === "skip" && body.callId === call.id,
  );
  if (skipped) return { result: "skipped", output: "NOT EXECUTED. An operator skipped this call: go on without it." };
  const earlier = equalEffect(input, call);
  if (earlier === null) return null;
  return earlier.happened === "yes"
    ? { result: "answered_from_record", output: earlier.output }
    : {
        result: "not_established",
        output: "NOT EXECUTED. An equal call was made before and nobody knows its outcome.",
      };
}

/**
 * An equal effect of this line of runs: it is answered from its record, never done twice. One that happened counts more
 * than one of which nobody knows; and evidence about the very call counts always.
 */
function equalEffect(input: PlanInput, call: Call): LineEffect | null {
  const { effect } = call;
  if (effect.kind === "read") return null;
  const equal = [...input.lineEffects, ...ownEffects(input)].filter(
    ({ callId, tool, argsHash }) =>
      callId === call.id || (!effect.equalCallsAreDistinct && tool === call.tool && argsHash === call.argsHash),
  );
  return equal.find(({ happened }) => happened === "yes") ?? equal[0] ?? null;
}

function ownEffects(input: PlanInput): readonly LineEffect[] {
  const calls = new Map(input.calls.map((call) => [call.id, call]));
  return input.steps.flatMap(({ body }): readonly LineEffect[] => {
    if (body.kind !== "tool_result" && body.kind !== "finding") return [];
    const known = calls.get(body.callId);
    const isKnown = body.kind === "finding" || body.result === "succeeded";
    if (known === undefined || !(isKnown || body.result === "not_established")) return [];
    const { id: callId, tool, argsHash } = known;
    return [{ callId, tool, argsHash, happened: isKnown ? "yes" : "unknown", output: body.output }];
  });
}

/** The approval under which a call may be started now: `null` if it needs none, `undefined` if it has none that is valid. */
export function approvalFor(
  call: Call,
  { approvals, nowMs }: Pick<PlanInput, "approvals" | "nowMs">,
): Approval | null | undefined {
  if (!isGated(call)) return null;
  const approval = latestApproval({ approvals }, call);
  const isGiven = approval?.state === "approved" || approval?.state === "spent";
  return isGiven && isDecidable(approval, nowMs) ? approval : undefined;
}

function execute(input: PlanInput, call: Call, approvalId: string | null): Next {
  const failures = since(input.steps, isOrderFor(call.id)).filter(
    (body) => body.kind === "call_failed" && body.callId === call.id,
  );
  const last = failures.at(-1);
  const attempt = attemptsMade(input.steps, call.id) + 1;
  if (last?.kind !== "call_failed") return { do: "execute", call, attempt, approvalId, afterMs: 0 };
  if (isSpent(failures, call.retries)) return hold(operatorHold("call_failed", call.id));
  return { do: "execute", call, attempt, approvalId, afterMs: last.retryInMs };
}

/** A throttled try is not the run's fault: it waits as long as it was told to, and has a budget of its own. */
const THROTTLED_LIMIT = 20;

function isSpent(failures: readonly StepBody[], retries: number): boolean {
  const throttled = failures.filter(
    (body) => (body.kind === "call_failed" || body.kind === "model_failed") && body.errorClass === "throttled",
  ).length;
  return throttled > THROTTLED_LIMIT || failures.length - throttled > retries;
}

/** Attempts of effects are numbered by their intents, those of reads by their failures: a read's result is its last. */
function attemptsMade(steps: readonly Step[], callId: string): number {
  const numbers = steps.map(({ body }) =>
    (body.kind === "intent" || body.kind === "call_failed") && body.callId === callId ? body.attempt : 0,
  );
  return Math.max(0, ...numbers);
}

type GatedCall = Call & { readonly verdict: Extract<Verdict, { kind: "needs_approval" }> };

function isGated(call: Call): call is GatedCall {
  return call.verdict.kind === "needs_approval";
}

/** At the first call that needs a decision all requests of its turn are made, in one hold. */
function askForApproval(input: PlanInput, first: GatedCall): Next {
  const requests = input.calls
    .filter(isGated)
    .filter(
      (call) =>
        call.turn === first.turn &&
        call.ordinal >= first.ordinal &&
        writtenAnswer(input, call) === null &&
        !isDecidable(latestApproval(input, call), input.nowMs),
    );
  return { do: "hold", hold: approvalHold(input, first, requests), requests };
}

function isDecidable(approval: Approval | null, nowMs: number): boolean {
  if (approval === null || approval.state === "withdrawn") return false;
  if (approval.state === "rejected" || approval.state === "expired" || approval.state === "pending") return true;
  return approval.validUntilMs === null || approval.validUntilMs > nowMs;
}

function approvalHold(input: PlanInput, first: GatedCall, requests: readonly GatedCall[]): Hold {
  const pending = input.approvals.filter((approval) => approval.state === "pending");
  const inMs = [
    ...requests.map(({ verdict }) => verdict.approval.deadlineMs),
    ...pending.map((approval) => Math.max(0, approval.deadlineMs - input.nowMs)),
  ];
  const { rule: reason, approvers, onDeadline } = first.verdict.approval;
  const principals = [...approvers.roles.map((role) => `role:${role}`), ...approvers.users];
  return {
    kind: "approval",
    waitingFor: {
      kind: "approvers",
      principal: principals.join(" or "),
      subject: first.id,
      reason,
    },
    deadline: { inMs: Math.min(...inMs) },
    onDeadline,
  };
}

function planModel(input: PlanInput): Next {
  const turns = replies(input.steps).length;
  const fresh = since(input.steps, (body) => body.kind === "operator" && body.choice === "retry");
  const granted = input.steps.filter(({ body }) => body.kind === "operator" && body.choice === "retry").length;
  if (turns >= input.limits.turns + granted) return hold(operatorHold("limit_turns", null));
  if (tokensUsed(input.steps) >= input.limits.tokens * (granted + 1)) return hold(operatorHold("limit_tokens", null));
  if (invalidRounds(input, fresh) >= INVALID_ROUNDS_LIMIT) return hold(operatorHold("invalid_arguments", null));
  const failures = trailing(fresh, (body) => body.kind === "model_failed");
  const last = failures.at(-1);
  if (last?.kind !== "model_failed") return { do: "call_model", turn: turns + 1, afterMs: 0 };
  const mayRepeat = last.errorClass !== "caller" && last.errorClass !== "refused";
  if (!mayRepeat || isSpent(failures, input.modelRetries)) return hold(operatorHold("model_failed", null));
  return { do: "call_model", turn: turns + 1, afterMs: last.retryInMs };
}

/** A reply without calls ends the run, is shown to an operator, or is a question to the requester. */
function planReply(input: PlanInput, reply: Reply): Next {
  const after = input.steps.filter((step) => step.seq > reply.seq);
  if (after.length > 0) return planModel(input);
  const { outcome } = reply.body;
  if (outcome === null) return hold(questionHold(input.requester));
  if (outcome.kind === "blocked" && input.onBlocked === "operator") return hold(operatorHold("blocked", null));
  return { do: "end", status: "completed", outcome };
}

function questionHold(requester: string): Hold {
  return {
    kind: "input",
    waitingFor: { kind: "requester", principal: requester, subject: null, reason: "question" },
    deadline: { inMs: DEFAULT_DEADLINES.inputMs },
    onDeadline: "no_answer",
  };
}

function hold(held: Hold): Next {
  return { do: "hold", hold: held, requests: [] };
}

type Reply = Step & { readonly body: Extract<StepBody, { kind: "model_reply" }> };

function replies(steps: readonly Step[]): readonly Reply[] {
  return steps.filter((step): step is Reply => step.body.kind === "model_reply");
}

function lastReply(steps: readonly Step[]): Reply | null {
  return replies(steps).at(-1) ?? null;
}

/** The first call of a turn, in model order, that has no result yet: nothing overtakes it. */
function nextCall(input: PlanInput, callIds: readonly string[]): Call | null {
  const done = new Set(input.steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body.callId] : [])));
  const id = callIds.find((callId) => !done.has(callId));
  return id === undefined ? null : callOf(input, id);
}

function callOf(input: PlanInput, callId: string): Call {
  const call = input.calls.find(({ id }) => id === callId);
  if (call === undefined) throw new RangeError(`A step names call ${callId}, which is not among the run's calls`);
  return call;
}

function latestApproval(input: Pick<PlanInput, "approvals">, call: Call): Approval | null {
  return input.approvals.findLast(({ callId, argsHash }) => callId === call.id && argsHash === call.argsHash) ?? null;
}

function isOrderFor(callId: string): (body: StepBody) => boolean {
  return (body) => body.kind === "operator" && body.choice === "retry" && body.callId === callId;
}

/** The bodies after the last step that matches; all of them if none does. */
function since(steps: readonly Step[], matches: (body: StepBody) => boolean): readonly StepBody[] {
  const index = steps.findLastIndex(({ body }) => matches(body));
  return steps.slice(index + 1).map(({ body }) => body);
}

/** The unbroken row of matching bodies at the end. */
function trailing(bodies: readonly StepBody[], matches: (body: StepBody) => boolean): readonly StepBody[] {
  const index = bodies.findLastIndex((body) => !matches(body));
  return bodies.slice(index + 1);
}

function tokensUsed(steps: readonly Step[]): number {
  return replies(steps).reduce((sum, { body }) => sum + body.usage.inputTokens + body.usage.outputTokens, 0);
}

/** How many of the last turns, in a row, asked for a call with arguments that its tool does not take. */
function invalidRounds(input: PlanInput, fresh: readonly StepBody[]): number {
  const rounds = fresh.flatMap((body) => (body.kind === "model_reply" ? [body.callIds] : []));
  const valid = rounds.findLastIndex((callIds) =>
    callIds.every((callId) => callOf(input, callId).verdict.kind !== "invalid"),
  );
  return rounds.length - 1 - valid;
}
