export type { Action, ActionRule, Actions } from "./actions.ts";
export { actionsFor } from "./actions.ts";
export type {
  ApprovalOnDeadline,
  ApprovalRule,
  ApprovalState,
  Approvers,
  DecidableRequest,
  DecisionKind,
  DecisionRule,
  EscalationLevel,
  GivenDecision,
  Judgement,
  PassedDeadline,
  PendingRequest,
  RecordedDecision,
  RequestChange,
} from "./approval.ts";
export {
  APPROVAL_STATES,
  applyChange,
  approversAt,
  DECISIONS,
  escalated,
  holdOf,
  judgeDecision,
  passDeadlines,
} from "./approval.ts";
export { asItRuns } from "./as-it-runs.ts";
export type { CallRecord } from "./call-record.ts";
export type { Checkpoint, KnownCalls } from "./checkpoint.ts";
export { advance, EMPTY_CHECKPOINT, nextInWords, rebuildCheckpoint } from "./checkpoint.ts";
export type { BlockedBy, Described } from "./describe.ts";
export { describe } from "./describe.ts";
export type { Actor, ActorKind, EventType, FactKind, OperatorChoice, RunEvent, SettledBy } from "./event.ts";
export { ACTOR_KINDS, FACT_RAISERS, mayRaise, OPERATOR_CHOICES, RAISERS, SETTLERS } from "./event.ts";
export type { ExplainedRun, Reason } from "./explain.ts";
export { EXPLAINED_ABOUT, explainReasons } from "./explain.ts";
export type { Appended, Known, RunHistory } from "./history.ts";
export { recordOf, runHistory } from "./history.ts";
export type { JsonObject, JsonValue } from "./json.ts";
export { canonicalJson, storable, storableText } from "./json.ts";
export type {
  JudgedLiveness,
  LeaseWatch,
  LivenessEvidence,
  LivenessRule,
  LivenessVerdict,
  OwnerEvidence,
} from "./liveness.ts";
export { goneAtMs, judgeLiveness, LIVENESS_VERDICTS, PROOF_OF, SECOND_LEASE_LIMIT_MS } from "./liveness.ts";
export type { LostReason, LostRule, Proof, Recovery } from "./lost.ts";
export { isLostReason, LOST_REASONS, lostReasonOf, PROOFS } from "./lost.ts";
export type { Next, PlanInput, RequestedApproval } from "./next.ts";
export { endWithReply, plan } from "./plan.ts";
export { approvalFor } from "./plan-call.ts";
export { type Family, familyIn, familyOf, stoppingHold, wakesParent } from "./plan-children.ts";
export { bothHolds } from "./plan-graph.ts";
export type { Condition, DenyRule, JudgedCall, PolicyRule, ShadowedRule } from "./policy.ts";
export { findDenial, findShadowed, judgePolicy } from "./policy.ts";
export type { Presentation, Presented } from "./present.ts";
export { present } from "./present.ts";
export type { Decision } from "./reduce.ts";
export { cellFor, reduce } from "./reduce.ts";
export { isPartOfReply } from "./reply-call.ts";
export { operatorHold, presentHold, rest } from "./rest.ts";
export type { EffectClass, Foreseen } from "./restart.ts";
export { describeLoss, EFFECT_CLASSES, effectClass, foreseeLoss } from "./restart.ts";
export type { Reply, RunTotals } from "./run-totals.ts";
export { MIGRATION_SUBJECT } from "./run-totals.ts";
export type { Backoff, LookUpAnswer, OpenCall, Settlement, TakeOver } from "./settle.ts";
export { backoffMs, judgeLookUp, LOOK_UP_BACKOFF, pollDelayMs, takeOver } from "./settle.ts";
export type { Asked, Hold, HoldKind, Instant, OnDeadline, Outcome, RunState, WaitingFor } from "./state.ts";
export { DEFAULT_DEADLINES, LONE_TAKEOVERS, LOST_CLAIMS_LIMIT, NOW, submitted } from "./state.ts";
export type { Status, TerminalStatus, WaitingStatus } from "./status.ts";
export { isTerminal, isWaiting, STATUSES, TERMINAL_STATUSES } from "./status.ts";
export type {
  AgentRef,
  Approval,
  Call,
  Child,
  ChildrenProperties,
  ClosedService,
  EffectProperties,
  ErrorClass,
  Fact,
  Limits,
  LineEffect,
  OpenAttempt,
  Price,
  ResultKind,
  SettlesLater,
  StartedNode,
  Step,
  StepBody,
  Usage,
  Verdict,
} from "./step.ts";
export { ERROR_CLASSES } from "./step.ts";
export type { Cell, Move, Rule } from "./table.ts";
export { CHOICES, TABLE } from "./table.ts";
export type { TaskTerms } from "./task-terms.ts";
export { AGENT_NAME, AGENT_VERSION, DEFAULT_TASK_TERMS, TASK_LIMITS } from "./task-terms.ts";
export type { WayOn } from "./ways-on.ts";
export { waysOn } from "./ways-on.ts";
