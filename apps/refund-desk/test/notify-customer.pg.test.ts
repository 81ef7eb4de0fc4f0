import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contextOf, openTestDesk, type TestDesk } from "./desk-harness.ts";

let desk: TestDesk;
beforeAll(async () => {
  desk = await openTestDesk();
});
afterAll(() => desk[Symbol.asyncDispose]().then());

describe("notify_customer", () => {
  const messageTo = (order: ReturnType<TestDesk["take"]>) => ({
    order_id: order.id,
    email: order.customer.email,
    template: "refund_sent",
    text: "Dear customer, it is paid.",
  });

  test("offers a key, and puts one message per operation into the outbox", async () => {
    const message = messageTo(desk.take("below_limit"));
    const tool = desk.tool("notify_customer");
    expect(tool.effect).toMatchObject({ kind: "effect", lookUpSettlesWithinMs: null });
    const notify = () => tool.execute({ ...message, email: message.email.toUpperCase() }, contextOf("op_note"));
    expect(await Promise.all([notify(), notify()])).toEqual(
      [1, 2].map(() => ({ order_id: message.order_id, notified: true })),
    );
    const { rows } = await desk.pool.query("select body from refund_desk.notifications where operation_id = 'op_note'");
    expect(rows).toEqual([{ body: message.text }]);
    const other = tool.execute({ ...message, text: "It is not paid." }, contextOf("op_note"));
    await expect(other).rejects.toMatchObject({ errorClass: "caller", code: "operation_reused" });
  });

  test("writes to nobody but the customer of the order", async () => {
    const message = messageTo(desk.take("below_limit"));
    const tool = desk.tool("notify_customer");
    await expect(tool.execute({ ...message, email: "thief@example.com" }, contextOf("op_n1"))).rejects.toMatchObject({
      errorClass: "refused",
      code: "not_the_customers_address",
    });
    await expect(tool.execute({ ...message, order_id: "ord_99999" }, contextOf("op_n2"))).rejects.toMatchObject({
      errorClass: "refused",
      code: "no_such_order",
    });
  });
});
