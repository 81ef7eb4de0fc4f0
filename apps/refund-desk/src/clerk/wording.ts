import { formatMoney } from "../money.ts";
import type { QuoteRefundOutput, SendRefundOutput } from "../tool-outputs.ts";
import { EXPIRED, NOT_ESTABLISHED, REFUND_FAILED, REJECTED } from "../tool-result.ts";
import type { CustomerRequest } from "./read-request.ts";

/** Asks for what is missing. */
export function askForMissing({ orderId, email }: Pick<CustomerRequest, "orderId" | "email">): string {
  if (orderId === null && email === null) {
    return "I can help with that. What is your order number (it looks like ord_4411), and which e-mail address did you order with?";
  }
  if (orderId === null) return "Thank you. What is your order number? It looks like ord_4411.";
  return `Thank you. Which e-mail address did you order ${orderId} with?`;
}

export function askForCorrection(orderId: string, email: string): string {
  return `I could not read "${orderId}" with "${email}". Could you check the order number (it looks like ord_4411) and the address?`;
}

export function askForAnotherOrder(orderId: string): string {
  return `I cannot find an order ${orderId}. Could you check the number on your receipt?`;
}

export function explainNotYours(orderId: string, email: string): string {
  return `Order ${orderId} was not placed with ${email}, so I cannot refund it. Only the customer who ordered can ask for a refund.`;
}

export function explainNoRefund(quote: Extract<QuoteRefundOutput, { refundable: false }>): string {
  const openings = {
    no_such_order: `I cannot find order ${quote.order_id}.`,
    not_delivered: `I cannot refund order ${quote.order_id} yet.`,
    too_late: `I am sorry, it is too late to refund order ${quote.order_id}.`,
    already_refunded: `Order ${quote.order_id} has already been refunded.`,
  };
  return `${openings[quote.reason]} ${quote.why}`;
}

/** Tells the customer that the refund was not made, or that nobody can say so yet, and what comes next. */
export function explainNotSent(orderId: string, code: string): string {
  const colleague = "A colleague will look into it and get back to you.";
  switch (code) {
    case REJECTED:
      return `I am sorry, the refund of order ${orderId} was not approved. It was not paid out.`;
    case EXPIRED:
      return `I am sorry, the refund of order ${orderId} was not approved in time. It was not paid out.`;
    case REFUND_FAILED:
      return `I am sorry, the refund of order ${orderId} could not be paid out to your payment method. ${colleague}`;
    case NOT_ESTABLISHED:
      return `I cannot tell yet whether the refund of order ${orderId} was paid out. ${colleague}`;
    default:
      return `I could not refund order ${orderId} (${code}). ${colleague}`;
  }
}

export function explainHandOver(orderId: string, code: string): string {
  return `I could not work on order ${orderId} (${code}). A colleague will look into it and get back to you.`;
}

/** A refund that was made, and what had been asked for. */
export interface Paid {
  readonly refund: SendRefundOutput;
  readonly asked: { readonly amount_minor: string; readonly currency: string };
}

/** The message that the customer gets by e-mail. */
export function refundMessage(name: string, { refund, asked }: Paid): string {
  const amount = formatMoney(refund.amount_minor, refund.currency);
  const what =
    refund.status === "pending"
      ? `your refund of ${amount} for order ${refund.order_id} has been accepted and is on its way`
      : `we have refunded ${amount} for order ${refund.order_id} to your original payment method`;
  return `Dear ${name}, ${what}.${explainChange({ refund, asked })} Reference: ${refund.refund_id}.`;
}

/** The last words of a conversation that reached its end. */
export function closeConversation({ refund, asked }: Paid, email: string, notified: boolean): string {
  const amount = formatMoney(refund.amount_minor, refund.currency);
  const state = refund.status === "pending" ? "has been accepted and is on its way" : "has been paid out";
  const message = notified ? `I have sent the details to ${email}.` : "I could not send you the details by e-mail.";
  const done = `Your refund of ${amount} for order ${refund.order_id} ${state} (reference ${refund.refund_id}).`;
  return `${done}${explainChange({ refund, asked })} ${message}`;
}

/** That another amount was paid than was asked for; nothing where it is the same. */
function explainChange({ refund, asked }: Paid): string {
  if (refund.amount_minor === asked.amount_minor) return "";
  return ` Our review set this amount in place of ${formatMoney(asked.amount_minor, asked.currency)}.`;
}
