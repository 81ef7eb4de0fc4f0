import type { FactKind, OperatorChoice, RunEvent, SettledBy } from "../src/event.ts";
import { ACTOR_KINDS, type ActorKind, mayRaise, OPERATOR_CHOICES } from "../src/event.ts";
import { reduce } from "../src/reduce.ts";
import type { Hold, OnDeadline, RunState } from "../src/state.ts";
import { HOLDS, SUCCEEDED } from "./builders.ts";

/** All that a hold may say of its deadline, but for `no_answer`, which goes the way of `reject`. */
const ON_DEADLINE: readonly OnDeadline[] = ["reject", "abort", "operator", "escalate", "extend", "continue"];

/** The hold of requests that are asked of the next level. */
export const ESCALATED_HOLD: Hold = {
  ...HOLDS.approval,
  waitingFor: { ...HOLDS.approval.waitingFor, principal: "role:director", subject: "call_2" },
  deadline: { inMs: 4_000 },
  onDeadline: "escalate",
};

/** Every kind of event, in each variant that a decision may depend on. */
export const ALL_EVENTS: readonly RunEvent[] = [
  { type: "Submitted" },
  { type: "Claimed", owner: "worker_1" },
  ...Object.values(HOLDS).map((hold) => ({ type: "Held", hold }) as const),
  { type: "Released", retryAt: null },
  { type: "Released", retryAt: { inMs: 5_000 } },
  { type: "EffectUnknown", nextLookUp: { inMs: 2_000 }, lookUpsEnd: { inMs: 50_000 } },
  { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null },
  ...(["owner", "late_evidence", "person"] as const).flatMap((by) => [
    effectSettled(by, true),
    effectSettled(by, false),
  ]),
  { type: "Ended", status: "completed", outcome: SUCCEEDED, reason: null },
  { type: "Ended", status: "failed", outcome: null, reason: "no_such_order" },
  { type: "OwnerGone", reason: "lease_expired" },
  { type: "Recovered" },
  ...[undefined, ...ON_DEADLINE].map((onDeadline) => deadlinePassed(null, onDeadline)),
  deadlinePassed(null, "operator", "call_2"),
  { type: "DeadlinePassed", remaining: null, because: "backing_missing" },
  deadlinePassed(ESCALATED_HOLD),
  { type: "RetryDue" },
  ...(["message", "answer", "decision", "callback", "child"] as const).flatMap((fact) => [
    factArrived(fact, true),
    factArrived(fact, false),
  ]),
  decided({ aborts: true }),
  decided({ hold: ESCALATED_HOLD }),
  ...OPERATOR_CHOICES.map((choice) => operatorDecided(choice)),
  operatorDecided("terminate", 1),
  { type: "CancelRequested", reason: "changed_my_mind" },
  { type: "PauseRequested" },
  { type: "Resumed" },
];

export function effectSettled(by: SettledBy, wasOpen: boolean): RunEvent {
  return { type: "EffectSettled", by, wasOpen };
}

export function factArrived(fact: FactKind, completesHold: boolean): RunEvent {
  return { type: "FactArrived", fact, completesHold };
}

/** A decision that leaves its request pending or stops the run. */
export function decided(effect: { readonly hold: Hold } | { readonly aborts: true }): RunEvent {
  return { type: "FactArrived", fact: "decision", completesHold: false, ...effect };
}

export function deadlinePassed(remaining: Hold | null, onDeadline?: OnDeadline, subject?: string | null): RunEvent {
  return {
    type: "DeadlinePassed",
    remaining,
    ...(onDeadline === undefined ? {} : { onDeadline }),
    ...(subject === undefined ? {} : { subject }),
  };
}

export function operatorDecided(choice: OperatorChoice, notEstablished = 0): RunEvent {
  return { type: "OperatorDecided", choice, notEstablished };
}

/** Somebody who may raise this event. */
export function raiserOf(event: RunEvent): ActorKind {
  const kind = ACTOR_KINDS.find((candidate) => mayRaise(event, candidate));
  if (kind === undefined) throw new Error(`Nobody may raise ${JSON.stringify(event)}`);
  return kind;
}

/** What happens to a run by anything but an event: its owner's steps, and the ends of attempts. */
export const STEPS = ["open_attempt", "settle_attempt", "store_result", "start_child"] as const;
export type StepEffect = (typeof STEPS)[number];

/** The run after a step, or null where nobody can commit it: a start needs `running` without a mark, a result an owner. */
export function afterStep(run: RunState, step: StepEffect): RunState | null {
  const { openAttempts, liveChildren, takeovers } = run;
  const mayStart = run.status === "running" && run.pauseRequestedAt === null;
  const mayStore = run.status === "running" || (run.status === "cancelling" && run.owner !== null);
  const effects: Readonly<Record<StepEffect, readonly [happens: boolean, changed: Partial<RunState>]>> = {
    open_attempt: [mayStart && openAttempts === 0, { openAttempts: openAttempts + 1 }],
    settle_attempt: [mayStore && openAttempts > 0, { openAttempts: openAttempts - 1, takeovers: 0 }],
    store_result: [mayStore && takeovers > 0, { takeovers: 0 }],
    start_child: [mayStart && liveChildren === 0, { liveChildren: liveChildren + 1 }],
  };
  const [happens, changed] = effects[step];
  return happens ? { ...run, ...changed } : null;
}

/** The run after an event by somebody who may raise it; the same object where the event does nothing. */
export function afterEvent(run: RunState, event: RunEvent): RunState {
  const decision = reduce(run, event, { kind: raiserOf(event), id: "somebody" });
  return "next" in decision ? decision.next : run;
}

/**
 * Whether the event can come to this run at all: nobody settles an attempt that is not open or tells the end of a child
 * that is not live, and only a hold for approvals goes over into another one, or says at its deadline what else than the
 * hold itself is to follow.
 */
export function canHappen(run: RunState, event: RunEvent): boolean {
  if (isAboutRequests(event)) return awaitsApproval(run);
  if (event.type === "EffectSettled") return !event.wasOpen || run.openAttempts > 0;
  if (event.type === "FactArrived" && event.fact === "child") return run.liveChildren > 0;
  if (event.type === "EffectUnknown") return run.openAttempts > 0;
  if (event.type === "OperatorDecided") return event.notEstablished <= run.openAttempts;
  return event.type !== "OwnerGone" || run.owner !== null || run.status === "cancelling";
}

function isAboutRequests(event: RunEvent): boolean {
  if (event.type === "DeadlinePassed") return event.remaining !== null || event.onDeadline !== undefined;
  return event.type === "FactArrived" && (event.aborts === true || event.hold !== undefined);
}

function awaitsApproval({ status, resumeTo }: RunState): boolean {
  if (status === "paused") return resumeTo?.to === "hold" && resumeTo.hold.kind === "approval";
  return status === "waiting_approval";
}
