/** What proves that somebody or something which a run needs is there. */
export const PROOFS = {
  lease: "the lease of the process that works on it",
  heartbeat: "the heartbeat of whoever works on it elsewhere",
  progress: "a stored step in time: a renewed lease is no progress",
  backing_record: "the rows of the child runs that it waits for",
  provider_answer: "the other side's answer, which only a worker can ask for",
  served_version: "a live worker that has its agent in this version",
} as const;
export type Proof = keyof typeof PROOFS;

/** How a run that was given up comes back. */
export type Recovery =
  /** With the same statement that gives it up: another worker goes on from the last step. */
  | "at_once"
  /** By itself, as soon as what was missing is there again. */
  | "with_its_evidence"
  /** Only by an operator's word: nobody can know what has been done meanwhile. */
  | "by_a_person";

/** What is known of a reason for giving up. */
export interface LostRule {
  readonly proof: Proof;
  /** What is seen, for people; follows on "because" and "although". */
  readonly seen: string;
  /** How long it is waited for before it counts. */
  readonly grace: string;
  readonly recovery: Recovery;
}

/** Every reason for which a run is taken for lost, or shown as about to be: a closed list. */
export const LOST_REASONS = {
  lease_expired: {
    proof: "lease",
    seen: "its worker has not renewed its lease",
    grace: "the sweeper's grace after the lease",
    recovery: "at_once",
  },
  process_exited: {
    proof: "lease",
    seen: "its worker's supervisor has seen the process end",
    grace: "none: the end was seen",
    recovery: "at_once",
  },
  worker_gone: {
    proof: "lease",
    seen: "its worker has given its lease back and still had the run",
    grace: "none: the worker said so itself",
    recovery: "at_once",
  },
  taken_over: {
    proof: "lease",
    seen: "an operator has taken it from its worker",
    grace: "none: a person decided",
    recovery: "at_once",
  },
  wedged: {
    proof: "progress",
    seen: "its worker lives and stores no progress",
    grace: "none after the time that the step was given",
    recovery: "at_once",
  },
  heartbeat_missed: {
    proof: "heartbeat",
    seen: "whoever works on it elsewhere has not been heard of",
    grace: "the task's own grace after its heartbeat",
    recovery: "with_its_evidence",
  },
  version_gone: {
    proof: "served_version",
    seen: "no live worker has its agent in this version",
    grace: "the queue limit; then an operator is asked",
    recovery: "with_its_evidence",
  },
  backing_missing: {
    proof: "backing_record",
    seen: "the child runs that it waits for are not there any more",
    grace: "none: rows that are gone stay gone",
    recovery: "by_a_person",
  },
} as const satisfies Readonly<Record<string, LostRule>>;

export type LostReason = keyof typeof LOST_REASONS;

/** Why a worker's runs are lost, by what its own row says of its end. */
export function lostReasonOf(goneReason: string): LostReason {
  return isLostReason(goneReason) ? goneReason : "worker_gone";
}

/** Whether a text is one of the reasons. */
export function isLostReason(text: string): text is LostReason {
  return Object.hasOwn(LOST_REASONS, text);
}
