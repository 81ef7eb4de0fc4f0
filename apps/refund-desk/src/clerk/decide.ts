import { z } from "zod";
import { canonicalJson } from "../canonical-json.ts";
import type { FindOrderInput, NotifyCustomerInput, QuoteRefundInput, SendRefundInput } from "../tool-inputs.ts";
import { FindOrderOutput, QuoteRefundOutput, SendRefundOutput } from "../tool-outputs.ts";
import { INVALID } from "../tool-result.ts";
import type { Conversation } from "./conversation.ts";
import { readRequest } from "./read-request.ts";
import {
  askForAnotherOrder,
  askForCorrection,
  askForMissing,
  closeConversation,
  explainHandOver,
  explainNoRefund,
  explainNotSent,
  explainNotYours,
  refundMessage,
} from "./wording.ts";

/** What the clerk does next. */
export type Decision =
  | { readonly say: string }
  | { readonly call: { readonly tool: string; readonly input: Readonly<Record<string, string>> } };

/**
 * The refund policy as the clerk follows it: identify the customer, look up, quote, send, notify, close.
 * Everything is read from the conversation, so the same conversation gets the same decision. A call that has a result
 * is never made again; after invalid arguments the next candidate is tried, once each.
 */
export function decide(conversation: Conversation): Decision {
  const request = readRequest(conversation.customerTexts);
  const { orderId, email } = request;
  if (orderId === null || email === null) return { say: askForMissing(request) };

  const looked = step(conversation, FindOrderOutput, {
    tool: "find_order",
    candidates: [{ order_id: orderId, email } satisfies FindOrderInput],
    about: { order_id: orderId, email },
  });
  if ("call" in looked) return looked;
  if ("code" in looked) {
    const invalid = looked.code === INVALID;
    return { say: invalid ? askForCorrection(orderId, email) : explainHandOver(orderId, looked.code) };
  }
  const order = looked.value;
  if (!order.found) {
    return { say: order.reason === "not_yours" ? explainNotYours(orderId, email) : askForAnotherOrder(orderId) };
  }

  const quoted = step(conversation, QuoteRefundOutput, {
    tool: "quote_refund",
    candidates: [request.reason, "requested by the customer"].map(
      (reason) => ({ order_id: orderId, reason }) satisfies QuoteRefundInput,
    ),
    about: { order_id: orderId },
  });
  if ("call" in quoted) return quoted;
  if ("code" in quoted) return { say: explainHandOver(orderId, quoted.code) };
  if (!quoted.value.refundable) return { say: explainNoRefund(quoted.value) };
  return payAndTell(conversation, {
    quote: quoted.value,
    order,
    reason: request.chargedTwice ? "duplicate" : "requested_by_customer",
  });
}

interface Payable {
  readonly quote: Extract<QuoteRefundOutput, { refundable: true }>;
  readonly order: Extract<FindOrderOutput, { found: true }>;
  readonly reason: SendRefundInput["reason"];
}

function payAndTell(conversation: Conversation, { quote, order, reason }: Payable): Decision {
  const { order_id, payment_intent, amount_minor, order_total_minor, currency } = quote;
  const sent = step(conversation, SendRefundOutput, {
    tool: "send_refund",
    candidates: [reason, "requested_by_customer" as const].map(
      (why) =>
        ({
          order_id,
          payment_intent,
          amount_minor,
          order_total_minor,
          currency,
          reason: why,
        }) satisfies SendRefundInput,
    ),
    about: { order_id },
  });
  if ("call" in sent) return sent;
  if ("code" in sent) return { say: explainNotSent(order_id, sent.code) };

  // Whoever approved it may have changed the amount: what was paid is what the result says.
  const paid = { refund: sent.value, asked: quote };
  const { email, customer_name } = order;
  const told = step(conversation, z.unknown(), {
    tool: "notify_customer",
    candidates: [refundMessage(customer_name, paid), refundMessage("customer", paid)].map(
      (text) =>
        ({
          order_id,
          email,
          template: sent.value.status === "pending" ? "refund_pending" : "refund_sent",
          text,
        }) satisfies NotifyCustomerInput,
    ),
    about: { order_id },
  });
  if ("call" in told) return told;
  return { say: closeConversation(paid, email, !("code" in told)) };
}

interface Step {
  readonly tool: string;
  /** Inputs to try, the best first; a later one only after invalid arguments. */
  readonly candidates: readonly Readonly<Record<string, string>>[];
  /** The part of the input that says what the call is about: a call about the same has already been made. */
  readonly about: Readonly<Record<string, string>>;
}

type StepResult<T> = Extract<Decision, { call: unknown }> | { readonly value: T } | { readonly code: string };

function step<T>(conversation: Conversation, output: z.ZodType<T>, { tool, candidates, about }: Step): StepResult<T> {
  const made = conversation.calls.filter((call) => call.tool === tool && isAbout(call.input, about));
  for (const { result } of made.toReversed()) {
    if (result?.ok) {
      const parsed = output.safeParse(result.value);
      return parsed.success ? { value: parsed.data } : { code: "unreadable_result" };
    }
    if (result !== null && result.code !== INVALID) return { code: result.code };
  }
  const tried = new Set(made.map((call) => canonicalJson(call.input)));
  const input = candidates.find((candidate) => !tried.has(canonicalJson(candidate)));
  return input === undefined ? { code: INVALID } : { call: { tool, input } };
}

function isAbout(input: unknown, about: Readonly<Record<string, string>>): boolean {
  const fields = z.record(z.string(), z.unknown()).safeParse(input);
  return fields.success && Object.entries(about).every(([name, value]) => fields.data[name] === value);
}
