/** A JSON reply as the sandbox stores and sends it. */
export interface Answer {
  readonly status: number;
  readonly body: object;
}

/** What a Stripe error says; `code` and `param` are left out where Stripe has none. */
export interface StripeErrorFields {
  readonly message: string;
  readonly type?: "invalid_request_error" | "idempotency_error" | "card_error" | "api_error";
  readonly code?: string;
  readonly param?: string;
}

/** A reply in the shape of Stripe's error object. The type defaults to `invalid_request_error`. */
export function stripeError(status: number, fields: StripeErrorFields): Answer {
  return { status, body: { error: { type: "invalid_request_error", ...fields } } };
}

/** An unknown object: 404 when it was named by the URL, 400 when it was named by a parameter, as Stripe does. */
export function noSuch(kind: "payment_intent" | "refund", id: string, status: 400 | 404): Answer {
  const param = status === 404 ? "id" : kind;
  return stripeError(status, { code: "resource_missing", message: `No such ${kind}: '${id}'`, param });
}
