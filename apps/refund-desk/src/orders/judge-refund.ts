import { formatMoney } from "../money.ts";
import type { SendRefundInput } from "../tool-inputs.ts";
import type { FindOrderOutput, QuoteRefundOutput } from "../tool-outputs.ts";
import type { Order, RefundPolicy } from "./order.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** What a customer with this address may see of an order. */
export function showOrder(order: Order, email: string): FindOrderOutput {
  if (order.email !== email.trim().toLowerCase()) {
    const why = "The order belongs to another e-mail address.";
    return { found: false, order_id: order.id, reason: "not_yours", why };
  }
  return {
    found: true,
    order_id: order.id,
    customer_name: order.customerName,
    email: order.email,
    currency: order.currency,
    total_minor: String(order.totalMinor),
    ordered_at: order.orderedAt.toISOString(),
    delivered_at: order.deliveredAt?.toISOString() ?? null,
    items: order.items.map(({ name, quantity, unitMinor }) => ({ name, quantity, unit_minor: unitMinor })),
  };
}

/** What the policy gives back of an order at this instant, and why. */
export function judgeRefund(order: Order, policy: RefundPolicy, now: Date): QuoteRefundOutput {
  const refuse = (reason: "not_delivered" | "too_late" | "already_refunded", why: string): QuoteRefundOutput => ({
    refundable: false,
    order_id: order.id,
    reason,
    why,
  });
  const remaining = remainingMinor(order);
  const show = (amount: bigint) => formatMoney(String(amount), order.currency);
  if (remaining <= 0n) return refuse("already_refunded", `All of ${show(order.totalMinor)} was refunded before.`);
  if (order.deliveredAt === null) return refuse("not_delivered", "The order has not been delivered yet.");
  const lastDay = new Date(order.deliveredAt.getTime() + policy.windowDays * DAY_MS);
  if (now > lastDay) {
    const day = lastDay.toISOString().slice(0, 10);
    return refuse(
      "too_late",
      `Refunds are possible for ${policy.windowDays} days after delivery; that ended on ${day}.`,
    );
  }
  return {
    refundable: true,
    order_id: order.id,
    payment_intent: order.paymentIntent,
    amount_minor: String(remaining),
    order_total_minor: String(order.totalMinor),
    currency: order.currency,
    needs_manager: needsManager(order.totalMinor, policy),
    why:
      remaining < order.totalMinor
        ? `${show(order.totalMinor - remaining)} was refunded before; ${show(remaining)} is left and within the window.`
        : `The order is within ${policy.windowDays} days after delivery.`,
  };
}

/**
 * Whether somebody has to approve a refund of an order with this total (minor units). The total decides, not the amount
 * that is given back: so neither parts nor an amount that an approver has lowered get around the approval.
 */
export function needsManager(orderTotalMinor: bigint, policy: RefundPolicy): boolean {
  return orderTotalMinor > policy.managerLimitMinor;
}

/** What speaks against a refund. `lasting`: it could never have been otherwise, so no earlier attempt was sent either. */
export interface RefundMismatch {
  readonly code: string;
  readonly message: string;
  readonly lasting: boolean;
}

/**
 * Whether a refund that is about to be sent fits its order, whatever the model made of the quote: the payment, the
 * order's total, by which the approval is judged, the currency, and no more than is left. What nobody had to approve
 * must be refundable now. What was approved is not judged by the window again: the decision may take longer than it.
 *
 * @param operationId  the refund's own; what is recorded under it already is not counted against it.
 * @returns `null` when it fits, else what does not.
 */
export function findRefundMismatch(
  order: Order,
  input: SendRefundInput,
  { operationId, policy, now }: { readonly operationId: string; readonly policy: RefundPolicy; readonly now: Date },
): RefundMismatch | null {
  const mismatch = (code: string, message: string, lasting = false) => ({ code, message, lasting });
  if (input.payment_intent !== order.paymentIntent) {
    return mismatch("wrong_payment", `payment_intent is not the one of ${order.id}`, true);
  }
  if (input.currency !== order.currency) {
    return mismatch("wrong_currency", `${order.id} was paid in ${order.currency}`, true);
  }
  if (BigInt(input.order_total_minor) !== order.totalMinor) {
    return mismatch("wrong_total", `the total of ${order.id} is ${order.totalMinor} minor units`);
  }
  const before = { ...order, refunds: order.refunds.filter((refund) => refund.operationId !== operationId) };
  const remaining = remainingMinor(before);
  if (BigInt(input.amount_minor) > remaining) {
    return mismatch("more_than_left", `only ${remaining} minor units of ${order.id} are left to refund`);
  }
  if (needsManager(order.totalMinor, policy)) return null;
  const quote = judgeRefund(before, policy, now);
  return quote.refundable ? null : mismatch(quote.reason, quote.why);
}

function remainingMinor(order: Order): bigint {
  let remaining = order.totalMinor;
  for (const { status, amountMinor } of order.refunds) if (status !== "failed") remaining -= amountMinor;
  return remaining;
}
