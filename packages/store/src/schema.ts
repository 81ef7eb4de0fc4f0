// The tables of the schema `holdpoint`, for the reads. The migrations are the truth; a test compares both.

import type {
  AgentRef,
  ApprovalOnDeadline,
  ApprovalRule,
  ApprovalState,
  Asked,
  Checkpoint,
  DecisionKind,
  DenyRule,
  JsonObject,
  JsonValue,
  LivenessVerdict,
  LostReason,
  Outcome,
  Status,
  StepBody,
  TaskTerms,
  WaitingFor,
} from "@holdpoint/core";
import { bigint, boolean, integer, jsonb, text, uuid } from "drizzle-orm/pg-core";
import type { AgentKind } from "./agents.ts";
import type { ShownRequest } from "./move.ts";
import type { ReplyCalls } from "./reply-calls.ts";
import { callColumns, holdpoint, instant, tenantId } from "./schema-columns.ts";
import type { LateTaskEvidence, TaskProgress, TaskReport } from "./task-writes.ts";

export { deliveries, deliveryChanges, webhooks } from "./schema-deliveries.ts";
export { memories, scheduleChanges, scheduleSlots, schedules } from "./schema-schedules.ts";
export { artifacts, artifactUses, idempotencyKeys, retention, tombstones } from "./schema-upkeep.ts";

export const tenants = holdpoint.table("tenants", {
  id: uuid().primaryKey(),
  name: text().notNull(),
  createdAt: instant("created_at").notNull(),
  policyRevision: integer("policy_revision").notNull(),
});

export const roleAssignments = holdpoint.table("role_assignments", {
  tenantId: tenantId(),
  userId: text("user_id").notNull(),
  role: text().notNull(),
  grantedAt: instant("granted_at").notNull(),
  grantedBy: text("granted_by").notNull(),
  revokedAt: instant("revoked_at"),
  revokedBy: text("revoked_by"),
});

export const denyRules = holdpoint.table("deny_rules", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  name: text().notNull(),
  rule: jsonb().$type<DenyRule>().notNull(),
  reason: text().notNull(),
  createdAt: instant("created_at").notNull(),
  createdBy: text("created_by").notNull(),
  liftedAt: instant("lifted_at"),
  liftedBy: text("lifted_by"),
});

export const sessions = holdpoint.table("sessions", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  requester: text().notNull(),
  messageSeq: integer("message_seq").notNull(),
  createdAt: instant("created_at").notNull(),
  emptiedAt: instant("emptied_at"),
  used: boolean().notNull(),
});

export const messages = holdpoint.table("messages", {
  tenantId: tenantId(),
  sessionId: uuid("session_id").notNull(),
  seq: integer().notNull(),
  role: text().$type<"user" | "assistant">().notNull(),
  author: text().notNull(),
  text: text().notNull(),
  runId: uuid("run_id"),
  at: instant("at").notNull(),
});

export const agents = holdpoint.table("agents", {
  tenantId: tenantId(),
  name: text().notNull(),
  version: text().notNull(),
  tools: jsonb().$type<JsonValue>().notNull(),
  kind: text().$type<AgentKind>().notNull(),
  task: jsonb().$type<TaskTerms>(),
  inputSchema: jsonb("input_schema").$type<JsonObject>(),
  registeredAt: instant("registered_at").notNull(),
});

export const workers = holdpoint.table("workers", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  host: text().notNull(),
  pid: integer().notNull(),
  agents: jsonb().$type<readonly AgentRef[]>().notNull(),
  slots: integer().notNull(),
  startedAt: instant("started_at").notNull(),
  leaseUntil: instant("lease_until").notNull(),
  goneAt: instant("gone_at"),
  goneReason: text("gone_reason"),
  kind: text().$type<"process" | "task">().notNull(),
  leaseMs: integer("lease_ms").notNull(),
  graceMs: integer("grace_ms"),
  skewMs: integer("skew_ms"),
  drainRequestedAt: instant("drain_requested_at"),
  drainRequestedBy: text("drain_requested_by"),
  stayDown: boolean("stay_down").notNull(),
});

export const verdicts = holdpoint.table("verdicts", {
  tenantId: tenantId(),
  runId: uuid("run_id").primaryKey(),
  runVersion: integer("run_version").notNull(),
  verdict: text().$type<LivenessVerdict>().notNull(),
  reason: text().$type<LostReason>(),
  rule: text().notNull(),
  evidence: jsonb().$type<JsonObject>().notNull(),
  until: instant("until"),
  at: instant("at").notNull(),
});

export const leaseWatch = holdpoint.table("lease_watch", {
  tenantId: uuid("tenant_id").primaryKey(),
  since: instant("since").notNull(),
  seenAt: instant("seen_at").notNull(),
  seenBy: text("seen_by").notNull(),
  graceMs: integer("grace_ms").notNull(),
});

export const runs = holdpoint.table("runs", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  sessionId: uuid("session_id").notNull(),
  agentName: text("agent_name").notNull(),
  agentVersion: text("agent_version").notNull(),
  requester: text().notNull(),
  goal: text().notNull(),
  inputSeq: integer("input_seq").notNull(),
  line: uuid().notNull(),
  retryOf: uuid("retry_of"),
  parent: uuid(),
  status: text().$type<Status>().notNull(),
  version: integer().notNull(),
  stepSeq: integer("step_seq").notNull(),
  epoch: integer().notNull(),
  owner: uuid(),
  currentStep: text("current_step"),
  checkpoint: jsonb().$type<Checkpoint>().notNull(),
  progressDueAt: instant("progress_due_at"),
  externalRef: text("external_ref"),
  openAttempts: integer("open_attempts").notNull(),
  liveChildren: integer("live_children").notNull(),
  takeovers: integer().notNull(),
  queuedSince: instant("queued_since"),
  waitingFor: jsonb("waiting_for").$type<WaitingFor>(),
  waitingSince: instant("waiting_since"),
  holdSeq: integer("hold_seq"),
  waitDeadline: instant("wait_deadline"),
  onDeadline: text("on_deadline"),
  retryAt: instant("retry_at"),
  nextReconcileAt: instant("next_reconcile_at"),
  lookUpsEndAt: instant("look_ups_end_at"),
  lookUpsOver: boolean("look_ups_over").notNull(),
  cancelRequestedAt: instant("cancel_requested_at"),
  pauseRequestedAt: instant("pause_requested_at"),
  pausedAt: instant("paused_at"),
  resumeTo: jsonb("resume_to").$type<Asked>(),
  lostAt: instant("lost_at"),
  lostReason: text("lost_reason"),
  outcome: jsonb().$type<Outcome>(),
  endReason: text("end_reason"),
  endedAt: instant("ended_at"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  submittedBy: text("submitted_by").notNull(),
  ancestors: uuid().array().notNull(),
  parentCall: uuid("parent_call"),
  parentOrdinal: integer("parent_ordinal"),
  parentTry: integer("parent_try"),
  toldParentAt: instant("told_parent_at"),
  input: jsonb().$type<JsonValue>(),
  result: jsonb().$type<JsonValue>(),
  instanceKey: text("instance_key"),
  isTask: boolean("is_task").notNull(),
  claimedAt: instant("claimed_at"),
  workedMs: bigint("worked_ms", { mode: "number" }).notNull(),
  keptUntil: instant("kept_until"),
  resultArtifact: text("result_artifact"),
});

export const tasks = holdpoint.table("tasks", {
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  epoch: integer().notNull(),
  tokenHash: text("token_hash").notNull(),
  issuedAt: instant("issued_at").notNull(),
  issuedBy: text("issued_by").notNull(),
  workerId: uuid("worker_id"),
  executor: text(),
  startKey: text("start_key"),
  heartbeatMs: integer("heartbeat_ms").notNull(),
  graceMs: integer("grace_ms").notNull(),
  startedAt: instant("started_at"),
  lastHeartbeatAt: instant("last_heartbeat_at"),
  progress: jsonb().$type<TaskProgress>(),
  report: jsonb().$type<TaskReport>(),
  reportHash: text("report_hash"),
  reportedAt: instant("reported_at"),
  lateEvidence: jsonb("late_evidence").$type<LateTaskEvidence>(),
  lateAt: instant("late_at"),
});

export const transitions = holdpoint.table("transitions", {
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  seq: integer().notNull(),
  fromStatus: text("from_status").$type<Status>(),
  toStatus: text("to_status").$type<Status>().notNull(),
  event: text().notNull(),
  actorKind: text("actor_kind").notNull(),
  actorId: text("actor_id").notNull(),
  epoch: integer().notNull(),
  reason: text(),
  at: instant("at").notNull(),
});

export const steps = holdpoint.table("steps", {
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  seq: integer().notNull(),
  epoch: integer().notNull(),
  kind: text().$type<StepBody["kind"]>().notNull(),
  body: jsonb().$type<StepBody>().notNull(),
  at: instant("at").notNull(),
  calls: jsonb().$type<ReplyCalls>(),
});

/** Calls with rows of their own: effects, timers, what starts children or needs an approval. `allCalls` has the others as well. */
export const calls = holdpoint.table("calls", callColumns());

export const attempts = holdpoint.table("attempts", {
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  id: uuid().notNull(),
  callId: uuid("call_id").notNull(),
  number: integer().notNull(),
  worker: uuid().notNull(),
  epoch: integer().notNull(),
  externalRef: text("external_ref"),
  startedAt: instant("started_at").notNull(),
  deadlineAt: instant("deadline_at").notNull(),
  endedAt: instant("ended_at"),
  outcome: text(),
  settledBy: text("settled_by"),
  errorClass: text("error_class"),
  errorCode: text("error_code"),
  lookUps: integer("look_ups").notNull(),
  lateAt: instant("late_at"),
  lateEvidence: jsonb("late_evidence").$type<JsonValue>(),
  argsHash: text("args_hash"),
});

export const refusals = holdpoint.table("refusals", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  runId: uuid("run_id").notNull(),
  event: text().notNull(),
  rule: text().notNull(),
  status: text().$type<Status>().notNull(),
  actorKind: text("actor_kind").notNull(),
  actorId: text("actor_id").notNull(),
  at: instant("at").notNull(),
});

export const inbox = holdpoint.table("inbox", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  runId: uuid("run_id").notNull(),
  arrival: bigint({ mode: "number" }).notNull(),
  body: jsonb().$type<StepBody>().notNull(),
  at: instant("at").notNull(),
  readInStep: integer("read_in_step"),
});

export const approvals = holdpoint.table("approvals", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  runId: uuid("run_id").notNull(),
  callId: uuid("call_id").notNull(),
  holdSeq: integer("hold_seq").notNull(),
  tool: text().notNull(),
  args: text().notNull(),
  argsHash: text("args_hash").notNull(),
  rule: text().notNull(),
  roles: text().array().notNull(),
  users: text().array().notNull(),
  excluded: text().array().notNull(),
  state: text().$type<ApprovalState>().notNull(),
  requestedAt: instant("requested_at").notNull(),
  deadline: instant("deadline").notNull(),
  onDeadline: text("on_deadline").$type<ApprovalOnDeadline>().notNull(),
  validForMs: bigint("valid_for_ms", { mode: "number" }).notNull(),
  decidedAt: instant("decided_at"),
  decidedBy: text("decided_by"),
  note: text(),
  validUntil: instant("valid_until"),
  spentAt: instant("spent_at"),
  spentBy: uuid("spent_by"),
  terms: jsonb().$type<ApprovalRule>().notNull(),
  request: jsonb().$type<ShownRequest>().notNull(),
  level: integer().notNull(),
  extended: boolean().notNull(),
  quorum: integer().notNull(),
  given: integer().notNull(),
  editedBy: text("edited_by"),
  answer: jsonb().$type<JsonValue>(),
  remindAt: instant("remind_at"),
  reminders: integer().notNull(),
  closedAt: instant("closed_at"),
  closedReason: text("closed_reason"),
});

export const decisions = holdpoint.table("decisions", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  approvalId: uuid("approval_id").notNull(),
  runId: uuid("run_id").notNull(),
  actorId: text("actor_id").notNull(),
  decision: text().$type<DecisionKind>().notNull(),
  argsHash: text("args_hash").notNull(),
  note: text(),
  at: instant("at").notNull(),
  level: integer().notNull(),
  payload: jsonb().$type<JsonValue>().notNull(),
});

export const reminders = holdpoint.table("reminders", {
  tenantId: tenantId(),
  approvalId: uuid("approval_id").notNull(),
  stage: integer().notNull(),
  runId: uuid("run_id").notNull(),
  at: instant("at").notNull(),
});

export const services = holdpoint.table("services", {
  tenantId: tenantId(),
  name: text().notNull(),
  reason: text().$type<"throttled" | "unavailable">().notNull(),
  failures: integer().notNull(),
  since: instant("since").notNull(),
  closedUntil: instant("closed_until"),
  probeUntil: instant("probe_until"),
  updatedAt: instant("updated_at").notNull(),
});

export const callbacks = holdpoint.table("callbacks", {
  tenantId: tenantId(),
  source: text().notNull(),
  eventId: text("event_id").notNull(),
  runId: uuid("run_id").notNull(),
  callId: uuid("call_id").notNull(),
  status: text().$type<"pending" | "settled" | "failed">().notNull(),
  receivedAt: instant("received_at").notNull(),
});
