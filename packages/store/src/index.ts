export type { ActResult, ActRule } from "./act.ts";
export type { AddWebhookResult, NewWebhook } from "./add-webhook.ts";
export { addWebhook, WEBHOOKS_LIMIT } from "./add-webhook.ts";
export type { AgentKind, RegisteredAgent, RegisteredTool } from "./agents.ts";
export { findAgent, listAgents, registerAgent, registerTask } from "./agents.ts";
export { artifactOf, firstBytes, NOT_KEPT, OUTPUT_LIMIT_BYTES, SHOWN_BYTES } from "./artifact.ts";
export { grantRoles, revokeRole, rolesOf, syncRoles } from "./assignments.ts";
export type { AuditCode, AuditRow, QueuedOfAgent } from "./audit.ts";
export { auditRuns, countQueued } from "./audit.ts";
export type { Candidate, DueWakeUp, ForsakenRun, OverdueRun } from "./candidates.ts";
export {
  findForsaken,
  findIdleCancelling,
  findLookUpsDue,
  findMissedByCascade,
  findOverdue,
  findOwnedBy,
  findRetriesDue,
  findUnclaimed,
  findWakeable,
  findWedged,
} from "./candidates.ts";
export type { Changed, ChangeScheduleResult } from "./change-schedule.ts";
export { changeSchedule } from "./change-schedule.ts";
export { checkSchema, namedOnly } from "./check-schema.ts";
export type { ClaimedDelivery, Notice, SendingRoom } from "./claim-deliveries.ts";
export { claimDeliveries } from "./claim-deliveries.ts";
export type { Claim, UnloadedRun } from "./claim-runs.ts";
export { claimRuns, isUnloaded } from "./claim-runs.ts";
export type { BatchKind, BatchReport, CommitGroup } from "./commit-group.ts";
export { openCommitGroup } from "./commit-group.ts";
export type {
  ChildrenStart,
  ChildStart,
  CommitResult,
  EffectStart,
  Start,
  StartRefusal,
  StepCommit,
} from "./commit-steps.ts";
export { commitSteps } from "./commit-steps.ts";
export type { ControlDeliveryResult } from "./control-delivery.ts";
export { dismissDelivery, dismissOfDisabled, retryDelivery } from "./control-delivery.ts";
export type { OperatorDecision } from "./control-run.ts";
export { decideAsOperator, requestCancel, requestPause, resumeRun } from "./control-run.ts";
export type { ControlScheduleResult } from "./control-schedule.ts";
export { deleteSchedule, pauseSchedule, resumeSchedule } from "./control-schedule.ts";
export { changePolicy, disableWebhook } from "./control-webhook.ts";
export type { CreateScheduleResult } from "./create-schedule.ts";
export { createSchedule } from "./create-schedule.ts";
export type { Store, StoreOptions } from "./db.ts";
export { DEFAULT_TENANT, openStore } from "./db.ts";
export type { ApprovalDecision, DecideResult } from "./decide-approval.ts";
export { decideApproval } from "./decide-approval.ts";
export type { StoredDenyRule } from "./deny-rules.ts";
export { denyCalls, liftDenial, listDenials } from "./deny-rules.ts";
export type { DrainResult } from "./drain-worker.ts";
export { drainWorker } from "./drain-worker.ts";
export type { FailureKind } from "./execute.ts";
export { failureKind } from "./execute.ts";
export { findOwnRuns } from "./find-own-runs.ts";
export type { SilentRun, Waiting } from "./find-silent.ts";
export { findSilent, findWaiting } from "./find-silent.ts";
export type { VanishedChildren } from "./find-vanished.ts";
export { findVanished } from "./find-vanished.ts";
export type { Violation } from "./find-violations.ts";
export { findViolations } from "./find-violations.ts";
export type { DueSlots, FireResult, MissedReason } from "./fire-slot.ts";
export { fireSlot } from "./fire-slot.ts";
export { hashArgs } from "./hash-args.ts";
export type { Heartbeat, HeartbeatResult } from "./heartbeat-task.ts";
export { heartbeatTask } from "./heartbeat-task.ts";
export type { IdKind } from "./ids.ts";
export { ID_PREFIXES, newId, operationIdOf, showId, showIds } from "./ids.ts";
export type { TaskTokenIssued } from "./issue-task-token.ts";
export { issueTaskToken } from "./issue-task-token.ts";
export { type LoadedArtifact, loadArtifacts } from "./load-artifacts.ts";
export type { LoadedRun, SessionMessage, TroubledService } from "./load-run.ts";
export { loadRun } from "./load-run.ts";
export type { Loss } from "./lose-runs.ts";
export { loseAndRecover } from "./lose-runs.ts";
export type { GoneJudge, GoneWorkers } from "./mark-gone.ts";
export { markGone } from "./mark-gone.ts";
export type { Memory } from "./memories.ts";
export { deleteMemory, findMemory, putMemory } from "./memories.ts";
export type { MigrationRequest, VersionUnknown } from "./migrate-run.ts";
export { requestMigration } from "./migrate-run.ts";
export type {
  ApprovalChange,
  ApprovalRequest,
  Artifact,
  CallbackRecord,
  DecisionRecord,
  Message,
  Move,
  Settle,
  ShownRequest,
  TransitionResult,
  Writes,
} from "./move.ts";
export type { CallbackResult, ProviderCallback } from "./record-callback.ts";
export { recordCallback } from "./record-callback.ts";
export type { SaidFact } from "./record-fact.ts";
export { recordFact } from "./record-fact.ts";
export type { LateEvidence, LateEvidenceResult } from "./record-late-evidence.ts";
export { recordLateEvidence } from "./record-late-evidence.ts";
export type { Sending } from "./record-sending.ts";
export { recordSending } from "./record-sending.ts";
export type { Refusal } from "./refusals.ts";
export { recordRefusal } from "./refusals.ts";
export type { Reminder } from "./remind.ts";
export { findRemindersDue, remindApprovers } from "./remind.ts";
export type { Leftovers } from "./remove-leftovers.ts";
export { findLeftovers, removeLeftovers } from "./remove-leftovers.ts";
export type { PastRecords } from "./remove-past.ts";
export { findPast, removePast } from "./remove-past.ts";
export type { DueUnit, RemovedRuns, RunUnit } from "./remove-runs.ts";
export { findRetentionDue, removeRuns } from "./remove-runs.ts";
export type { ReportAnswer, TaskReported } from "./report-task.ts";
export { reportTask } from "./report-task.ts";
export type { Retention } from "./retention.ts";
export { changeRetention, findRetention } from "./retention.ts";
export type { Looked, Part, Place } from "./round.ts";
export { PART_ROWS } from "./round.ts";
export { type Run, runAfterSteps } from "./run.ts";
export type { Overlap, Schedule, ScheduleDefinition, ScheduleSeen, Timing } from "./schedule.ts";
export { findSchedule, readClock } from "./schedule.ts";
export type { ReplacedRun } from "./schedule-candidates.ts";
export { findDueSchedules, findReplacedRuns, findStartableSchedules } from "./schedule-candidates.ts";
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
export type { StartNowResult } from "./start-now.ts";
export { startNow } from "./start-now.ts";
export { startQueuedSlot } from "./start-queued-slot.ts";
export type { TaskStart, TaskStarted, TokenStart } from "./start-task.ts";
export { startByToken, startTask } from "./start-task.ts";
export type { StopReason } from "./stop-descendants.ts";
export { stopChildren, stopDescendants, stoppingMove } from "./stop-descendants.ts";
export type { Submission, SubmitResult } from "./submit-run.ts";
export { runByKey, submitRun } from "./submit-run.ts";
export type { LossForecast, OpenEffect } from "./take-over-run.ts";
export { forecastLoss, takeOverRun } from "./take-over-run.ts";
export type { LateTaskEvidence, TaskProgress, TaskReport } from "./task-writes.ts";
export type { UntoldParent } from "./tell-parents.ts";
export { findUntoldParents, tellingMove, tellParents } from "./tell-parents.ts";
export type { BuriedEffect, Tombstone, TombstoneKey } from "./tombstones.ts";
export { findTombstones } from "./tombstones.ts";
export type { Moved } from "./transition.ts";
export { sortResults, transition, transitionOne } from "./transition.ts";
export type { LivenessRecord } from "./verdicts.ts";
export { forgetVerdicts, lostRecords, recordVerdicts } from "./verdicts.ts";
export type { LeaseWatcher } from "./watch-leases.ts";
export { watchLeases } from "./watch-leases.ts";
export type { NoticePolicy, Webhook } from "./webhook.ts";
export type { DrainRequest, LeaseRenewal, Renewal, WorkerRegistration } from "./workers.ts";
export { markExited, registerWorker, renewLease, retireWorker } from "./workers.ts";
export { writeChange } from "./write-change.ts";
