import type { FormParams } from "./form.ts";
import { type Answer, stripeError } from "./stripe-error.ts";

/** Stripe's largest amount, in minor units. */
const MAX_AMOUNT = 99_999_999;
const MAX_METADATA_ENTRIES = 50;
const MAX_METADATA_NAME = 40;
const MAX_METADATA_VALUE = 500;
const MAX_PAGE = 100;
const REASONS: readonly string[] = ["duplicate", "fraudulent", "requested_by_customer"];

/** Either checked parameters, or the reply that says what is wrong with them. */
export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly answer: Answer };

/** Parameters of a new refund; amount in minor units, `null` for all that is left. */
export interface RefundParams {
  readonly paymentIntent: string;
  readonly amount: number | null;
  readonly reason: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Parameters of one page of refunds, newest first. */
export interface ListParams {
  readonly paymentIntent: string | null;
  readonly limit: number;
  readonly startingAfter: string | null;
}

/** Parameters of a payment to be known to the sandbox; amounts in minor units. */
export interface SeedParams {
  readonly id: string;
  readonly amount: number;
  readonly amountRefunded: number;
  readonly currency: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Checks the parameters of `POST /v1/refunds`. */
export function checkRefundParams(params: FormParams): Checked<RefundParams> {
  const { fields, metadata } = params;
  const reason = fields.get("reason") ?? null;
  const amount = readInteger(fields, "amount", { min: 1, max: MAX_AMOUNT });
  const paymentIntent = fields.get("payment_intent") ?? "";
  const wrong =
    findUnknown(fields, ["payment_intent", "amount", "reason"]) ??
    (paymentIntent === "" ? missing("payment_intent") : null) ??
    (amount.ok ? null : amount.answer) ??
    (reason === null || REASONS.includes(reason) ? null : badReason()) ??
    findBadMetadata(metadata);
  if (wrong !== null || !amount.ok) return { ok: false, answer: wrong ?? missing("amount") };
  return { ok: true, value: { paymentIntent, amount: amount.value, reason, metadata } };
}

/** Checks the parameters of `GET /v1/refunds`; a page has 10 refunds unless told, at most 100. */
export function checkListParams({ fields }: FormParams): Checked<ListParams> {
  const limit = readInteger(fields, "limit", { min: 1, max: MAX_PAGE });
  const wrong = findUnknown(fields, ["payment_intent", "limit", "starting_after"]) ?? (limit.ok ? null : limit.answer);
  if (wrong !== null || !limit.ok) return { ok: false, answer: wrong ?? missing("limit") };
  return {
    ok: true,
    value: {
      paymentIntent: fields.get("payment_intent") ?? null,
      limit: limit.value ?? 10,
      startingAfter: fields.get("starting_after") ?? null,
    },
  };
}

/** Checks the parameters of `POST /v1/test/payment_intents`. */
export function checkSeedParams({ fields, metadata }: FormParams): Checked<SeedParams> {
  const amount = readInteger(fields, "amount", { min: 1, max: MAX_AMOUNT });
  const refunded = readInteger(fields, "amount_refunded", { min: 0, max: MAX_AMOUNT });
  const id = fields.get("id") ?? "";
  const currency = fields.get("currency") ?? "";
  const wrong =
    findUnknown(fields, ["id", "amount", "amount_refunded", "currency"]) ??
    (/^pi_\w{1,64}$/.test(id) ? null : badParam("id", "must look like pi_… with letters, digits and _")) ??
    (/^[a-z]{3}$/.test(currency) ? null : badParam("currency", "must be a three-letter code in lower case")) ??
    (amount.ok ? null : amount.answer) ??
    (refunded.ok ? null : refunded.answer) ??
    findBadMetadata(metadata);
  if (wrong !== null || !amount.ok || !refunded.ok) return { ok: false, answer: wrong ?? missing("amount") };
  if (amount.value === null) return { ok: false, answer: missing("amount") };
  const amountRefunded = refunded.value ?? 0;
  if (amountRefunded > amount.value) {
    return { ok: false, answer: badParam("amount_refunded", "must not be greater than amount") };
  }
  return { ok: true, value: { id, amount: amount.value, amountRefunded, currency, metadata } };
}

function readInteger(
  fields: ReadonlyMap<string, string>,
  name: string,
  range: { readonly min: number; readonly max: number },
): Checked<number | null> {
  const text = fields.get(name);
  if (text === undefined) return { ok: true, value: null };
  const code = "parameter_invalid_integer";
  if (!/^-?\d{1,15}$/.test(text)) {
    return {
      ok: false,
      answer: stripeError(400, { code, message: `Invalid integer: ${text.slice(0, 40)}`, param: name }),
    };
  }
  const value = Number(text);
  if (value >= range.min && value <= range.max) return { ok: true, value };
  const bound = value < range.min ? `greater than or equal to ${range.min}` : `less than or equal to ${range.max}`;
  return { ok: false, answer: stripeError(400, { code, message: `This value must be ${bound}.`, param: name }) };
}

function findUnknown(fields: ReadonlyMap<string, string>, known: readonly string[]): Answer | null {
  for (const name of fields.keys()) {
    if (known.includes(name)) continue;
    const message = `Received unknown parameter: ${name.slice(0, 80)}`;
    return stripeError(400, { code: "parameter_unknown", message, param: name.slice(0, 80) });
  }
  return null;
}

function findBadMetadata(metadata: Readonly<Record<string, string>>): Answer | null {
  const entries = Object.entries(metadata);
  if (entries.length > MAX_METADATA_ENTRIES) {
    return badParam("metadata", `can have up to ${MAX_METADATA_ENTRIES} keys`);
  }
  for (const [name, value] of entries) {
    if (name.length > MAX_METADATA_NAME)
      return badParam("metadata", `keys can be up to ${MAX_METADATA_NAME} characters`);
    if (value.length > MAX_METADATA_VALUE) {
      return badParam("metadata", `values can be up to ${MAX_METADATA_VALUE} characters`);
    }
  }
  return null;
}

function missing(param: string): Answer {
  return stripeError(400, { code: "parameter_missing", message: `Missing required param: ${param}.`, param });
}

function badReason(): Answer {
  return stripeError(400, {
    message: "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer",
    param: "reason",
  });
}

function badParam(param: string, rule: string): Answer {
  return stripeError(400, { message: `Invalid ${param}: ${rule}.`, param });
}
