export { Approval, ApprovalState, ApprovalSummary, Decided, DecisionBody, DecisionKind } from "./approval.ts";
export { CALLBACK_PATH, CallbackBody, CallbackReply, SIGNATURE_HEADER, SOURCE_PATTERN } from "./callback.ts";
export {
  ApprovalId,
  AttemptId,
  CallId,
  DeliveryId,
  Instant,
  MemoryId,
  RunId,
  ScheduleId,
  SessionId,
  WebhookId,
  WorkerId,
} from "./ids.ts";
export { Memory } from "./memory.ts";
export type { AccessRole } from "./names.ts";
export { ACCESS_ROLES, isAccessRole, ROLE_PATTERN, USER_PATTERN } from "./names.ts";
export { Check, ExplainedRun, Explanation, LossForecast, RestartPlan, Takeover } from "./on-call.ts";
export { Assignment, Finding, Service } from "./operations.ts";
export { MAX_LIMIT } from "./page.ts";
export { Denial, Denied, NewDenyRule, Rules, Verdict } from "./policy.ts";
export type { ProblemCode } from "./problem.ts";
export { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, Problem } from "./problem.ts";
export { Agent, Health, Message, Readiness, Session, Worker } from "./resources.ts";
export type { Access, Route } from "./route.ts";
export { ACCESS, namesOf } from "./route.ts";
export type { Parsed, Reply, RouteName, Routes } from "./routes.ts";
export { ROUTES } from "./routes.ts";
export type { RefusalRule } from "./run.ts";
export { ACTIONS, AgentKind, AgentRef, Call, RULES, Run, Status } from "./run.ts";
export { IdempotencyKey } from "./run-routes.ts";
export { Schedule, ScheduleChange, ScheduleName, Slot } from "./schedule.ts";
export { HeartbeatReply, StartedTask, TASK_TOKEN_PATTERN, Task, TaskDefinition, TaskEnd } from "./task.ts";
export { TimelineEntry } from "./timeline.ts";
export type { Pattern, PatternMistake } from "./timing.ts";
export { nextSlot, patternMistake } from "./timing.ts";
export { AuditFinding, Maintenance, MaintenanceAction, Retention, Tombstone } from "./upkeep.ts";
export {
  AddedWebhook,
  DELIVERY_HEADER,
  Delivery,
  DeliveryState,
  NoticePolicy,
  namesThisMachine,
  RunNotice,
  Webhook,
} from "./webhook.ts";
