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
export type { Checkpoint } from "./checkpoint.ts";
export { advance, EMPTY_CHECKPOINT, nextInWords, rebuildCheckpoint } from "./checkpoint.ts";
export type { Described } from "./describe.ts";
export { describe } from "./describe.ts";
export type { Actor, ActorKind, EventType, FactKind, OperatorChoice, RunEvent, SettledBy } from "./event.ts";
export { ACTOR_KINDS, FACT_RAISERS, mayRaise, OPERATOR_CHOICES, RAISERS, SETTLERS } from "./event.ts";
export type { JsonObject, JsonValue } from "./json.ts";
export { canonicalJson, storable, storableText } from "./json.ts";
export type { Next, PlanInput, RequestedApproval } from "./next.ts";
export { plan } from "./plan.ts";
export { approvalFor, asItRuns } from "./plan-call.ts";
export type { Condition, DenyRule, JudgedCall, PolicyRule, ShadowedRule } from "./policy.ts";
export { findDenial, findShadowed, judgePolicy } from "./policy.ts";
export type { Presentation, Presented } from "./present.ts";
export { present } from "./present.ts";
export type { Decision } from "./reduce.ts";
export { cellFor, reduce } from "./reduce.ts";
export { operatorHold, presentHold, rest } from "./rest.ts";
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
  Step,
  StepBody,
  Usage,
  Verdict,
} from "./step.ts";
export { ERROR_CLASSES } from "./step.ts";
export type { Cell, Move, Rule } from "./table.ts";
export { CHOICES, TABLE } from "./table.ts";
