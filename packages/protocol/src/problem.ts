import { z } from "zod";

/** What went wrong, as a program may branch on it. */
export const PROBLEM_CODES = [
  "refused",
  "invalid_decision",
  "invalid_request",
  "malformed_body",
  "body_too_large",
  "unsupported_media_type",
  "unauthenticated",
  "forbidden",
  "not_found",
  "agent_unknown",
  "idempotency_key_reused",
  "removed",
  "unavailable",
  "internal",
] as const;

export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** An answer that is no success (RFC 9457, `application/problem+json`). */
export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().describe("What was wrong, and what to do"),
    code: z.enum(PROBLEM_CODES),
    requestId: z.string(),
    rule: z.string().optional().describe("For `refused`: the rule that forbids it"),
    event: z.string().optional().describe("For `refused`: what was asked"),
    runStatus: z.string().optional().describe("For `refused`: the run's status"),
    decided: z
      .object({ by: z.string(), what: z.string(), at: z.string() })
      .optional()
      .describe("For `refused`: who did what and when, so that this is not possible any more"),
    mistakes: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe("For `invalid_request` and `invalid_decision`: everything that is wrong"),
  })
  .meta({ id: "Problem" });

export type Problem = z.output<typeof Problem>;

export const PROBLEM_MEDIA_TYPE = "application/problem+json";
