import { z } from "zod";

/** A person, as tokens and assignments name one. */
export const USER_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$/;
/** A role, as tokens, rules and assignments name one. */
export const ROLE_PATTERN = /^[a-z][a-z0-9_-]{0,49}$/;

/** Roles that come with a token and say what its bearer may call at all; they are never assigned, and approve nothing. */
export const ACCESS_ROLES = ["requester", "operator", "task_runner"] as const;
export type AccessRole = (typeof ACCESS_ROLES)[number];

/** Whether a role comes with a token, and is no approver's. */
export function isAccessRole(role: string): role is AccessRole {
  return ACCESS_ROLES.some((access) => access === role);
}

export const User = z
  .string()
  .regex(USER_PATTERN, { error: "must be letters, digits and . _ @ + -, 100 at most" })
  .describe("A person, by name");

export const ApproverRole = z
  .string()
  .regex(ROLE_PATTERN, { error: "must be a lower-case word of at most 50 characters" })
  .refine((role) => !isAccessRole(role), {
    error: `must be an approver's role: ${ACCESS_ROLES.join(", ")} come with a token`,
  })
  .describe("A role that approval rules name");
