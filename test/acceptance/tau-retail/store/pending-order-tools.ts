import { round2 } from "./money.ts";
import {
  addressFrom,
  balanceRefusal,
  findOrder,
  findPaymentMethod,
  type LineChange,
  ownerOf,
  planLineChanges,
  priceDifference,
  withGiftCard,
} from "./order-parts.ts";
import { type Outcome, refuse } from "./outcome.ts";
import type { Order, OrderLine, PaymentMethod, RetailState, User, Variant } from "./state.ts";
import type { ToolInput } from "./tool-inputs.ts";

const CANCEL_REASONS: readonly string[] = ["no longer needed", "ordered by mistake"];
const CANNOT_MODIFY = refuse("ORDER_NOT_PENDING", "Non-pending order cannot be modified");

/** Refunds every entry of the payment history, whatever its type, and closes the order. */
export function cancelPendingOrder(state: RetailState, input: ToolInput<"cancel_pending_order">): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  const order = asked.value;
  if (order.status !== "pending") return refuse("ORDER_NOT_PENDING", "Non-pending order cannot be cancelled");
  if (!CANCEL_REASONS.includes(input.reason)) return refuse("INVALID_REASON", "Invalid reason");
  const owner = ownerOf(state, order);
  let user = owner;
  for (const { amount, payment_method_id } of order.payment_history) {
    const method = findPaymentMethod(user, payment_method_id); // anew each time: two entries may use one gift card
    if (!method.ok) return method;
    user = credit(user, method.value, amount);
  }
  const refunds = order.payment_history.map((entry) => ({ ...entry, transaction_type: "refund" as const }));
  const cancelled: Order = {
    ...order,
    payment_history: [...order.payment_history, ...refunds],
    status: "cancelled",
    cancel_reason: input.reason,
  };
  return accept(cancelled, owner, user);
}

export function modifyPendingOrderAddress(
  state: RetailState,
  input: ToolInput<"modify_pending_order_address">,
): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  if (!isLooselyPending(asked.value)) return CANNOT_MODIFY;
  const order = { ...asked.value, address: addressFrom(input) };
  return { ok: true, result: order, change: { order } };
}

export function modifyPendingOrderPayment(
  state: RetailState,
  input: ToolInput<"modify_pending_order_payment">,
): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  const order = asked.value;
  if (!isLooselyPending(order)) return CANNOT_MODIFY;
  const owner = ownerOf(state, order);
  const newMethod = findPaymentMethod(owner, input.payment_method_id);
  if (!newMethod.ok) return newMethod;
  const [payment, ...more] = order.payment_history;
  if (payment === undefined || more.length > 0 || payment.transaction_type !== "payment") {
    return refuse("NOT_SINGLE_PAYMENT", "There should be exactly one payment for a pending order");
  }
  if (payment.payment_method_id === input.payment_method_id) {
    return refuse("SAME_PAYMENT_METHOD", "The new payment method should be different from the current one");
  }
  const short = balanceRefusal(newMethod.value, payment.amount, "order");
  if (short !== null) return short;
  const oldMethod = findPaymentMethod(owner, payment.payment_method_id);
  if (!oldMethod.ok) return oldMethod;
  const paid: Order = {
    ...order,
    payment_history: [
      payment,
      { transaction_type: "payment", amount: payment.amount, payment_method_id: input.payment_method_id },
      { transaction_type: "refund", amount: payment.amount, payment_method_id: payment.payment_method_id },
    ],
  };
  const charged = credit(owner, newMethod.value, -payment.amount);
  return accept(paid, owner, credit(charged, oldMethod.value, payment.amount));
}

/** Exchanges items of an order that is not sent yet; possible once, since the status moves on. */
export function modifyPendingOrderItems(state: RetailState, input: ToolInput<"modify_pending_order_items">): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  const order = asked.value;
  if (order.status !== "pending") return CANNOT_MODIFY;
  const pairs = { order, itemIds: input.item_ids, newItemIds: input.new_item_ids };
  const changes = planLineChanges(state, pairs, {
    missing: (itemId) => `${itemId} not found`,
    lengthMismatch: "The number of items to be exchanged should match",
    sameItem: "refused",
  });
  if (!changes.ok) return changes;
  const difference = priceDifference(changes.value);
  const owner = ownerOf(state, order);
  const method = findPaymentMethod(owner, input.payment_method_id);
  if (!method.ok) return method;
  const short = balanceRefusal(method.value, difference, "new item");
  if (short !== null) return short;
  const modified: Order = {
    ...order,
    items: changedLines(order.items, changes.value),
    payment_history: [
      ...order.payment_history,
      {
        transaction_type: difference > 0 ? "payment" : "refund",
        amount: Math.abs(difference),
        payment_method_id: input.payment_method_id,
      },
    ],
    status: "pending (item modified)",
  };
  return accept(modified, owner, credit(owner, method.value, -difference));
}

/** The benchmark's own quirk, part of its expected hashes: every changed line gets the last variant's price and options. */
function changedLines(lines: readonly OrderLine[], changes: readonly LineChange[]): readonly OrderLine[] {
  const last: Variant | undefined = changes.at(-1)?.variant;
  if (last === undefined) return lines;
  const changed = [...lines];
  for (const { oldId, variant } of changes) {
    const index = changed.findIndex((line) => line.item_id === oldId);
    const line = changed[index];
    if (line === undefined) throw new Error(`item ${oldId} was checked to be in the order but is not`);
    changed[index] = { ...line, item_id: variant.item_id, price: last.price, options: last.options };
  }
  return changed;
}

function isLooselyPending(order: Order): boolean {
  return order.status === "pending" || order.status === "pending (item modified)";
}

/** Moves a gift card's balance at once; nothing is recorded for other methods, whose money takes days. */
function credit(user: User, method: PaymentMethod, amount: number): User {
  return method.source === "gift_card" ? withGiftCard(user, method, round2(method.balance + amount)) : user;
}

function accept(order: Order, before: User, after: User): Outcome {
  return { ok: true, result: order, change: after === before ? { order } : { order, user: after } };
}
