import { ToolError } from "@holdpoint/runtime";
import { waitFor } from "@holdpoint/testkit";
import fc from "fast-check";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openOrders } from "../src/orders/orders-database.ts";
import { readOrder } from "../src/orders/read-order.ts";
import { SEED_POLICY } from "../src/orders/seed-data.ts";
import { PaymentError, type PaymentErrorClass } from "../src/payment-error.ts";
import type { Payments, ProviderRefund } from "../src/payments.ts";
import { SendRefundOutput } from "../src/tool-outputs.ts";
import { approvalOf, contextOf, openTestDesk, refundOf, stored, type TestDesk, toolOf } from "./desk-harness.ts";

let desk: TestDesk;
beforeAll(async () => {
  desk = await openTestDesk();
});
afterAll(() => desk[Symbol.asyncDispose]().then());

const refundsOf = async (orderId: string) => (await readOrder(desk.pool, orderId))?.refunds ?? [];
const Posts = z.array(z.object({ idempotency_key: z.string(), count: z.number() }));
/** How often the sandbox was asked to send the refund of an operation. */
const countSent = async (operationId: string): Promise<number> => {
  const posts = Posts.parse(await desk.sandbox.listRefundPosts());
  return posts.find(({ idempotency_key }) => idempotency_key === operationId)?.count ?? 0;
};
const ledgerOf = (paymentIntent: string) => desk.sandbox.get(`/sandbox/ledger?payment_intent=${paymentIntent}`);
const refundIdOf = (output: unknown) => SendRefundOutput.parse(output).refund_id;
const nobody = () => new Pool({ connectionString: "postgres://nobody@127.0.0.1:1/none" });

describe("find_order and quote_refund", () => {
  test("are reads that need nobody", () => {
    for (const name of ["find_order", "quote_refund"]) {
      expect(desk.tool(name).effect).toEqual({ kind: "read" });
      expect(approvalOf(desk.tool(name), {})).toBeNull();
    }
  });

  test("give what the customer may see and what the policy gives back", async () => {
    const order = desk.take("above_limit");
    const { email } = order.customer;
    expect(await desk.tool("find_order").execute({ order_id: order.id, email }, contextOf("op_1"))).toMatchObject({
      found: true,
      total_minor: String(order.totalMinor),
    });
    const quote = await desk.tool("quote_refund").execute({ order_id: order.id, reason: "broken" }, contextOf("op_2"));
    expect(quote).toMatchObject({ refundable: true, payment_intent: order.paymentIntent, needs_manager: true });
  });

  test("may be tried again when the orders are away", async () => {
    const away = desk.agentWith({ pool: nobody() });
    for (const name of ["find_order", "quote_refund", "send_refund", "notify_customer"]) {
      const work = toolOf(away, name).execute({ order_id: "ord_4411", amount_minor: "1" }, contextOf("op_away"));
      await expect(work).rejects.toMatchObject({ errorClass: "transient", code: "orders_unavailable" });
    }
  });
});

describe("send_refund", () => {
  test("offers a key for 24 hours and a look-up, and is followed for 14 days while it is pending", () => {
    const tool = desk.tool("send_refund");
    expect(tool.effect).toEqual({
      kind: "effect",
      keyValidForMs: 86_400_000,
      lookUpSettlesWithinMs: 60_000,
      equalCallsAreDistinct: false,
      settlement: { everyMs: 60_000, withinMs: 1_209_600_000 },
    });
    expect(tool.service).toBe("stripe");
  });

  test("needs nobody at the policy's limit, a manager above it, and two of finance above the next", () => {
    const asked = (total: bigint) => {
      const approval = approvalOf(desk.tool("send_refund"), { order_total_minor: String(total), amount_minor: "1" });
      return approval && [approval.rule, approval.approvers.roles, approval.quorum];
    };
    const { managerLimitMinor, twoPersonLimitMinor } = SEED_POLICY;
    expect(asked(managerLimitMinor)).toBeNull();
    expect(asked(managerLimitMinor + 1n)).toEqual(["over_limit", ["manager"], 1]);
    expect(asked(twoPersonLimitMinor)).toEqual(["over_limit", ["manager"], 1]);
    expect(asked(twoPersonLimitMinor + 1n)).toEqual(["two_of_finance", ["finance"], 2]);
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 16n - 1n }), (total) => {
        const expected = total > 40_000n ? "two_of_finance" : total > 10_000n ? "over_limit" : undefined;
        expect(asked(total)?.[0]).toBe(expected);
      }),
    );
  });

  test("lets approvers change the amount, keeps them from their own requests, and rejects after 24 hours", () => {
    for (const total of ["18401", "50600"]) {
      const approval = approvalOf(desk.tool("send_refund"), { order_total_minor: total });
      expect(approval).toMatchObject({ fourEyes: true, veto: true, deadlineMs: 86_400_000, onDeadline: "reject" });
      expect(approval?.decisions).toContain("approve_with_edits");
    }
  });

  test("shows people its amount, and that it cannot be taken back", () => {
    expect(desk.tool("send_refund").presentation).toEqual({
      redact: [],
      amount: { minor: "amount_minor", currency: "currency" },
      risk: { level: "high", reversible: false },
    });
  });

  test("pays what an approver has lowered, also below the limit", async () => {
    const order = desk.take("above_limit");
    const lowered = { ...refundOf(order), amount_minor: "9000" };
    expect(await desk.tool("send_refund").execute(lowered, contextOf("op_lowered"))).toMatchObject({
      status: "succeeded",
      amount_minor: "9000",
    });
    expect(await ledgerOf(order.paymentIntent)).toMatchObject({ rows: [{ amount: 9_000 }] });
  });

  test("pays once, however often the same operation comes, and records it with the order", async () => {
    const order = desk.take("below_limit");
    const send = () => desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_once"));
    const output = await send();
    expect(await send()).toEqual(output);
    expect(output).toEqual({
      order_id: order.id,
      refund_id: expect.stringMatching(/^re_/),
      status: "succeeded",
      amount_minor: String(order.totalMinor),
      currency: order.currency,
    });
    expect(desk.tool("send_refund").externalRef(output)).toBe(refundIdOf(output));
    expect(await ledgerOf(order.paymentIntent)).toMatchObject({ rows: [{ idempotency_key: "op_once" }] });
    expect(await refundsOf(order.id)).toEqual([
      { operationId: "op_once", amountMinor: BigInt(order.totalMinor), status: "succeeded" },
    ]);
  });

  test("does not know the outcome when it is stopped after the money moved; the look-up finds and records it", async () => {
    const order = desk.take("below_limit");
    const tool = desk.tool("send_refund");
    await desk.sandbox.post("/sandbox/hold", { payment_intent: order.paymentIntent });
    const stop = new AbortController();
    const sending = tool.execute({ ...refundOf(order) }, contextOf("op_cut", { signal: stop.signal }));
    const failed = expect(sending).rejects.toMatchObject({ errorClass: "unknown_outcome", code: "aborted" });
    const isHeld = async () => (await desk.sandbox.countHeld()) === 1;
    await waitFor(isHeld, { deadlineMs: 5_000, what: "the reply to be held back" });
    stop.abort();
    await failed;
    expect(await refundsOf(order.id)).toEqual([]);

    const found = await tool.reconcile({ ...refundOf(order) }, contextOf("op_cut"));
    expect(found).toMatchObject({ answer: "happened", output: { order_id: order.id, status: "succeeded" } });
    expect(await refundsOf(order.id)).toMatchObject([{ operationId: "op_cut", status: "succeeded" }]);
    const isFree = async () => (await desk.sandbox.countHeld()) === 0;
    await waitFor(isFree, { deadlineMs: 5_000, what: "the sandbox to notice that its client is gone" });
    expect(await tool.execute({ ...refundOf(order) }, contextOf("op_cut"))).toEqual("output" in found && found.output);
    expect(await ledgerOf(order.paymentIntent)).toMatchObject({ rows: [{ idempotency_key: "op_cut" }] });
  });

  test("says of an operation that the provider has not seen that it did not happen", async () => {
    const order = desk.take("below_limit");
    const found = await desk.tool("send_refund").reconcile({ ...refundOf(order) }, contextOf("op_unseen"));
    expect(found).toEqual({ answer: "did_not_happen" });
    expect(await refundsOf(order.id)).toEqual([]);
  });

  test("does not know the outcome when a refund that was paid cannot be recorded; the look-up records it", async () => {
    const order = desk.take("below_limit");
    const orders = await openOrders(desk.url, () => undefined);
    const payments: Payments = {
      ...desk.sandbox.payments,
      sendRefund: async (wanted, limits) => {
        const refund = await desk.sandbox.payments.sendRefund(wanted, limits);
        await orders[Symbol.asyncDispose]();
        return refund;
      },
    };
    const tool = toolOf(desk.agentWith({ payments, pool: orders.pool }), "send_refund");
    const sending = tool.execute({ ...refundOf(order) }, contextOf("op_unrecorded"));
    await expect(sending).rejects.toMatchObject({ errorClass: "unknown_outcome", code: "refund_not_recorded" });
    const found = await desk.tool("send_refund").reconcile({ ...refundOf(order) }, contextOf("op_unrecorded"));
    expect(found).toMatchObject({ answer: "happened" });
    expect(await refundsOf(order.id)).toMatchObject([{ operationId: "op_unrecorded" }]);
  });

  test("asks a person when the orders know another refund of the same operation", async () => {
    const order = desk.take("below_limit");
    await desk.pool.query(
      `insert into refund_desk.refunds (operation_id, order_id, refund_id, amount_minor, status)
       values ('op_other', $1, 're_other', 1, 'succeeded')`,
      [order.id],
    );
    const sending = desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_other"));
    await expect(sending).rejects.toMatchObject({ errorClass: "unknown_outcome", code: "refund_differs" });
  });
});

describe("send_refund of a pending refund", () => {
  test("is pending until it is settled, and then succeeded, also for a repeat under the same key", async () => {
    const order = desk.take("below_limit");
    const send = () => desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_pending"));
    await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
    const pending = await send();
    expect(pending).toMatchObject({ status: "pending" });
    expect(await refundsOf(order.id)).toMatchObject([{ status: "pending" }]);
    await desk.sandbox.post("/sandbox/settle", { refund: refundIdOf(pending), status: "succeeded" });
    expect(await send()).toMatchObject({ status: "succeeded" });
    expect(await refundsOf(order.id)).toMatchObject([{ status: "succeeded" }]);
  });

  test("did not happen once it failed; a repeat is refused, and the amount is free again", async () => {
    const order = desk.take("below_limit");
    const tool = desk.tool("send_refund");
    await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
    const pending = await tool.execute({ ...refundOf(order) }, contextOf("op_failed"));
    await desk.sandbox.post("/sandbox/settle", { refund: refundIdOf(pending), status: "failed" });
    expect(await tool.reconcile({ ...refundOf(order) }, contextOf("op_failed"))).toEqual({ answer: "did_not_happen" });
    const again = tool.execute({ ...refundOf(order) }, contextOf("op_failed"));
    await expect(again).rejects.toMatchObject({ errorClass: "refused", code: "refund_failed" });
    const anew = await tool.execute({ ...refundOf(order) }, contextOf("op_anew"));
    expect(anew).toMatchObject({ status: "succeeded" });
  });

  test("is polled until the provider says how it ended, and recorded so", async () => {
    const tool = desk.tool("send_refund");
    for (const [status, expected] of [
      ["succeeded", { answer: "settled", output: { status: "succeeded", amount_minor: "9000" } }],
      ["failed", { answer: "failed", code: "refund_failed", message: expect.stringMatching(/re_\w+ out \(failed\)/) }],
    ] as const) {
      const order = desk.take("above_limit");
      const input = { ...refundOf(order), amount_minor: "9000" };
      await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
      const output = await tool.execute(input, contextOf(`op_poll_${status}`));
      expect(tool.isPending(output)).toBe(true);
      const poll = () => tool.settle(input, { ...contextOf(`op_poll_${status}`), output: stored(output) });
      expect(await poll()).toEqual({ answer: "still_pending" });
      await desk.sandbox.post("/sandbox/settle", { refund: refundIdOf(output), status });
      const settled = await poll();
      expect(settled).toMatchObject(expected);
      expect("output" in settled && tool.isPending(settled.output)).toBe(false);
      expect(await refundsOf(order.id)).toMatchObject([{ operationId: `op_poll_${status}`, status }]);
      expect(await poll()).toEqual(settled);
    }
  });

  test("stays pending when the provider does not show it, or in a state that nobody knows", async () => {
    const order = desk.take("below_limit");
    const refund: ProviderRefund = {
      refundId: "re_odd",
      paymentIntent: order.paymentIntent,
      amountMinor: "1",
      currency: order.currency,
      status: "something_new",
      replayed: false,
    };
    for (const found of [null, refund, { ...refund, status: "requires_action" }]) {
      const payments: Payments = { ...desk.sandbox.payments, findRefund: async () => found };
      const tool = toolOf(desk.agentWith({ payments }), "send_refund");
      const output = { order_id: order.id, refund_id: "re_odd", status: "pending", amount_minor: "1", currency: "eur" };
      const polled = await tool.settle({ ...refundOf(order) }, { ...contextOf("op_odd"), output });
      expect(polled).toEqual({ answer: "still_pending" });
    }
  });

  test.each([
    ["requires_action", { status: "pending" }],
    ["canceled", { errorClass: "refused", code: "refund_failed" }],
    ["something_new", { errorClass: "unknown_outcome", code: "refund_status_unknown" }],
  ])("reads the provider's status %s", async (status, expected) => {
    const order = desk.take("below_limit");
    const refund: ProviderRefund = {
      refundId: `re_${status}`,
      paymentIntent: order.paymentIntent,
      amountMinor: String(order.totalMinor),
      currency: order.currency,
      status,
      replayed: false,
    };
    const payments: Payments = { sendRefund: async () => refund, findRefund: async () => refund };
    const tool = toolOf(desk.agentWith({ payments }), "send_refund");
    const ended = await tool
      .execute({ ...refundOf(order) }, contextOf(`op_${status}`))
      .catch((error: unknown) => error);
    expect(ended).toMatchObject(expected);
  });
});

describe("send_refund of what does not fit its order", () => {
  const refused = async (operationId: string, input: Parameters<ReturnType<TestDesk["tool"]>["execute"]>[0]) => {
    const code = await desk
      .tool("send_refund")
      .execute(input, contextOf(operationId))
      .then(() => "paid")
      .catch((error: unknown) => (error instanceof ToolError ? `${error.errorClass} ${error.code}` : String(error)));
    expect(await countSent(operationId)).toBe(0);
    return code;
  };

  test("is refused before anything is sent", async () => {
    const small = { ...refundOf(desk.take("below_limit")) };
    const large = { ...refundOf(desk.take("above_limit")) };
    const { payment_intent } = large;
    const more = String(Number(large.amount_minor) + 1);
    expect(await refused("op_a", { ...small, payment_intent })).toBe("refused wrong_payment");
    expect(await refused("op_b", { ...small, currency: "gbp" })).toBe("refused wrong_currency");
    expect(await refused("op_c", { ...large, amount_minor: more })).toBe("refused more_than_left");
    expect(await refused("op_d", { ...large, order_total_minor: "10000" })).toBe("refused wrong_total");
    expect(await refused("op_e", { ...small, order_id: "ord_99999" })).toBe("refused no_such_order");
    expect(await refused("op_f", { ...refundOf(desk.take("too_late")) })).toBe("refused too_late");
    expect(await refused("op_g", { ...refundOf(desk.take("not_delivered")) })).toBe("refused not_delivered");
  });

  test("is not refused when an earlier attempt of it has paid while it fitted", async () => {
    const order = desk.take("partly_refunded");
    const { payment_intent: paymentIntent, amount_minor: amountMinor } = refundOf(order);
    const paid = await desk.sandbox.payments.sendRefund(
      { paymentIntent, amountMinor, reason: "requested_by_customer", operationId: "op_paid" },
      contextOf("op_paid"),
    );
    await desk.pool.query(
      "update refund_desk.orders set delivered_at = '2026-01-01', ordered_at = '2025-12-31' where id = $1",
      [order.id],
    );
    const output = await desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_paid"));
    expect(output).toMatchObject({ refund_id: paid.refundId, status: "succeeded" });
    expect(await countSent("op_paid")).toBe(1);
    expect(await refundsOf(order.id)).toContainEqual(expect.objectContaining({ operationId: "op_paid" }));
  });

  test("is paid after the window when people had to approve it", async () => {
    const order = desk.take("above_limit");
    const later = toolOf(desk.agentWith({ now: new Date("2026-06-01T00:00:00Z") }), "send_refund");
    expect(await later.execute({ ...refundOf(order) }, contextOf("op_approved"))).toMatchObject({
      status: "succeeded",
    });
  });
});

describe("the payment provider's errors", () => {
  const CLASSES: readonly PaymentErrorClass[] = ["transient", "throttled", "refused", "caller", "unknown_outcome"];

  test.each(CLASSES)("reach the runtime as %s", async (cls) => {
    const order = desk.take("below_limit");
    const error = new PaymentError("payment provider: busy", { class: cls, code: "busy", retryAfterMs: 7_000 });
    const fail = () => Promise.reject(error);
    const tool = toolOf(desk.agentWith({ payments: { sendRefund: fail, findRefund: fail } }), "send_refund");
    const expected = { name: "ToolError", errorClass: cls, code: "busy", retryAfterMs: 7_000, cause: error };
    await expect(tool.execute({ ...refundOf(order) }, contextOf("op_err"))).rejects.toMatchObject(expected);
    await expect(tool.reconcile({ ...refundOf(order) }, contextOf("op_err"))).rejects.toMatchObject(expected);
  });

  test("do not make a refund that was paid look as if nothing had happened", async () => {
    const order = desk.take("below_limit");
    await desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_replayed"));
    const busy = new PaymentError("busy", { class: "throttled", code: "busy" });
    const payments: Payments = { ...desk.sandbox.payments, findRefund: () => Promise.reject(busy) };
    const again = toolOf(desk.agentWith({ payments }), "send_refund").execute(
      { ...refundOf(order) },
      contextOf("op_replayed"),
    );
    await expect(again).rejects.toMatchObject({ errorClass: "unknown_outcome", code: "refund_status_unknown" });
  });

  test("refuse what the provider refuses", async () => {
    const order = desk.take("below_limit");
    const { payment_intent: paymentIntent, amount_minor: amountMinor } = refundOf(order);
    const elsewhere = { paymentIntent, amountMinor, reason: "duplicate", operationId: "op_elsewhere" } as const;
    await desk.sandbox.payments.sendRefund(elsewhere, contextOf("op_elsewhere"));
    const sending = desk.tool("send_refund").execute({ ...refundOf(order) }, contextOf("op_second"));
    await expect(sending).rejects.toMatchObject({ errorClass: "refused", code: "charge_already_refunded" });
  });
});
