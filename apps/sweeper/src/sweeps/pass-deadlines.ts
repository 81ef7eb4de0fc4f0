import { findOverdue, newId, type OverdueRun, type Writes } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Deadlines that have passed: each run goes where its hold says, and what it waited for is closed with it. */
export const passDeadlines = movingSweep("pass-deadlines", {
  find: ({ store, limit }) => findOverdue(store, limit),
  move: (overdue) => {
    const { run } = overdue;
    const rest = overdue.approvals.filter(({ deadlineMs }) => deadlineMs > overdue.nowMs);
    const earliestMs = Math.min(...rest.map(({ deadlineMs }) => deadlineMs));
    const remaining = run.state.status === "waiting_approval" && rest.length > 0 ? { at: earliestMs } : null;
    return {
      run,
      events: [{ type: "DeadlinePassed", remaining }],
      reason: run.state.onDeadline ?? "deadline",
      writes: closing(overdue),
    };
  },
});

function closing({ run, approvals, nowMs }: OverdueRun): Writes {
  if (run.state.status === "waiting_input") return { facts: [{ id: newId(), body: { kind: "no_answer" } }] };
  if (run.state.status !== "waiting_approval") return {};
  // Where an operator decides instead, the request is withdrawn: a retry asks anew.
  const state = run.state.onDeadline === "operator" ? "withdrawn" : "expired";
  const due = approvals.filter(({ deadlineMs }) => deadlineMs <= nowMs);
  return { approvals: due.map(({ id }) => ({ id, state, decidedBy: null, note: null })) };
}
