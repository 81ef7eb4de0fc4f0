import type { RefundPolicy } from "../orders/order.ts";
import type { OrdersDatabase } from "../orders/orders-database.ts";
import type { Payments } from "../payments.ts";

/** What the tools work with. */
export interface Desk {
  readonly orders: Pick<OrdersDatabase, "pool">;
  readonly payments: Payments;
  /** One for all tools: what is quoted and what needs a manager are judged by the same rules. */
  readonly policy: RefundPolicy;
  readonly now: () => Date;
}
