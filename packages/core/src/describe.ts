import type { Outcome, WaitingFor } from "./state.ts";
import { isTerminal, type Status } from "./status.ts";

/** What a sentence about a run is made of; instants as the reader should see them. */
export interface Described {
  readonly status: Status;
  readonly currentStep: string | null;
  readonly waitingFor: WaitingFor | null;
  readonly since: string;
  readonly until: string | null;
  readonly onDeadline: string | null;
  readonly outcome: Outcome | null;
  readonly endReason: string | null;
  readonly ownerSilent: boolean;
  /** The first child that keeps a run waiting since it achieved nothing, and how many others do. */
  readonly blockedBy?: BlockedBy | null;
  /** Of a task, and of nothing else: who has it in hands. */
  readonly task?: { readonly executor: string | null } | null;
}

export interface BlockedBy {
  readonly run: string;
  readonly step: string;
  readonly reason: string;
  readonly others: number;
}

/** One sentence that says what a run is doing or for whom it waits, since when and until when. */
export function describe(run: Described): string {
  const until = run.until === null ? "" : `, until ${run.until}`;
  if (isTerminal(run.status)) return `${ended(run)} at ${run.since}.`;
  return `${elsewhere(run) ?? present(run)} since ${run.since}${until}${consequence(run)}.`;
}

/** What is said of a task, which nobody here works on; null where that is what is said of every run. */
function elsewhere({ status, task = null, ownerSilent }: Described): string | null {
  if (task === null) return null;
  const who = task.executor ?? "somebody";
  switch (status) {
    case "queued":
      return "Waits for somebody to start it";
    case "running":
      return ownerSilent ? `In the hands of ${who}, who has not been heard of,` : `In the hands of ${who}`;
    case "lost":
      return "Whoever had it in hands has not been heard of; waits to hear of them";
    case "cancelling":
      return task.executor === null ? null : `Stopping on request; ${who} has not said yet that it has stopped,`;
    default:
      return null;
  }
}

function present(run: Described): string {
  const step = run.currentStep === null ? "" : ` (${run.currentStep})`;
  switch (run.status) {
    case "queued":
      return "Waits for a free worker";
    case "running":
      return run.ownerSilent ? `Was working${step}; its worker has not been heard of` : `Working${step}`;
    case "retrying":
      return `Waits to try again${step}`;
    case "outcome_unknown":
      return `Nobody knows yet whether the last call acted${step}; looked up`;
    case "paused":
      return "Paused by an operator";
    case "lost":
      return "Its worker is gone; waits to be recovered";
    case "cancelling":
      return `Stopping on request${step}`;
    default:
      return waiting(run);
  }
}

function waiting({ waitingFor, currentStep, blockedBy = null }: Described): string {
  const whom = waitingFor?.principal.replaceAll("role:", "") ?? "somebody";
  const why = waitingFor === null ? "" : ` (${words(waitingFor.reason)})`;
  const quorum = waitingFor?.quorum === undefined ? "" : `${waitingFor.quorum} of `;
  switch (waitingFor?.kind) {
    case "requester":
      return `Waits for an answer from ${whom}`;
    case "approvers":
      return `Waits for approval of ${currentStep ?? "a call"} by ${quorum}${whom}`;
    case "operator":
      return blockedBy === null ? `Waits for an operator${why}` : blocked(blockedBy);
    case "service":
      return `Waits for the service ${whom}${why}`;
    case "child":
      return `Waits for ${whom}${currentStep === null ? "" : ` (${currentStep})`}`;
    case "callback":
      return `Waits for ${whom} to settle ${currentStep ?? "a call"}`;
    default:
      return `Waits for ${whom}${why}`;
  }
}

/** What a person has to see to, so that the run can go on. */
function blocked({ run, step, reason, others }: BlockedBy): string {
  const rest = others === 0 ? "" : `, and ${others} more are blocked`;
  return `Waits for an operator: ${run} achieved nothing (${words(reason)}, at step ${step})${rest},`;
}

function ended({ status, outcome, endReason }: Described): string {
  const why = endReason === null ? "" : ` (${words(endReason)})`;
  if (status === "failed") return `Failed${why}`;
  if (status === "cancelled") return `Cancelled${why}`;
  if (outcome?.kind === "blocked")
    return `Ended without achieving anything: ${words(outcome.reason)}, at step ${outcome.step},`;
  if (outcome?.kind === "partial") return `Completed in part: ${words(outcome.reason)},`;
  return outcome?.kind === "succeeded" ? "Completed with success" : "Completed";
}

const CONSEQUENCES: Readonly<Record<string, string>> = {
  no_answer: "; then the agent is told that nobody answered",
  reject: "; then it counts as rejected",
  abort: "; then the run is stopped",
  operator: "; then an operator decides",
  escalate: "; then it is escalated again",
  extend: "; then it is extended once",
  continue: "; then it goes on",
};

/** What going on means where the other side decides how long it takes. */
const GOES_ON: Readonly<Record<string, string>> = {
  service: "; then it is tried again",
  callback: "; then the other side is asked",
};

function consequence({ onDeadline, waitingFor }: Described): string {
  if (onDeadline === null) return "";
  const going = onDeadline === "continue" ? GOES_ON[waitingFor?.kind ?? ""] : undefined;
  return going ?? CONSEQUENCES[onDeadline] ?? "";
}

/** Reasons may be codes; a reader gets words. */
function words(reason: string): string {
  return reason.replaceAll("_", " ");
}
