import { findOverdue, newId, type OverdueRun, type Writes } from "@holdpoint/store";
import { type Moving, movingSweep } from "../sweep.ts";

/** Deadlines that have passed: each run goes where its hold says, and what it waited for is closed with it. */
export const passDeadlines = movingSweep("pass-deadlines", {
  find: ({ store, limit }) => findOverdue(store, limit),
  move: (overdue) => {
    const { run } = overdue;
    if (run.state.status === "waiting_approval") return passApprovals(overdue);
    const facts: Writes["facts"] = [{ id: newId(), body: { kind: "no_answer" } }];
    return {
      run,
      events: [{ type: "DeadlinePassed", remaining: null }],
      reason: run.state.onDeadline ?? "deadline",
      writes: run.state.status === "waiting_input" ? { facts } : {},
    };
  },
});

/** Each request that is due ends as it says itself. If one of them asks for an operator, the hold ends with it. */
function passApprovals({ run, approvals, nowMs }: OverdueRun): Moving {
  const due = approvals.filter(({ deadlineMs }) => deadlineMs <= nowMs);
  const rest = approvals.filter(({ deadlineMs }) => deadlineMs > nowMs);
  const asksOperator = due.some(({ onDeadline }) => onDeadline === "operator");
  const earliestMs = Math.min(...rest.map(({ deadlineMs }) => deadlineMs));
  const onDeadline = asksOperator ? "operator" : (due[0]?.onDeadline ?? run.state.onDeadline ?? "reject");
  // Where an operator decides instead, a request is withdrawn: a retry asks anew.
  const closed = asksOperator ? approvals : due;
  return {
    run,
    events: [
      { type: "DeadlinePassed", remaining: asksOperator || rest.length === 0 ? null : { at: earliestMs }, onDeadline },
    ],
    reason: onDeadline,
    writes: {
      approvals: closed.map(({ id, onDeadline: itsOwn, deadlineMs }) => {
        const state = itsOwn === "operator" || deadlineMs > nowMs ? "withdrawn" : "expired";
        return { id, state, decidedBy: null, note: null };
      }),
    },
  };
}
