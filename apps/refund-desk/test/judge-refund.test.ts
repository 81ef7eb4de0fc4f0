import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatMoney } from "../src/money.ts";
import { findRefundMismatch, judgeRefund, needsManager } from "../src/orders/judge-refund.ts";
import type { Order } from "../src/orders/order.ts";
import { listSeedOrders } from "../src/orders/seed-data.ts";
import { seedSandbox } from "../src/orders/seed-sandbox.ts";
import { openTestSandbox } from "./sandbox-harness.ts";

const policy = { windowDays: 30, managerLimitMinor: 10_000n, twoPersonLimitMinor: 40_000n };
const order: Order = {
  id: "ord_4411",
  customerName: "Mara",
  email: "mara@example.com",
  paymentIntent: "pi_1",
  currency: "eur",
  totalMinor: 10_001n,
  orderedAt: new Date("2026-01-01T00:00:00Z"),
  deliveredAt: new Date("2026-01-02T12:00:00Z"),
  items: [],
  refunds: [],
};
const input = {
  order_id: "ord_4411",
  payment_intent: "pi_1",
  amount_minor: "10001",
  order_total_minor: "10001",
  currency: "eur",
  reason: "requested_by_customer",
} as const;

describe("judgeRefund", () => {
  test("counts the window to the millisecond", () => {
    const at = (time: string) => judgeRefund(order, policy, new Date(time)).refundable;
    expect(at("2026-02-01T12:00:00.000Z")).toBe(true);
    expect(at("2026-02-01T12:00:00.001Z")).toBe(false);
  });

  test("asks for somebody's approval above the limit, not at it", () => {
    const needs = (totalMinor: bigint) =>
      judgeRefund({ ...order, totalMinor }, policy, new Date("2026-01-03T00:00:00Z"));
    expect(needs(40_001n)).toMatchObject({ needs_manager: true, order_total_minor: "40001" });
    expect(needs(10_001n)).toMatchObject({ needs_manager: true });
    expect(needs(10_000n)).toMatchObject({ needs_manager: false });
  });

  test("asks for it also for the rest of an order of which a part was refunded", () => {
    const refunds: Order["refunds"] = [{ operationId: "op_1", amountMinor: 9_000n, status: "succeeded" }];
    const rest = judgeRefund({ ...order, refunds }, policy, new Date("2026-01-03T00:00:00Z"));
    expect(rest).toMatchObject({ amount_minor: "1001", order_total_minor: "10001", needs_manager: true });
  });
});

describe("findRefundMismatch", () => {
  const facts = { operationId: "op", policy, now: new Date("2026-01-03T00:00:00Z") };
  const late = { ...facts, now: new Date("2026-03-03T00:00:00Z") };
  const small: Order = { ...order, totalMinor: 10_000n };
  const smallInput = { ...input, amount_minor: "10000", order_total_minor: "10000" } as const;

  test("takes what was quoted", () => {
    expect(findRefundMismatch(order, input, facts)).toBeNull();
    expect(findRefundMismatch(small, smallInput, facts)).toBeNull();
  });

  test("takes an amount that an approver has lowered, also to below the limit", () => {
    expect(findRefundMismatch(order, { ...input, amount_minor: "9000" }, facts)).toBeNull();
    expect(findRefundMismatch(order, { ...input, amount_minor: "9000" }, late)).toBeNull();
  });

  test.each([
    ["wrong_payment", { payment_intent: "pi_2" }, true],
    ["wrong_currency", { currency: "usd" }, true],
    ["more_than_left", { amount_minor: "10002" }, false],
    ["wrong_total", { order_total_minor: "10000" }, false],
    ["wrong_total", { order_total_minor: "10002" }, false],
  ])("names %s", (code, change, lasting) => {
    expect(findRefundMismatch(order, { ...input, ...change }, facts)).toMatchObject({ code, lasting });
  });

  test("takes no parts that together avoid the approval, whatever the model makes of the order's total", () => {
    const amount = fc.bigInt({ min: 1n, max: 40_000n });
    const part = fc.record({ amountMinor: amount, claimedMinor: fc.option(amount) });
    fc.assert(
      fc.property(amount, fc.array(part, { maxLength: 12 }), (totalMinor, parts) => {
        let refunds: Order["refunds"] = [];
        let unapproved = 0n;
        for (const [index, { amountMinor, claimedMinor }] of parts.entries()) {
          const operationId = `op_${index}`;
          const claimed = claimedMinor ?? totalMinor;
          const asked = { ...input, amount_minor: String(amountMinor), order_total_minor: String(claimed) };
          const given: Order = { ...order, totalMinor, refunds };
          if (findRefundMismatch(given, asked, { ...facts, operationId }) !== null) continue;
          refunds = [...refunds, { operationId, amountMinor, status: "succeeded" }];
          if (!needsManager(claimed, policy)) unapproved += amountMinor;
        }
        expect(unapproved).toBeLessThanOrEqual(policy.managerLimitMinor);
        expect(refunds.reduce((sum, { amountMinor }) => sum + amountMinor, 0n)).toBeLessThanOrEqual(totalMinor);
      }),
    );
  });

  test("judges the window again only for what nobody had to approve", () => {
    expect(findRefundMismatch(small, smallInput, late)).toMatchObject({ code: "too_late" });
    expect(findRefundMismatch({ ...small, deliveredAt: null }, smallInput, facts)).toMatchObject({
      code: "not_delivered",
    });
    expect(findRefundMismatch(order, input, late)).toBeNull();
  });

  test("does not count a refund against itself when it is sent again", () => {
    const paid: Order = { ...order, refunds: [{ operationId: "op", amountMinor: 10_001n, status: "succeeded" }] };
    expect(findRefundMismatch(paid, input, facts)).toBeNull();
    expect(findRefundMismatch(paid, input, { ...facts, operationId: "op_other" })).toMatchObject({
      code: "more_than_left",
    });
  });
});

describe("listSeedOrders", () => {
  const orders = listSeedOrders();

  test("has 300 orders of six kinds, and ord_4411 above the manager's limit", () => {
    expect(new Set(orders.map(({ id }) => id)).size).toBe(300);
    expect(new Set(orders.map(({ kind }) => kind)).size).toBe(6);
    expect(orders.find(({ id }) => id === "ord_4411")).toMatchObject({ kind: "above_limit" });
    for (const { kind, totalMinor } of orders) if (kind === "above_limit") expect(totalMinor).toBeGreaterThan(10_000);
    expect(orders).toEqual(listSeedOrders());
  });

  test("gives one address to one customer", () => {
    const emails = new Map(orders.map(({ customer }) => [customer.email, customer.id]));
    expect(emails.size).toBe(new Set(orders.map(({ customer }) => customer.id)).size);
  });
});

describe("seedSandbox", () => {
  // Six hundred requests; how long they take says nothing.
  test("makes all payments known, twice without a change", { timeout: 60_000 }, async () => {
    await using sandbox = await openTestSandbox();
    const { signal } = new AbortController();
    expect(await seedSandbox(sandbox.url, signal)).toEqual({ payments: 300 });
    expect(await seedSandbox(sandbox.url, signal)).toEqual({ payments: 300 });
    const refund = sandbox.payments.sendRefund(
      { paymentIntent: "pi_seed4415", amountMinor: "1", reason: "requested_by_customer", operationId: "op" },
      { signal, timeoutMs: 5_000 },
    );
    await expect(refund).rejects.toMatchObject({ code: "charge_already_refunded" });
  });
});

describe("formatMoney", () => {
  test("uses the digits of the currency", () => {
    expect(formatMoney("18900", "eur")).toBe("EUR 189.00");
    expect(formatMoney("5", "usd")).toBe("USD 0.05");
    expect(formatMoney("500", "jpy")).toBe("JPY 500");
  });
});
