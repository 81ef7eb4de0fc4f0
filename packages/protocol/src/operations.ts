import { z } from "zod";
import { AttemptId, CallId, Instant, RunId, WorkerId } from "./ids.ts";
import { Status } from "./run.ts";

/** That somebody has a role, or had it. */
export const Assignment = z
  .object({
    user: z.string(),
    role: z.string(),
    grantedAt: Instant,
    grantedBy: z.string().describe("A person, or `configuration`"),
    revokedAt: Instant.nullable(),
    revokedBy: z.string().nullable(),
  })
  .meta({ id: "Assignment" });
export type Assignment = z.output<typeof Assignment>;

/** Evidence that came after an attempt had been settled, and says otherwise. */
export const Finding = z
  .object({
    attemptId: AttemptId,
    runId: RunId,
    runStatus: Status,
    callId: CallId,
    tool: z.string(),
    attempt: z.number().int(),
    workerId: WorkerId.describe("Who made the attempt"),
    externalRef: z.string().nullable().describe("What the effect is known by outside"),
    settledAs: z.string(),
    settledBy: z.string().nullable(),
    settledAt: Instant,
    happened: z.boolean().describe("Whether it happened outside, by the evidence"),
    evidence: z.object({
      outcome: z.string(),
      externalRef: z.string().nullable(),
      errorClass: z.string().nullable(),
      errorCode: z.string().nullable(),
    }),
    at: Instant.describe("When the evidence came"),
  })
  .meta({ id: "Finding" });
export type Finding = z.output<typeof Finding>;

/** A service behind tools or models that has failed for everybody, and what its limiter does about it. */
export const Service = z
  .object({
    name: z.string(),
    reason: z.enum(["throttled", "unavailable"]),
    since: Instant,
    failures: z.number().int().describe("In a row, over all runs"),
    closed: z.boolean().describe("Nothing is sent to it now"),
    closedUntil: Instant.nullable().describe("When one run may try again; null: it may be called"),
    probing: z.boolean().describe("One run is trying it"),
    waitingRuns: z.number().int(),
  })
  .meta({ id: "Service" });
export type Service = z.output<typeof Service>;
