import { holdOf } from "./approval.ts";
import { asItRuns } from "./as-it-runs.ts";
import type { Acceptance } from "./call-record.ts";
import { equalCall } from "./equal-call.ts";
import { callsOfTurn, recordOf } from "./history.ts";
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
import type { Approval, Call, LineEffect, ResultKind, Verdict } from "./step.ts";
import { HAPPENED, isDoneOnce, workOf } from "./work.ts";

/** What comes next for the first call of a turn that has no result yet. */
export function planCall(input: PlanInput, call: Call): Next {
  const written = writtenAnswer(input, call);
  if (written !== null) return stopRest(input, call) ?? { do: "write_result", call, ...written };
  const { acceptance: accepted } = recordOf(input.history, call.id);
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
  const { timerDueAtMs: dueAtMs } = recordOf(input.history, call.id);
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
  const { isSkipOrdered: isSkipped, acceptance, finding } = recordOf(input.history, call.id);
  if (acceptance !== null) {
    return isSkipped ? { result: "not_established", output: NEVER_SETTLED } : null;
  }
  // Evidence says more than an order to pass over the call: it happened.
  if (finding !== null) return { result: "answered_from_record", output: finding.output };
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

/** An equal effect was made of which nobody knows the outcome: whether this one is to be made a person decides. */
function needsAPerson(input: PlanInput, call: Call): boolean {
  if (equalCall(input, call)?.result !== "not_established") return false;
  return recordOf(input.history, call.id).retriesOrdered === 0;
}

function planSettlement(
  input: PlanInput,
  { call, accepted }: { readonly call: Call; readonly accepted: Acceptance },
): Next {
  const { retryOrderedMs: grantedMs } = recordOf(input.history, call.id);
  const withinMs = call.effect.kind === "effect" ? (call.effect.settlement?.withinMs ?? 0) : 0;
  const isOverdue = input.nowMs - Math.max(accepted.sinceMs, grantedMs) > withinMs;
  if (isOverdue) return hold(operatorHold("settlement_overdue", call.id));
  const wait = { callId: call.id, nowMs: input.nowMs, atMostMs: withinMs, grantedMs };
  const closed = serviceHold(closedService(input, call.service), wait);
  return closed === null ? { do: "poll", call, ...accepted } : hold(closed);
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
  const { retryOrderedMs: grantedMs, failures, attempts } = recordOf(input.history, call.id);
  const wait = { callId: call.id, nowMs: input.nowMs, atMostMs: call.throttledForMs, grantedMs };
  const closed = serviceHold(service, wait);
  if (closed !== null) return hold(closed);
  const { last } = failures;
  const attempt = attempts + 1;
  const reason = budgetReason(failures, call);
  const afterMs = last?.kind === "call_failed" ? last.retryInMs : 0;
  if (reason === null) return { do: "execute", call, attempt, approvalId, afterMs, service };
  const failed = last !== null && "code" in last && last.code === "timeout" ? "limit_call_deadline" : "call_failed";
  return hold(operatorHold(reason === "failed" ? failed : reason, call.id));
}

type GatedCall = Call & { readonly verdict: Extract<Verdict, { kind: "needs_approval" }> };

function isGated(call: Call): call is GatedCall {
  return call.verdict.kind === "needs_approval";
}

/** At the first call that needs a decision all requests of its turn are made, in one hold. */
function askForApproval(input: PlanInput, first: GatedCall): Next {
  const open = callsOfTurn(input.history, first.turn)
    .map((call) => asItRuns(call, input.approvals))
    .filter(isGated)
    .filter((call) => call.ordinal >= first.ordinal);
  const places = firstPlaces(open);
  const requests = open
    // What is answered from the record of a call before it needs no request of its own, whatever that one waits for.
    .filter((call) => isToBeAsked(input, call) && !isRepeat(call, places))
    .map((call): RequestedApproval => {
      const { editedBy = null } = latestApproval(input, call) ?? {};
      return { call, approval: call.verdict.approval, editedBy };
    });
  return { do: "hold", hold: pendingHold(input, requests), requests };
}

/** The place of the first call of each work. */
function firstPlaces(calls: readonly Call[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const call of calls) {
    const work = workOf(call);
    places.set(work, Math.min(call.ordinal, places.get(work) ?? call.ordinal));
  }
  return places;
}

function isRepeat(call: Call, places: ReadonlyMap<string, number>): boolean {
  const first = places.get(workOf(call));
  return isDoneOnce(call) && first !== undefined && first < call.ordinal;
}

function isToBeAsked(input: PlanInput, call: GatedCall): boolean {
  if (writtenAnswer(input, call) !== null || recordOf(input.history, call.id).acceptance !== null) return false;
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

function latestApproval({ approvals }: Pick<PlanInput, "approvals">, call: Call): Approval | null {
  return approvals.findLast(({ callId, argsHash }) => callId === call.id && argsHash === call.argsHash) ?? null;
}

function hold(held: Hold): Next {
  return { do: "hold", hold: held, requests: [] };
}
