import { OPERATOR_CHOICES } from "@holdpoint/core";
import { z } from "zod";
import { AttemptId, RunId, SessionId } from "./ids.ts";
import { Json, JsonObject } from "./json.ts";
import { flag, listOf, pageOf, pageQuery } from "./page.ts";
import { Message, Session } from "./resources.ts";
import type { Route } from "./route.ts";
import { AgentRef, Call, Run, Status } from "./run.ts";
import { TimelineEntry } from "./timeline.ts";

const text = z.string().trim().min(1).max(16_000);
const reason = z.string().trim().min(1).max(1_000);
const name = z.string().regex(/^[^\p{Cc}\p{Cs}]{1,500}$/u, { error: "must be 1 to 500 characters of plain text" });
const instanceKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, { error: "must be 1 to 200 visible ASCII characters without spaces" });
const ofRun = z.strictObject({ runId: RunId });
const ofSession = z.strictObject({ sessionId: SessionId });

/** The value of the header `Idempotency-Key`. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, { error: "must be 1 to 255 visible ASCII characters without spaces" });

/** Conversations and runs. */
export const RUN_ROUTES = {
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
    body: z.strictObject({
      agent: AgentRef.strict(),
      goal: text,
      input: JsonObject.optional().describe("What a workflow or a task is given beside its goal"),
      instanceKey: instanceKey
        .optional()
        .describe("While a run of the agent is live under this key, another is refused"),
    }),
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
      externalRef: name.optional().describe("The runs of an effect, by any name that it has outside"),
      operationId: name.optional().describe("The run of an effect, by the id that is sent with each of its attempts"),
      agent: name.optional(),
      agentVersion: name.optional(),
      sessionId: SessionId.optional(),
      parent: RunId.optional().describe("The runs that this one has started"),
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
  listChildren: {
    method: "GET",
    path: "/runs/:runId/children",
    summary: "The runs that a run has started, the oldest first",
    access: "caller",
    params: ofRun,
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Run),
  },
  showTimeline: {
    method: "GET",
    path: "/runs/:runId/timeline",
    summary:
      "What happened to a run: transitions, steps, decisions, reminders, reports from outside and refused answers, from its start",
    access: "caller",
    params: ofRun,
    query: z.strictObject({
      ...pageQuery,
      payloads: flag.describe(
        "Steps with what was said and answered, for who asked for the run, who may decide in it or has, and operators",
      ),
    }),
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
    summary:
      "Take a pause back; all deadlines move by the time that it took. A failed workflow goes on as a run of its own, which keeps what was completed",
    access: "caller",
    params: ofRun,
    status: 200,
    reply: Run,
  },
  migrateRun: {
    method: "POST",
    path: "/runs/:runId/migrate",
    summary:
      "Let a workflow's run go on in another version of its definition: whoever works on it next checks whether what it has done means the same there; if not, an operator is asked",
    access: "operator",
    params: ofRun,
    body: z.strictObject({ version: z.string().min(1).max(64).describe("The version to go on in") }),
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
} as const satisfies Readonly<Record<string, Route>>;
