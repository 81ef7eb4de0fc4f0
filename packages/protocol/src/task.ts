import { AGENT_NAME, AGENT_VERSION, DEFAULT_TASK_TERMS, TASK_LIMITS } from "@holdpoint/core";
import { z } from "zod";
import { Instant, RunId } from "./ids.ts";
import { Json } from "./json.ts";
import { AgentRef, Outcome, Status } from "./run.ts";

/** The token of a task, scoped to its run and to whoever has it in hands. Shown once, and kept nowhere. */
export const TASK_TOKEN_PATTERN = /^hpt_[A-Za-z0-9_-]{43}$/;

const reason = z.string().trim().min(1).max(1_000);
const within = (what: string, { least, most }: { readonly least: number; readonly most: number }) =>
  z.number().int().min(least).max(most).describe(`${what}, ${least} to ${most} ms`);

/** Work that is done elsewhere, as it is made known. */
export const TaskDefinition = z.strictObject({
  name: z.string().regex(AGENT_NAME, { error: "must be a-z, 0-9 and -, at most 64, letter first" }),
  version: z.string().regex(AGENT_VERSION, { error: "must be letters, digits and . _ -, at most 64" }),
  description: z
    .string()
    .trim()
    .min(TASK_LIMITS.descriptionLength.least)
    .max(TASK_LIMITS.descriptionLength.most)
    .describe("What the work is, for whoever is to do it"),
  heartbeatMs: within("Its executor is heard of within this time, again and again", TASK_LIMITS.heartbeatMs).default(
    DEFAULT_TASK_TERMS.heartbeatMs,
  ),
  graceMs: within("How much longer it is waited for before the task is lost", TASK_LIMITS.graceMs).default(
    DEFAULT_TASK_TERMS.graceMs,
  ),
  onFailure: z
    .enum(["operator", "end"])
    .default(DEFAULT_TASK_TERMS.onFailure)
    .describe("What a failure leads to: an operator is asked, or the run ends as failed"),
  retries: z
    .number()
    .int()
    .min(TASK_LIMITS.retries.least)
    .max(TASK_LIMITS.retries.most)
    .default(DEFAULT_TASK_TERMS.retries)
    .describe("How many failures that say they may be tried again are, before that"),
});

/** How far a task has come, as its executor says. */
const TaskProgress = z.object({ percent: z.number().nullable(), text: z.string().nullable() });

const TaskReport = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("complete"), outcome: Outcome }),
  z.object({ kind: z.literal("fail"), reason: z.string(), retryable: z.boolean() }),
  z.object({ kind: z.literal("stopped"), reason: z.string().nullable() }),
  z.object({ kind: z.literal("release"), reason: z.string().nullable() }),
]);

const Executor = z.object({
  name: z.string(),
  startedBy: z.string().describe("Who has asked for the token that it speaks with"),
  inHands: z.boolean().describe("It has the task now; false: it gave it back, ended it, or was lost with it"),
  startedAt: Instant,
  lastHeartbeatAt: Instant,
  heartbeatDueAt: Instant.nullable().describe("By when it has to be heard of again; null where nobody waits for it"),
  silent: z.boolean().describe("That time is over, and it has not been given up yet"),
  progress: TaskProgress.nullable(),
  said: TaskReport.nullable().describe("Its last word"),
});

const LateWord = z.object({
  executor: z.string(),
  report: TaskReport,
  result: Json,
  runStatus: z.string().describe("The run's status when it came"),
  at: Instant,
});

/** A task: a run that is worked on elsewhere, and who has it in hands or had it last. */
export const Task = z
  .object({
    runId: RunId,
    agent: AgentRef,
    description: z.string(),
    goal: z.string(),
    input: Json.describe("What it is given beside its goal; null if nothing"),
    requester: z.string(),
    parent: RunId.nullable().describe("The run that waits for it"),
    status: Status,
    outcome: Outcome.nullable(),
    stopRequested: z.boolean(),
    heartbeatMs: z.number().int(),
    graceMs: z.number().int(),
    createdAt: Instant,
    queuedSince: Instant.nullable(),
    executor: Executor.nullable(),
    late: z
      .array(LateWord)
      .describe(
        "What any executor said when the task was not in its hands any more, the newest first: it has moved nothing",
      ),
  })
  .meta({ id: "Task" });
export type Task = z.output<typeof Task>;

/** What whoever takes a task in hands is answered. */
export const StartedTask = z.object({
  token: z
    .string()
    .nullable()
    .describe("Speaks for this task from now on. It is shown only here; null for who has started with a token"),
  repeated: z.boolean().describe("The same request had started it before; the token of that time is worth nothing now"),
  task: Task,
});

/** What a sign of life is answered. */
export const HeartbeatReply = z.object({
  status: Status,
  stop: z.boolean().describe("Somebody has asked it to stop: stop, and say so with `fail` and `stopped`"),
  pause: z.boolean().describe("Somebody has asked it to pause: give the task back with `release`"),
  heartbeatDueAt: Instant.describe("By when the next one has to come"),
});

/** What became of the run of a task. */
export const TaskEnd = z.object({
  runId: RunId,
  status: Status,
  outcome: Outcome.nullable(),
  repeated: z.boolean().describe("The same had been said before"),
});

/** What an executor says with a heartbeat. */
export const HeartbeatBody = z.strictObject({
  progress: z
    .strictObject({
      percent: z.number().min(0).max(100).optional(),
      text: z.string().trim().min(1).max(500).optional(),
    })
    .optional()
    .describe("How far it has come; left out: as before"),
});

/** What an executor says that is done: what was achieved is said, and never read from the result. */
export const CompleteBody = z.strictObject({
  outcome: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("succeeded") }),
    z.strictObject({ kind: z.literal("partial"), reason }),
    z.strictObject({ kind: z.literal("blocked"), step: z.string().trim().min(1).max(200), reason }),
  ]),
  result: Json.optional().describe("What it brings home, for whoever waits for it; beyond 32 KB an artifact"),
});

/** What an executor says that has failed, or has stopped as it was asked to. */
export const FailBody = z
  .strictObject({
    reason,
    retryable: z.boolean().default(false).describe("Nothing was done, or it may be done again"),
    stopped: z.boolean().default(false).describe("It was asked to stop, and has"),
  })
  .refine(({ retryable, stopped }) => !(retryable && stopped), { error: "must not be retryable and stopped at once" });

export const ReleaseBody = z.strictObject({ reason: reason.optional() });

export const StartBody = z.strictObject({
  executor: z
    .string()
    .trim()
    .regex(/^[^\p{Cc}\p{Cs}]{1,100}$/u, { error: "must be 1 to 100 characters of plain text" })
    .optional()
    .describe("Who does it, in words for people; the caller unless given"),
});
