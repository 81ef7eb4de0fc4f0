import { defineTool, type Tool } from "@holdpoint/runtime";
import { quoteRefund } from "../orders/read-order.ts";
import { QuoteRefundInput } from "../tool-inputs.ts";
import type { Desk } from "./desk.ts";
import { readingOrders } from "./tool-failures.ts";

/** `quote_refund`: what the policy gives back of an order now. */
export function quoteRefundTool({ orders, policy, now }: Desk): Tool {
  return defineTool({
    name: "quote_refund",
    description:
      "Says whether an order can be refunded now, how much, to which payment, and whether a manager has to approve it. Changes nothing.",
    input: QuoteRefundInput,
    effect: "read",
    execute: (input) => readingOrders(quoteRefund(orders.pool, input, { policy, now: now() })),
  });
}
