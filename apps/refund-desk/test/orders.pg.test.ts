import { createTestDatabase } from "@holdpoint/testkit";
import { Client, type Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openOrders } from "../src/orders/orders-database.ts";
import { findOrder, quoteRefund, readOrder, readPolicy } from "../src/orders/read-order.ts";
import { recordNotification } from "../src/orders/record-notification.ts";
import { recordRefund } from "../src/orders/record-refund.ts";
import { listSeedOrders, SEED_POLICY, type SeedKind, type SeedOrder } from "../src/orders/seed-data.ts";
import { seedOrders } from "../src/orders/seed-orders.ts";

const NOW = new Date("2026-03-02T10:00:00Z");
const stack = new AsyncDisposableStack();
let pool: Pool;
let url: string;

beforeAll(async () => {
  const database = stack.use(await createTestDatabase());
  url = database.url;
  const opened = await Promise.all([1, 2, 3].map(() => openOrders(url, () => undefined)));
  for (const orders of opened) stack.use(orders);
  const [first] = opened;
  if (first === undefined) throw new Error("no database was opened");
  pool = first.pool;
  const added = await Promise.all(opened.map((orders) => seedOrders(orders.pool, NOW)));
  // The seeders ran at once: together they wrote each order once.
  expect(added.reduce((sum, { added: count }) => sum + count, 0)).toBe(listSeedOrders().length);
});
afterAll(() => stack.disposeAsync());

function example(kind: SeedKind, index = 0): SeedOrder {
  const found = listSeedOrders().filter((order) => order.kind === kind)[index];
  if (found === undefined) throw new Error(`the seed has no ${kind}`);
  return found;
}

describe("seedOrders", () => {
  test("adds nothing the second time and leaves what was changed", async () => {
    const { id } = example("below_limit", 40);
    await pool.query("update refund_desk.orders set total_minor = 777 where id = $1", [id]);
    expect(await seedOrders(pool, NOW)).toEqual({ added: 0 });
    expect((await readOrder(pool, id))?.totalMinor).toBe(777n);
    const { rows } = await pool.query("select count(*)::int as policies from refund_desk.policy");
    expect(rows).toEqual([{ policies: 1 }]);
  });
});

describe("openOrders", () => {
  test("gives a policy of before the limit for two people, and keeps its other figures", async () => {
    await using database = await createTestDatabase();
    const before = new Client({ connectionString: database.url });
    await before.connect();
    await before.query(`create schema refund_desk;
      create table refund_desk.policy (
        only_row boolean primary key default true check (only_row),
        window_days integer not null, manager_limit_minor bigint not null);
      insert into refund_desk.policy (window_days, manager_limit_minor) values (14, 5000)`);
    await before.end();
    const kept = { windowDays: 14, managerLimitMinor: 5_000n, twoPersonLimitMinor: 40_000n };
    for (const time of ["first", "second"]) {
      await using orders = await openOrders(database.url, () => undefined);
      await seedOrders(orders.pool, NOW);
      expect(await readPolicy(orders.pool), time).toEqual(kept);
    }
  });

  test("keeps a limit that was set by hand", async () => {
    await pool.query("update refund_desk.policy set two_person_limit_minor = 70000");
    await using again = await openOrders(url, () => undefined);
    expect(await readPolicy(again.pool)).toMatchObject({ twoPersonLimitMinor: 70_000n });
    await pool.query("update refund_desk.policy set two_person_limit_minor = 40000");
  });
});

describe("findOrder", () => {
  test("shows an order to its customer, whatever the case of the address", async () => {
    const { id, customer, totalMinor } = example("above_limit");
    const found = await findOrder(pool, { order_id: id, email: customer.email.toUpperCase() });
    expect(found).toMatchObject({ found: true, customer_name: customer.name, total_minor: String(totalMinor) });
  });

  test("shows nothing of it to another customer", async () => {
    const { id } = example("above_limit");
    const found = await findOrder(pool, { order_id: id, email: "somebody@example.com" });
    expect(found).toEqual({ found: false, order_id: id, reason: "not_yours", why: expect.any(String) });
  });

  test("says when there is no such order", async () => {
    const found = await findOrder(pool, { order_id: "ord_99999", email: "a@example.com" });
    expect(found).toMatchObject({ found: false, reason: "no_such_order" });
  });
});

describe("quoteRefund", () => {
  const quote = (order_id: string) => quoteRefund(pool, { order_id }, { policy: SEED_POLICY, now: NOW });

  test.each([
    ["above_limit", true],
    ["below_limit", false],
  ] as const)("gives all of an order that is %s", async (kind, needs_manager) => {
    const { id, totalMinor, paymentIntent } = example(kind);
    expect(await quote(id)).toMatchObject({
      refundable: true,
      amount_minor: String(totalMinor),
      payment_intent: paymentIntent,
      needs_manager,
    });
  });

  test("gives the rest of an order that was partly refunded", async () => {
    const { id, totalMinor, refundedMinor } = example("partly_refunded");
    expect(await quote(id)).toMatchObject({ refundable: true, amount_minor: String(totalMinor - refundedMinor) });
  });

  test.each([
    ["too_late", "too_late"],
    ["fully_refunded", "already_refunded"],
    ["not_delivered", "not_delivered"],
  ] as const)("gives nothing of an order that is %s", async (kind, reason) => {
    expect(await quote(example(kind).id)).toMatchObject({ refundable: false, reason });
  });
});

describe("recordRefund", () => {
  test("counts a refund once, brings a pending one to its end, and refuses another one under its operation", async () => {
    const { id, totalMinor } = example("below_limit", 1);
    const refund = { operationId: "op_a", orderId: id, refundId: "re_a", amountMinor: String(totalMinor) };
    expect(await recordRefund(pool, { ...refund, status: "pending" })).toBe("recorded");
    expect(await recordRefund(pool, { ...refund, status: "pending" })).toBe("already");
    expect(await recordRefund(pool, { ...refund, status: "succeeded" })).toBe("recorded");
    expect(await recordRefund(pool, { ...refund, status: "succeeded" })).toBe("already");
    expect(await recordRefund(pool, { ...refund, status: "pending" })).toBe("already");
    expect(await recordRefund(pool, { ...refund, amountMinor: "1", status: "succeeded" })).toBe("different");
    expect(await quoteRefund(pool, { order_id: id }, { policy: SEED_POLICY, now: NOW })).toMatchObject({
      reason: "already_refunded",
    });
  });

  test("gives the amount of a failed refund free again", async () => {
    const { id, totalMinor } = example("below_limit", 2);
    const refund = { operationId: "op_b", orderId: id, refundId: "re_b", amountMinor: String(totalMinor) };
    await recordRefund(pool, { ...refund, status: "pending" });
    await recordRefund(pool, { ...refund, status: "failed" });
    expect(await quoteRefund(pool, { order_id: id }, { policy: SEED_POLICY, now: NOW })).toMatchObject({
      amount_minor: String(totalMinor),
    });
  });
});

describe("recordNotification", () => {
  test("keeps one message per operation when several workers write it at once", async () => {
    const { id, customer } = example("above_limit", 1);
    const message = { order_id: id, email: customer.email, template: "refund_sent", text: "paid" } as const;
    const written = await Promise.all(["1", "2", "3", "4"].map(() => recordNotification(pool, "op_n", message)));
    expect(written.toSorted()).toEqual(["already", "already", "already", "recorded"]);
    expect(await recordNotification(pool, "op_n", { ...message, text: "not paid" })).toBe("different");
    const { rows } = await pool.query("select body from refund_desk.notifications where operation_id = 'op_n'");
    expect(rows).toEqual([{ body: "paid" }]);
  });
});
