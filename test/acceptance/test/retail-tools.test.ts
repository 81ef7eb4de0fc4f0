import { describe, expect, test } from "vitest";
import {
  callTool,
  canonicalJson,
  InvalidCallError,
  type PaymentMethod,
  playCalls,
  type RetailState,
  stateHash,
  withChange,
} from "../tau-retail/retail-store.ts";
import { ADDRESS, anna, anOrder, OTHER_ADDRESS, smallStore } from "./small-store.ts";

const call = (state: RetailState, name: string, args: object) => callTool(state, { name, arguments: args });

describe("canonicalJson", () => {
  test("sorts keys as strings, integer-like ones too", () => {
    expect(canonicalJson({ b: 1, "10": 2, "9": 3, a: undefined })).toBe('{"10":2,"9":3,"b":1}');
  });

  test("prints numbers as ECMAScript does", () => {
    expect(canonicalJson([99.0, -0, 0.1 + 0.2, null, true, 'é"'])).toBe('[99,0,0.30000000000000004,null,true,"é\\""]');
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, () => 1])("refuses %s", (value) => {
    expect(() => canonicalJson({ value })).toThrow(TypeError);
  });
});

describe("calculate", () => {
  test.each([
    ["3131.1 + 4777.75 + 367.38", "8276.23"],
    ["135.24 - 153.23", "-17.99"],
    ["2 + 3 * 4 - 10 / 5", "12.0"],
    ["10 - 4 - 3", "3.0"],
    ["-(2 + .5) * 2.", "-5.0"],
    ["2 - -3", "5.0"],
    ["(1 - 2) * 0", "-0.0"],
    ["1/8", "0.12"],
    ["3/8", "0.38"],
    ["-5/8", "-0.62"],
    ["0.005", "0.01"],
    ["200 / 2", "100.0"],
  ])("works out %s", (expression, value) => {
    expect(call(smallStore(), "calculate", { expression })).toMatchObject({ ok: true, content: value });
  });

  test.each([
    "",
    " ",
    "1 +",
    "(1",
    "1)",
    "1 2",
    ".",
    "1..2",
    "2 ** 3",
    "7 // 2",
    "1 / 0",
    "9".repeat(400),
    "1+".repeat(600),
  ])("refuses %j", (expression) => {
    expect(call(smallStore(), "calculate", { expression })).toMatchObject({
      ok: false,
      errorCode: "INVALID_EXPRESSION",
    });
  });

  test("names characters that do not belong into an expression", () => {
    expect(call(smallStore(), "calculate", { expression: "alert(1)" }).content).toBe(
      "Error: Invalid characters in expression",
    );
  });
});

describe("callTool", () => {
  const pairs = { order_id: "#P", item_ids: ["11"], new_item_ids: ["13"], payment_method_id: "card" };
  const delivered = { ...pairs, order_id: "#D" };
  const returned = { order_id: "#D", item_ids: ["11"], payment_method_id: "card" };
  const twicePaid = anOrder({
    order_id: "#T",
    payment_history: [
      { transaction_type: "payment", amount: 1, payment_method_id: "card" },
      { transaction_type: "refund", amount: 1, payment_method_id: "card" },
    ],
  });

  test.each<[string, object, string]>([
    ["get_order_details", { order_id: "P" }, "ORDER_NOT_FOUND"],
    ["get_user_details", { user_id: "constructor" }, "USER_NOT_FOUND"],
    ["get_product_details", { product_id: "__proto__" }, "PRODUCT_NOT_FOUND"],
    ["get_item_details", { item_id: "99" }, "ITEM_NOT_FOUND"],
    ["find_user_id_by_email", { email: "bob@example.com" }, "USER_NOT_FOUND"],
    ["find_user_id_by_name_zip", { first_name: "Anna", last_name: "Berg", zip: "1" }, "USER_NOT_FOUND"],
    ["cancel_pending_order", { order_id: "#D", reason: "no longer needed" }, "ORDER_NOT_PENDING"],
    ["cancel_pending_order", { order_id: "#P", reason: "bored" }, "INVALID_REASON"],
    ["modify_pending_order_address", { order_id: "#D", ...ADDRESS }, "ORDER_NOT_PENDING"],
    ["modify_pending_order_payment", { order_id: "#D", payment_method_id: "card" }, "ORDER_NOT_PENDING"],
    ["modify_pending_order_payment", { order_id: "#P", payment_method_id: "none" }, "PAYMENT_METHOD_NOT_FOUND"],
    ["modify_pending_order_payment", { order_id: "#T", payment_method_id: "gift" }, "NOT_SINGLE_PAYMENT"],
    ["modify_pending_order_payment", { order_id: "#P", payment_method_id: "card" }, "SAME_PAYMENT_METHOD"],
    ["modify_pending_order_payment", { order_id: "#P", payment_method_id: "gift" }, "INSUFFICIENT_BALANCE"],
    ["modify_pending_order_items", { ...pairs, item_ids: ["11", "11"] }, "ITEM_NOT_IN_ORDER"],
    ["modify_pending_order_items", { ...pairs, new_item_ids: [] }, "LENGTH_MISMATCH"],
    ["modify_pending_order_items", { ...pairs, new_item_ids: ["11"] }, "SAME_ITEM"],
    ["modify_pending_order_items", { ...pairs, new_item_ids: ["99"] }, "VARIANT_NOT_FOUND"],
    ["modify_pending_order_items", { ...pairs, new_item_ids: ["14"] }, "VARIANT_UNAVAILABLE"],
    ["modify_pending_order_items", { ...pairs, payment_method_id: "none" }, "PAYMENT_METHOD_NOT_FOUND"],
    ["modify_pending_order_items", { ...pairs, payment_method_id: "gift" }, "INSUFFICIENT_BALANCE"],
    ["return_delivered_order_items", { ...returned, order_id: "#P" }, "ORDER_NOT_DELIVERED"],
    ["return_delivered_order_items", { ...returned, payment_method_id: "none" }, "PAYMENT_METHOD_NOT_FOUND"],
    ["return_delivered_order_items", { ...returned, payment_method_id: "paypal" }, "NOT_ORIGINAL_PAYMENT_METHOD"],
    ["return_delivered_order_items", { ...returned, item_ids: ["13"] }, "ITEM_NOT_IN_ORDER"],
    ["exchange_delivered_order_items", pairs, "ORDER_NOT_DELIVERED"],
    ["exchange_delivered_order_items", { ...delivered, payment_method_id: "gift" }, "INSUFFICIENT_BALANCE"],
    ["modify_user_address", { user_id: "bob", ...ADDRESS }, "USER_NOT_FOUND"],
  ])("%s with %j refuses with %s and changes nothing", (name, args, errorCode) => {
    expect(call(smallStore([twicePaid]), name, args)).toMatchObject({ ok: false, errorCode, change: {} });
  });

  test.each<[string, object]>([
    ["drop_tables", {}],
    ["get_order_details", {}],
    ["get_order_details", { order_id: "#P", extra: "1" }],
    ["get_order_details", { order_id: 1 }],
    ["return_delivered_order_items", { ...returned, item_ids: "11" }],
  ])("throws on %s with %j", (name, args) => {
    expect(() => call(smallStore(), name, args)).toThrow(InvalidCallError);
  });

  test("leaves the given state as it was", () => {
    const state = smallStore();
    const before = canonicalJson(state);
    playCalls(state, [{ name: "cancel_pending_order", arguments: { order_id: "#P", reason: "no longer needed" } }]);
    expect(canonicalJson(state)).toBe(before);
  });

  test("lets an item be exchanged for itself, at today's price", () => {
    const { change } = call(smallStore(), "exchange_delivered_order_items", { ...delivered, new_item_ids: ["11"] });
    expect(change.order).toMatchObject({ status: "exchange requested", exchange_price_difference: 0.9 });
  });

  test("finds a user by the address that a write has changed", () => {
    const state = smallStore();
    const moved = call(state, "modify_user_address", { user_id: "anna_1", ...OTHER_ADDRESS });
    const search = { first_name: "anna", last_name: "BERG", zip: OTHER_ADDRESS.zip };
    expect(call(withChange(state, moved.change), "find_user_id_by_name_zip", search).content).toBe("anna_1");
    expect(stateHash(withChange(state, moved.change))).not.toBe(stateHash(state));
  });
});

describe("the benchmark's quirks", () => {
  test("every changed line gets the last variant's price and options, the charge is right and not rounded", () => {
    const input = { order_id: "#P", item_ids: ["11", "12"], new_item_ids: ["12", "13"], payment_method_id: "card" };
    const { change } = call(smallStore(), "modify_pending_order_items", input);
    // The second pair finds the line that the first one has just changed to 12.
    expect(change.order?.items.map(({ item_id, price, options }) => [item_id, price, options])).toEqual([
      ["13", 33, { size: "13" }],
      ["12", 20.2, { size: "12" }],
    ]);
    expect(change.order?.payment_history.at(-1)).toEqual({
      transaction_type: "payment",
      amount: 22 - 10.1 + (33 - 20.2),
      payment_method_id: "card",
    });
  });

  test("a cancel after a payment change refunds all three entries to the gift card", () => {
    const gift: PaymentMethod = { source: "gift_card", id: "gift", balance: 50 };
    const state = withChange(smallStore(), { user: { ...anna, payment_methods: { ...anna.payment_methods, gift } } });
    const { state: end } = playCalls(state, [
      { name: "modify_pending_order_payment", arguments: { order_id: "#P", payment_method_id: "gift" } },
      { name: "cancel_pending_order", arguments: { order_id: "#P", reason: "ordered by mistake" } },
    ]);
    expect(end.orders["#P"]?.payment_history).toHaveLength(6);
    expect(end.users.anna_1?.payment_methods.gift).toMatchObject({ balance: 50 });
  });
});
