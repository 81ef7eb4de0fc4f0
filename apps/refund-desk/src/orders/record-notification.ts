import type { Pool } from "pg";
import type { NotifyCustomerInput } from "../tool-inputs.ts";

/**
 * Puts a message to a customer into the outbox, once per operation.
 *
 * @returns `recorded`, `already` (the same message is there), or `different`: this operation has another message.
 */
export async function recordNotification(
  pool: Pool,
  operationId: string,
  message: NotifyCustomerInput,
): Promise<"recorded" | "already" | "different"> {
  const values = [operationId, message.order_id, message.email, message.template, message.text];
  const written = await pool.query(
    `insert into refund_desk.notifications (operation_id, order_id, email, template, body)
     values ($1, $2, $3, $4, $5) on conflict (operation_id) do nothing`,
    values,
  );
  if (written.rowCount === 1) return "recorded";
  const { rowCount } = await pool.query(
    `select from refund_desk.notifications
     where operation_id = $1 and order_id = $2 and email = $3 and template = $4 and body = $5`,
    values,
  );
  return rowCount === 1 ? "already" : "different";
}
