import type { Status, TerminalStatus } from "./status.ts";

/**
 * A moment that core can pass on without knowing the time: either one that was read from the database
 * (`at`, milliseconds since the epoch), or one that the statement computes on the database's clock
 * (`inMs` milliseconds after the transition).
 */
export type Instant = { readonly at: number } | { readonly inMs: number };

/** The moment of the transition itself. */
export const NOW: Instant = { inMs: 0 };

export type HoldKind = "input" | "approval" | "dependency" | "operator";

/**
 * What happens when a hold's deadline passes. There is no `approve`: silence never releases an effect. `continue`: it was
 * a timer, the run goes on.
 */
export type OnDeadline = "no_answer" | "reject" | "abort" | "operator" | "escalate" | "extend" | "continue";

/** Who or what a run waits for. */
export interface WaitingFor {
  /** What kind of party has to act. */
  readonly kind: "requester" | "approvers" | "child" | "timer" | "callback" | "service" | "operator";
  /** Who exactly: a user id, `role:<name>`, or the name of a service. */
  readonly principal: string;
  /** What it is about, by name: a call's id, a limit, a service; `null` when the kind says all. */
  readonly subject: string | null;
  /** How many of them have to agree; not there where one is enough. */
  readonly quorum?: number;
  /** Why the run waits, in words of the field: `approval_required`, `question`, `call_failed`, `quarantined` … */
  readonly reason: string;
}

/** A wait for somebody or something, with its deadline and what happens then. */
export interface Hold {
  readonly kind: HoldKind;
  readonly waitingFor: WaitingFor;
  readonly deadline: Instant;
  readonly onDeadline: OnDeadline;
}

/** What a completed run achieved. `blocked`: it ran and achieved nothing; never shown or counted as success. */
export type Outcome =
  | { readonly kind: "succeeded" }
  | { readonly kind: "partial"; readonly reason: string }
  | { readonly kind: "blocked"; readonly step: string; readonly reason: string };

/** What an event asks for a run that nobody works on from now on; `rest` decides whether it gets it. */
export type Asked =
  | { readonly to: "queued" }
  | { readonly to: "hold"; readonly hold: Hold }
  | { readonly to: "retrying"; readonly at: Instant }
  | { readonly to: "look_up"; readonly at: Instant }
  | {
      readonly to: "end";
      readonly status: TerminalStatus;
      readonly outcome: Outcome | null;
      readonly reason: string | null;
    };

/**
 * The part of a run's row that transitions change. `version` pins all of it, except `openAttempts`, which steps
 * move as well; `stepSeq` pins that.
 */
export interface RunState {
  readonly status: Status;
  readonly owner: string | null;
  readonly openAttempts: number;
  readonly liveChildren: number;
  /** Claims after a loss since the last stored tool result or model reply. */
  readonly takeovers: number;
  readonly queuedSince: Instant | null;
  readonly waitingFor: WaitingFor | null;
  readonly waitingSince: Instant | null;
  readonly waitDeadline: Instant | null;
  readonly onDeadline: OnDeadline | null;
  readonly retryAt: Instant | null;
  readonly nextReconcileAt: Instant | null;
  /** End of the look-ups for the attempt that is open; kept while it is. */
  readonly lookUpsEndAt: Instant | null;
  /** Nobody will look the open attempt up any more: only a person or late evidence settles it. */
  readonly lookUpsOver: boolean;
  readonly cancelRequestedAt: Instant | null;
  readonly pauseRequestedAt: Instant | null;
  readonly pausedAt: Instant | null;
  readonly resumeTo: Asked | null;
  /** Set at a loss and kept until the next claim, so that the claim knows it is a takeover. */
  readonly lostAt: Instant | null;
  readonly lostReason: string | null;
  readonly outcome: Outcome | null;
  /** Why a run ended, where the status alone does not say it: `aborted`, `terminated`, the requester's words. */
  readonly endReason: string | null;
  readonly endedAt: Instant | null;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How long each wait lasts when nobody said otherwise, in milliseconds. */
export const DEFAULT_DEADLINES = {
  queueMs: DAY_MS,
  inputMs: 7 * DAY_MS,
  approvalMs: DAY_MS,
  dependencyMs: DAY_MS,
  operatorMs: DAY_MS,
  lookUpsMs: HOUR_MS,
  lostMs: HOUR_MS,
  cancelMs: 600_000,
  pauseReviewMs: 7 * DAY_MS,
} as const;

/** A run that is lost with this many claims in a row, none of which stored a result, is quarantined for an operator. */
export const LOST_CLAIMS_LIMIT = 3;

/** Runs whose next claim would be this takeover or a later one are claimed one per process at a time. */
export const LONE_TAKEOVERS = 2;

/** The state of a run that has just been submitted. */
export function submitted(): RunState {
  return {
    ...AT_REST,
    status: "queued",
    openAttempts: 0,
    liveChildren: 0,
    takeovers: 0,
    queuedSince: NOW,
    waitDeadline: { inMs: DEFAULT_DEADLINES.queueMs },
    lookUpsEndAt: null,
    lookUpsOver: false,
    cancelRequestedAt: null,
    pauseRequestedAt: null,
    lostAt: null,
    lostReason: null,
    outcome: null,
    endReason: null,
    endedAt: null,
  };
}

/** What no status inherits from the one before: each sets its own anew. */
export const AT_REST = {
  owner: null,
  queuedSince: null,
  waitingFor: null,
  waitingSince: null,
  waitDeadline: null,
  onDeadline: null,
  retryAt: null,
  nextReconcileAt: null,
  pausedAt: null,
  resumeTo: null,
} as const satisfies Partial<RunState>;
