export type { ActResult, ActRule } from "./act.ts";
export type { RegisteredAgent } from "./agents.ts";
export { listAgents, registerAgent } from "./agents.ts";
export type { Candidate, DueWakeUp, OverdueRun } from "./candidates.ts";
export {
  findForsaken,
  findIdleCancelling,
  findLookUpsDue,
  findMissedByCascade,
  findOverdue,
  findOwnedBy,
  findRetriesDue,
  findUnclaimed,
  findWedged,
} from "./candidates.ts";
export type { Claim, UnloadedRun } from "./claim-runs.ts";
export { claimRuns, isUnloaded } from "./claim-runs.ts";
export type { CommitGroup } from "./commit-group.ts";
export { openCommitGroup } from "./commit-group.ts";
export type { CommitResult, FinishedAttempt, Start, StepCommit } from "./commit-steps.ts";
export { commitSteps } from "./commit-steps.ts";
export type { OperatorDecision } from "./control-run.ts";
export { decideAsOperator, requestCancel, requestPause, resumeRun } from "./control-run.ts";
export type { Store, StoreOptions } from "./db.ts";
export { DEFAULT_TENANT, openStore } from "./db.ts";
export type { ApprovalDecision, DecideResult } from "./decide-approval.ts";
export { decideApproval } from "./decide-approval.ts";
export type { FailureKind } from "./execute.ts";
export { failureKind } from "./execute.ts";
export { findOwnRuns } from "./find-own-runs.ts";
export type { Violation } from "./find-violations.ts";
export { findViolations } from "./find-violations.ts";
export type { IdKind } from "./ids.ts";
export { ID_PREFIXES, newId, newOperationId, showId, showIds } from "./ids.ts";
export type { LoadedRun, SessionMessage } from "./load-run.ts";
export { loadRun } from "./load-run.ts";
export { loseAndRecover } from "./lose-runs.ts";
export type { SaidFact } from "./record-fact.ts";
export { recordFact } from "./record-fact.ts";
export type { LateEvidence, LateEvidenceResult } from "./record-late-evidence.ts";
export { recordLateEvidence } from "./record-late-evidence.ts";
export type { Refusal } from "./refusals.ts";
export { recordRefusal } from "./refusals.ts";
export type { Run } from "./run.ts";
export type { ServerSettings } from "./server-settings.ts";
export {
  checkQueue,
  explainStartError,
  readEnvironment,
  SERVER_ENV,
  SERVER_USAGE,
  serverSettings,
} from "./server-settings.ts";
export type { Session } from "./sessions.ts";
export { createSession, findSession } from "./sessions.ts";
export type { Submission, SubmitResult } from "./submit-run.ts";
export { submitRun } from "./submit-run.ts";
export type {
  ApprovalChange,
  ApprovalRequest,
  Artifact,
  DecisionRecord,
  Message,
  Move,
  Moved,
  Settle,
  TransitionResult,
  Writes,
} from "./transition.ts";
export { sortResults, transition, transitionOne } from "./transition.ts";
export type { Renewal, WorkerRegistration } from "./workers.ts";
export { markExited, markGone, registerWorker, renewLease, retireWorker } from "./workers.ts";
