import { OPERATOR_CHOICES, STATUSES } from "@holdpoint/core";
import { z } from "zod";
import { AttemptId, CallId, Instant, RunId, SessionId, WorkerId } from "./ids.ts";
import { Json } from "./json.ts";

export const Status = z.enum(STATUSES);

/** An agent that runs can be submitted to; the version is the one that a run keeps. */
export const AgentRef = z.object({ name: z.string().min(1).max(200), version: z.string().min(1).max(100) });

/** Who works on an agent's runs. */
export const AgentKind = z
  .enum(["agent", "workflow", "task"])
  .describe("Who works on its runs: workers with a model, workers by a graph, or somebody else");

/** What a call may do. */
export const EffectKind = z.enum(["read", "timer", "effect", "children"]);

/** Why something is refused or not offered: the table's rules, and those of holds, approvals and calls. */
export const RULES = [
  "already_submitted",
  "run_ended",
  "not_owned",
  "not_paused",
  "effect_unsettled",
  "effect_not_open",
  "children_live",
  "nothing_to_skip",
  "choice_not_offered",
  "not_yours_to_raise",
  "nothing_asked",
  "no_approval_pending",
  "run_not_ended",
  "attempt_open",
  "line_is_live",
  "instance_is_live",
  "retried_run_is_over",
  "hold_is_over",
  "not_a_workflow",
  "not_an_approver",
  "own_request",
  "hash_mismatch",
  "already_decided",
  "approval_expired",
  "approval_withdrawn",
  "approval_superseded",
  "decision_not_offered",
  "nothing_to_escalate_to",
  "edit_denied",
  "rule_in_force",
  "schedule_exists",
  "schedule_is_over",
  "too_many_live_runs",
  "deadline_passed",
  "attempt_not_named",
  "nobody_owns_it",
  "task_taken",
  "task_not_queued",
  "task_not_started",
  "task_token_stale",
  "stop_not_asked",
  "task_name_taken",
  "webhook_exists",
  "too_many_webhooks",
  "webhook_disabled",
  "already_delivered",
  "worker_gone",
  "busy",
] as const;

export type RefusalRule = (typeof RULES)[number];

export const ACTIONS = [
  "message",
  "answer",
  "decide",
  "cancel",
  "pause",
  "resume",
  "retry_as_new_run",
  ...OPERATOR_CHOICES,
] as const;

const WaitingFor = z.object({
  kind: z.enum(["requester", "approvers", "child", "timer", "callback", "service", "operator"]),
  principal: z.string().describe("A user, `role:<name>`, or the name of a service"),
  quorum: z.number().int().optional().describe("How many of them have to agree, where one is not enough"),
  subject: z.string().nullable().describe("What it is about: a call's id, a limit, a service"),
  reason: z.string(),
});

/** What a completed run achieved. */
export const Outcome = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("succeeded") }),
  z.object({ kind: z.literal("partial"), reason: z.string() }),
  z.object({ kind: z.literal("blocked"), step: z.string(), reason: z.string() }),
]);

const Owner = z.object({
  workerId: WorkerId,
  host: z.string(),
  pid: z.number().int(),
  leaseUntil: Instant,
  silent: z.boolean().describe("Its lease is over: it has not been heard of since"),
});

/** A run as its row says, and what its reader needs beside it. */
export const Run = z
  .object({
    id: RunId,
    sessionId: SessionId,
    agent: AgentRef,
    kind: AgentKind,
    requester: z.string(),
    submittedBy: z.string().describe("Who submitted it: not always the requester"),
    goal: z.string(),
    status: Status,
    sentence: z.string().describe("What it is doing or for whom it waits, since when, until when"),
    actions: z
      .record(z.enum(ACTIONS), z.enum(RULES).nullable())
      .describe("What this caller may do: null where it may, otherwise the rule that forbids it"),
    outcome: Outcome.nullable(),
    endReason: z.string().nullable(),
    currentStep: z.string().nullable(),
    lastCompleted: z.string().nullable(),
    turn: z.number().int(),
    usage: z.object({ inputTokens: z.number().int(), outputTokens: z.number().int() }),
    workedMs: z.number().int().describe("For how long workers have had it, in milliseconds; waits do not count"),
    since: Instant.describe("When it came to its present status"),
    waitingFor: WaitingFor.nullable(),
    hold: z.number().int().nullable().describe("Names the present hold to whoever answers it"),
    waitDeadline: Instant.nullable(),
    onDeadline: z.enum(["no_answer", "reject", "abort", "operator", "escalate", "extend", "continue"]).nullable(),
    overdue: z.boolean(),
    retryAt: Instant.nullable(),
    nextReconcileAt: Instant.nullable(),
    progressDueAt: Instant.nullable(),
    owner: Owner.nullable(),
    epoch: z.number().int(),
    externalRef: z.string().nullable().describe("What the open effect is known by outside"),
    version: z.number().int(),
    stepSeq: z.number().int(),
    openAttempts: z.number().int(),
    liveChildren: z.number().int(),
    takeovers: z.number().int(),
    line: RunId.describe("The first run of its line"),
    retryOf: RunId.nullable(),
    parent: RunId.nullable(),
    ancestors: z.array(RunId).describe("From the first run of its tree down to its parent; empty where it has none"),
    startedBy: z
      .object({
        callId: CallId,
        tool: z.string(),
        ordinal: z.number().int().describe("Its place among the runs of that call, from 0"),
        try: z.number().int().describe("1 unless an operator let the call try again"),
      })
      .nullable()
      .describe("The call of its parent that started it"),
    instanceKey: z.string().nullable().describe("Of the live runs of one agent at most one has it"),
    blockedBy: z
      .array(z.object({ runId: RunId, agent: AgentRef, step: z.string(), reason: z.string() }))
      .describe("The child runs that keep it waiting for an operator since they achieved nothing; ten at most"),
    notStopped: z
      .array(z.object({ runId: RunId, agent: AgentRef, status: Status }))
      .describe("While it is `cancelling`: who below it has not stopped yet; ten at most"),
    openNodes: z
      .array(z.object({ node: z.string(), round: z.number().int(), item: z.number().int().nullable() }))
      .optional()
      .describe("Of a workflow's run, in no list: the nodes that are under way; 100 at most"),
    input: Json.optional().describe(
      "What it was given beside its goal; in no list, and for those who may read its payloads",
    ),
    result: Json.optional().describe("What it has brought home; in no list, and for those who may read its payloads"),
    cancelRequestedAt: Instant.nullable(),
    pauseRequestedAt: Instant.nullable(),
    pausedAt: Instant.nullable(),
    lostAt: Instant.nullable(),
    lostReason: z.string().nullable(),
    createdAt: Instant,
    updatedAt: Instant,
    endedAt: Instant.nullable(),
  })
  .meta({ id: "Run" });

export type Run = z.output<typeof Run>;

const Attempt = z.object({
  id: AttemptId.nullable().describe(
    "Null for a try of a read: it is over when it is stored, and nobody has to name it",
  ),
  number: z.number().int(),
  workerId: WorkerId,
  state: z.enum(["open", "succeeded", "failed", "happened", "did_not_happen", "superseded", "not_established"]),
  externalRef: z.string().nullable().describe("What the effect is known by outside"),
  startedAt: Instant,
  deadlineAt: Instant,
  endedAt: Instant.nullable(),
  settledBy: z.string().nullable(),
  errorClass: z.string().nullable(),
  errorCode: z.string().nullable(),
  lookUps: z.number().int(),
  lateAt: Instant.nullable().describe("When a worker that had been replaced reported about it"),
});

/** A tool call of a run, and what happened outside for it. */
export const Call = z
  .object({
    id: CallId,
    turn: z.number().int(),
    ordinal: z.number().int(),
    tool: z.string(),
    argsHash: z.string(),
    operationId: z.string(),
    effect: EffectKind,
    verdict: z.enum(["allowed", "needs_approval", "denied", "invalid"]),
    at: Instant,
    attempts: z.array(Attempt),
  })
  .meta({ id: "Call" });

export type Call = z.output<typeof Call>;
