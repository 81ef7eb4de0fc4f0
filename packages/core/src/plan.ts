import { callOf } from "./as-it-runs.ts";
import { brokenLimit } from "./limits.ts";
import type { Next, PlanInput } from "./next.ts";
import { planCall } from "./plan-call.ts";
import { stoppingHold } from "./plan-children.ts";
import { planGraph } from "./plan-graph.ts";
import { operatorHold } from "./rest.ts";
import { budgetReason, closedService, serviceHold } from "./retries.ts";
import type { Reply } from "./run-totals.ts";
import { DEFAULT_DEADLINES, type Hold, type Outcome } from "./state.ts";
import type { Call } from "./step.ts";

/** A turn whose calls were invalid this many times in a row is shown to a person. */
const INVALID_ROUNDS_LIMIT = 2;

/**
 * Decides what a run does next, from its rows alone. Resuming is not a special path: whoever takes a run up asks the
 * same question of the same rows.
 */
export function plan(input: PlanInput): Next {
  const open = input.openAttempts[0];
  if (open !== undefined) return { do: "settle_attempt", call: callOf(input, open.callId), attempt: open };
  const orders = input.unread.filter(({ body }) => body.kind === "operator" || body.kind === "migration");
  if (orders.length > 0) return { do: "read_facts", facts: orders };
  if (input.isGraph) return planGraph(input);
  const { reply } = input.history.known.totals;
  const call = reply === null ? null : nextCall(input, reply.body.callIds);
  if (call !== null) return planCall(input, call);
  if (input.unread.length > 0) return { do: "read_facts", facts: input.unread };
  return reply === null || reply.body.callIds.length > 0 ? planModel(input) : planReply(input, reply);
}

function planModel(input: PlanInput): Next {
  const { replies: turns, retriesOrdered, retryOrderedMs: grantedMs, modelFailures } = input.history.known.totals;
  const limit = turns >= input.limits.turns + retriesOrdered ? "limit_turns" : brokenLimit(input);
  if (limit !== null) return hold(operatorHold(limit, null));
  if (invalidRounds(input) >= INVALID_ROUNDS_LIMIT) return hold(operatorHold("invalid_arguments", null));
  const service = closedService(input, input.model.service);
  const atMostMs = input.model.throttledForMs;
  const closed = serviceHold(service, { callId: null, nowMs: input.nowMs, atMostMs, grantedMs });
  if (closed !== null) return hold(closed);
  const { last } = modelFailures;
  if (last?.kind !== "model_failed") return { do: "call_model", turn: turns + 1, afterMs: 0, service };
  const mayRepeat = last.errorClass !== "caller" && last.errorClass !== "refused";
  const reason = mayRepeat ? budgetReason(modelFailures, input.model) : "failed";
  if (reason !== null) return hold(operatorHold(reason === "failed" ? "model_failed" : reason, null));
  return { do: "call_model", turn: turns + 1, afterMs: last.retryInMs, service };
}

/** A reply without calls ends the run, is shown to an operator, or is a question to the requester. */
function planReply(input: PlanInput, reply: Reply): Next {
  return input.history.known.totals.isReplyOld ? planModel(input) : conclude(input, reply.body.outcome);
}

/**
 * How a run ends with a reply without calls that is not stored yet, so that both are stored at once; null where it does not.
 * The same as `plan` says once the reply is the last step.
 */
export function endWithReply(input: PlanInput, outcome: Outcome | null): Extract<Next, { do: "end" }> | null {
  if (input.openAttempts.length > 0 || input.unread.length > 0) return null;
  const next = conclude(input, outcome);
  return next.do === "end" ? next : null;
}

function conclude(input: PlanInput, outcome: Outcome | null): Next {
  if (outcome === null) return hold(questionHold(input.requester));
  if (outcome.kind === "blocked" && input.onBlocked === "operator") return hold(operatorHold("blocked", null));
  if (input.liveChildren > 0) return hold(stoppingHold(input));
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

/** The first call of a turn, in model order, that has no result yet: nothing overtakes it. */
function nextCall(input: PlanInput, callIds: readonly string[]): Call | null {
  const id = callIds[input.history.known.openPlace];
  return id === undefined ? null : callOf(input, id);
}

/** How many of the last turns, in a row, asked for a call with arguments that its tool does not take. */
function invalidRounds(input: PlanInput): number {
  const { invalidCalls } = input.history.known;
  // What a person has made of the arguments since counts.
  const valid = invalidCalls.findLastIndex(
    (callIds) => !callIds.some((callId) => callOf(input, callId).verdict.kind === "invalid"),
  );
  return invalidCalls.length - 1 - valid;
}
