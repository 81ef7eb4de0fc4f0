import { type AgentDefinition, resolveModel } from "@holdpoint/runtime";
import { z } from "zod";
import { createClerk } from "./clerk/clerk.ts";
import { DatabaseEnv, dropEmpty, type Env, notConfigured } from "./environment.ts";
import { type PaymentsConfig, PaymentsEnv } from "./payments.ts";
import { draftLetter } from "./workflow/letter.ts";

/** What a worker needs to run the agent. */
export interface DeskConfig {
  readonly databaseUrl: string;
  readonly payments: PaymentsConfig;
  readonly model: AgentDefinition["model"];
  /** For the agents of the workflow; they are the same where the model is a real one. */
  readonly intakeModel: AgentDefinition["model"];
  readonly writerModel: AgentDefinition["model"];
}

/** The clerk's name where a model's is expected. */
const CLERK = "clerk";

/**
 * Reads REFUND_DESK_DATABASE_URL, REFUND_DESK_STRIPE_URL, REFUND_DESK_STRIPE_KEY and REFUND_DESK_MODEL (`clerk`, the
 * default, or a name that `resolveModel` knows, with what that one needs), and REFUND_DESK_THINK_MS: how long the clerk takes
 * for a turn where it works in a workflow (0).
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
    return { databaseUrl, payments: payments.data, ...model.data };
  }
  throw notConfigured([database, payments, model]);
}

type Models = Pick<DeskConfig, "model" | "intakeModel" | "writerModel">;

function modelEnv(env: Env) {
  return z
    .object({
      REFUND_DESK_MODEL: z.string().default(CLERK),
      REFUND_DESK_THINK_MS: z.coerce.number("must be a number of milliseconds").int().min(0).max(10_000).default(0),
    })
    .transform(({ REFUND_DESK_MODEL: name, REFUND_DESK_THINK_MS: thinkMs }, context): Models => {
      if (name === CLERK) {
        const writerModel = createClerk({ decide: draftLetter, thinkMs });
        return { model: createClerk(), intakeModel: createClerk({ thinkMs }), writerModel };
      }
      try {
        const model = resolveModel(name, env);
        return { model, intakeModel: model, writerModel: model };
      } catch (error) {
        const message = `${error instanceof Error ? error.message : String(error)}; or use "${CLERK}", which needs no key`;
        context.addIssue({ code: "custom", path: ["REFUND_DESK_MODEL"], message });
        return z.NEVER;
      }
    });
}
