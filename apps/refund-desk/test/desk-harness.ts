import {
  type Agent,
  judgePolicy,
  type PolicyRule,
  type Storable,
  type Tool,
  type ToolContext,
} from "@holdpoint/runtime";
import { createTestDatabase } from "@holdpoint/testkit";
import type { Pool } from "pg";
import { createRefundAgent } from "../src/agent.ts";
import { createClerk } from "../src/clerk/clerk.ts";
import { openOrders } from "../src/orders/orders-database.ts";
import { listSeedOrders, SEED_POLICY, type SeedKind, type SeedOrder } from "../src/orders/seed-data.ts";
import { seedOrders } from "../src/orders/seed-orders.ts";
import { seedSandbox } from "../src/orders/seed-sandbox.ts";
import type { Payments } from "../src/payments.ts";
import type { SendRefundInput } from "../src/tool-inputs.ts";
import { openTestSandbox, type TestSandbox } from "./sandbox-harness.ts";

const NOW = new Date("2026-03-02T10:00:00Z");

/** Orders, a sandbox and the agent that works on them. */
export interface TestDesk extends AsyncDisposable {
  readonly url: string;
  readonly pool: Pool;
  readonly sandbox: TestSandbox;
  readonly agent: Agent;
  readonly tool: (name: string) => Tool;
  /** The same desk with other parts. */
  readonly agentWith: (parts: { readonly payments?: Payments; readonly pool?: Pool; readonly now?: Date }) => Agent;
  /** The next order of this kind; each is given once. */
  readonly take: (kind: SeedKind) => SeedOrder;
  /** The same for orders that are as wanted. */
  readonly takeWhere: (isWanted: (order: SeedOrder) => boolean) => SeedOrder;
}

export async function openTestDesk(): Promise<TestDesk> {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const { pool } = stack.use(await openOrders(url, () => undefined));
  const sandbox = stack.use(await openTestSandbox());
  await seedOrders(pool, NOW);
  await seedSandbox(sandbox.url, new AbortController().signal);
  const left = [...listSeedOrders()];
  const agentWith: TestDesk["agentWith"] = ({ payments = sandbox.payments, pool: orders = pool, now = NOW }) =>
    createRefundAgent({
      model: createClerk(),
      orders: { pool: orders },
      payments,
      policy: SEED_POLICY,
      now: () => now,
    });
  const agent = agentWith({});
  const takeWhere: TestDesk["takeWhere"] = (isWanted) => {
    const index = left.findIndex(isWanted);
    const [order] = index < 0 ? [] : left.splice(index, 1);
    if (order === undefined) throw new Error("the seed has no more orders like that");
    return order;
  };
  return {
    url,
    pool,
    sandbox,
    agent,
    agentWith,
    tool: (name) => toolOf(agent, name),
    take: (kind) => takeWhere((each) => each.kind === kind),
    takeWhere,
    [Symbol.asyncDispose]: () => stack.disposeAsync().then(),
  };
}

export function toolOf(agent: Agent, name: string): Tool {
  const tool = agent.tools.get(name);
  if (tool === undefined) throw new Error(`the agent has no tool ${name}`);
  return tool;
}

type Args = Parameters<Tool["execute"]>[0];
type Terms = Extract<PolicyRule, { action: "ask" }>["approval"] & { readonly rule: string };

/** Who has to release a call with these arguments; null if nobody has to. */
export function approvalOf({ name, rules }: Pick<Tool, "name" | "rules">, args: Args): Terms | null {
  const verdict = judgePolicy(rules, { tool: name, args });
  return verdict.kind === "needs_approval" ? verdict.approval : null;
}

/** What is stored of this desk's arguments and outputs: they are objects of plain JSON. */
export function stored(value: Storable): Args {
  return JSON.parse(JSON.stringify(value));
}

export function contextOf(operationId: string, changed: Partial<ToolContext> = {}): ToolContext {
  return {
    operationId,
    attempt: 1,
    signal: new AbortController().signal,
    timeoutMs: 5_000,
    runId: "run_test",
    requester: "mara",
    ...changed,
  };
}

/** What the quote of an order gives for `send_refund`. */
export function refundOf(order: SeedOrder): SendRefundInput {
  return {
    order_id: order.id,
    payment_intent: order.paymentIntent,
    amount_minor: String(order.totalMinor - order.refundedMinor),
    order_total_minor: String(order.totalMinor),
    currency: order.currency,
    reason: "requested_by_customer",
  };
}
