import type { RunState } from "../src/state.ts";

type Status = RunState["status"];
type Constraint = readonly [broken: string, when: (run: RunState) => boolean];

const HOLD = ["waitingFor", "waitingSince", "waitDeadline", "onDeadline"] as const;
const WAITING: readonly Status[] = ["waiting_input", "waiting_approval", "waiting_dependency", "waiting_operator"];
const ENDS: readonly Status[] = ["completed", "failed", "cancelled"];
const OWNED: readonly Status[] = ["running", "outcome_unknown", "cancelling"];

/** Only there somebody settles an open attempt; in any other status it would be forgotten. */
const UNSETTLED: readonly Status[] = ["running", "outcome_unknown", "waiting_operator", "lost", "cancelling"];

const STOPPED: readonly Status[] = ["cancelling", "cancelled"];

/** Where nobody works and nothing is open, a run that shall pause is paused. */
const PAUSABLE: readonly Status[] = ["queued", "waiting_input", "waiting_approval", "waiting_dependency", "retrying"];

const MUST_BE_SET: Readonly<Record<Status, readonly (keyof RunState)[]>> = {
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
  completed: ["endedAt", "outcome"],
  failed: ["endedAt"],
  cancelled: ["endedAt", "cancelRequestedAt"],
};

const CONSTRAINTS: readonly Constraint[] = [
  ["an owner where nobody works", (run) => run.owner !== null && !OWNED.includes(run.status)],
  ["a count below 0", (run) => Math.min(run.openAttempts, run.liveChildren, run.takeovers) < 0],
  ["no open attempt to look up", (run) => run.status === "outcome_unknown" && run.openAttempts === 0],
  ["a forgotten open attempt", (run) => run.openAttempts > 0 && !UNSETTLED.includes(run.status)],
  ["an end with a live child", (run) => run.liveChildren > 0 && ENDS.includes(run.status)],
  ["an end that is none", (run) => run.endedAt !== null && !ENDS.includes(run.status)],
  ["a request to stop that nobody follows", (run) => run.cancelRequestedAt !== null && !STOPPED.includes(run.status)],
  ["a request to pause that nobody follows", (run) => run.pauseRequestedAt !== null && PAUSABLE.includes(run.status)],
  [
    "a hold where nobody is waited for",
    (run) =>
      [run.waitingFor, run.waitingSince, run.onDeadline].some((part) => part !== null) && !WAITING.includes(run.status),
  ],
];

/** What is wrong with a run's row, in words; empty when nothing is. The check constraints of the table say the same. */
export function violations(run: RunState): readonly string[] {
  const missing = MUST_BE_SET[run.status].filter((field) => run[field] === null);
  const broken = CONSTRAINTS.filter(([, isBroken]) => isBroken(run));
  return [...missing.map((field) => `no ${field}`), ...broken.map(([what]) => what)].map(
    (what) => `${run.status}: ${what}`,
  );
}
