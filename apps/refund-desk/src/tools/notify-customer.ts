import { defineTool, type Tool, ToolError } from "@holdpoint/runtime";
import { readOrder } from "../orders/read-order.ts";
import { recordNotification } from "../orders/record-notification.ts";
import { NotifyCustomerInput } from "../tool-inputs.ts";
import type { NotifyCustomerOutput } from "../tool-outputs.ts";
import type { Desk } from "./desk.ts";
import { readingOrders, refusal } from "./tool-failures.ts";

/** The outbox keeps its messages, each under its operation id, and nobody looks back further than this. */
const KEY_VALID_MS = 365 * 24 * 60 * 60 * 1_000;

/** `notify_customer`: puts a message to the customer of an order into the outbox, once per operation. */
export function notifyCustomerTool({ orders }: Desk): Tool {
  return defineTool({
    name: "notify_customer",
    description:
      "Sends the customer of an order a message about its refund, to the address of the order. Only say what a tool has confirmed.",
    input: NotifyCustomerInput,
    effect: { key: { validForMs: KEY_VALID_MS } },
    execute: async (input, { operationId }): Promise<NotifyCustomerOutput> => {
      const order = await readingOrders(readOrder(orders.pool, input.order_id));
      if (order === null) throw refusal("no_such_order", `There is no order ${input.order_id}.`);
      if (order.email !== input.email.toLowerCase()) {
        throw refusal("not_the_customers_address", `${input.order_id} was not placed with this address.`);
      }
      // An error here is left as it is: the message may be in, and the same operation writes it once.
      const recorded = await recordNotification(orders.pool, operationId, input);
      if (recorded === "different") {
        const fields = { errorClass: "caller", code: "operation_reused" } as const;
        throw new ToolError("This operation has sent another message before.", fields);
      }
      return { order_id: input.order_id, notified: true };
    },
  });
}
