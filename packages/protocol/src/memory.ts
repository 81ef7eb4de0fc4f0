import { z } from "zod";
import { Instant, MemoryId } from "./ids.ts";
import { User } from "./names.ts";
import { pageOf, pageQuery } from "./page.ts";
import type { Route } from "./route.ts";

const DAY_MS = 86_400_000;
const MOST_BYTES = 4_096;

const key = z
  .string()
  .trim()
  .regex(/^[^\p{Cc}\p{Cs}]{1,50}$/u, { error: "must be 1 to 50 characters of plain text" })
  .describe("Names the fact; a new value takes the place of the one before");

const value = z
  .string()
  .trim()
  .min(1)
  .refine((text) => new TextEncoder().encode(text).length <= MOST_BYTES, {
    error: `must be at most ${MOST_BYTES} bytes`,
  })
  .describe("The fact; agents are told that it is data, and no instruction");

/** What is known of somebody beyond one conversation, until it expires. */
export const Memory = z
  .object({
    id: MemoryId,
    subject: z.string().describe("Whose runs are told it"),
    key: z.string(),
    value: z.string(),
    createdAt: Instant,
    createdBy: z.string(),
    expiresAt: Instant,
  })
  .meta({ id: "Memory" });
export type Memory = z.output<typeof Memory>;

const subject = User.optional().describe("Whose runs are told it; you, unless you are an operator and name somebody");

/** What is carried from one conversation to another: only this. */
export const MEMORY_ROUTES = {
  listMemories: {
    method: "GET",
    path: "/memories",
    summary: "What is kept about somebody and has not expired, by key",
    access: "submitter",
    query: z.strictObject({ ...pageQuery, subject }),
    status: 200,
    reply: pageOf(Memory),
  },
  putMemory: {
    method: "POST",
    path: "/memories",
    summary: "Keep a fact for somebody's runs that are submitted from now on",
    access: "submitter",
    body: z.strictObject({
      subject,
      key,
      value,
      validForMs: z
        .number()
        .int()
        .min(60_000)
        .max(365 * DAY_MS)
        .describe("For how long it is told, in milliseconds: a minute to a year"),
    }),
    status: 201,
    reply: Memory,
  },
  deleteMemory: {
    method: "POST",
    path: "/memories/:memoryId/delete",
    summary: "Tell a fact to no run any more that is submitted from now on",
    access: "submitter",
    params: z.strictObject({ memoryId: MemoryId }),
    status: 200,
    reply: Memory,
  },
} as const satisfies Readonly<Record<string, Route>>;
