import type { Actor, RunEvent } from "./event.ts";
import { mayRaise } from "./event.ts";
import { afterPause, atPresent, operatorHold, rest, toCancelling, toLost, toQueued } from "./rest.ts";
import type { Asked, Hold, RunState } from "./state.ts";
import { DEFAULT_DEADLINES, NOW } from "./state.ts";
import type { Status } from "./status.ts";
import { isTerminal } from "./status.ts";
import { type Cell, CHOICES, type Move, type Rule, TABLE } from "./table.ts";

/** What an event does to a run. `recorded` is a transition too: the status stays, the version grows. */
export type Decision =
  | {
      readonly verdict: "moved" | "recorded";
      readonly next: RunState;
      /** The decision rests on what steps move (open attempts, children), so the write must pin `stepSeq` as well. */
      readonly pinsSteps: boolean;
      /** The run's open approval requests end with this transition. */
      readonly closesApprovals: boolean;
    }
  | { readonly verdict: "ignored" }
  | { readonly verdict: "refused"; readonly rule: Rule };

/** Decides what an event does to a run. The only place where a status is decided. */
export function reduce(state: RunState, event: RunEvent, actor: Actor): Decision {
  if (!mayRaise(event, actor.kind)) return { verdict: "refused", rule: "not_yours_to_raise" };
  return decide(cellFor(state.status, event), state, event);
}

/** The cell that judges this event in this status. Evidence about an attempt that was settled before is only recorded. */
export function cellFor(status: Status, event: RunEvent): Cell {
  if (event.type === "OperatorDecided") return CHOICES[event.choice][status];
  if (event.type === "EffectSettled" && !event.wasOpen) return "=";
  return TABLE[event.type][status];
}

function decide(cell: Cell, state: RunState, event: RunEvent): Decision {
  if (cell === ".") return { verdict: "ignored" };
  if (isRefusal(cell)) return { verdict: "refused", rule: ruleOf(cell) };
  const counted = childrenCounted(state, event);
  if (cell === "=") return moved(counted, counted, counted !== state);
  return MOVES[cell](counted, event);
}

/** The end of a child is counted by the fact that tells it, wherever its parent stands. */
function childrenCounted(state: RunState, event: RunEvent): RunState {
  if (event.type !== "FactArrived" || event.fact !== "child") return state;
  return { ...state, liveChildren: Math.max(0, state.liveChildren - 1) };
}

function isRefusal(cell: Cell): cell is `!${Rule}` {
  return cell.startsWith("!");
}

function ruleOf(cell: `!${Rule}`): Rule {
  // What follows the mark is the rule's name, by the type of the cell.
  return cell.slice(1) as Rule;
}

type MoveFunction = (state: RunState, event: RunEvent) => Decision;

const MOVES: Readonly<Record<Move, MoveFunction>> = {
  run: on("Claimed", (state, event) => {
    const takeovers = state.lostAt === null ? state.takeovers : state.takeovers + 1;
    const { queuedSince, waitDeadline, lostAt, lostReason } = CLEARED;
    return moved(
      state,
      { ...state, status: "running", owner: event.owner, takeovers, queuedSince, waitDeadline, lostAt, lostReason },
      false,
    );
  }),
  look_up: on("Claimed", (state, event) => {
    if (state.owner !== null || state.openAttempts === 0) return { verdict: "ignored" };
    const takeovers = state.lostAt === null ? state.takeovers : state.takeovers + 1;
    return moved(state, { ...state, owner: event.owner, takeovers, lostAt: null, lostReason: null });
  }),
  rest_hold: on("Held", (state, event) => released(state, { to: "hold", hold: event.hold })),
  rest_released: on("Released", (state, event) =>
    released(state, event.retryAt === null ? { to: "queued" } : { to: "retrying", at: event.retryAt }),
  ),
  rest_unknown: on("EffectUnknown", (state, event) => unknown(state, event)),
  clear_owner: on("EffectUnknown", (state, event) => unknown(state, event)),
  rest_end: on("Ended", (state, event) => {
    // Nobody would take in what they bring. A run that is being cancelled waits for them in its own status.
    if (state.liveChildren > 0 && state.cancelRequestedAt === null)
      return { verdict: "refused", rule: "children_live" };
    return released(state, { to: "end", status: event.status, outcome: event.outcome, reason: event.reason });
  }),
  settle: (state) => moved(state, settled(state, 1)),
  settle_waiting: (state) => {
    const next = settled(state, 1);
    const waitedForThis = state.waitingFor?.reason === "outcome_unknown" && next.openAttempts === 0;
    return moved(state, waitedForThis ? rest(next, { to: "queued" }) : next);
  },
  settle_owned: on("EffectSettled", (state, event) => settleOwned(state, event.by)),
  lose: on("OwnerGone", (state, event) => moved(state, toLost(state, event.reason))),
  forsake: on("OwnerGone", (state, event) => forsake(state, event.reason)),
  recover: (state) => moved(state, rest(state, { to: "queued" })),
  to_operator: (state) => {
    const reason = state.status === "lost" ? "lost" : "queue_limit";
    return moved(state, rest(state, { to: "hold", hold: operatorHold(reason, null) }));
  },
  look_ups_over: (state) => released({ ...state, lookUpsOver: true }, { to: "queued" }, state),
  by_deadline: on("DeadlinePassed", (state, event) => byDeadline(state, event)),
  escalate: (state) => moved(state, { ...state, waitDeadline: { inMs: escalationMs(state.status) } }, false),
  /**
   * Whoever still works on a run long after the request to stop is its owner no more; what is open stays to be settled.
   * Not who works elsewhere and is heard of: taking the run from it would stop nothing, so on-call is named again.
   */
  revoke: on("DeadlinePassed", (state, event) => {
    const waitDeadline = { inMs: DEFAULT_DEADLINES.cancelMs };
    if (event.onDeadline === "escalate" && state.owner !== null) return moved(state, { ...state, waitDeadline });
    return released({ ...state, waitDeadline }, { to: "queued" }, state);
  }),
  retry_due: (state) => moved(state, toQueued(state), false),
  if_completed: on("FactArrived", (state, event) => {
    if (event.aborts === true) return moved(state, aborted(state));
    if (event.completesHold) return moved(state, rest(state, { to: "queued" }));
    return moved(state, event.hold === undefined ? state : { ...state, ...waitsWith(event.hold) }, false);
  }),
  /** What is being stopped has stopped once the last of its children has. */
  if_child: on("FactArrived", (state, event) => {
    if (event.fact !== "child") return moved(state, state, false);
    return moved(state, state.owner === null ? rest(state, { to: "queued" }) : state);
  }),
  /** An operator was asked since children took too long: once they have ended there is nothing to ask any more. */
  if_awaited_child: on("FactArrived", (state, event) => {
    const isAwaited = event.fact === "child" && event.completesHold;
    return moved(state, isAwaited ? rest(state, { to: "queued" }) : state, event.fact === "child");
  }),
  resume_anew: on("FactArrived", (state, event) => {
    if (event.aborts === true) return moved(state, aborted(state));
    // An end that was asked for before the fact came turns into another turn.
    const anew = event.completesHold || state.resumeTo?.to === "end";
    if (anew) return moved(state, { ...state, resumeTo: { to: "queued" } }, false);
    return moved(
      state,
      event.hold === undefined ? state : { ...state, resumeTo: { to: "hold", hold: event.hold } },
      false,
    );
  }),
  cancel_at_rest: on("CancelRequested", (state, event) =>
    moved(state, rest({ ...state, cancelRequestedAt: NOW, endReason: event.reason }, atPresent(state))),
  ),
  cancel_working: on("CancelRequested", (state, event) =>
    moved(state, toCancelling({ ...state, cancelRequestedAt: NOW, endReason: event.reason }, atPresent(state)), false),
  ),
  pause_at_rest: (state) => moved(state, rest({ ...state, pauseRequestedAt: NOW }, atPresent(state))),
  mark_pause: (state) => moved(state, { ...state, pauseRequestedAt: state.pauseRequestedAt ?? NOW }, false),
  unmark_pause: (state) => moved(state, { ...state, pauseRequestedAt: null }, false),
  /** An effect that nobody could settle brings the mark along: it would keep every repeat from starting. */
  unmark_if_any: (state) =>
    state.pauseRequestedAt === null
      ? { verdict: "refused", rule: "not_paused" }
      : moved(state, { ...state, pauseRequestedAt: null }, false),
  resume: (state) =>
    moved(state, rest({ ...state, pauseRequestedAt: null }, afterPause(atPresent(state), state.pausedAt))),
  retry: (state) => moved(state, retried(state)),
  skip: (state) => skip(state),
  abort: (state) => moved(state, aborted(state)),
  settle_by_person: (state) => {
    if (state.openAttempts === 0) return { verdict: "refused", rule: "effect_not_open" };
    return moved(state, rest({ ...settled(state, 1), owner: keptOwner(state) }, { to: "queued" }));
  },
  retry_now: (state) => moved(state, toQueued(state), false),
  terminate: on("OperatorDecided", (state, event) => terminate(state, event.notEstablished)),
};

const CLEARED = { queuedSince: null, waitDeadline: null, lostAt: null, lostReason: null } as const;

/** A move for one type of event. */
function on<Type extends RunEvent["type"]>(
  _type: Type,
  move: (state: RunState, event: Extract<RunEvent, { type: Type }>) => Decision,
): MoveFunction {
  // The table gives no other event to this move; the test of every pair holds that.
  return (state, event) => move(state, event as Extract<RunEvent, { type: Type }>);
}

function moved(before: RunState, next: RunState, pinsSteps = true): Decision {
  const closesApprovals = next.cancelRequestedAt !== null || isTerminal(next.status);
  return { verdict: next.status === before.status ? "recorded" : "moved", next, pinsSteps, closesApprovals };
}

function released(state: RunState, asked: Asked, before: RunState = state): Decision {
  return moved(before, rest({ ...state, owner: null }, asked));
}

function unknown(state: RunState, event: Extract<RunEvent, { type: "EffectUnknown" }>): Decision {
  const lookUpsOver = state.lookUpsOver || event.nextLookUp === null;
  const lookUpsEndAt = state.lookUpsEndAt ?? event.lookUpsEnd;
  return released({ ...state, lookUpsOver, lookUpsEndAt }, { to: "look_up", at: event.nextLookUp ?? NOW }, state);
}

function settled(state: RunState, attempts: number): RunState {
  const openAttempts = Math.max(0, state.openAttempts - attempts);
  return openAttempts === 0
    ? { ...state, openAttempts, lookUpsOver: false, lookUpsEndAt: null, nextReconcileAt: null }
    : { ...state, openAttempts };
}

/** The owner that settled what it claimed the run for carries on; for anybody else's word the run starts anew. */
function settleOwned(state: RunState, by: "owner" | "late_evidence" | "person"): Decision {
  const next = settled(state, 1);
  const carriesOn = by === "owner" && state.owner !== null && next.openAttempts === 0;
  if (state.status === "outcome_unknown" && carriesOn) {
    return moved(state, { ...next, status: "running", waitDeadline: null });
  }
  // In `cancelling` the owner gives the run back with its result: there is nothing more to do on it.
  return moved(state, rest({ ...next, owner: by === "owner" ? null : keptOwner(state) }, { to: "queued" }));
}

/** A worker that is still busy with a run that is being cancelled stays its owner until it gives it back. */
function keptOwner(state: RunState): string | null {
  return state.status === "cancelling" ? state.owner : null;
}

function forsake(state: RunState, reason: string): Decision {
  if (state.owner === null && state.openAttempts + state.liveChildren > 0) return { verdict: "ignored" };
  return released({ ...state, lostAt: NOW, lostReason: reason }, { to: "look_up", at: NOW }, state);
}

function byDeadline(
  state: RunState,
  { remaining, onDeadline, subject, because }: Extract<RunEvent, { type: "DeadlinePassed" }>,
): Decision {
  if (remaining !== null) return moved(state, { ...state, ...waitsWith(remaining) }, false);
  switch (onDeadline ?? state.onDeadline) {
    case "abort":
      return moved(state, aborted(state));
    case "operator":
    case "escalate":
      return moved(
        state,
        rest(state, {
          to: "hold",
          hold: operatorHold(because ?? "deadline_passed", subject ?? state.waitingFor?.subject ?? null),
        }),
      );
    case "no_answer":
    case "reject":
    case "extend":
    case "continue":
    case null:
      return moved(state, rest(state, { to: "queued" }));
  }
}

/** Somebody who may, or a deadline that says so, ends the run. */
function aborted(state: RunState): RunState {
  return rest({ ...state, cancelRequestedAt: NOW, endReason: "aborted" }, { to: "queued" });
}

/** The same hold, with other people or another deadline. */
function waitsWith({ waitingFor, deadline, onDeadline }: Hold): Partial<RunState> {
  return { waitingFor, waitDeadline: deadline, onDeadline };
}

function escalationMs(status: Status): number {
  return status === "paused" ? DEFAULT_DEADLINES.pauseReviewMs : DEFAULT_DEADLINES.operatorMs;
}

/** A new try by an operator's word: with an effect still open, that means new look-ups, never a second call. */
function retried(state: RunState): RunState {
  const fresh: RunState = {
    ...state,
    takeovers: 0,
    lostAt: null,
    lostReason: null,
    lookUpsOver: false,
    lookUpsEndAt: null,
  };
  return rest(fresh, { to: "queued" });
}

function skip(state: RunState): Decision {
  if (state.openAttempts > 0) return { verdict: "refused", rule: "effect_unsettled" };
  if (state.waitingFor?.subject == null) return { verdict: "refused", rule: "nothing_to_skip" };
  return moved(state, rest(state, { to: "queued" }));
}

function terminate(state: RunState, notEstablished: number): Decision {
  const cancelRequestedAt = state.cancelRequestedAt ?? NOW;
  const stopped: RunState = {
    ...settled(state, notEstablished),
    owner: null,
    cancelRequestedAt,
    endReason: "terminated",
  };
  return moved(state, rest(stopped, { to: "queued" }));
}
