import { round2 } from "./money.ts";
import {
  balanceRefusal,
  findOrder,
  findPaymentMethod,
  firstMissingItem,
  ownerOf,
  planLineChanges,
  priceDifference,
} from "./order-parts.ts";
import { type Outcome, refuse } from "./outcome.ts";
import type { Order, RetailState } from "./state.ts";
import type { ToolInput } from "./tool-inputs.ts";

/** Files a request to return items. No money moves yet. */
export function returnDeliveredOrderItems(
  state: RetailState,
  input: ToolInput<"return_delivered_order_items">,
): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  const order = asked.value;
  if (order.status !== "delivered") return refuse("ORDER_NOT_DELIVERED", "Non-delivered order cannot be returned");
  const method = findPaymentMethod(ownerOf(state, order), input.payment_method_id);
  if (!method.ok) return method;
  const original = order.payment_history[0]?.payment_method_id;
  if (method.value.source !== "gift_card" && input.payment_method_id !== original) {
    return refuse("NOT_ORIGINAL_PAYMENT_METHOD", "Payment method should be the original payment method");
  }
  if (firstMissingItem(order, input.item_ids) !== null) return refuse("ITEM_NOT_IN_ORDER", "Some item not found");
  const requested: Order = {
    ...order,
    status: "return requested",
    return_items: input.item_ids.toSorted(),
    return_payment_method_id: input.payment_method_id,
  };
  return { ok: true, result: requested, change: { order: requested } };
}

/** Files a request to exchange items. No money moves and the order's lines stay. */
export function exchangeDeliveredOrderItems(
  state: RetailState,
  input: ToolInput<"exchange_delivered_order_items">,
): Outcome {
  const asked = findOrder(state, input.order_id);
  if (!asked.ok) return asked;
  const order = asked.value;
  if (order.status !== "delivered") return refuse("ORDER_NOT_DELIVERED", "Non-delivered order cannot be exchanged");
  const pairs = { order, itemIds: input.item_ids, newItemIds: input.new_item_ids };
  const changes = planLineChanges(state, pairs, {
    missing: (itemId) => `Number of ${itemId} not found.`,
    lengthMismatch: "The number of items to be exchanged should match.",
    sameItem: "allowed",
  });
  if (!changes.ok) return changes;
  const difference = round2(priceDifference(changes.value));
  const method = findPaymentMethod(ownerOf(state, order), input.payment_method_id);
  if (!method.ok) return method;
  const short = balanceRefusal(method.value, difference, "price difference");
  if (short !== null) return short;
  const requested: Order = {
    ...order,
    status: "exchange requested",
    exchange_items: input.item_ids.toSorted(),
    exchange_new_items: input.new_item_ids.toSorted(),
    exchange_payment_method_id: input.payment_method_id,
    exchange_price_difference: difference,
  };
  return { ok: true, result: requested, change: { order: requested } };
}
