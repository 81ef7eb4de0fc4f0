// The retail store as a pure function: a state and a call give a result and the objects that change.
// Owns: the behaviour of the 16 tools. Does not own: where a state is kept, keys, the journal (store-service).
import { canonicalJson, sha256 } from "./store/canonical-json.ts";
import { exchangeDeliveredOrderItems, returnDeliveredOrderItems } from "./store/delivered-order-tools.ts";
import type { Outcome, RetailErrorCode } from "./store/outcome.ts";
import {
  cancelPendingOrder,
  modifyPendingOrderAddress,
  modifyPendingOrderItems,
  modifyPendingOrderPayment,
} from "./store/pending-order-tools.ts";
import {
  calculateAmount,
  findUserIdByEmail,
  findUserIdByNameZip,
  getItemDetails,
  getOrderDetails,
  getProductDetails,
  getUserDetails,
  listAllProductTypes,
  transferToHumanAgents,
} from "./store/read-tools.ts";
import { type Change, type RetailState, withChange } from "./store/state.ts";
import { isToolName, TOOL_INPUTS, type ToolInput, type ToolName } from "./store/tool-inputs.ts";
import { modifyUserAddress } from "./store/user-tools.ts";

export { canonicalJson, sha256 } from "./store/canonical-json.ts";
export type { RetailErrorCode } from "./store/outcome.ts";
export type { Change, Order, PaymentMethod, RetailState, User } from "./store/state.ts";
export { withChange } from "./store/state.ts";
export { isToolName, TOOL_OFFERS, type ToolName, type ToolOffer } from "./store/tool-inputs.ts";

/** One call of a tool by a model or a caller; its arguments are not validated yet. */
export type RetailCall = { readonly name: string; readonly arguments: unknown };

/**
 * What a call gives: `content` is the text for the model, `change` the objects that a write replaces (empty for reads
 * and refusals). A refusal by the store is a normal result with a code.
 */
export type CallResult =
  | { readonly ok: true; readonly content: string; readonly errorCode: null; readonly change: Change }
  | { readonly ok: false; readonly content: string; readonly errorCode: RetailErrorCode; readonly change: Change };

/** The call names no tool of this store, or its arguments do not fit the tool. Nothing was executed. */
export class InvalidCallError extends Error {
  readonly code = "INVALID_CALL";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "InvalidCallError";
  }
}

const TOOLS: { readonly [N in ToolName]: (state: RetailState, input: ToolInput<N>) => Outcome } = {
  find_user_id_by_email: findUserIdByEmail,
  find_user_id_by_name_zip: findUserIdByNameZip,
  get_user_details: getUserDetails,
  get_order_details: getOrderDetails,
  get_product_details: getProductDetails,
  get_item_details: getItemDetails,
  list_all_product_types: listAllProductTypes,
  calculate: calculateAmount,
  transfer_to_human_agents: transferToHumanAgents,
  cancel_pending_order: cancelPendingOrder,
  modify_pending_order_address: modifyPendingOrderAddress,
  modify_pending_order_payment: modifyPendingOrderPayment,
  modify_pending_order_items: modifyPendingOrderItems,
  return_delivered_order_items: returnDeliveredOrderItems,
  exchange_delivered_order_items: exchangeDeliveredOrderItems,
  modify_user_address: modifyUserAddress,
};

/**
 * Executes one call on a state, without changing it.
 *
 * @throws {InvalidCallError} unknown tool, or arguments that do not fit it.
 */
export function callTool(state: RetailState, call: RetailCall): CallResult {
  if (!isToolName(call.name)) throw new InvalidCallError(`the store has no tool named ${JSON.stringify(call.name)}`);
  const outcome = execute(state, call.name, call.arguments);
  if (!outcome.ok) {
    return { ok: false, content: `Error: ${outcome.message}`, errorCode: outcome.errorCode, change: {} };
  }
  const content = typeof outcome.result === "string" ? outcome.result : canonicalJson(outcome.result);
  return { ok: true, content, errorCode: null, change: outcome.change };
}

/** The hash that the benchmark compares: SHA-256 of the state's canonical JSON. */
export function stateHash(state: RetailState): string {
  const { orders, products, users } = state;
  return sha256(`{"orders":${recordText(orders)},"products":${recordText(products)},"users":${recordText(users)}}`);
}

/** Executes calls one after another; returns each result and the end state. */
export function playCalls(
  state: RetailState,
  calls: readonly RetailCall[],
): { readonly results: readonly CallResult[]; readonly state: RetailState } {
  let current = state;
  const results = calls.map((call) => {
    const result = callTool(current, call);
    current = withChange(current, result.change);
    return result;
  });
  return { results, state: current };
}

const TEXTS = new WeakMap<object, string>();

/**
 * Canonical text of a record of objects. States are read-only and share all that was not touched, so a text is kept as
 * long as its record or object lives; without that each hash would serialise the whole store again.
 */
function recordText(record: Readonly<Record<string, object>>): string {
  return keptText(record, () => {
    const entries = Object.keys(record)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${objectText(record[key] ?? {})}`);
    return `{${entries.join(",")}}`;
  });
}

function objectText(value: object): string {
  return keptText(value, () => canonicalJson(value));
}

function keptText(value: object, write: () => string): string {
  const text = TEXTS.get(value) ?? write();
  TEXTS.set(value, text);
  return text;
}

function execute<N extends ToolName>(state: RetailState, name: N, args: unknown): Outcome {
  const input = TOOL_INPUTS[name].safeParse(args);
  if (!input.success) {
    const faults = input.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
    throw new InvalidCallError(`arguments of ${name} do not fit: ${faults.join("; ")}`, { cause: input.error });
  }
  // The schema is that of the same name; the compiler cannot relate two indexed types through safeParse.
  return TOOLS[name](state, input.data as ToolInput<N>);
}
