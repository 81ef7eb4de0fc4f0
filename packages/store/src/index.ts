export type { ActResult, ActRule } from "./act.ts";
export type { RegisteredAgent, RegisteredTool } from "./agents.ts";
export { listAgents, registerAgent } from "./agents.ts";
export { grantRoles, revokeRole, rolesOf, syncRoles } from "./assignments.ts";
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
export { checkSchema } from "./check-schema.ts";
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
export type { StoredDenyRule } from "./deny-rules.ts";
export { denyCalls, liftDenial, listDenials } from "./deny-rules.ts";
export type { FailureKind } from "./execute.ts";
export { failureKind } from "./execute.ts";
export { findOwnRuns } from "./find-own-runs.ts";
export type { Violation } from "./find-violations.ts";
export { findViolations } from "./find-violations.ts";
export { hashArgs } from "./hash-args.ts";
export type { IdKind } from "./ids.ts";
export { ID_PREFIXES, newId, newOperationId, showId, showIds } from "./ids.ts";
export type { LoadedRun, SessionMessage, TroubledService } from "./load-run.ts";
export { loadRun } from "./load-run.ts";
export { loseAndRecover } from "./lose-runs.ts";
export type { CallbackResult, ProviderCallback } from "./record-callback.ts";
export { recordCallback } from "./record-callback.ts";
export type { SaidFact } from "./record-fact.ts";
export { recordFact } from "./record-fact.ts";
export type { LateEvidence, LateEvidenceResult } from "./record-late-evidence.ts";
export { recordLateEvidence } from "./record-late-evidence.ts";
export type { Refusal } from "./refusals.ts";
export { recordRefusal } from "./refusals.ts";
export type { Reminder } from "./remind.ts";
export { remindApprovers } from "./remind.ts";
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
export type { ListedService, Pass, Trouble } from "./services.ts";
export { listServices, passService, reportRecovered, reportTrouble, UNAVAILABLE_AFTER } from "./services.ts";
export type { Session } from "./sessions.ts";
export { createSession, findSession } from "./sessions.ts";
export type { Submission, SubmitResult } from "./submit-run.ts";
export { submitRun } from "./submit-run.ts";
export type {
  ApprovalChange,
  ApprovalRequest,
  Artifact,
  CallbackRecord,
  DecisionRecord,
  Message,
  Move,
  Moved,
  Settle,
  ShownRequest,
  TransitionResult,
  Writes,
} from "./transition.ts";
export { sortResults, transition, transitionOne } from "./transition.ts";
export type { Renewal, WorkerRegistration } from "./workers.ts";
export { markExited, markGone, registerWorker, renewLease, retireWorker } from "./workers.ts";
export { writeChange } from "./write-change.ts";
