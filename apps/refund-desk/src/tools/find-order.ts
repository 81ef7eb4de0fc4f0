import { defineTool, type Tool } from "@holdpoint/runtime";
import { findOrder } from "../orders/read-order.ts";
import { FindOrderInput } from "../tool-inputs.ts";
import type { Desk } from "./desk.ts";
import { readingOrders } from "./tool-failures.ts";

/** `find_order`: shows an order to the customer who placed it. */
export function findOrderTool({ orders }: Desk): Tool {
  return defineTool({
    name: "find_order",
    description:
      "Looks up an order by its number and the customer's e-mail address. Shows nothing of another customer's order.",
    input: FindOrderInput,
    effect: "read",
    execute: (input) => readingOrders(findOrder(orders.pool, input)),
  });
}
