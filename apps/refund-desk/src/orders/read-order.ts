import type { Pool } from "pg";
import type { FindOrderInput, QuoteRefundInput } from "../tool-inputs.ts";
import type { FindOrderOutput, QuoteRefundOutput } from "../tool-outputs.ts";
import { judgeRefund, showOrder } from "./judge-refund.ts";
import type { Order, OrderItem, OrderRefund, RefundPolicy } from "./order.ts";

/** Looks an order up for the customer with this address; says why when there is nothing to show. */
export async function findOrder(pool: Pool, input: FindOrderInput): Promise<FindOrderOutput> {
  const order = await readOrder(pool, input.order_id);
  if (order !== null) return showOrder(order, input.email);
  return {
    found: false,
    order_id: input.order_id,
    reason: "no_such_order",
    why: "There is no order with this number.",
  };
}

/** What can be given back of an order at this instant, and why. */
export async function quoteRefund(
  pool: Pool,
  input: Pick<QuoteRefundInput, "order_id">,
  { policy, now }: { readonly policy: RefundPolicy; readonly now: Date },
): Promise<QuoteRefundOutput> {
  const order = await readOrder(pool, input.order_id);
  if (order !== null) return judgeRefund(order, policy, now);
  const why = "There is no order with this number.";
  return { refundable: false, order_id: input.order_id, reason: "no_such_order", why };
}

/** An order with its refunds, or `null`. */
export async function readOrder(pool: Pool, orderId: string): Promise<Order | null> {
  const { rows } = await pool.query<OrderRow>(READ_ORDER, [orderId]);
  const row = rows[0];
  if (row === undefined) return null;
  return {
    id: row.id,
    customerName: row.name,
    email: row.email,
    paymentIntent: row.payment_intent,
    currency: row.currency,
    totalMinor: BigInt(row.total_minor),
    orderedAt: row.ordered_at,
    deliveredAt: row.delivered_at,
    items: row.items,
    refunds: row.refunds.map((refund) => ({ ...refund, amountMinor: BigInt(refund.amountMinor) })),
  };
}

/**
 * The shop's rules.
 *
 * @throws {Error} the database has none yet: it was not seeded.
 */
export async function readPolicy(pool: Pool): Promise<RefundPolicy> {
  const { rows } = await pool.query<PolicyRow>(
    "select window_days, manager_limit_minor, two_person_limit_minor from refund_desk.policy",
  );
  const row = rows[0];
  if (row === undefined)
    throw new Error("the refund desk's database has no policy; run apps/refund-desk/src/main-setup.ts");
  return {
    windowDays: row.window_days,
    managerLimitMinor: BigInt(row.manager_limit_minor),
    twoPersonLimitMinor: BigInt(row.two_person_limit_minor),
  };
}

interface PolicyRow {
  readonly window_days: number;
  readonly manager_limit_minor: string;
  readonly two_person_limit_minor: string;
}

interface OrderRow {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly payment_intent: string;
  readonly currency: string;
  readonly total_minor: string;
  readonly ordered_at: Date;
  readonly delivered_at: Date | null;
  readonly items: readonly OrderItem[];
  readonly refunds: readonly (Omit<OrderRefund, "amountMinor"> & { readonly amountMinor: string })[];
}

/** Amounts leave as text: JSON numbers lose bigints above 2^53. */
const READ_ORDER = `
  select o.id, c.name, c.email, o.payment_intent, o.currency, o.total_minor, o.ordered_at, o.delivered_at, o.items,
         coalesce((select jsonb_agg(jsonb_build_object('operationId', r.operation_id,
                                                       'amountMinor', r.amount_minor::text,
                                                       'status', r.status) order by r.recorded_at, r.operation_id)
                   from refund_desk.refunds r where r.order_id = o.id), '[]') as refunds
  from refund_desk.orders o join refund_desk.customers c on c.id = o.customer_id
  where o.id = $1`;
