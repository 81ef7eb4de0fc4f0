import { type Found, found, type Refusal, refuse } from "./outcome.ts";
import {
  type Address,
  entryOf,
  type GiftCard,
  type Order,
  type OrderLine,
  type PaymentMethod,
  type RetailState,
  type User,
  type Variant,
} from "./state.ts";

/** One line of an order that is to become another variant. */
export type LineChange = { readonly line: OrderLine; readonly oldId: string; readonly variant: Variant };

export function findOrder(state: RetailState, orderId: string): Found<Order> {
  const order = entryOf(state.orders, orderId);
  return order === undefined ? refuse("ORDER_NOT_FOUND", "Order not found") : found(order);
}

/** The order's user. The data holds no order without one, so its absence is a broken state and throws. */
export function ownerOf(state: RetailState, order: Order): User {
  const user = entryOf(state.users, order.user_id);
  if (user === undefined) throw new Error(`order ${order.order_id} belongs to no user of this state`);
  return user;
}

export function findPaymentMethod(user: User, paymentMethodId: string): Found<PaymentMethod> {
  const method = entryOf(user.payment_methods, paymentMethodId);
  return method === undefined ? refuse("PAYMENT_METHOD_NOT_FOUND", "Payment method not found") : found(method);
}

/** The first id that is asked for more often than the order holds it, or null. */
export function firstMissingItem(order: Order, itemIds: readonly string[]): string | null {
  const countOf = (ids: readonly string[], id: string) => ids.filter((other) => other === id).length;
  const held = order.items.map((line) => line.item_id);
  return itemIds.find((id) => countOf(itemIds, id) > countOf(held, id)) ?? null;
}

function firstLine(order: Order, itemId: string): OrderLine {
  const line = order.items.find((candidate) => candidate.item_id === itemId);
  if (line === undefined) throw new Error(`item ${itemId} was checked to be in order ${order.order_id} but is not`);
  return line;
}

/**
 * Pairs old and new item ids in order and finds what each line is to become; the first fault refuses the whole call.
 *
 * @param rules  where the tools differ: their wording, and whether an item may become itself.
 */
export function planLineChanges(
  state: RetailState,
  { order, itemIds, newItemIds }: { order: Order; itemIds: readonly string[]; newItemIds: readonly string[] },
  rules: { missing: (itemId: string) => string; lengthMismatch: string; sameItem: "allowed" | "refused" },
): Found<readonly LineChange[]> {
  const missing = firstMissingItem(order, itemIds);
  if (missing !== null) return refuse("ITEM_NOT_IN_ORDER", rules.missing(missing));
  if (itemIds.length !== newItemIds.length) return refuse("LENGTH_MISMATCH", rules.lengthMismatch);
  const changes: LineChange[] = [];
  for (const [index, oldId] of itemIds.entries()) {
    const newId = newItemIds[index] ?? ""; // never empty: the lists are equally long
    if (newId === oldId && rules.sameItem === "refused") {
      return refuse("SAME_ITEM", "The new item id should be different from the old item id");
    }
    const line = firstLine(order, oldId);
    const variant = findNewVariant(state, line, newId);
    if (!variant.ok) return variant;
    changes.push({ line, oldId, variant: variant.value });
  }
  return found(changes);
}

/** The variant that a line is to become: of the same product, and available. */
function findNewVariant(state: RetailState, line: OrderLine, newId: string): Found<Variant> {
  const variant = entryOf(entryOf(state.products, line.product_id)?.variants ?? {}, newId);
  if (variant === undefined) return refuse("VARIANT_NOT_FOUND", "Variant not found");
  if (!variant.available) return refuse("VARIANT_UNAVAILABLE", `New item ${newId} not found or available`);
  return found(variant);
}

/** What the new items cost more than the old ones, in dollars, summed pair by pair and never rounded. */
export function priceDifference(changes: readonly LineChange[]): number {
  return changes.reduce((difference, { line, variant }) => difference + (variant.price - line.price), 0);
}

/** A gift card must cover the amount; other methods always do. Null when it is covered. */
export function balanceRefusal(method: PaymentMethod, amount: number, what: string): Refusal | null {
  if (method.source !== "gift_card" || method.balance >= amount) return null;
  return refuse("INSUFFICIENT_BALANCE", `Insufficient gift card balance to pay for the ${what}`);
}

export function withGiftCard(user: User, card: GiftCard, balance: number): User {
  return { ...user, payment_methods: { ...user.payment_methods, [card.id]: { ...card, balance } } };
}

export function addressFrom(input: Address): Address {
  const { address1, address2, city, country, state, zip } = input;
  return { address1, address2, city, country, state, zip };
}
