import type { LostReason } from "./lost.ts";
import type { Hold, Instant, OnDeadline, Outcome } from "./state.ts";

export type FactKind = "message" | "answer" | "decision" | "callback" | "child";

/** What an operator may choose. `terminate` is for every run that has not ended; the rest depends on what it waits for. */
export const OPERATOR_CHOICES = [
  "retry",
  "skip",
  "abort",
  "mark_done",
  "not_established",
  "retry_now",
  "terminate",
] as const;
export type OperatorChoice = (typeof OPERATOR_CHOICES)[number];

/** Who settled an attempt: the owner that looked it up or repeated it, a worker that was replaced meanwhile, a person. */
export type SettledBy = "owner" | "late_evidence" | "person";

/** Everything that can happen to a run, sixteen kinds. */
export type RunEvent =
  | { readonly type: "Submitted" }
  | { readonly type: "Claimed"; readonly owner: string }
  | { readonly type: "Held"; readonly hold: Hold }
  | { readonly type: "Released"; readonly retryAt: Instant | null }
  /** `nextLookUp` is null when the tool cannot be asked and its call cannot be repeated. */
  | { readonly type: "EffectUnknown"; readonly nextLookUp: Instant | null; readonly lookUpsEnd: Instant | null }
  /** `wasOpen` is false for evidence about an attempt that somebody settled before: a finding, never a move. */
  | { readonly type: "EffectSettled"; readonly by: SettledBy; readonly wasOpen: boolean }
  | {
      readonly type: "Ended";
      readonly status: "completed" | "failed";
      readonly outcome: Outcome | null;
      readonly reason: string | null;
    }
  /** `nothing_pending`: what is being stopped has nobody left to wait for. */
  | { readonly type: "OwnerGone"; readonly reason: LostReason | "nothing_pending" }
  | { readonly type: "Recovered" }
  /**
   * `remaining` is the hold for the approvals that are still pending after this. `onDeadline` is what those say whose
   * deadline has passed, where that is not the hold's own, and `subject` the call that it is about.
   */
  | {
      readonly type: "DeadlinePassed";
      readonly remaining: Hold | null;
      readonly onDeadline?: OnDeadline;
      readonly subject?: string | null;
      /** What the operator is asked about, where it is not the time that has passed. */
      readonly because?: LostReason;
    }
  | { readonly type: "RetryDue" }
  /**
   * `hold` is what the run waits with from now on, where the fact does not complete the hold but changes it. `aborts`: the
   * decision stops the run as well. A `child` fact is the end of one child, counted here and nowhere else.
   */
  | {
      readonly type: "FactArrived";
      readonly fact: FactKind;
      readonly completesHold: boolean;
      readonly hold?: Hold;
      readonly aborts?: boolean;
    }
  /** `notEstablished` counts the open attempts that the operator names as not established. */
  | { readonly type: "OperatorDecided"; readonly choice: OperatorChoice; readonly notEstablished: number }
  | { readonly type: "CancelRequested"; readonly reason: string | null }
  | { readonly type: "PauseRequested" }
  | { readonly type: "Resumed" };

export type EventType = RunEvent["type"];

/** Who raises events. A person acts as requester, approver or operator; which of them they may be is the api's business. */
export const ACTOR_KINDS = [
  "requester",
  "approver",
  "operator",
  "worker",
  "supervisor",
  "sweeper",
  "parent",
  "provider",
] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Somebody who raises an event, by the name that the audit shows. */
export interface Actor {
  readonly kind: ActorKind;
  readonly id: string;
}

const OWNER: readonly ActorKind[] = ["worker"];
/** Those who have seen an owner go, and an operator who takes a run away from one: all of them leave what is open to be settled. */
const REVOKER: readonly ActorKind[] = ["sweeper", "supervisor", "operator"];

/** Who may raise each event. */
export const RAISERS: Readonly<Record<EventType, readonly ActorKind[]>> = {
  Submitted: ["requester", "operator", "worker", "provider"],
  Claimed: OWNER,
  Held: OWNER,
  Released: OWNER,
  EffectUnknown: OWNER,
  EffectSettled: ["worker", "operator"],
  Ended: OWNER,
  OwnerGone: REVOKER,
  // Whoever works elsewhere recovers its own run: that it is heard of again is the evidence.
  Recovered: [...REVOKER, "worker"],
  DeadlinePassed: ["sweeper"],
  RetryDue: ["sweeper"],
  FactArrived: ["requester", "approver", "operator", "provider", "worker", "sweeper"],
  OperatorDecided: ["operator"],
  CancelRequested: ["requester", "operator", "parent"],
  PauseRequested: ["operator"],
  Resumed: ["operator"],
};

/** Who may bring each kind of fact. A chat message never decides an approval, whoever wrote it. */
export const FACT_RAISERS: Readonly<Record<FactKind, readonly ActorKind[]>> = {
  message: ["requester", "operator"],
  answer: ["requester"],
  decision: ["approver"],
  callback: ["provider", "sweeper"],
  child: ["worker", "sweeper"],
};

/** Who may say that an attempt is settled, by how they know it. */
export const SETTLERS: Readonly<Record<SettledBy, readonly ActorKind[]>> = {
  owner: ["worker"],
  late_evidence: ["worker"],
  person: ["operator"],
};

/** Whether this kind of actor may raise this event at all, whatever the run's status. */
export function mayRaise(event: RunEvent, kind: ActorKind): boolean {
  if (!RAISERS[event.type].includes(kind)) return false;
  if (event.type === "FactArrived") return FACT_RAISERS[event.fact].includes(kind);
  if (event.type === "EffectSettled") return SETTLERS[event.by].includes(kind);
  return true;
}
