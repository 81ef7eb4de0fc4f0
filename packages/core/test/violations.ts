import type { RunState } from "../src/state.ts";

/** What is wrong with a run's row, in words; empty when nothing is. The check constraints of the table say the same. */
export function violations(run: RunState): readonly string[] {
  const missing = MUST_BE_SET[run.status].filter((field) => run[field] === null);
  const out = missing.map((field) => `${run.status} without ${field}`);
  if (run.owner !== null && !MAY_HAVE_OWNER.includes(run.status)) out.push(`${run.status} with an owner`);
  if (run.openAttempts < 0) out.push("fewer than no open attempts");
  if (run.liveChildren < 0) out.push("fewer than no live children");
  if (run.takeovers < 0) out.push("fewer than no takeovers");
  if (run.status === "outcome_unknown" && run.openAttempts === 0) out.push("outcome_unknown without an open attempt");
  if (!MAY_HAVE_OPEN_ATTEMPT.includes(run.status) && run.openAttempts > 0) out.push(`${run.status} with an open attempt`);
  if (MUST_BE_SET[run.status].includes("endedAt")) {
    if (run.liveChildren > 0) out.push(`${run.status} with a live child`);
  } else if (run.endedAt !== null) out.push(`${run.status} with an end`);
  if (run.status === "cancelling" || run.status === "cancelled") {
    if (run.cancelRequestedAt === null) out.push(`${run.status} without a request`);
  } else if (run.cancelRequestedAt !== null) out.push(`${run.status} in spite of a request to stop`);
  if (run.pauseRequestedAt !== null && IGNORE_NO_PAUSE.includes(run.status)) out.push(`${run.status} in spite of a pause`);
  if (run.status === "completed" && run.outcome === null) out.push("completed without an outcome");
  const held = [run.waitingFor, run.waitingSince, run.onDeadline].some((part) => part !== null);
  if (held && !run.status.startsWith("waiting_")) out.push(`${run.status} with a hold`);
  return out;
}

const HOLD = ["waitingFor", "waitingSince", "waitDeadline", "onDeadline"] as const;

const MUST_BE_SET: Readonly<Record<RunState["status"], readonly (keyof RunState)[]>> = {
  queued: ["queuedSince", "waitDeadline"],
  running: ["owner"],
  waiting_input: HOLD,
  waiting_approval: HOLD,
  waiting_dependency: HOLD,
  waiting_operator: HOLD,
  retrying: ["retryAt"],
  outcome_unknown: ["nextReconcileAt", "waitDeadline"],
  paused: ["pausedAt", "resumeTo", "waitDeadline"],
  lost: ["lostAt", "lostReason", "waitDeadline"],
  cancelling: ["cancelRequestedAt", "waitDeadline"],
  completed: ["endedAt"],
  failed: ["endedAt"],
  cancelled: ["endedAt"],
};

const MAY_HAVE_OWNER: readonly string[] = ["running", "outcome_unknown", "cancelling"];

/** In all other statuses an open attempt would be forgotten: nobody would settle it. */
const MAY_HAVE_OPEN_ATTEMPT: readonly string[] = ["running", "outcome_unknown", "waiting_operator", "lost", "cancelling"];

/** A run that nobody works on and that nothing else keeps is paused, if that was asked for. */
const IGNORE_NO_PAUSE: readonly string[] = ["queued", "waiting_input", "waiting_approval", "waiting_dependency", "retrying"];
