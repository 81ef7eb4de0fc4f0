import { DECISIONS } from "@holdpoint/core";
import { z } from "zod";
import { CallbackStatus } from "./callback.ts";
import { ApprovalId, AttemptId, Instant } from "./ids.ts";
import { Json } from "./json.ts";
import { Status } from "./run.ts";

const Actor = z.object({ kind: z.string(), id: z.string() });

/** What happened to a run, by what it is. */
export const TimelineEntry = z
  .discriminatedUnion("kind", [
    z.object({
      kind: z.literal("transition"),
      at: Instant,
      seq: z.number().int(),
      from: Status.nullable(),
      to: Status,
      event: z.string(),
      actor: Actor,
      reason: z.string().nullable(),
    }),
    z.object({
      kind: z.literal("step"),
      at: Instant,
      seq: z.number().int(),
      step: z.string(),
      line: z.string(),
      body: Json.optional().describe("The whole step, with `payloads=true`"),
    }),
    z.object({
      kind: z.literal("decision"),
      at: Instant,
      approvalId: ApprovalId,
      tool: z.string(),
      decision: z.enum(DECISIONS),
      level: z.number().int(),
      actor: Actor,
      note: z.string().nullable(),
      said: Json.optional().describe("The arguments before an edit, with `payloads=true`"),
      ran: Json.optional().describe("The arguments that an edit put in their place, with `payloads=true`"),
      answer: Json.optional().describe("What was answered instead of the call, with `payloads=true`"),
    }),
    z.object({
      kind: z.literal("reminder"),
      at: Instant,
      approvalId: ApprovalId,
      tool: z.string(),
      stage: z.number().int().describe("1 for the first reminder"),
    }),
    z.object({
      kind: z.literal("callback"),
      at: Instant,
      source: z.string(),
      eventId: z.string(),
      tool: z.string(),
      status: CallbackStatus,
    }),
    z.object({
      kind: z.literal("late_evidence"),
      at: Instant,
      attemptId: AttemptId,
      tool: z.string(),
      attempt: z.number().int(),
      settledAs: z.string(),
      outcome: z.string().describe("How it ended, by what came after it had been settled"),
    }),
    z.object({
      kind: z.literal("refusal"),
      at: Instant,
      event: z.string(),
      rule: z.string(),
      status: Status,
      actor: Actor,
    }),
  ])
  .meta({ id: "TimelineEntry" });

export type TimelineEntry = z.output<typeof TimelineEntry>;
