import { type LostReason, lostReasonOf, type Proof } from "./lost.ts";

/** What can be said of a run that looks silent; every one that is looked at gets one of these, also when it is kept. */
export const LIVENESS_VERDICTS = [
  /** What has to prove that it lives has done so. */
  "active",
  /** It waits for children, and their rows are there. */
  "backing_present",
  /** Nobody but a worker can find out: the sweeper's own view proves nothing. */
  "not_authoritative_here",
  /** Overdue, and still waited for until a moment that is named. */
  "grace_pending",
  /** What would prove it cannot be read. That is no proof of the contrary: the run is kept. */
  "evidence_unreadable",
  "lost",
] as const;
export type LivenessVerdict = (typeof LIVENESS_VERDICTS)[number];

/** What each kind of work has to prove that it lives by. */
export const PROOF_OF = {
  agent: "lease",
  workflow: "lease",
  task: "heartbeat",
  child_wait: "backing_record",
  settlement: "provider_answer",
  queued: "served_version",
} as const satisfies Readonly<Record<string, Proof>>;

/** The rule that judged: a proof, or why a proof that is missing does not count yet. */
export type LivenessRule =
  | Proof
  /** Nobody had watched the leases for a while: everybody gets one lease to renew, at most an hour. */
  | "own_gap"
  /** So many would be given up at once that the fault may be the watcher's: one lease more, at most an hour. */
  | "blast_radius";

/** The process, or the worker elsewhere, that owns a run; instants in milliseconds since the epoch. */
export interface OwnerEvidence {
  readonly kind: "process" | "task";
  readonly leaseUntilMs: number;
  readonly leaseMs: number;
  /** A grace of its own; null: the sweeper's. */
  readonly graceMs: number | null;
  readonly goneReason: string | null;
}

/** How the leases are watched. */
export interface LeaseWatch {
  /** Since when without a gap. */
  readonly sinceMs: number;
  readonly graceMs: number;
}

/**
 * The most that is given beyond an owner's own time, where the fault may be the watcher's: after a gap of the watch, or
 * where many are silent at once. What is heard of once in a week would else be kept for ever by a gap a day.
 */
export const SECOND_LEASE_LIMIT_MS = 3_600_000;

/** All that a verdict is made from. Nothing of it is decided in SQL. */
export type LivenessEvidence =
  | {
      readonly of: "owned";
      /** null: its row cannot be read. */
      readonly owner: OwnerEvidence | null;
      readonly progressDueAtMs: number | null;
    }
  | { readonly of: "child_wait"; readonly children: number }
  | { readonly of: "settlement" }
  | { readonly of: "queued"; readonly servedBy: number; readonly limitMs: number }
  /** Nobody has to prove anything: it waits for people or for the clock, by a deadline of its own. */
  | { readonly of: "rest" };

export interface JudgedLiveness {
  readonly verdict: LivenessVerdict;
  readonly rule: LivenessRule;
  /** Why it is lost, or what it is waited for with; null while it is well. */
  readonly reason: LostReason | null;
  /** Until when it is waited for; null where that is not a matter of time. */
  readonly untilMs: number | null;
}

/** Judges what is known of one run at one moment. What cannot be read, or is not ours to say, never counts as death. */
export function judgeLiveness(
  evidence: LivenessEvidence,
  { nowMs, watch }: { readonly nowMs: number; readonly watch: LeaseWatch },
): JudgedLiveness {
  switch (evidence.of) {
    case "owned":
      return judgeOwned(evidence, { nowMs, watch });
    case "child_wait":
      return evidence.children > 0
        ? well("backing_present", "backing_record")
        : { verdict: "lost", rule: "backing_record", reason: "backing_missing", untilMs: null };
    case "settlement":
      return well("not_authoritative_here", "provider_answer");
    case "queued":
      return evidence.servedBy > 0
        ? well("active", "served_version")
        : waited("served_version", "version_gone", evidence.limitMs);
    case "rest":
      return well("active", "lease");
  }
}

/**
 * When an owner that does not renew any more is gone: after its lease and the grace, and never before it had one whole
 * lease, or the limit of it, under an unbroken watch. The statement that declares it gone says the same in its own condition.
 */
export function goneAtMs(owner: OwnerEvidence, watch: LeaseWatch): number {
  return Math.max(owner.leaseUntilMs, watch.sinceMs + secondLeaseMs(owner)) + (owner.graceMs ?? watch.graceMs);
}

function secondLeaseMs({ leaseMs }: OwnerEvidence): number {
  return Math.min(leaseMs, SECOND_LEASE_LIMIT_MS);
}

function judgeOwned(
  { owner, progressDueAtMs }: Extract<LivenessEvidence, { of: "owned" }>,
  { nowMs, watch }: { readonly nowMs: number; readonly watch: LeaseWatch },
): JudgedLiveness {
  if (owner === null) return well("evidence_unreadable", "lease");
  const proof = owner.kind === "task" ? PROOF_OF.task : PROOF_OF.agent;
  if (owner.goneReason !== null) {
    return { verdict: "lost", rule: proof, reason: lostReasonOf(owner.goneReason), untilMs: null };
  }
  if (owner.leaseUntilMs <= nowMs) return judgeOverdue(owner, { nowMs, watch, proof });
  if (progressDueAtMs === null || progressDueAtMs - watch.graceMs > nowMs) return well("active", proof);
  if (progressDueAtMs > nowMs) return waited("progress", "wedged", progressDueAtMs);
  return { verdict: "lost", rule: "progress", reason: "wedged", untilMs: null };
}

function judgeOverdue(
  owner: OwnerEvidence,
  { nowMs, watch, proof }: { readonly nowMs: number; readonly watch: LeaseWatch; readonly proof: Proof },
): JudgedLiveness {
  const reason = owner.kind === "task" ? "heartbeat_missed" : "lease_expired";
  const untilMs = goneAtMs(owner, watch);
  // Nobody has declared it gone although its time is over: so many were overdue at once that another lease is given.
  if (untilMs <= nowMs) return waited("blast_radius", reason, untilMs + secondLeaseMs(owner));
  const byGap = watch.sinceMs + secondLeaseMs(owner) > owner.leaseUntilMs;
  return waited(byGap ? "own_gap" : proof, reason, untilMs);
}

function well(verdict: LivenessVerdict, rule: LivenessRule): JudgedLiveness {
  return { verdict, rule, reason: null, untilMs: null };
}

function waited(rule: LivenessRule, reason: LostReason, untilMs: number): JudgedLiveness {
  return { verdict: "grace_pending", rule, reason, untilMs };
}
