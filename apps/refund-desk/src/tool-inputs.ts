import { z } from "zod";

/** An order's number, as customers read it on their receipt. */
const OrderId = z.string().regex(/^ord_\d{4,10}$/, "must look like ord_4411");

/** Minor units of a currency as a decimal string, above 0. */
const AmountMinor = z.string().regex(/^[1-9]\d{0,15}$/, "must be a whole number of minor units, as a string");

const Email = z.email().max(254);
const Currency = z.string().regex(/^[a-z]{3}$/, "must be a three-letter currency code in lower case");

/** The kinds of messages that customers get. */
const NotificationTemplate = z.enum(["refund_sent", "refund_pending"]);

export const FindOrderInput = z.strictObject({
  order_id: OrderId.describe("The order's number"),
  email: Email.describe("The e-mail address that the customer gives; it must be the one of the order"),
});

export const QuoteRefundInput = z.strictObject({
  order_id: OrderId,
  reason: z.string().min(1).max(500).describe("Why the customer wants the money back, in the customer's words"),
});

export const SendRefundInput = z.strictObject({
  order_id: OrderId,
  payment_intent: z
    .string()
    .regex(/^pi_\w{1,64}$/)
    .describe("As quoted"),
  amount_minor: AmountMinor.describe("As quoted: minor units, a decimal string"),
  order_total_minor: AmountMinor.describe("As quoted: what was paid for the whole order; decides who has to approve"),
  currency: Currency.describe("As quoted"),
  reason: z.enum(["duplicate", "fraudulent", "requested_by_customer"]),
});

export const NotifyCustomerInput = z.strictObject({
  order_id: OrderId,
  email: Email,
  template: NotificationTemplate,
  text: z.string().min(1).max(2_000).describe("What the customer reads"),
});

export type FindOrderInput = z.infer<typeof FindOrderInput>;
export type QuoteRefundInput = z.infer<typeof QuoteRefundInput>;
export type SendRefundInput = z.infer<typeof SendRefundInput>;
export type NotifyCustomerInput = z.infer<typeof NotifyCustomerInput>;
