import { findKeyUse, type KeyUse, type PaymentIntent, type Refund, refundIdsOf, remainingOf } from "./book.ts";
import { fingerprintRequest, parseForm } from "./form.ts";
import type { Handler, Reply, SandboxRequest, SandboxState } from "./sandbox-request.ts";
import { type Answer, noSuch, stripeError } from "./stripe-error.ts";
import { paymentIntentObject, refundObject } from "./stripe-object.ts";
import { checkListParams, checkRefundParams, checkSeedParams, type RefundParams } from "./validate.ts";

const MAX_KEY_LENGTH = 255;

/**
 * `POST /v1/refunds`. In Stripe's order: an earlier use of the key answers first; then the parameters are checked
 * (a mistake there does not use the key up); from then on the reply, also an error, belongs to the key.
 */
export const createRefund: Handler = (state, request) => {
  const params = parseForm(request.body);
  const fingerprint = fingerprintRequest(`${request.method} ${request.path}`, params);
  const earlier = answerByKey(state, request, fingerprint);
  if (earlier !== null) return earlier;
  const checked = checkRefundParams(params);
  if (!checked.ok) return checked.answer;
  const useKey = (answer: Answer): KeyUse | null =>
    request.idempotencyKey === null
      ? null
      : {
          key: request.idempotencyKey,
          fingerprint,
          firstUsedAtMs: request.nowMs,
          requestId: request.requestId,
          answer,
        };

  const decided = decideRefund(state, request, checked.value);
  if ("answer" in decided) {
    const keyUse = useKey(decided.answer);
    if (keyUse !== null) state.journal.record({ type: "refused", keyUse });
    return decided.answer;
  }
  const { refund } = decided;
  const answer: Answer = { status: 200, body: refundObject(refund) };
  state.journal.record({ type: "refund", refund, keyUse: useKey(answer), atMs: request.nowMs });
  state.pendingNext.delete(refund.paymentIntent);
  if (!state.holds.take(refund.paymentIntent)) return answer;
  const { paymentIntent, idempotencyKey } = refund;
  return { ...answer, hold: { paymentIntent, refund: refund.id, idempotencyKey } };
};

/** `GET /v1/refunds/:id`. */
export const getRefund: Handler = ({ journal }, { id }) => {
  const refund = journal.book.refunds.get(id);
  return refund === undefined ? noSuch("refund", id, 404) : { status: 200, body: refundObject(refund) };
};

/** `GET /v1/refunds`: newest first. */
export const listRefunds: Handler = ({ journal: { book } }, { query, path }) => {
  const checked = checkListParams(parseForm(query));
  if (!checked.ok) return checked.answer;
  const { paymentIntent, limit, startingAfter } = checked.value;
  if (paymentIntent !== null && !book.payments.has(paymentIntent)) return noSuch("payment_intent", paymentIntent, 400);
  const ids = [...refundIdsOf(book, paymentIntent)].reverse();
  const from = startingAfter === null ? 0 : ids.indexOf(startingAfter) + 1;
  if (startingAfter !== null && from === 0) return noSuch("refund", startingAfter, 400);
  const page = ids.slice(from, from + limit).flatMap((id) => book.refunds.get(id) ?? []);
  const has_more = from + limit < ids.length;
  return { status: 200, body: { object: "list", data: page.map(refundObject), has_more, url: path } };
};

/** `GET /v1/payment_intents/:id`. */
export const getPaymentIntent: Handler = ({ journal }, { id }) => {
  const payment = journal.book.payments.get(id);
  return payment === undefined
    ? noSuch("payment_intent", id, 404)
    : { status: 200, body: paymentIntentObject(payment) };
};

/** `POST /v1/test/payment_intents`: makes a payment known; the same again changes nothing, another one is refused. */
export const seedPaymentIntent: Handler = ({ journal }, { body, nowMs }) => {
  const checked = checkSeedParams(parseForm(body));
  if (!checked.ok) return checked.answer;
  const seed = checked.value;
  const known = journal.book.payments.get(seed.id);
  if (known !== undefined) {
    const same =
      known.amount === seed.amount && known.amountRefunded === seed.amountRefunded && known.currency === seed.currency;
    if (same) return { status: 200, body: paymentIntentObject(known) };
    return stripeError(400, {
      code: "resource_already_exists",
      message: `The payment_intent '${seed.id}' exists with another amount or currency`,
      param: "id",
    });
  }
  const payment: PaymentIntent = { ...seed, created: Math.floor(nowMs / 1_000) };
  journal.record({ type: "payment", payment });
  return { status: 200, body: paymentIntentObject(payment) };
};

/** Lets the key of a refund keep this reply: in place of its own after the effect, as its first one before it. */
export function rememberAnswer({ journal }: SandboxState, request: SandboxRequest, answer: Answer): void {
  const { method, path, body, idempotencyKey: key, requestId, nowMs } = request;
  if (key === null || key === "" || key.length > MAX_KEY_LENGTH) return;
  if (method !== "POST" || path !== "/v1/refunds") return;
  const known = findKeyUse(journal.book, key, nowMs);
  if (known !== null && known.requestId !== requestId) return; // an earlier request's reply stays
  const fingerprint = fingerprintRequest(`${method} ${path}`, parseForm(body));
  const { status, body: reply } = answer;
  const firstUsedAtMs = known?.firstUsedAtMs ?? nowMs;
  const keyUse = { key, fingerprint, firstUsedAtMs, requestId, answer: { status, body: reply } };
  journal.record({ type: "refused", keyUse });
}

/** The payment that a request is about, or `null`. */
export function findPaymentIntent({ journal }: SandboxState, request: SandboxRequest): string | null {
  const { path, query, body } = request;
  const [, kind, id = ""] = /^\/v1\/(refunds|payment_intents)\/([^/]+)$/.exec(path) ?? [];
  const byPath = kind === "payment_intents" ? id : journal.book.refunds.get(id)?.paymentIntent;
  const named = byPath ?? parseForm(body).fields.get("payment_intent") ?? parseForm(query).fields.get("payment_intent");
  return named !== undefined && /^pi_\w{1,64}$/.test(named) ? named : null;
}

function answerByKey(state: SandboxState, request: SandboxRequest, fingerprint: string): Reply | null {
  const key = request.idempotencyKey;
  if (key === null) return null;
  if (key === "" || key.length > MAX_KEY_LENGTH) {
    return stripeError(400, { message: `Idempotency keys must have 1 to ${MAX_KEY_LENGTH} characters.` });
  }
  const earlier = findKeyUse(state.journal.book, key, request.nowMs);
  if (earlier === null) return null;
  if (earlier.fingerprint !== fingerprint) {
    return stripeError(400, {
      type: "idempotency_error",
      message:
        "Keys for idempotent requests can only be used with the same parameters they were first used with. " +
        `Try using a key other than '${key}' if you meant to execute a different request.`,
    });
  }
  if (state.holds.keyInFlight(key) || state.delays.keyInFlight(key)) {
    return stripeError(409, {
      type: "idempotency_error",
      code: "idempotency_key_in_use",
      message: `There is currently another in-progress request using the idempotency key '${key}'.`,
    });
  }
  return { ...earlier.answer, headers: { "idempotent-replayed": "true", "original-request": earlier.requestId } };
}

function decideRefund(
  { journal: { book }, newId, pendingNext }: SandboxState,
  request: SandboxRequest,
  params: RefundParams,
): { readonly refund: Refund } | { readonly answer: Answer } {
  const payment = book.payments.get(params.paymentIntent);
  if (payment === undefined) return { answer: noSuch("payment_intent", params.paymentIntent, 400) };
  const remaining = remainingOf(book, payment);
  if (remaining <= 0) {
    const message = `The payment ${payment.id} has already been refunded.`;
    return { answer: stripeError(400, { code: "charge_already_refunded", message }) };
  }
  const amount = params.amount ?? remaining;
  if (amount > remaining) {
    const message = `Refund amount (${amount}) is greater than unrefunded amount on charge (${remaining})`;
    return { answer: stripeError(400, { code: "amount_too_large", message, param: "amount" }) };
  }
  const refund: Refund = {
    id: newId("re"),
    paymentIntent: payment.id,
    amount,
    currency: payment.currency,
    reason: params.reason,
    status: pendingNext.has(payment.id) ? "pending" : "succeeded",
    created: Math.floor(request.nowMs / 1_000),
    metadata: params.metadata,
    idempotencyKey: request.idempotencyKey,
  };
  return { refund };
}
