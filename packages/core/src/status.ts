/** Every status a run can have. A status exists only where notification, deadline, retry, resource use or the person who must act differs. */
export const STATUSES = [
  "queued",
  "running",
  "waiting_input",
  "waiting_approval",
  "waiting_dependency",
  "waiting_operator",
  "retrying",
  "outcome_unknown",
  "paused",
  "lost",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
] as const;

export type Status = (typeof STATUSES)[number];
export type TerminalStatus = "completed" | "failed" | "cancelled";
export type WaitingStatus = "waiting_input" | "waiting_approval" | "waiting_dependency" | "waiting_operator";

/** The statuses nobody ever leaves. */
export const TERMINAL_STATUSES = ["completed", "failed", "cancelled"] as const satisfies readonly TerminalStatus[];

/** Whether a run with this status has ended for good. */
export function isTerminal(status: Status): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly Status[]).includes(status);
}

/** Whether a run with this status waits for somebody or something that is named in `waitingFor`. */
export function isWaiting(status: Status): status is WaitingStatus {
  return status.startsWith("waiting_");
}
