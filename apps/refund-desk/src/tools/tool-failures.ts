import { ToolError } from "@holdpoint/runtime";
import { PaymentError } from "../payment-error.ts";

/** A read of the orders that fails has changed nothing. */
export async function readingOrders<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const fields = { errorClass: "transient", code: "orders_unavailable" } as const;
    throw new ToolError("The orders cannot be read at the moment.", fields, { cause });
  }
}

/** The payment provider's errors say for the runtime what they say for the money: the classes are the same. */
export async function asking<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof PaymentError)) throw error;
    const { class: errorClass, code, retryAfterMs } = error;
    throw new ToolError(error.message, { errorClass, code, retryAfterMs }, { cause: error });
  }
}

/** The other side will not do this, now or later; nothing happened. */
export function refusal(code: string, message: string): ToolError {
  return new ToolError(message, { errorClass: "refused", code });
}

/** Something was sent, and what became of it has to be looked up. */
export function unknownOutcome(code: string, message: string, cause?: unknown): ToolError {
  return new ToolError(message, { errorClass: "unknown_outcome", code }, { cause });
}
