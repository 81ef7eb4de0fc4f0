import { type AgentDefinition, resolveModel } from "@holdpoint/runtime";
import { z } from "zod";
import { createClerk } from "./clerk/clerk.ts";
import { DatabaseEnv, dropEmpty, type Env, notConfigured } from "./environment.ts";
import { type PaymentsConfig, PaymentsEnv } from "./payments.ts";

/** What a worker needs to run the agent. */
export interface DeskConfig {
  readonly databaseUrl: string;
  readonly payments: PaymentsConfig;
  readonly model: AgentDefinition["model"];
}

/** The clerk's name where a model's is expected. */
const CLERK = "clerk";

/**
 * Reads REFUND_DESK_DATABASE_URL, REFUND_DESK_STRIPE_URL, REFUND_DESK_STRIPE_KEY and REFUND_DESK_MODEL (`clerk`, the
 * default, or a name that `resolveModel` knows, with what that one needs).
 *
 * @throws {Error} names every mistake; never shows a secret.
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
