import { z } from "zod";

/** The process's environment; an empty value counts as left out. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Where the orders are. */
export const DatabaseEnv = z.object({
  REFUND_DESK_DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: "must be the address of a Postgres database (postgres://user@host:port/name)",
  }),
});

export function dropEmpty(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
}

/** One error with the mistakes of all parts. */
export function notConfigured(parts: readonly z.ZodSafeParseResult<unknown>[]): Error {
  const issues = parts.flatMap(({ error }) => error?.issues ?? []);
  return new Error(`the refund desk is not configured:\n${z.prettifyError(new z.ZodError(issues))}`);
}
