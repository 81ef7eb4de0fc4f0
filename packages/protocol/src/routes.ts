import { OPERATOR_CHOICES } from "@holdpoint/core";
import { z } from "zod";
import { ApprovalId, AttemptId, RunId, SessionId } from "./ids.ts";
import { Json } from "./json.ts";
import { listOf, pageOf, pageQuery } from "./page.ts";
import { Agent, Approval, ApprovalState, Decided, Health, Message, Readiness, Session, Worker } from "./resources.ts";
import { AgentRef, Call, Run, Status, TimelineEntry } from "./run.ts";

/**
 * Who may call a route at all. What a caller may do with a run is judged by the run's state and the caller's part in it
 * (the run's `actions`); what it may not see is not found.
 */
export const ACCESS = {
  anyone: "no token needed",
  caller: "any caller",
  submitter: "requesters and operators",
  operator: "operators",
} as const;
export type Access = keyof typeof ACCESS;

/** One entry of the route table. A schema that is left out takes nothing. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: `/${string}`;
  readonly summary: string;
  readonly access: Access;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** Takes the header `Idempotency-Key`: the same request again under the same key makes nothing new. */
  readonly idempotent?: true;
  readonly status: 200 | 201;
  readonly reply: z.ZodType;
}

const text = z.string().trim().min(1).max(16_000);
const reason = z.string().trim().min(1).max(1_000);
const name = z.string().min(1).max(200);
const flag = z.stringbool().default(false);
const ofRun = z.strictObject({ runId: RunId });
const ofSession = z.strictObject({ sessionId: SessionId });
const ofApproval = z.strictObject({ approvalId: ApprovalId });

/** The value of the header `Idempotency-Key`. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, { error: "must be 1 to 255 visible ASCII characters without spaces" });

/** Every route, by the name under which client and api know it. */
export const ROUTES = {
  createSession: {
    method: "POST",
    path: "/sessions",
    summary: "Open a conversation",
    access: "submitter",
    status: 201,
    reply: Session,
  },
  showSession: {
    method: "GET",
    path: "/sessions/:sessionId",
    summary: "Show a conversation",
    access: "caller",
    params: ofSession,
    status: 200,
    reply: Session,
  },
  listMessages: {
    method: "GET",
    path: "/sessions/:sessionId/messages",
    summary: "What was said in a conversation, from its start",
    access: "caller",
    params: ofSession,
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Message),
  },
  submitRun: {
    method: "POST",
    path: "/sessions/:sessionId/runs",
    summary: "Submit a run; its goal becomes a message of the conversation",
    access: "submitter",
    params: ofSession,
    body: z.strictObject({ agent: AgentRef.strict(), goal: text }),
    idempotent: true,
    status: 201,
    reply: Run,
  },
  listRuns: {
    method: "GET",
    path: "/runs",
    summary: "Runs, the newest first",
    access: "caller",
    query: z.strictObject({
      ...pageQuery,
      status: listOf(Status).optional(),
      waitingForKind: z
        .enum(["requester", "approvers", "child", "timer", "callback", "service", "operator"])
        .optional(),
      waitingFor: name.optional().describe("A user, `role:<name>`, or the name of a service"),
      overdue: z.stringbool().optional(),
      agent: name.optional(),
      agentVersion: name.optional(),
      sessionId: SessionId.optional(),
    }),
    status: 200,
    reply: pageOf(Run),
  },
  showRun: {
    method: "GET",
    path: "/runs/:runId",
    summary: "Show a run",
    access: "caller",
    params: ofRun,
    status: 200,
    reply: Run,
  },
  showTimeline: {
    method: "GET",
    path: "/runs/:runId/timeline",
    summary: "What happened to a run: transitions, steps, decisions and refused answers, from its start",
    access: "caller",
    params: ofRun,
    query: z.strictObject({ ...pageQuery, payloads: flag.describe("Steps with what was said and answered") }),
    status: 200,
    reply: pageOf(TimelineEntry),
  },
  listCalls: {
    method: "GET",
    path: "/runs/:runId/calls",
    summary: "A run's tool calls, each with what happened outside",
    access: "caller",
    params: ofRun,
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Call),
  },
  sendMessage: {
    method: "POST",
    path: "/runs/:runId/messages",
    summary: "Say something to a run; it is read when the run takes its next turn",
    access: "caller",
    params: ofRun,
    body: z.strictObject({ text }),
    status: 200,
    reply: Run,
  },
  answer: {
    method: "POST",
    path: "/runs/:runId/answers",
    summary: "Answer the question that a run waits with",
    access: "caller",
    params: ofRun,
    body: z.strictObject({
      text,
      hold: z
        .number()
        .int()
        .min(1)
        .max(2_147_483_647)
        .optional()
        .describe("The run's `hold` when the question was read"),
    }),
    status: 200,
    reply: Run,
  },
  cancelRun: {
    method: "POST",
    path: "/runs/:runId/cancel",
    summary: "Ask a run to stop",
    access: "caller",
    params: ofRun,
    body: z.strictObject({ reason: reason.optional() }),
    status: 200,
    reply: Run,
  },
  pauseRun: {
    method: "POST",
    path: "/runs/:runId/pause",
    summary: "Ask a run to pause",
    access: "caller",
    params: ofRun,
    status: 200,
    reply: Run,
  },
  resumeRun: {
    method: "POST",
    path: "/runs/:runId/resume",
    summary: "Take a pause back; all deadlines move by the time that it took",
    access: "caller",
    params: ofRun,
    status: 200,
    reply: Run,
  },
  retryRun: {
    method: "POST",
    path: "/runs/:runId/retry",
    summary: "Do an ended run again, as a new run of the same line",
    access: "caller",
    params: ofRun,
    idempotent: true,
    status: 201,
    reply: Run,
  },
  decideAsOperator: {
    method: "POST",
    path: "/runs/:runId/decisions",
    summary: "Decide what nobody but an operator can",
    access: "caller",
    params: ofRun,
    body: z.strictObject({
      choice: z.enum(OPERATOR_CHOICES),
      reason,
      attempts: z
        .array(AttemptId)
        .max(100)
        .optional()
        .describe(
          "The open attempts that are meant: the one for `mark_done` and `not_established`, all for `terminate`",
        ),
      result: Json.optional().describe("For `mark_done`: what happened, as the model is to be told it"),
      externalRef: z
        .string()
        .min(1)
        .max(500)
        .optional()
        .describe("For `mark_done`: the other side's name for the effect"),
    }),
    status: 200,
    reply: Run,
  },
  listApprovals: {
    method: "GET",
    path: "/approvals",
    summary: "Approval requests, the newest first",
    access: "caller",
    query: z.strictObject({
      ...pageQuery,
      state: listOf(ApprovalState).optional(),
      runId: RunId.optional(),
      mine: flag.describe("Only what this caller may decide"),
    }),
    status: 200,
    reply: pageOf(Approval),
  },
  showApproval: {
    method: "GET",
    path: "/approvals/:approvalId",
    summary: "Show an approval request with the arguments as they will run",
    access: "caller",
    params: ofApproval,
    status: 200,
    reply: Approval,
  },
  decideApproval: {
    method: "POST",
    path: "/approvals/:approvalId/decision",
    summary: "Approve or reject; the first decision counts",
    access: "caller",
    params: ofApproval,
    body: z.strictObject({
      decision: z.enum(["approve", "reject"]),
      argsHash: z.string().min(1).max(200).describe("The hash that was shown with the arguments"),
      note: z.string().trim().min(1).max(2_000).optional(),
    }),
    status: 200,
    reply: Decided,
  },
  listWorkers: {
    method: "GET",
    path: "/workers",
    summary: "Workers, the newest first",
    access: "operator",
    query: z.strictObject({ ...pageQuery, gone: flag.describe("Those that are gone as well") }),
    status: 200,
    reply: pageOf(Worker),
  },
  listAgents: {
    method: "GET",
    path: "/agents",
    summary: "Agents that runs can be submitted to",
    access: "caller",
    status: 200,
    reply: z.object({ items: z.array(Agent) }),
  },
  showHealth: {
    method: "GET",
    path: "/health",
    summary: "Whether the process is up",
    access: "anyone",
    status: 200,
    reply: Health,
  },
  showReadiness: {
    method: "GET",
    path: "/ready",
    summary: "Whether a write goes to Postgres, and to the queue, and back",
    access: "anyone",
    status: 200,
    reply: Readiness,
  },
} as const satisfies Readonly<Record<string, Route>>;

export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;

/** The parsed value of one of a route's schemas; an empty object where it takes nothing. */
export type Parsed<Name extends RouteName, Part extends "params" | "query" | "body"> = Routes[Name] extends {
  readonly [Key in Part]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : Readonly<Record<never, never>>;

/** What a route answers. */
export type Reply<Name extends RouteName> = z.output<Routes[Name]["reply"]>;
