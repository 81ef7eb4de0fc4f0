import Stripe from "stripe";

/**
 * What an error means for the effect:
 * - `transient`: nothing happened, another try may help;
 * - `throttled`: nothing happened, try again after `retryAfterMs`;
 * - `refused`: the provider will not do this, now or later;
 * - `caller`: the request, the key or the configuration is wrong;
 * - `unknown_outcome`: nobody knows whether the money moved; look it up before anything else.
 */
export type PaymentErrorClass = "transient" | "throttled" | "refused" | "caller" | "unknown_outcome";

/** An error of the payment provider, classed by its type and code. */
export class PaymentError extends Error {
  override readonly name = "PaymentError";
  readonly class: PaymentErrorClass;
  /** Stripe's code where it has one, else one of ours: `timeout`, `connection`, `aborted`, `not_sent`, `http_<status>` … */
  readonly code: string;
  /** Whole milliseconds the provider asks to wait, or `null`. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    fields: { readonly class: PaymentErrorClass; readonly code: string; readonly retryAfterMs?: number | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.class = fields.class;
    this.code = fields.code;
    this.retryAfterMs = fields.retryAfterMs ?? null;
  }
}

/** How the failed request was made. */
export interface RequestFacts {
  /** A `write` may have moved money, a `read` cannot. */
  readonly kind: "write" | "read";
  readonly aborted: boolean;
  readonly nowMs: number;
}

/** Codes with which Stripe declines a well-formed refund. */
const REFUSED_CODES: ReadonlySet<string> = new Set([
  "amount_too_large",
  "amount_too_small",
  "balance_insufficient",
  "charge_already_refunded",
  "charge_disputed",
  "charge_not_refundable",
  "insufficient_funds",
  "payment_intent_unexpected_state",
  "refund_disputed_payment",
]);

/**
 * Classes an error of the `stripe` package by type, code and status, never by its text.
 * Whatever is not known to be harmless counts as `unknown_outcome` on a write.
 */
export function classifyStripeError(error: unknown, request: RequestFacts): PaymentError {
  const { class: cls, code } = judge(error, request);
  const header = error instanceof Stripe.errors.StripeError ? error.headers?.["retry-after"] : null;
  const retryAfterMs = cls === "throttled" ? readRetryAfterMs(header, request.nowMs) : null;
  return new PaymentError(`payment provider: ${code} (${cls})`, { class: cls, code, retryAfterMs }, { cause: error });
}

function judge(error: unknown, request: RequestFacts): Pick<PaymentError, "class" | "code"> {
  const unsure = request.kind === "write" ? "unknown_outcome" : "transient";
  if (!(error instanceof Stripe.errors.StripeError)) return { class: unsure, code: "unexpected" };
  if (error instanceof Stripe.errors.StripeConnectionError) {
    if (request.aborted) return { class: unsure, code: "aborted" };
    return { class: unsure, code: isTimeout(error.detail) ? "timeout" : "connection" };
  }
  if (error instanceof Stripe.errors.StripeIdempotencyError) return { class: "caller", code: "idempotency_mismatch" };
  if (error.statusCode === undefined) return { class: unsure, code: "unreadable_reply" };
  const code = error.code ?? `http_${error.statusCode}`;
  if (error instanceof Stripe.errors.StripeRateLimitError) return { class: "throttled", code };
  if (error instanceof Stripe.errors.StripeCardError || REFUSED_CODES.has(code)) return { class: "refused", code };
  return { class: isCallersFault(error.statusCode) ? "caller" : unsure, code };
}

/** Not among them: another request with this key is under way (409), or the request was cut off on its way (408, 425). */
function isCallersFault(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 409, 425].includes(status);
}

/** Milliseconds of a Retry-After header (seconds or an HTTP date, at least 0), or `null`. */
export function readRetryAfterMs(header: unknown, nowMs: number): number | null {
  if (typeof header !== "string") return null;
  if (/^\d{1,8}$/.test(header)) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}

function isTimeout(detail: unknown): boolean {
  return typeof detail === "object" && detail !== null && "code" in detail && detail.code === "ETIMEDOUT";
}
