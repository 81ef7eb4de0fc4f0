import { createDatabase } from "./orders/create-database.ts";
import { openOrders } from "./orders/orders-database.ts";
import { refreshOrders } from "./orders/refresh-orders.ts";
import { seedOrders } from "./orders/seed-orders.ts";
import { seedSandbox } from "./orders/seed-sandbox.ts";
import type { SetupConfig } from "./setup-config.ts";

/** What a set-up had to do; nothing of it when all was there. `payments` is 0 without a sandbox. */
export interface SetupDone {
  readonly databaseCreated: boolean;
  readonly ordersAdded: number;
  readonly ordersRefreshed: number;
  readonly payments: number;
}

/**
 * Brings the refund desk's database and the payment sandbox to where an agent can work on them. May be repeated, and
 * run by several processes at once; refunds and messages of before stay.
 *
 * @param now  the orders' dates count back from here.
 * @throws {Error} the server or the sandbox cannot be reached, or the sandbox has other payments than the seed's.
 */
export async function setUpRefundDesk(
  { databaseUrl, sandboxUrl }: SetupConfig,
  { now, signal }: { readonly now: Date; readonly signal: AbortSignal },
): Promise<SetupDone> {
  const { created: databaseCreated } = await createDatabase(databaseUrl);
  // A connection that is cut while it is idle matters here only to the next statement, which then fails by itself.
  await using orders = await openOrders(databaseUrl, () => undefined);
  const { added: ordersAdded } = await seedOrders(orders.pool, now);
  const { refreshed: ordersRefreshed } = await refreshOrders(orders.pool, now);
  const { payments } = sandboxUrl === null ? { payments: 0 } : await seedSandbox(sandboxUrl, signal);
  return { databaseCreated, ordersAdded, ordersRefreshed, payments };
}
