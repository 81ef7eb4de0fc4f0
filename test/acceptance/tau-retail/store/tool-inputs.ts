import { z } from "zod";

const orderId = z.string().describe("The order's id, with its '#', such as #W2378156");
const userId = z.string().describe("The user's id, such as yusuf_rossi_9620");
const paymentMethodId = z.string().describe("The id of one of the user's payment methods");
const itemIds = z.array(z.string()).max(100);
const pairedItems = {
  order_id: orderId,
  item_ids: itemIds.describe("Item ids in the order; an item that is there twice may be named twice"),
  new_item_ids: itemIds.describe("The new item ids, in the order of item_ids"),
  payment_method_id: paymentMethodId,
};
const address = {
  address1: z.string(),
  address2: z.string(),
  city: z.string(),
  country: z.string(),
  state: z.string(),
  zip: z.string(),
};

/** Arguments of the 16 tools; all of them required, nothing beside them allowed. */
export const TOOL_INPUTS = {
  find_user_id_by_email: z.strictObject({ email: z.string() }),
  find_user_id_by_name_zip: z.strictObject({ first_name: z.string(), last_name: z.string(), zip: z.string() }),
  get_user_details: z.strictObject({ user_id: userId }),
  get_order_details: z.strictObject({ order_id: orderId }),
  get_product_details: z.strictObject({ product_id: z.string() }),
  get_item_details: z.strictObject({ item_id: z.string() }),
  list_all_product_types: z.strictObject({}),
  calculate: z.strictObject({ expression: z.string() }),
  transfer_to_human_agents: z.strictObject({ summary: z.string() }),
  cancel_pending_order: z.strictObject({ order_id: orderId, reason: z.string() }),
  modify_pending_order_address: z.strictObject({ order_id: orderId, ...address }),
  modify_pending_order_payment: z.strictObject({ order_id: orderId, payment_method_id: paymentMethodId }),
  modify_pending_order_items: z.strictObject(pairedItems),
  return_delivered_order_items: z.strictObject({
    order_id: orderId,
    item_ids: itemIds,
    payment_method_id: paymentMethodId,
  }),
  exchange_delivered_order_items: z.strictObject(pairedItems),
  modify_user_address: z.strictObject({ user_id: userId, ...address }),
} as const;

export type ToolName = keyof typeof TOOL_INPUTS;
export type ToolInput<N extends ToolName> = z.infer<(typeof TOOL_INPUTS)[N]>;

/** What a tool is to the runtime: a read, or a write for which the service offers a look-up or a key. */
export type ToolOffer = "read" | "look-up" | "key";

/** The two address tools are de-duplicated by key; the other writes can only be looked up in the journal. */
export const TOOL_OFFERS: Readonly<Record<ToolName, ToolOffer>> = {
  find_user_id_by_email: "read",
  find_user_id_by_name_zip: "read",
  get_user_details: "read",
  get_order_details: "read",
  get_product_details: "read",
  get_item_details: "read",
  list_all_product_types: "read",
  calculate: "read",
  transfer_to_human_agents: "read",
  cancel_pending_order: "look-up",
  modify_pending_order_address: "key",
  modify_pending_order_payment: "look-up",
  modify_pending_order_items: "look-up",
  return_delivered_order_items: "look-up",
  exchange_delivered_order_items: "look-up",
  modify_user_address: "key",
};

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOL_INPUTS, name);
}
