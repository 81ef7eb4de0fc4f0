import { holdOf } from "./approval.ts";
import type { JsonValue } from "./json.ts";
import { brokenLimit } from "./limits.ts";
import type { Next, PlanInput, RequestedApproval } from "./next.ts";
import {
  afterRefusal,
  isParentCall,
  type ParentCall,
  planChildren,
  skippedFamily,
  startOf,
  stopRest,
} from "./plan-children.ts";
import { findDenial } from "./policy.ts";
import { operatorHold } from "./rest.ts";
import { budgetReason, closedService, serviceHold } from "./retries.ts";
import type { Hold } from "./state.ts";
import type { Approval, Call, LineEffect, ResultKind, Step, StepBody, Verdict } from "./step.ts";

/** What comes next for the first call of a turn that has no result yet. */
export function planCall(input: PlanInput, call: Call): Next {
  const written = writtenAnswer(input, call);
  if (written !== null) return stopRest(input, call) ?? { do: "write_result", call, ...written };
  const accepted = acceptance(input, call);
  if (accepted !== null) return planSettlement(input, { call, accepted });
  if (isParentCall(call)) return planChildren(input, call) ?? planParent(input, call);
  return planStart(input, call);
}

function planParent(input: PlanInput, call: ParentCall): Next {
  const next = planStart(input, call);
  return next.do === "write_result" ? afterRefusal(input, call, next) : next;
}

/** A call that has not been started, or is to be tried anew: every start is judged. */
function planStart(input: PlanInput, call: Call): Next {
  const dueAtMs = timerOf(input, call);
  if (dueAtMs !== null) return planTimer(input, { call, dueAtMs });
  if (needsAPerson(input, call)) return hold(operatorHold("equal_effect_unknown", call.id));
  const approval = isGated(call) ? latestApproval(input, call) : null;
  const denial = findDenial(input.denials, call);
  if (denial !== null) {
    // A person had released it: that the rule is newer than their word is for a person to see.
    if (isGiven(approval)) return hold(operatorHold("policy_changed", call.id));
    return { do: "write_result", call, result: "denied", output: `NOT EXECUTED. ${denial.message}` };
  }
  if (!isGated(call)) return execute(input, call, null);
  return planGated(input, { call, approval });
}

function planGated(
  input: PlanInput,
  { call, approval }: { readonly call: GatedCall; readonly approval: Approval | null },
): Next {
  switch (approval?.state) {
    case "pending":
      return hold(pendingHold(input, []));
    case "approved":
    case "spent":
      return isSpendable(approval, input.nowMs) ? execute(input, call, approval.id) : askForApproval(input, call);
    case "rejected":
      return { do: "write_result", call, result: "rejected", output: rejection(approval) };
    case "skipped":
      return { do: "write_result", call, result: "skipped", output: SKIPPED_BY_APPROVER };
    case "answered":
      return { do: "write_result", call, result: "answered", output: approval.answer };
    case "expired":
      return { do: "write_result", call, result: "expired", output: NOT_DECIDED };
    default:
      return askForApproval(input, call);
  }
}

const NOT_DECIDED =
  "NOT EXECUTED. Nobody decided on the approval request before its deadline. Do not claim that it was done.";
const SKIPPED_BY_APPROVER = "NOT EXECUTED. Whoever was asked to approve it skipped this call: go on without it.";
const SKIPPED_BY_OPERATOR = "NOT EXECUTED. An operator skipped this call: go on without it.";
const NEVER_SETTLED =
  "NOT ESTABLISHED. The other side accepted this call, and nobody knows how it has settled. Do not claim that it was done.";

function rejection({ note }: Approval): string {
  const why = note === null ? "no reason was given" : `reason given: ${note}`;
  return `NOT EXECUTED. The approval request was rejected (${why}). Do not repeat this call and do not claim that it was done.`;
}

interface Written {
  readonly result: ResultKind;
  readonly output: JsonValue;
  readonly artifact?: string;
}

/** The answer that a call gets without being executed, if it gets one. */
function writtenAnswer(input: PlanInput, call: Call): Written | null {
  const { verdict } = call;
  if (verdict.kind === "invalid" || verdict.kind === "denied") {
    return { result: verdict.kind, output: `NOT EXECUTED. ${verdict.message}` };
  }
  const isSkipped = input.steps.some((step) => isOrder(step, "skip", call.id));
  if (acceptance(input, call) !== null) {
    return isSkipped ? { result: "not_established", output: NEVER_SETTLED } : null;
  }
  // Evidence says more than an order to pass over the call: it happened.
  const evidence = input.steps.findLast(({ body }) => body.kind === "finding" && body.callId === call.id)?.body;
  if (evidence?.kind === "finding") return { result: "answered_from_record", output: evidence.output };
  if (isSkipped) {
    const family = isParentCall(call) ? skippedFamily(input, call) : null;
    return family ?? { result: "skipped", output: SKIPPED_BY_OPERATOR };
  }
  const earlier = equalCall(input, call);
  if (earlier === null || earlier.result === "not_established") return null;
  if (HAPPENED.has(earlier.result)) return { result: "answered_from_record", ...broughtBy(earlier) };
  return { result: earlier.result, output: asRepeated(earlier.output) };
}

function broughtBy({ output, artifact }: LineEffect): Omit<Written, "result"> {
  return artifact === undefined ? { output } : { output, artifact };
}

const REPEATED = " This is the answer to an equal call before it.";

function asRepeated(output: JsonValue): string {
  const text = typeof output === "string" ? output : "NOT EXECUTED.";
  return text.endsWith(REPEATED) ? text : `${text}${REPEATED}`;
}

const HAPPENED: ReadonlySet<ResultKind> = new Set(["succeeded", "partial", "answered", "answered_from_record"]);

/**
 * How an equal call of this line of runs ended: what it did is never done twice, and who refused it is not asked again.
 * One that happened counts more than one of which nobody knows, that more than one that was turned down.
 */
function equalCall(input: PlanInput, call: Call): LineEffect | null {
  const { effect } = call;
  if (isDone(effect) && effect.equalCallsAreDistinct) return null;
  const counts = resultsThatCount(input, effect);
  const equal = [...input.lineEffects, ...ownResults(input, call)].filter(
    ({ tool, argsHash, result }) => counts.has(result) && tool === call.tool && argsHash === call.argsHash,
  );
  // An answer from the record is as good as the record is now, which may say otherwise since.
  const first = (...results: readonly ResultKind[]) => equal.find(({ result }) => results.includes(result)) ?? null;
  const own = first("succeeded", "partial", "answered") ?? first("not_established");
  return own ?? first("answered_from_record") ?? equal.at(-1) ?? null;
}

/** Whether calls of this kind do something, once: a read and a timer may be had again. */
function isDone(effect: Call["effect"]): effect is Extract<Call["effect"], { kind: "effect" | "children" }> {
  return effect.kind === "effect" || effect.kind === "children";
}

const TURNED_DOWN: ReadonlySet<ResultKind> = new Set(["rejected", "expired", "skipped"]);
const MAY_HAVE_HAPPENED: ReadonlySet<ResultKind> = new Set([...HAPPENED, "not_established"]);
const ANY_RESULT: ReadonlySet<ResultKind> = new Set([...MAY_HAVE_HAPPENED, ...TURNED_DOWN]);
const NO_RESULT: ReadonlySet<ResultKind> = new Set();

/**
 * A model must not ask again for what a person has turned down. A graph asks again only where a gate sent the work back, or
 * an operator wants it: then people are asked anew, and only what happened counts.
 */
function resultsThatCount({ isGraph }: PlanInput, effect: Call["effect"]): ReadonlySet<ResultKind> {
  if (isGraph) return isDone(effect) ? MAY_HAVE_HAPPENED : NO_RESULT;
  return isDone(effect) ? ANY_RESULT : TURNED_DOWN;
}

/** How the calls of this run that are equal to this one have ended, as far as that says something about it. */
function ownResults(input: PlanInput, { tool, argsHash }: Call): readonly LineEffect[] {
  const equal = new Set(
    input.calls
      .filter((call) => call.tool === tool && asItRuns(call, input.approvals).argsHash === argsHash)
      .map(({ id }) => id),
  );
  const lastWord = input.steps.findLast(({ body }) => body.kind === "message")?.seq ?? 0;
  return input.steps.flatMap(({ seq, body }): readonly LineEffect[] => {
    const ended = endOf(body);
    if (ended === null || !equal.has(ended.callId)) return [];
    const { callId, result } = ended;
    // Who was silent, or passed over it, is asked again once somebody has said something new.
    if ((result === "expired" || result === "skipped") && lastWord > seq) return [];
    const known = HAPPENED.has(result) && hasFailedSince(input, { seq, callId }) ? "not_established" : result;
    return [{ ...ended, tool, argsHash, result: known }];
  });
}

/** What a step says of how a call has ended; null if it says nothing of that. */
function endOf(body: StepBody): Omit<LineEffect, "tool" | "argsHash"> | null {
  if (body.kind === "finding") return { callId: body.callId, result: "succeeded", output: body.output };
  if (body.kind !== "tool_result") return null;
  const { kind: _, ...ended } = body;
  return ended;
}

/** The other side has reported that what had happened has failed after all. */
function hasFailedSince({ steps }: PlanInput, done: { readonly seq: number; readonly callId: string }): boolean {
  return steps.some(
    ({ seq, body }) =>
      seq > done.seq && body.kind === "callback" && body.failed === true && body.callId === done.callId,
  );
}

/** An equal effect was made of which nobody knows the outcome: whether this one is to be made a person decides. */
function needsAPerson(input: PlanInput, call: Call): boolean {
  if (equalCall(input, call)?.result !== "not_established") return false;
  return !input.steps.some((step) => isOrder(step, "retry", call.id));
}

interface Acceptance {
  readonly output: JsonValue;
  readonly sinceMs: number;
}

/** That the other side has accepted this call and settles it later. */
function acceptance(input: PlanInput, call: Call): Acceptance | null {
  for (const { body, atMs: sinceMs } of input.steps) {
    if (body.kind === "effect_pending" && body.callId === call.id) return { output: body.output, sinceMs };
  }
  return null;
}

function planSettlement(
  input: PlanInput,
  { call, accepted }: { readonly call: Call; readonly accepted: Acceptance },
): Next {
  const grantedMs = retryOrderedMs(input, call);
  const withinMs = call.effect.kind === "effect" ? (call.effect.settlement?.withinMs ?? 0) : 0;
  const isOverdue = input.nowMs - Math.max(accepted.sinceMs, grantedMs) > withinMs;
  if (isOverdue) return hold(operatorHold("settlement_overdue", call.id));
  const wait = { callId: call.id, nowMs: input.nowMs, atMostMs: withinMs, grantedMs };
  const closed = serviceHold(closedService(input, call.service), wait);
  return closed === null ? { do: "poll", call, ...accepted } : hold(closed);
}

/** When the timer of this call goes off; null if it has not been set. */
function timerOf({ steps }: PlanInput, call: Call): number | null {
  const set = steps.find(({ body }) => body.kind === "timer_set" && body.callId === call.id)?.body;
  return set?.kind === "timer_set" ? set.dueAtMs : null;
}

function planTimer(input: PlanInput, { call, dueAtMs }: { readonly call: Call; readonly dueAtMs: number }): Next {
  if (input.nowMs >= dueAtMs) return { do: "write_result", call, result: "succeeded", output: "The time is over." };
  return hold({
    kind: "dependency",
    waitingFor: { kind: "timer", principal: "a timer", subject: call.id, reason: "timer" },
    deadline: { at: dueAtMs },
    onDeadline: "continue",
  });
}

/** When an operator has last ordered this call to be tried again; 0 if none has. */
function retryOrderedMs({ steps }: PlanInput, call: Call): number {
  return steps.findLast((step) => isOrder(step, "retry", call.id))?.atMs ?? 0;
}

/** The approval under which a call may be started now: `null` if it needs none, `undefined` if it may not be started. */
export function approvalFor(
  call: Call,
  { approvals, denials, nowMs }: Pick<PlanInput, "approvals" | "denials" | "nowMs">,
): Approval | null | undefined {
  if (findDenial(denials, call) !== null) return undefined;
  if (!isGated(call)) return null;
  const approval = latestApproval({ approvals }, call);
  return isGiven(approval) && isSpendable(approval, nowMs) ? approval : undefined;
}

function execute(input: PlanInput, call: Call, approvalId: string | null): Next {
  const limit = brokenLimit(input);
  if (limit === "limit_wall_time") return hold(operatorHold(limit, call.id));
  if (isParentCall(call)) return startOf(input, call, approvalId);
  if (call.effect.kind === "timer") return { do: "set_timer", call };
  const service = closedService(input, call.service);
  const grantedMs = retryOrderedMs(input, call);
  const wait = { callId: call.id, nowMs: input.nowMs, atMostMs: call.throttledForMs, grantedMs };
  const closed = serviceHold(service, wait);
  if (closed !== null) return hold(closed);
  const ordered = input.steps.findLastIndex((step) => isOrder(step, "retry", call.id));
  const failures = input.steps.slice(ordered + 1).filter(({ body }) => isFailedTry(body, call.id));
  const last = failures.at(-1)?.body;
  const attempt = attemptsMade(input.steps, call.id) + 1;
  const reason = budgetReason(failures, call);
  const afterMs = last?.kind === "call_failed" ? last.retryInMs : 0;
  if (reason === null) return { do: "execute", call, attempt, approvalId, afterMs, service };
  const failed =
    last !== undefined && "code" in last && last.code === "timeout" ? "limit_call_deadline" : "call_failed";
  return hold(operatorHold(reason === "failed" ? failed : reason, call.id));
}

function isFailedTry(body: StepBody, callId: string): boolean {
  if (body.kind === "did_not_happen") return body.callId === callId && body.code !== undefined;
  return body.kind === "call_failed" && body.callId === callId;
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
  const open = input.calls
    .map((call) => asItRuns(call, input.approvals))
    .filter(isGated)
    .filter((call) => call.turn === first.turn && call.ordinal >= first.ordinal);
  const requests = open
    // What is answered from the record of a call before it needs no request of its own, whatever that one waits for.
    .filter((call) => isToBeAsked(input, call) && !open.some((before) => isRepeatOf(before, call)))
    .map((call): RequestedApproval => {
      const { editedBy = null } = latestApproval(input, call) ?? {};
      return { call, approval: call.verdict.approval, editedBy };
    });
  return { do: "hold", hold: pendingHold(input, requests), requests };
}

function isRepeatOf(before: Call, call: Call): boolean {
  return before.ordinal < call.ordinal && isEqualWork(before, call);
}

/** Whether two calls are the same piece of work: what one has done is the answer to the other. */
export function isEqualWork(one: Call, other: Call): boolean {
  if (!isDone(other.effect) || other.effect.equalCallsAreDistinct) return false;
  return one.tool === other.tool && one.argsHash === other.argsHash;
}

function isToBeAsked(input: PlanInput, call: GatedCall): boolean {
  if (writtenAnswer(input, call) !== null || acceptance(input, call) !== null) return false;
  if (needsAPerson(input, call) || findDenial(input.denials, call) !== null) return false;
  const approval = latestApproval(input, call);
  if (approval === null || approval.state === "withdrawn" || approval.state === "superseded") return true;
  return isGiven(approval) && !isSpendable(approval, input.nowMs);
}

function isGiven(approval: Approval | null): approval is Approval {
  return approval?.state === "approved" || approval?.state === "spent";
}

function isSpendable({ validUntilMs, rightsLost }: Approval, nowMs: number): boolean {
  return !rightsLost && (validUntilMs === null || validUntilMs > nowMs);
}

/** The hold for what is pending and what is asked for with it. */
function pendingHold({ approvals, nowMs }: PlanInput, requests: readonly RequestedApproval[]): Hold {
  const pending = approvals.filter(({ state }) => state === "pending");
  const asked = requests.map(({ call, approval: terms }) => {
    const deadlineMs = nowMs + terms.deadlineMs;
    return { id: call.id, callId: call.id, terms, level: 0, extended: false, deadlineMs };
  });
  return holdOf([...pending, ...asked]);
}

/** Call `callId`, as it runs. */
export function callOf({ calls, approvals }: Pick<PlanInput, "calls" | "approvals">, callId: string): Call {
  const call = calls.find(({ id }) => id === callId);
  if (call === undefined) throw new RangeError(`A step names call ${callId}, which is not among the run's calls`);
  return asItRuns(call, approvals);
}

/** A call with the arguments that a person has made of the model's, and the rule that is for those. */
export function asItRuns(call: Call, approvals: readonly Approval[]): Call {
  const edit = approvals.findLast(({ callId, editedBy }) => callId === call.id && editedBy !== null);
  if (edit === undefined) return call;
  const { args, argsHash, terms } = edit;
  return { ...call, args, argsHash, verdict: { kind: "needs_approval", approval: terms } };
}

function latestApproval({ approvals }: Pick<PlanInput, "approvals">, call: Call): Approval | null {
  return approvals.findLast(({ callId, argsHash }) => callId === call.id && argsHash === call.argsHash) ?? null;
}

function isOrder({ body }: Step, choice: "retry" | "skip", callId: string): boolean {
  return body.kind === "operator" && body.choice === choice && body.callId === callId;
}

function hold(held: Hold): Next {
  return { do: "hold", hold: held, requests: [] };
}
