import { brokenLimit, isRetry, retriesOrdered } from "./limits.ts";
import type { Next, PlanInput } from "./next.ts";
import { callOf, planCall } from "./plan-call.ts";
import { stoppingHold } from "./plan-children.ts";
import { planGraph } from "./plan-graph.ts";
import { operatorHold } from "./rest.ts";
import { budgetReason, closedService, serviceHold } from "./retries.ts";
import { DEFAULT_DEADLINES, type Hold } from "./state.ts";
import type { Call, Step, StepBody } from "./step.ts";

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
  const reply = lastReply(input.steps);
  const call = reply === null ? null : nextCall(input, reply.body.callIds);
  if (call !== null) return planCall(input, call);
  if (input.unread.length > 0) return { do: "read_facts", facts: input.unread };
  return reply === null || reply.body.callIds.length > 0 ? planModel(input) : planReply(input, reply);
}

function planModel(input: PlanInput): Next {
  const turns = replies(input.steps).length;
  const fresh = since(input.steps, isRetry);
  const limit = turns >= input.limits.turns + retriesOrdered(input.steps) ? "limit_turns" : brokenLimit(input);
  if (limit !== null) return hold(operatorHold(limit, null));
  if (invalidRounds(input, fresh) >= INVALID_ROUNDS_LIMIT) return hold(operatorHold("invalid_arguments", null));
  const service = closedService(input, input.model.service);
  const atMostMs = input.model.throttledForMs;
  const grantedMs = input.steps.findLast(isRetry)?.atMs ?? 0;
  const closed = serviceHold(service, { callId: null, nowMs: input.nowMs, atMostMs, grantedMs });
  if (closed !== null) return hold(closed);
  const failures = trailing(fresh, ({ body }) => body.kind === "model_failed");
  const last = failures.at(-1)?.body;
  if (last?.kind !== "model_failed") return { do: "call_model", turn: turns + 1, afterMs: 0, service };
  const mayRepeat = last.errorClass !== "caller" && last.errorClass !== "refused";
  const reason = mayRepeat ? budgetReason(failures, input.model) : "failed";
  if (reason !== null) return hold(operatorHold(reason === "failed" ? "model_failed" : reason, null));
  return { do: "call_model", turn: turns + 1, afterMs: last.retryInMs, service };
}

/** A reply without calls ends the run, is shown to an operator, or is a question to the requester. */
function planReply(input: PlanInput, reply: Reply): Next {
  // That the other side reported something is for the tool to judge; it tells the model nothing.
  const after = input.steps.filter(({ seq, body }) => seq > reply.seq && body.kind !== "callback");
  if (after.length > 0) return planModel(input);
  const { outcome } = reply.body;
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

/** The steps after the last one that matches; all of them if none does. */
function since(steps: readonly Step[], matches: (step: Step) => boolean): readonly Step[] {
  return steps.slice(steps.findLastIndex(matches) + 1);
}

/** The unbroken row of matching steps at the end. */
function trailing(steps: readonly Step[], matches: (step: Step) => boolean): readonly Step[] {
  return since(steps, (step) => !matches(step));
}

/** How many of the last turns, in a row, asked for a call with arguments that its tool does not take. */
function invalidRounds(input: PlanInput, fresh: readonly Step[]): number {
  const rounds = replies(fresh).map(({ body }) => body.callIds);
  const valid = rounds.findLastIndex((callIds) =>
    callIds.every((callId) => callOf(input, callId).verdict.kind !== "invalid"),
  );
  return rounds.length - 1 - valid;
}
