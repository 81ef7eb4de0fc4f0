import { passDeadlines as approvalsPassed, type RequestChange } from "@holdpoint/core";
import { findOverdue, newId, type OverdueRun, type Run, type Writes, writeChange } from "@holdpoint/store";
import { type Moving, movingSweep } from "../sweep.ts";

/** Deadlines that have passed: each run goes where its hold says, and what it waited for is closed with it. */
export const passDeadlines = movingSweep("pass-deadlines", {
  find: ({ store, limit }) => findOverdue(store, limit),
  move: (overdue) => {
    const { run } = overdue;
    if (run.state.status === "waiting_approval") return passApprovals(overdue);
    if (isWorkedOnElsewhere(run)) {
      return { run, events: [{ type: "DeadlinePassed", remaining: null, onDeadline: "escalate" }], reason: "escalate" };
    }
    const facts: Writes["facts"] = [{ id: newId(), body: { kind: "no_answer" } }];
    return {
      run,
      events: [{ type: "DeadlinePassed", remaining: null }],
      reason: run.state.onDeadline ?? "deadline",
      writes: run.state.status === "waiting_input" ? { facts } : {},
    };
  },
});

/** Somebody elsewhere has been asked to stop and is heard of: taking the run from it would stop nothing. */
function isWorkedOnElsewhere({ isTask, state }: Run): boolean {
  return isTask && state.status === "cancelling" && state.owner !== null;
}

/** Each request that is due ends, or is passed on, as core says; the run waits with those that remain. */
function passApprovals({ run, approvals, nowMs }: OverdueRun): Moving {
  const { changes, remaining, onDeadline, subject } = approvalsPassed(approvals, nowMs);
  return {
    run,
    events: [{ type: "DeadlinePassed", remaining, onDeadline, subject }],
    reason: reasonOf(changes, onDeadline),
    writes: {
      approvals: approvals.flatMap((request) =>
        changes.filter(({ id }) => id === request.id).map((change) => writeChange(request, change)),
      ),
    },
  };
}

/** What the history says has happened: that a request has ended says more than that another goes on. */
function reasonOf(changes: readonly RequestChange[], onDeadline: string): string {
  // The hold was a moment ahead of its requests: it has only been set right.
  if (changes.length === 0) return "deadline";
  if (changes.some(({ become }) => become !== "pending")) return onDeadline;
  return changes.some((change) => "level" in change) ? "escalate" : "extend";
}
