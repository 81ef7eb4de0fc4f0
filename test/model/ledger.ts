// What the processes of a sequence have sent, and what they were told: the model. It knows nothing that only the database
// could know.

import type { Status, StepBody } from "@holdpoint/core";
import type { CommitResult, LoadedRun, Move, Run, StepCommit } from "@holdpoint/store";

/**
 * An answer. `no` says that it did not take effect; that is only proof where no connection broke meanwhile, else it is
 * `unknown`, as is what nobody was told, or was told with an error of the connection.
 */
export type Answer<Yes> =
  | { readonly says: "yes"; readonly of: Yes }
  | { readonly says: "no"; readonly why: string }
  | { readonly says: "unknown"; readonly why: string };

export type Taken = Extract<CommitResult, { readonly result: "taken" }>;

/** Something that was sent, once or more often, and the answers that came; one that is missing is never to come. */
export interface Sent<What, Yes> {
  readonly what: What;
  readonly by: string;
  sends: number;
  readonly answers: Answer<Yes>[];
}

/** A run as it was seen with an answer: it has been like this. */
export interface Seen {
  readonly runId: string;
  readonly version: number;
  readonly status: Status;
}

/** A claim of some runs, and what was known of each when it was sent. */
export interface SentClaim {
  readonly workerId: string;
  readonly runIds: readonly string[];
  readonly knownSteps: ReadonlyMap<string, number>;
  readonly knownFacts: readonly string[];
}

export interface SentFact {
  readonly runId: string;
  readonly text: string;
}

export interface SentRun {
  readonly sessionId: string;
  readonly goal: string;
}

export interface SentDecision {
  readonly approvalId: string;
  readonly by: string;
}

export interface Ledger {
  readonly commits: Sent<StepCommit, Taken>[];
  readonly moves: Sent<Move & { readonly reason: string }, Run>[];
  readonly claims: Sent<SentClaim, readonly LoadedRun[]>[];
  readonly facts: Sent<SentFact, Run>[];
  readonly runs: Sent<SentRun, Run>[];
  readonly cancels: Sent<string, Run>[];
  readonly decisions: Sent<SentDecision, Run>[];
  /** Steps that others than owners may have written: late evidence, and what a person has found out. */
  readonly foreign: { readonly runId: string; readonly body: StepBody }[];
  readonly seen: Seen[];
  /** What should never be answered, in words. */
  readonly wrong: string[];
  /** The most steps of each run that are known to be stored. */
  readonly knownSteps: Map<string, number>;
  readonly sessions: string[];
}

/** A ledger with nothing in it. */
export function openLedger(): Ledger {
  return {
    commits: [],
    moves: [],
    claims: [],
    facts: [],
    runs: [],
    cancels: [],
    decisions: [],
    foreign: [],
    seen: [],
    wrong: [],
    knownSteps: new Map(),
    sessions: [],
  };
}

/** Notes that this is about to be sent. */
export function note<What, Yes>(list: Sent<What, Yes>[], by: string, what: What): Sent<What, Yes> {
  const sent: Sent<What, Yes> = { what, by, sends: 0, answers: [] };
  list.push(sent);
  return sent;
}

/** The runs that somebody was told of. */
export function knownRuns({ runs }: Ledger): readonly Run[] {
  return runs.flatMap(({ answers }) => answers.flatMap((answer) => (answer.says === "yes" ? [answer.of] : [])));
}

/** Notes how a run was when it was answered. */
export function noteSeen(ledger: Ledger, { id: runId, version, state: { status } }: Run): void {
  ledger.seen.push({ runId, version, status });
}

/** Notes that a run has at least these steps. */
export function noteSteps({ knownSteps }: Ledger, runId: string, stepSeq: number): void {
  knownSteps.set(runId, Math.max(knownSteps.get(runId) ?? 0, stepSeq));
}

/** Whether somebody was told that it took effect. */
export function isAcknowledged({ answers }: Sent<unknown, unknown>): boolean {
  return answers.some(({ says }) => says === "yes");
}

/** Whether it certainly took no effect: each time it was sent, it was refused with nothing between. */
export function isRefused({ sends, answers }: Sent<unknown, unknown>): boolean {
  return answers.length === sends && answers.every(({ says }) => says === "no");
}
