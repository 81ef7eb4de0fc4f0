import { calculate } from "./calculate.ts";
import { answer, type Outcome, refuse } from "./outcome.ts";
import { entryOf, type RetailState } from "./state.ts";
import type { ToolInput } from "./tool-inputs.ts";

export function findUserIdByEmail(state: RetailState, input: ToolInput<"find_user_id_by_email">): Outcome {
  const email = input.email.toLowerCase();
  const user = Object.values(state.users).find((candidate) => candidate.email.toLowerCase() === email);
  return user === undefined ? refuse("USER_NOT_FOUND", "User not found") : answer(user.user_id);
}

export function findUserIdByNameZip(state: RetailState, input: ToolInput<"find_user_id_by_name_zip">): Outcome {
  const firstName = input.first_name.toLowerCase();
  const lastName = input.last_name.toLowerCase();
  const user = Object.values(state.users).find(
    ({ name, address }) =>
      name.first_name.toLowerCase() === firstName &&
      name.last_name.toLowerCase() === lastName &&
      address.zip === input.zip,
  );
  return user === undefined ? refuse("USER_NOT_FOUND", "User not found") : answer(user.user_id);
}

export function getUserDetails(state: RetailState, input: ToolInput<"get_user_details">): Outcome {
  const user = entryOf(state.users, input.user_id);
  return user === undefined ? refuse("USER_NOT_FOUND", "User not found") : answer(user);
}

export function getOrderDetails(state: RetailState, input: ToolInput<"get_order_details">): Outcome {
  const order = entryOf(state.orders, input.order_id);
  return order === undefined ? refuse("ORDER_NOT_FOUND", "Order not found") : answer(order);
}

export function getProductDetails(state: RetailState, input: ToolInput<"get_product_details">): Outcome {
  const product = entryOf(state.products, input.product_id);
  return product === undefined ? refuse("PRODUCT_NOT_FOUND", "Product not found") : answer(product);
}

export function getItemDetails(state: RetailState, input: ToolInput<"get_item_details">): Outcome {
  for (const product of Object.values(state.products)) {
    const variant = entryOf(product.variants, input.item_id);
    if (variant !== undefined) return answer(variant);
  }
  return refuse("ITEM_NOT_FOUND", "Item not found");
}

export function listAllProductTypes(state: RetailState): Outcome {
  const products = Object.values(state.products);
  return answer(Object.fromEntries(products.map(({ name, product_id }) => [name, product_id])));
}

export function calculateAmount(_state: RetailState, input: ToolInput<"calculate">): Outcome {
  return calculate(input.expression);
}

export function transferToHumanAgents(): Outcome {
  return answer("Transfer successful");
}
