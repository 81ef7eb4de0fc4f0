/** How bad a finding is: an error breaks a promise, or will if nobody acts; a warning goes on for too long. */
export type Severity = "error" | "warning";

/** What is known of a code. */
export interface AuditRule {
  readonly severity: Severity;
  /** What was found, for people. */
  readonly says: string;
  /** The command that mends it, or shows what has to be decided; `<run>` and `<subject>` are the finding's own. */
  readonly mend: string;
}

/** Every finding that an audit can have, by its code. */
export const AUDIT_RULES = {
  queued_too_long: {
    severity: "warning",
    says: "no worker has taken it for ten minutes",
    mend: "holdpoint workers list",
  },
  running_without_progress: {
    severity: "error",
    says: "its owner has stored no progress in time, and no sweeper has taken it away",
    mend: "holdpoint maintenance --apply",
  },
  hold_past_deadline: {
    severity: "error",
    says: "its deadline has passed, and no sweeper has acted on it",
    mend: "holdpoint maintenance --apply",
  },
  hold_without_assignee: {
    severity: "error",
    says: "fewer people may decide the request than have to",
    mend: "holdpoint approvals show <subject>",
  },
  cancel_stuck: {
    severity: "warning",
    says: "it was asked to stop long ago, and has not stopped",
    mend: "holdpoint runs show <run>",
  },
  lost_unresolved: {
    severity: "error",
    says: "it is lost, and nobody has recovered it",
    mend: "holdpoint runs show <run>",
  },
  effect_unresolved: {
    severity: "error",
    says: "nobody knows how its effect has ended, and nothing finds out by itself any more",
    mend: "holdpoint runs show <run>",
  },
  terminal_with_live_children: {
    severity: "error",
    says: "it has ended, and a run that it started has not",
    mend: "holdpoint runs cancel <subject>",
  },
  time_inversion: {
    severity: "error",
    says: "its instants are in an order that cannot be: the database's clock was set back, or is ahead",
    mend: "holdpoint runs show <run>",
  },
  derived_older_than_source: {
    severity: "error",
    says: "its checkpoint is older than its steps",
    mend: "holdpoint runs show <run>",
  },
  task_reported_late: {
    severity: "error",
    says: "somebody says to have done the task, who had lost it: it may be done twice, or count as not done",
    mend: "holdpoint tasks show <run>",
  },
  removed_effect_failed: {
    severity: "error",
    says: "its effect had happened, and the other side says since its removal that it has failed",
    mend: "holdpoint tombstones <run>",
  },
  queue_drift: {
    severity: "warning",
    says: "its queue does not hold what its runs need",
    mend: "holdpoint maintenance --apply",
  },
  queue_unreadable: {
    severity: "warning",
    says: "its queue gives no answer",
    mend: "holdpoint maintenance --dry-run",
  },
  service_closed_long: {
    severity: "warning",
    says: "it has failed for everybody for half an hour",
    mend: "holdpoint services",
  },
  delivery_failing: {
    severity: "error",
    says: "a webhook was not told of it: its delivery was given up, or has not come through for an hour",
    mend: "holdpoint webhooks deliveries --run <run>",
  },
  invariant_violated: {
    severity: "error",
    says: "it breaks a rule that every run keeps",
    mend: "holdpoint runs show <run>",
  },
  invariants_unreadable: {
    severity: "warning",
    says: "the rules that every run keeps could not be checked in time",
    mend: "holdpoint maintenance --dry-run",
  },
} as const satisfies Readonly<Record<string, AuditRule>>;

export type FindingCode = keyof typeof AUDIT_RULES;
