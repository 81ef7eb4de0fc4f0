import { DatabaseEnv, dropEmpty, type Env, notConfigured } from "./environment.ts";
import { PaymentsEnv } from "./payments.ts";

/** What the set-up needs; `sandboxUrl` is `null` where the payments are Stripe's own. */
export interface SetupConfig {
  readonly databaseUrl: string;
  readonly sandboxUrl: string | null;
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
