import { randomUUID } from "node:crypto";
import {
  listSeedOrders,
  openOrders,
  type SeedOrder,
  seedOrders,
  startSandbox,
} from "../../apps/refund-desk/src/index.ts";
import { createSession, openStore, registerAgent, type Store, submitRun } from "../../packages/store/src/index.ts";
import { createTestDatabase } from "../../packages/testkit/src/test-database.ts";

/** The world of one play: a database with one run that nobody has claimed, orders, and a payment sandbox. */
export interface Stage extends AsyncDisposable {
  readonly url: string;
  readonly sandboxUrl: string;
  readonly store: Store;
  readonly runId: string;
  readonly order: SeedOrder;
}

/** Makes stages, all alike. */
export interface StageBuilder extends AsyncDisposable {
  build(): Promise<Stage>;
}

const AGENT = { name: "refund-desk", version: "1" } as const;
const MARA = { kind: "requester", id: "mara" } as const;

/** The first order whose refund a manager has to approve. */
const ORDER = orderOf("above_limit");

/** Makes the database that every stage's is a copy of. */
export async function openStageBuilder(): Promise<StageBuilder> {
  const template = await createTestDatabase();
  const orders = await openOrders(template.url, () => undefined);
  await seedOrders(orders.pool, new Date());
  await orders[Symbol.asyncDispose]();
  return { build: () => build(template.name), [Symbol.asyncDispose]: template[Symbol.asyncDispose] };
}

async function build(template: string): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  try {
    const { url } = stack.use(await createTestDatabase(template));
    const store = stack.use(openStore({ url, maxConnections: 2 }));
    const failures: unknown[] = [];
    const sandbox = await startSandbox({
      port: 0,
      dataFile: null,
      nowMs: () => Date.now(),
      newId: (prefix) => `${prefix}_${randomUUID().replaceAll("-", "")}`,
      onError: (error) => failures.push(error),
    });
    stack.defer(() => sandbox.close());
    await seedPayment(sandbox.url);
    const runId = await submit(store);
    return {
      url,
      sandboxUrl: sandbox.url,
      store,
      runId,
      order: ORDER,
      [Symbol.asyncDispose]: async () => {
        await stack.disposeAsync();
        if (failures.length > 0) throw new AggregateError(failures, "the sandbox failed to store a request");
      },
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** The payment is larger than the order: a provider that would refuse a second refund for want of money hides it. */
async function seedPayment(sandboxUrl: string): Promise<void> {
  const { paymentIntent: id, totalMinor, currency } = ORDER;
  const response = await fetch(new URL("/v1/test/payment_intents", sandboxUrl), {
    method: "POST",
    headers: { authorization: "Bearer sk_test_seed" },
    body: new URLSearchParams({ id, amount: String(totalMinor * 10), amount_refunded: "0", currency }),
  });
  if (!response.ok) throw new Error(await response.text());
}

async function submit(store: Store): Promise<string> {
  await registerAgent(store, { ...AGENT, tools: [] });
  const session = await createSession(store, MARA.id);
  const goal = `Please refund order ${ORDER.id}. I ordered with ${ORDER.customer.email}.`;
  const submitted = await submitRun(store, { sessionId: session.id, agent: AGENT, goal, actor: MARA });
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  return submitted.run.id;
}

function orderOf(kind: SeedOrder["kind"]): SeedOrder {
  const found = listSeedOrders().find((order) => order.kind === kind);
  if (found === undefined) throw new Error(`the seed has no order that is ${kind}`);
  return found;
}
