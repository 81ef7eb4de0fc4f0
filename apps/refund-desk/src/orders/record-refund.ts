import type { Pool } from "pg";
import type { OrderRefund } from "./order.ts";

/** A refund that the provider has done, accepted or failed. */
export interface RefundRecord {
  readonly operationId: string;
  readonly orderId: string;
  readonly refundId: string;
  readonly amountMinor: string;
  readonly status: OrderRefund["status"];
}

/**
 * Records a refund with its order. The same operation again only brings a pending refund to its end.
 *
 * @returns `recorded`, `already` (nothing changed), or `different`: this operation has another order, amount or refund.
 */
export async function recordRefund(pool: Pool, refund: RefundRecord): Promise<"recorded" | "already" | "different"> {
  const values = [refund.operationId, refund.orderId, refund.refundId, refund.amountMinor, refund.status];
  const written = await pool.query(
    `insert into refund_desk.refunds as r (operation_id, order_id, refund_id, amount_minor, status)
     values ($1, $2, $3, $4, $5)
     on conflict (operation_id) do update set status = excluded.status
     where (r.order_id, r.refund_id, r.amount_minor) = (excluded.order_id, excluded.refund_id, excluded.amount_minor)
       and r.status = 'pending' and excluded.status <> 'pending'`,
    values,
  );
  if (written.rowCount === 1) return "recorded";
  const { rowCount } = await pool.query(
    `select from refund_desk.refunds
     where operation_id = $1 and order_id = $2 and refund_id = $3 and amount_minor = $4 and ($5 = 'pending' or status = $5)`,
    values,
  );
  return rowCount === 1 ? "already" : "different";
}
