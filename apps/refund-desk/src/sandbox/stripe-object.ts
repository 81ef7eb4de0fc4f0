import type { PaymentIntent, Refund } from "./book.ts";

/** A refund as Stripe's API shows it. */
export function refundObject(refund: Refund): object {
  return {
    id: refund.id,
    object: "refund",
    amount: refund.amount,
    balance_transaction: null,
    charge: chargeOf(refund.paymentIntent),
    created: refund.created,
    currency: refund.currency,
    metadata: refund.metadata,
    payment_intent: refund.paymentIntent,
    reason: refund.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: refund.status,
    transfer_reversal: null,
    ...(refund.status === "failed" ? { failure_reason: "unknown" } : {}),
  };
}

/** A payment as Stripe's API shows it. */
export function paymentIntentObject(payment: PaymentIntent): object {
  return {
    id: payment.id,
    object: "payment_intent",
    amount: payment.amount,
    amount_received: payment.amount,
    created: payment.created,
    currency: payment.currency,
    latest_charge: chargeOf(payment.id),
    livemode: false,
    metadata: payment.metadata,
    status: "succeeded",
  };
}

function chargeOf(paymentIntent: string): string {
  return paymentIntent.replace(/^pi_/, "ch_");
}
