import type { Asked, Hold, Instant, RunState } from "./state.ts";
import { AT_REST, DEFAULT_DEADLINES, LOST_CLAIMS_LIMIT, NOW } from "./state.ts";
import type { Status } from "./status.ts";

/**
 * Where a run goes when nobody works on it: used by every event that gives it back, wakes or settles it. First match
 * wins: a stop request, an open attempt, a pause request, a quarantine, what was asked for.
 */
export function rest(state: RunState, asked: Asked): RunState {
  const settled: RunState = state.openAttempts === 0 ? { ...state, lookUpsEndAt: null, lookUpsOver: false } : state;
  if (settled.cancelRequestedAt !== null) {
    const pending = settled.openAttempts > 0 || settled.liveChildren > 0 || settled.owner !== null;
    return pending ? toCancelling(settled, asked) : toCancelled(settled, asked);
  }
  if (settled.openAttempts > 0) return toUnsettled(settled, asked);
  if (settled.pauseRequestedAt !== null) return toPaused(settled, quarantine(settled) ?? asked);
  return grant(settled, quarantine(settled) ?? asked);
}

/** What a run that nobody works on has now, as something that can be asked for again. */
export function atPresent(state: RunState): Asked {
  if (state.resumeTo !== null) return state.resumeTo;
  if (state.retryAt !== null) return { to: "retrying", at: state.retryAt };
  const kind = HOLD_KINDS[state.status];
  if (kind !== undefined && state.waitingFor !== null && state.waitDeadline !== null && state.onDeadline !== null) {
    const { waitingFor, waitDeadline: deadline, onDeadline } = state;
    return { to: "hold", hold: { kind, waitingFor, deadline, onDeadline } };
  }
  return { to: "queued" };
}

/** The hold that a run is in, or that a pause has interrupted; null if it waits for nobody. */
export function presentHold(state: RunState): Hold | null {
  const asked = atPresent(state);
  return asked.to === "hold" ? asked.hold : null;
}

/** The same wish, with the time that a pause took given back to its deadlines. */
export function afterPause(asked: Asked, pausedAt: Instant | null): Asked {
  if (asked.to === "hold")
    return { to: "hold", hold: { ...asked.hold, deadline: since(asked.hold.deadline, pausedAt) } };
  if (asked.to === "retrying" || asked.to === "look_up") return { ...asked, at: since(asked.at, pausedAt) };
  return asked;
}

/** The state of a run that waits for an operator, for the reason given. */
export function operatorHold(reason: string, subject: string | null): Hold {
  return {
    kind: "operator",
    waitingFor: { kind: "operator", principal: "role:operator", subject, reason },
    deadline: { inMs: DEFAULT_DEADLINES.operatorMs },
    onDeadline: "escalate",
  };
}

export function toCancelling(state: RunState, asked: Asked): RunState {
  const inherited = state.status === "cancelling" ? state.waitDeadline : null;
  return {
    ...state,
    ...AT_REST,
    owner: state.owner,
    status: "cancelling",
    waitDeadline: inherited ?? { inMs: DEFAULT_DEADLINES.cancelMs },
    nextReconcileAt: state.openAttempts > 0 && !state.lookUpsOver ? nextLookUp(state, asked) : null,
    outcome: asked.to === "end" ? asked.outcome : state.outcome,
  };
}

export function toLost(state: RunState, reason: string): RunState {
  return {
    ...state,
    ...AT_REST,
    status: "lost",
    lostAt: NOW,
    lostReason: reason,
    waitDeadline: { inMs: DEFAULT_DEADLINES.lostMs },
  };
}

function toHold(state: RunState, hold: Hold): RunState {
  const { waitingFor, deadline: waitDeadline, onDeadline } = hold;
  return {
    ...state,
    ...AT_REST,
    status: `waiting_${hold.kind}`,
    waitingFor,
    waitingSince: NOW,
    waitDeadline,
    onDeadline,
  };
}

export function toQueued(state: RunState): RunState {
  return {
    ...state,
    ...AT_REST,
    status: "queued",
    queuedSince: NOW,
    waitDeadline: { inMs: DEFAULT_DEADLINES.queueMs },
  };
}

const HOLD_KINDS: Partial<Record<Status, Hold["kind"]>> = {
  waiting_input: "input",
  waiting_approval: "approval",
  waiting_dependency: "dependency",
  waiting_operator: "operator",
};

function toCancelled(state: RunState, asked: Asked): RunState {
  // An end that came too late is kept as evidence of what had been achieved; it does not decide the status.
  const outcome = asked.to === "end" ? asked.outcome : state.outcome;
  return { ...state, ...AT_REST, status: "cancelled", outcome, endedAt: NOW };
}

function toUnsettled(state: RunState, asked: Asked): RunState {
  // Look-ups that cost one worker after the other their lives are over as well.
  if (state.lookUpsOver || quarantine(state) !== null) {
    return toHold({ ...state, lookUpsOver: true }, operatorHold("outcome_unknown", null));
  }
  const lookUpsEndAt = state.lookUpsEndAt ?? { inMs: DEFAULT_DEADLINES.lookUpsMs };
  return {
    ...state,
    ...AT_REST,
    status: "outcome_unknown",
    lookUpsEndAt,
    waitDeadline: lookUpsEndAt,
    nextReconcileAt: nextLookUp(state, asked),
  };
}

function toPaused(state: RunState, resumeTo: Asked): RunState {
  return {
    ...state,
    ...AT_REST,
    status: "paused",
    pausedAt: NOW,
    resumeTo,
    waitDeadline: { inMs: DEFAULT_DEADLINES.pauseReviewMs },
  };
}

function quarantine(state: RunState): Asked | null {
  const lostInARow = state.lostAt === null ? 0 : state.takeovers + 1;
  if (lostInARow < LOST_CLAIMS_LIMIT) return null;
  // A worker that lived and showed no progress in time, each time: that is the run's idle limit.
  const reason = state.lostReason === "wedged" ? "limit_idle" : "quarantined";
  return { to: "hold", hold: operatorHold(reason, null) };
}

function grant(state: RunState, asked: Asked): RunState {
  switch (asked.to) {
    case "hold":
      return toHold(state, asked.hold);
    case "retrying":
      return { ...state, ...AT_REST, status: "retrying", retryAt: asked.at };
    case "end":
      return {
        ...state,
        ...AT_REST,
        status: asked.status,
        outcome: asked.outcome,
        endReason: asked.reason,
        endedAt: NOW,
      };
    case "queued":
    case "look_up":
      return toQueued(state);
  }
}

function nextLookUp(state: RunState, asked: Asked): Instant {
  return asked.to === "look_up" ? asked.at : (state.nextReconcileAt ?? NOW);
}

function since(instant: Instant, pausedAt: Instant | null): Instant {
  if ("inMs" in instant || pausedAt === null || "inMs" in pausedAt) return instant;
  // What was overdue before the pause stays so by as much, as the requests behind it do.
  return { inMs: instant.at - pausedAt.at };
}
