import { type AgentDefinition, resolveModel } from "@holdpoint/runtime";
import { z } from "zod";
import { createClerk } from "./clerk/clerk.ts";
import { type PaymentsConfig, PaymentsEnv } from "./payments.ts";

/** The process's environment; an empty value counts as left out. */
export type Env = Readonly<Record<string, string | undefined>>;

/** What a worker needs to run the agent. */
export interface DeskConfig {
  readonly databaseUrl: string;
  readonly payments: PaymentsConfig;
  readonly model: AgentDefinition["model"];
}

/** What the set-up needs; `sandboxUrl` is `null` where the payments are Stripe's own. */
export interface SetupConfig {
  readonly databaseUrl: string;
  readonly sandboxUrl: string | null;
}

/** The clerk's name where a model's is expected. */
const CLERK = "clerk";

const DatabaseEnv = z.object({
  REFUND_DESK_DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: "must be the address of a Postgres database (postgres://user@host:port/name)",
  }),
});

/**
 * Reads REFUND_DESK_DATABASE_URL, REFUND_DESK_STRIPE_URL, REFUND_DESK_STRIPE_KEY and REFUND_DESK_MODEL (`clerk`, the
 * default, or a name that `resolveModel` knows, with what that one needs).
 *
 * @throws {Error} names every mistake; never shows a value.
 */
export function readDeskConfig(env: Env): DeskConfig {
  const given = dropEmpty(env);
  const database = DatabaseEnv.safeParse(given);
  const payments = PaymentsEnv.safeParse(given);
  const model = modelEnv(given).safeParse(given);
  if (database.success && payments.success && model.success) {
    const databaseUrl = database.data.REFUND_DESK_DATABASE_URL;
    return { databaseUrl, payments: payments.data, model: model.data };
  }
  throw notConfigured([database, payments, model]);
}

/**
 * Reads REFUND_DESK_DATABASE_URL and REFUND_DESK_STRIPE_URL (the payment sandbox's).
 *
 * @throws {Error} names every mistake; never shows a value.
 */
export function readSetupConfig(env: Env): SetupConfig {
  const given = dropEmpty(env);
  const database = DatabaseEnv.safeParse(given);
  // The set-up sends no refunds: it needs no key.
  const sandbox = PaymentsEnv.in.pick({ REFUND_DESK_STRIPE_URL: true }).safeParse(given);
  if (database.success && sandbox.success) {
    const { REFUND_DESK_STRIPE_URL: sandboxUrl = null } = sandbox.data;
    return { databaseUrl: database.data.REFUND_DESK_DATABASE_URL, sandboxUrl };
  }
  throw notConfigured([database, sandbox]);
}

function modelEnv(env: Env) {
  return z
    .object({ REFUND_DESK_MODEL: z.string().default(CLERK) })
    .transform(({ REFUND_DESK_MODEL: name }, context): AgentDefinition["model"] => {
      if (name === CLERK) return createClerk();
      try {
        return resolveModel(name, env);
      } catch (error) {
        const message = `${error instanceof Error ? error.message : String(error)}; or use "${CLERK}", which needs no key`;
        context.addIssue({ code: "custom", path: ["REFUND_DESK_MODEL"], message });
        return z.NEVER;
      }
    });
}

function dropEmpty(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
}

function notConfigured(parsed: readonly z.ZodSafeParseResult<unknown>[]): Error {
  const issues = parsed.flatMap(({ error }) => error?.issues ?? []);
  return new Error(`the refund desk is not configured:\n${z.prettifyError(new z.ZodError(issues))}`);
}
