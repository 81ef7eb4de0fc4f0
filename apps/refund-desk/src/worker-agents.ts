import { bindWorkflow, type Runnable } from "@holdpoint/runtime";
import { createRefundAgent } from "./agent.ts";
import { readDeskConfig } from "./desk-config.ts";
import type { Env } from "./environment.ts";
import { openOrders } from "./orders/orders-database.ts";
import { readPolicy } from "./orders/read-order.ts";
import { createPayments } from "./payments.ts";
import { createIntakeAgent } from "./workflow/intake-agent.ts";
import { REFUND_CASE } from "./workflow/refund-case.ts";
import { createWriterAgent } from "./workflow/writer-agent.ts";

/** What a worker runs, until it closes it. */
export interface OpenedAgents {
  readonly agents: Runnable[];
  readonly close: () => Promise<void>;
}

/**
 * Opens the refund desk and its workflow for a worker (`worker --agents <this module>`). Reads the configuration and the policy once.
 *
 * @throws {Error} the configuration is wrong (all mistakes together), or the orders cannot be opened or were not set up.
 */
export async function openAgents(env: Env): Promise<OpenedAgents> {
  const { databaseUrl, payments: paymentsConfig, model, intakeModel, writerModel } = readDeskConfig(env);
  const orders = await openOrders(databaseUrl, reportLostConnection);
  try {
    const policy = await readPolicy(orders.pool);
    const desk = { orders, payments: createPayments(paymentsConfig), policy, now: () => new Date() };
    const agents = [
      createRefundAgent({ ...desk, model }),
      createIntakeAgent({ ...desk, model: intakeModel }),
      createWriterAgent({ model: writerModel }),
      bindWorkflow(REFUND_CASE),
    ];
    return { agents, close: async () => orders[Symbol.asyncDispose]() };
  } catch (error) {
    await orders[Symbol.asyncDispose]();
    throw error;
  }
}

function reportLostConnection(error: Error): void {
  const line = { level: "warn", event: "orders.connection_lost", message: error.message };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
