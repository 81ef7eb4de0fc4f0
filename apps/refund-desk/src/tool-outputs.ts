import { z } from "zod";

/** What `find_order` returns. */
export const FindOrderOutput = z.discriminatedUnion("found", [
  z.object({
    found: z.literal(true),
    order_id: z.string(),
    customer_name: z.string(),
    email: z.string(),
    currency: z.string(),
    total_minor: z.string(),
    ordered_at: z.string(),
    delivered_at: z.string().nullable(),
    items: z.array(z.object({ name: z.string(), quantity: z.number(), unit_minor: z.string() })),
  }),
  z.object({
    found: z.literal(false),
    order_id: z.string(),
    reason: z.enum(["no_such_order", "not_yours"]),
    why: z.string(),
  }),
]);

/** What `quote_refund` returns; amounts in minor units as decimal strings. */
export const QuoteRefundOutput = z.discriminatedUnion("refundable", [
  z.object({
    refundable: z.literal(true),
    order_id: z.string(),
    payment_intent: z.string(),
    amount_minor: z.string(),
    order_total_minor: z.string(),
    currency: z.string(),
    needs_manager: z.boolean(),
    why: z.string(),
  }),
  z.object({
    refundable: z.literal(false),
    order_id: z.string(),
    reason: z.enum(["no_such_order", "not_delivered", "too_late", "already_refunded"]),
    why: z.string(),
  }),
]);

/** What `send_refund` returns: a refund that the provider has done, or accepted as pending. */
export const SendRefundOutput = z.object({
  order_id: z.string(),
  refund_id: z.string(),
  status: z.enum(["succeeded", "pending"]),
  amount_minor: z.string(),
  currency: z.string(),
});

/** What `notify_customer` returns. */
export const NotifyCustomerOutput = z.object({ order_id: z.string(), notified: z.literal(true) });

export type FindOrderOutput = z.infer<typeof FindOrderOutput>;
export type QuoteRefundOutput = z.infer<typeof QuoteRefundOutput>;
export type SendRefundOutput = z.infer<typeof SendRefundOutput>;
export type NotifyCustomerOutput = z.infer<typeof NotifyCustomerOutput>;
