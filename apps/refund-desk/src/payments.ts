import Stripe from "stripe";
import { z } from "zod";
import { classifyStripeError, PaymentError, type ReplyHead, type RequestFacts } from "./payment-error.ts";

const PAGE_SIZE = 100;
/** 1 000 refunds of one payment; what is not found among them stays unknown. */
const MAX_PAGES = 10;
/** The sandbox takes any test key. */
const SANDBOX_KEY = "sk_test_sandbox";

/** What is read of a refund. Anything else that came with status 200 is not from Stripe, and says nothing. */
const Refund = z.object({
  id: z.string().min(1),
  amount: z.int().min(0),
  currency: z.string(),
  /** Null only in API versions before refunds had a status; they were done at once then. */
  status: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).nullish(),
});
const RefundList = z.object({ data: z.array(Refund), has_more: z.boolean() });

/** Where refunds are sent; `url` is `null` for Stripe itself. */
export interface PaymentsConfig {
  readonly url: URL | null;
  readonly key: string;
}

/**
 * REFUND_DESK_STRIPE_URL (left out: Stripe itself) and REFUND_DESK_STRIPE_KEY (test keys only; not needed with a URL).
 * Each is judged by itself, so that all mistakes are found at once.
 */
export const PaymentsEnv = z
  .object({
    REFUND_DESK_STRIPE_URL: z
      .url({ protocol: /^https?$/, error: "must be an http or https address" })
      .refine(hasNoPath, "must have no path or query")
      .optional(),
    REFUND_DESK_STRIPE_KEY: z
      .string()
      .refine((key) => !/^(sk|rk)_live_/.test(key), {
        error: "is a live key, which would move real money; use a test key (sk_test_…)",
        abort: true,
      })
      .refine((key) => /^(sk|rk)_test_\w+$/.test(key), "must be a Stripe test key (sk_test_…)")
      .optional(),
  })
  .transform(({ REFUND_DESK_STRIPE_URL: address, REFUND_DESK_STRIPE_KEY: key }, context): PaymentsConfig => {
    if (address === undefined && key === undefined) {
      const message = "must be a Stripe test key (sk_test_…); or set REFUND_DESK_STRIPE_URL to use the payment sandbox";
      context.addIssue({ code: "custom", path: ["REFUND_DESK_STRIPE_KEY"], message });
    }
    return { url: address === undefined ? null : new URL(address), key: key ?? SANDBOX_KEY };
  });

/** One refund to be sent; the amount in minor units as a decimal string. */
export interface RefundOrder {
  readonly paymentIntent: string;
  readonly amountMinor: string;
  readonly reason: "duplicate" | "fraudulent" | "requested_by_customer";
  /** Sent as the idempotency key, and as metadata so that the refund can be found later. */
  readonly operationId: string;
}

/** `timeoutMs` bounds each request; the signal ends it early, and then nobody knows whether it acted. */
export interface RequestLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** A refund as the provider has it. `pending` is accepted, not done; `failed` and `canceled` moved no money. */
export interface ProviderRefund {
  readonly refundId: string;
  readonly paymentIntent: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly status: string;
  /** The provider answered from an earlier request with the same key. */
  readonly replayed: boolean;
}

export interface Payments {
  /**
   * Sends one refund in exactly one request.
   *
   * @throws {PaymentError} see `PaymentErrorClass` for what each class says about the money.
   */
  readonly sendRefund: (order: RefundOrder, limits: RequestLimits) => Promise<ProviderRefund>;
  /**
   * Looks for the refund of an operation among all refunds of a payment; `null` if there is none.
   *
   * @throws {PaymentError} `unknown_outcome` when the payment has more refunds than are looked through.
   */
  readonly findRefund: (
    wanted: Pick<RefundOrder, "paymentIntent" | "operationId">,
    limits: RequestLimits,
  ) => Promise<ProviderRefund | null>;
}

/** The payment provider, through the official `stripe` package: one request per attempt, abortable, never repeated. */
export function createPayments(config: PaymentsConfig): Payments {
  return {
    sendRefund: async (order, limits) => {
      const amount = readAmount(order.amountMinor);
      const params: Stripe.RefundCreateParams = {
        payment_intent: order.paymentIntent,
        amount,
        reason: order.reason,
        metadata: { operation_id: order.operationId },
      };
      const { value: refund, replayed } = await request(
        config,
        { ...limits, kind: "write", schema: Refund },
        (stripe) => stripe.refunds.create(params, { idempotencyKey: order.operationId }),
      );
      return toProviderRefund(refund, { paymentIntent: order.paymentIntent, replayed });
    },
    findRefund: async (wanted, limits) => {
      let after: string | null = null;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const params: Stripe.RefundListParams = { payment_intent: wanted.paymentIntent, limit: PAGE_SIZE };
        if (after !== null) params.starting_after = after;
        const asking = { ...limits, kind: "read", schema: RefundList } as const;
        const { value: list } = await request(config, asking, (stripe) => stripe.refunds.list(params));
        const found = list.data.find((refund) => refund.metadata?.operation_id === wanted.operationId);
        if (found !== undefined) {
          return toProviderRefund(found, { paymentIntent: wanted.paymentIntent, replayed: false });
        }
        after = list.data.at(-1)?.id ?? null;
        if (!list.has_more || after === null) return null;
      }
      const looked = MAX_PAGES * PAGE_SIZE;
      throw new PaymentError(`the payment has more than ${looked} refunds; this one is not among the newest`, {
        class: "unknown_outcome",
        code: "look_up_incomplete",
      });
    },
  };
}

/**
 * Runs one request with a Stripe object of its own, because the package takes an abort signal only through its `fetch`.
 * A second request of the same object is refused: the package repeats one by itself when a connection was closed.
 */
async function request<T>(
  config: PaymentsConfig,
  { signal, timeoutMs, kind, schema }: RequestLimits & Pick<RequestFacts, "kind"> & { readonly schema: z.ZodType<T> },
  act: (stripe: Stripe) => Promise<unknown>,
): Promise<{ readonly value: T; readonly replayed: boolean }> {
  if (signal.aborted) {
    throw new PaymentError("stopped before the request was sent", { class: "transient", code: "not_sent" });
  }
  let sent = false;
  let replayed = false;
  let reply: ReplyHead | null = null;
  const fetchOnce: typeof fetch = async (url, init) => {
    if (sent) throw new Error("a payment request is sent once; its outcome has to be looked up");
    sent = true;
    const signals = [signal, ...(init?.signal ? [init.signal] : [])];
    const response = await fetch(url, { ...init, signal: AbortSignal.any(signals) }).catch((error: unknown) => {
      // The caller's reason must not reach the package, which reads a `code` on it as its own.
      throw signal.aborted ? new Error("stopped while the request was under way", { cause: error }) : error;
    });
    const { status, headers } = response;
    reply = { status, retryAfter: headers.get("retry-after"), date: headers.get("date") };
    replayed = headers.get("idempotent-replayed") === "true";
    return response;
  };
  const stripe = new Stripe(config.key, {
    ...addressOf(config.url),
    httpClient: Stripe.createFetchHttpClient(fetchOnce),
    maxNetworkRetries: 0,
    telemetry: false,
    timeout: timeoutMs,
  });
  try {
    const value = await act(stripe);
    return { value: readReply(value, { schema, reply }), replayed };
  } catch (error) {
    throw classifyStripeError(error, { kind, aborted: signal.aborted, nowMs: Date.now(), reply });
  }
}

/** The package takes any JSON without an `error` for a result, whatever its status is. */
function readReply<T>(
  value: unknown,
  { schema, reply }: { readonly schema: z.ZodType<T>; readonly reply: ReplyHead | null },
): T {
  if (reply?.status !== 200) throw new Error("the reply has neither a result nor an error");
  return schema.parse(value);
}

function addressOf(url: URL | null): Stripe.StripeConfig {
  if (url === null) return {};
  const protocol = url.protocol === "http:" ? "http" : "https";
  return { protocol, host: url.hostname, port: url.port || (protocol === "http" ? 80 : 443) };
}

function hasNoPath(address: string): boolean {
  if (!URL.canParse(address)) return true; // said already
  const { pathname, search } = new URL(address);
  return pathname === "/" && search === "";
}

function readAmount(amountMinor: string): number {
  const amount = /^[1-9]\d{0,15}$/.test(amountMinor) ? Number(amountMinor) : Number.NaN;
  if (Number.isSafeInteger(amount)) return amount;
  throw new PaymentError("the amount must be a whole number of minor units above 0", {
    class: "caller",
    code: "bad_amount",
  });
}

function toProviderRefund(
  refund: z.output<typeof Refund>,
  { paymentIntent, replayed }: Pick<ProviderRefund, "paymentIntent" | "replayed">,
): ProviderRefund {
  return {
    refundId: refund.id,
    paymentIntent,
    amountMinor: String(refund.amount),
    currency: refund.currency,
    status: refund.status ?? "succeeded",
    replayed,
  };
}
