import type { Change } from "./state.ts";

/** Our stable names for the store's refusals; the texts are the benchmark's. */
export type RetailErrorCode =
  | "ORDER_NOT_FOUND"
  | "USER_NOT_FOUND"
  | "PRODUCT_NOT_FOUND"
  | "ITEM_NOT_FOUND"
  | "VARIANT_NOT_FOUND"
  | "PAYMENT_METHOD_NOT_FOUND"
  | "ORDER_NOT_PENDING"
  | "ORDER_NOT_DELIVERED"
  | "INVALID_REASON"
  | "ITEM_NOT_IN_ORDER"
  | "LENGTH_MISMATCH"
  | "SAME_ITEM"
  | "VARIANT_UNAVAILABLE"
  | "INSUFFICIENT_BALANCE"
  | "NOT_SINGLE_PAYMENT"
  | "SAME_PAYMENT_METHOD"
  | "NOT_ORIGINAL_PAYMENT_METHOD"
  | "INVALID_EXPRESSION";

export type Refusal = { readonly ok: false; readonly errorCode: RetailErrorCode; readonly message: string };

/** A tool's verdict: what the caller reads, and what a write replaces. */
export type Accepted = { readonly ok: true; readonly result: string | object; readonly change: Change };
export type Outcome = Accepted | Refusal;

/** A value that had to be found or worked out first, or the refusal that ends the call. */
export type Found<T> = { readonly ok: true; readonly value: T } | Refusal;

export function refuse(errorCode: RetailErrorCode, message: string): Refusal {
  return { ok: false, errorCode, message };
}

export function found<T>(value: T): Found<T> {
  return { ok: true, value };
}

export function answer(result: string | object): Accepted {
  return { ok: true, result, change: {} };
}
