import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTestDatabase } from "@holdpoint/testkit";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openOrders } from "../src/orders/orders-database.ts";
import { quoteRefund } from "../src/orders/read-order.ts";
import { recordRefund } from "../src/orders/record-refund.ts";
import { refreshOrders } from "../src/orders/refresh-orders.ts";
import { listSeedOrders, SEED_POLICY, type SeedKind } from "../src/orders/seed-data.ts";
import { setUpRefundDesk } from "../src/setup.ts";
import { openAgents } from "../src/worker-agents.ts";
import { openTestSandbox, type TestSandbox } from "./sandbox-harness.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const NOW = new Date("2026-03-02T10:00:00Z");
const { signal } = new AbortController();
const daysLater = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

const stack = new AsyncDisposableStack();
let serverUrl: string;
let sandbox: TestSandbox;
const names: string[] = [];

beforeAll(async () => {
  const database = stack.use(await createTestDatabase());
  serverUrl = database.url;
  stack.defer(async () => {
    const client = new Client({ connectionString: serverUrl });
    await client.connect();
    for (const name of names) await client.query(`drop database if exists "${name}" with (force)`);
    await client.end();
  });
  sandbox = stack.use(await openTestSandbox());
});
afterAll(() => stack.disposeAsync());

/** The address of a database that is not there yet. */
function newDatabase(): string {
  const url = new URL(serverUrl);
  const name = `t_Orders ${crypto.randomUUID()}`;
  names.push(name);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

function example(kind: SeedKind, index = 0) {
  const found = listSeedOrders().filter((order) => order.kind === kind)[index];
  if (found === undefined) throw new Error(`the seed has no ${kind}`);
  return found;
}

describe("setUpRefundDesk", () => {
  test("makes all of it once when several start at once, and nothing the next time", async () => {
    const config = { databaseUrl: newDatabase(), sandboxUrl: sandbox.url };
    const done = await Promise.all([1, 2, 3].map(() => setUpRefundDesk(config, { now: NOW, signal })));
    expect(done.filter(({ databaseCreated }) => databaseCreated)).toHaveLength(1);
    expect(done.reduce((sum, { ordersAdded }) => sum + ordersAdded, 0)).toBe(300);
    expect(await setUpRefundDesk(config, { now: daysLater(1), signal })).toEqual({
      databaseCreated: false,
      ordersAdded: 0,
      ordersRefreshed: 0,
      payments: 300,
    });
  });

  test("says when the server is away", async () => {
    const config = { databaseUrl: "postgres://nobody@127.0.0.1:1/orders", sandboxUrl: null };
    await expect(setUpRefundDesk(config, { now: NOW, signal })).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe("refreshOrders", () => {
  test("moves the dates of untouched orders once they count from more than 7 days before, and no others", async () => {
    const config = { databaseUrl: newDatabase(), sandboxUrl: null };
    await setUpRefundDesk(config, { now: NOW, signal });
    await using orders = await openOrders(config.databaseUrl, () => undefined);
    const { pool } = orders;
    const touched = example("below_limit");
    await recordRefund(pool, {
      operationId: "op_1",
      orderId: touched.id,
      refundId: "re_1",
      amountMinor: "1",
      status: "failed",
    });

    expect(await refreshOrders(pool, daysLater(7))).toEqual({ refreshed: 0 });
    const later = daysLater(60);
    const quote = async (kind: SeedKind, index = 0) =>
      quoteRefund(pool, { order_id: example(kind, index).id }, { policy: SEED_POLICY, now: later });
    expect(await quote("above_limit")).toMatchObject({ reason: "too_late" });

    const refreshed = await Promise.all([1, 2, 3].map(() => refreshOrders(pool, later)));
    expect(refreshed.reduce((sum, { refreshed: count }) => sum + count, 0)).toBe(299);
    expect(await quote("above_limit")).toMatchObject({ refundable: true });
    expect(await quote("partly_refunded")).toMatchObject({ refundable: true });
    expect(await quote("too_late")).toMatchObject({ reason: "too_late" });
    expect(await quote("not_delivered")).toMatchObject({ reason: "not_delivered" });
    expect(await quote("below_limit", 0)).toMatchObject({ reason: "too_late" });
    expect(await quote("below_limit", 1)).toMatchObject({ refundable: true });

    const { id, orderedDaysAgo, deliveredDaysAgo } = example("above_limit");
    const { rows } = await pool.query("select ordered_at, delivered_at from refund_desk.orders where id = $1", [id]);
    expect(rows).toEqual([
      {
        ordered_at: new Date(later.getTime() - orderedDaysAgo * DAY_MS),
        delivered_at: new Date(later.getTime() - (deliveredDaysAgo ?? 0) * DAY_MS),
      },
    ]);
    expect(await refreshOrders(pool, new Date(later.getTime() + 7 * DAY_MS))).toEqual({ refreshed: 0 });
    expect(await refreshOrders(pool, new Date(later.getTime() + 7 * DAY_MS + 1))).toEqual({ refreshed: 299 });
  });
});

describe("openAgents", () => {
  test("opens the agent on what the set-up made, and closes it", async () => {
    const databaseUrl = newDatabase();
    const env = { REFUND_DESK_DATABASE_URL: databaseUrl, REFUND_DESK_STRIPE_URL: sandbox.url };
    await expect(openAgents(env)).rejects.toThrow(/does not exist/);
    await setUpRefundDesk({ databaseUrl, sandboxUrl: sandbox.url }, { now: new Date(), signal });
    const { agents, close } = await openAgents(env);
    expect(agents.map(({ name, version }) => [name, version])).toEqual([
      ["refund-desk", "1"],
      ["refund-intake", "1"],
      ["refund-writer", "1"],
      ["refund-case", "1"],
    ]);
    expect(agents[0]?.tools.get("send_refund")?.rules.map(({ name }) => name)).toEqual([
      "two_of_finance",
      "over_limit",
    ]);
    await close();
  });

  test("says that the set-up is missing", async () => {
    await using database = await createTestDatabase();
    const env = { REFUND_DESK_DATABASE_URL: database.url, REFUND_DESK_STRIPE_URL: sandbox.url };
    await expect(openAgents(env)).rejects.toThrow(/main-setup\.ts/);
  });
});

describe("the command main-setup.ts", () => {
  const run = (args: string[], env: Record<string, string>) =>
    promisify(execFile)(process.execPath, [fileURLToPath(new URL("../src/main-setup.ts", import.meta.url)), ...args], {
      env,
      timeout: 20_000,
    });

  test("explains itself, sets up, and names what is not configured", async () => {
    expect((await run(["--help"], {})).stdout).toContain("REFUND_DESK_DATABASE_URL");
    const env = { REFUND_DESK_DATABASE_URL: newDatabase(), REFUND_DESK_STRIPE_URL: sandbox.url };
    expect(JSON.parse((await run([], env)).stdout)).toEqual({
      event: "refund_desk.ready",
      databaseCreated: true,
      ordersAdded: 300,
      ordersRefreshed: 0,
      payments: 300,
    });
    await expect(run([], { REFUND_DESK_STRIPE_URL: "nowhere" })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Postgres.*http/s),
    });
  });
});
