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
  /** How the reply began; `null` when none came. */
  readonly reply: ReplyHead | null;
}

/** Status and headers as they came; a header that did not is `null`. */
export interface ReplyHead {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly date: string | null;
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
  const retryAfterMs = request.reply === null ? null : readRetryAfterMs(request.reply, request.nowMs);
  return new PaymentError(`payment provider: ${code} (${cls})`, { class: cls, code, retryAfterMs }, { cause: error });
}

function judge(error: unknown, request: RequestFacts): Pick<PaymentError, "class" | "code"> {
  const unsure = request.kind === "write" ? "unknown_outcome" : "transient";
  if (error instanceof Stripe.errors.StripeConnectionError) {
    if (request.aborted) return { class: unsure, code: "aborted" };
    return { class: unsure, code: isTimeout(error.detail) ? "timeout" : "connection" };
  }
  const said = error instanceof Stripe.errors.StripeError && error.statusCode !== undefined ? error : null;
  // By the status alone: what turns a request away unread need not be Stripe, nor speak like it.
  if (request.reply?.status === 429) return { class: "throttled", code: said?.code ?? "http_429" };
  return said === null ? { class: unsure, code: codeWithoutError(request.reply) } : judgeStripeError(said, unsure);
}

function judgeStripeError(
  error: Stripe.errors.StripeError,
  unsure: "unknown_outcome" | "transient",
): Pick<PaymentError, "class" | "code"> {
  if (error instanceof Stripe.errors.StripeIdempotencyError) return { class: "caller", code: "idempotency_mismatch" };
  const code = error.code ?? `http_${error.statusCode}`;
  if (error instanceof Stripe.errors.StripeRateLimitError) return { class: "throttled", code };
  if (error instanceof Stripe.errors.StripeCardError || REFUSED_CODES.has(code)) return { class: "refused", code };
  return { class: isCallersFault(error.statusCode) ? "caller" : unsure, code };
}

/** Without an error object of Stripe's nobody says that nothing happened, whatever the status is. */
function codeWithoutError(reply: ReplyHead | null): string {
  if (reply === null) return "unexpected";
  return reply.status === 200 ? "unreadable_reply" : `http_${reply.status}`;
}

/** Not among them: another request with this key is under way (409), or the request was cut off on its way (408, 425). */
function isCallersFault(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && ![408, 409, 425].includes(status);
}

/**
 * How long the provider asks to wait, in milliseconds, or `null` if it does not say or cannot be understood. Never
 * shortened; a date counts from the reply's own `Date`, because the two clocks may differ, else from `nowMs`.
 */
export function readRetryAfterMs({ retryAfter, date }: Omit<ReplyHead, "status">, nowMs: number): number | null {
  if (retryAfter === null) return null;
  if (/^\d+$/.test(retryAfter)) return Math.min(Number(retryAfter) * 1_000, Number.MAX_SAFE_INTEGER);
  const untilMs = readHttpDateMs(retryAfter);
  if (untilMs === null) return null;
  const fromMs = (date === null ? null : readHttpDateMs(date)) ?? nowMs;
  return Math.max(0, untilMs - fromMs);
}

/** The three forms of a date in HTTP (RFC 9110, section 5.6.7); `Date.parse` alone makes a date of nearly anything. */
function readHttpDateMs(text: string): number | null {
  const named = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -](\d{4}|\d{2}) \d{2}:\d{2}:\d{2} GMT$/;
  const asctime = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;
  if (!named.test(text) && !asctime.test(text)) return null;
  const atMs = Date.parse(asctime.test(text) ? `${text} GMT` : text);
  return Number.isNaN(atMs) ? null : atMs;
}

function isTimeout(detail: unknown): boolean {
  return typeof detail === "object" && detail !== null && "code" in detail && detail.code === "ETIMEDOUT";
}
