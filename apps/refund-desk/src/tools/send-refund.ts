import { defineTool, type LookUp, type Settled, type Tool, type ToolContext, type ToolRule } from "@holdpoint/runtime";
import { findRefundMismatch, type RefundMismatch } from "../orders/judge-refund.ts";
import type { RefundPolicy } from "../orders/order.ts";
import { readOrder } from "../orders/read-order.ts";
import { recordRefund } from "../orders/record-refund.ts";
import type { ProviderRefund } from "../payments.ts";
import { SendRefundInput } from "../tool-inputs.ts";
import type { SendRefundOutput } from "../tool-outputs.ts";
import { REFUND_FAILED } from "../tool-result.ts";
import type { Desk } from "./desk.ts";
import { asking, readingOrders, refusal, unknownOutcome } from "./tool-failures.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** Stripe may forget an idempotency key after 24 hours. */
const KEY_VALID_MS = DAY_MS;

/** A pending refund takes days; the provider is asked about it this often, and after this long a person is. */
const POLL_EVERY_MS = 60_000;
const SETTLED_WITHIN_MS = 14 * DAY_MS;

/**
 * `send_refund`: gives money back. The operation id is the idempotency key, and metadata that the look-up finds the
 * refund by. People approve it first where the order's total is above the policy's limits. A refund that is only
 * accepted has no result before the provider has paid it, or has failed to.
 */
export function sendRefundTool(desk: Desk): Tool {
  return defineTool({
    name: "send_refund",
    description:
      "Refunds an order, with the payment, amount and currency exactly as quote_refund gave them. Moves money. People may have to approve it first, and may change the amount; the call returns once the money is paid out.",
    input: SendRefundInput,
    effect: { key: { validForMs: KEY_VALID_MS }, lookUp: {} },
    service: "stripe",
    rules: approvalRules(desk.policy),
    presentation: {
      amount: { minor: "amount_minor", currency: "currency" },
      risk: { level: "high", reversible: false },
    },
    execute: (input, context) => sendRefund(desk, input, context),
    externalRef: ({ refund_id }) => refund_id,
    reconcile: (input, context) => lookUpRefund(desk, input, context),
    settlement: {
      isPending: ({ status }) => status === "pending",
      poll: (input, context) => pollRefund(desk, input, context),
      everyMs: POLL_EVERY_MS,
      withinMs: SETTLED_WITHIN_MS,
    },
  });
}

/** The first rule that fits decides, so the larger limit stands first. */
function approvalRules({ managerLimitMinor, twoPersonLimitMinor }: RefundPolicy): readonly ToolRule[] {
  const above = (limit: bigint) => [{ argument: "order_total_minor", is: ">", value: String(limit) }] as const;
  return [
    { name: "two_of_finance", when: above(twoPersonLimitMinor), ask: { roles: ["finance"], quorum: 2 } },
    { name: "over_limit", when: above(managerLimitMinor), ask: { roles: ["manager"] } },
  ];
}

async function sendRefund(desk: Desk, input: SendRefundInput, context: ToolContext): Promise<SendRefundOutput> {
  const mismatch = await findMismatch(desk, input, context);
  const refund =
    mismatch === null ? await pay(desk, input, context) : await findPaidBefore(desk, { ...input, mismatch }, context);
  const settled = await record(desk, { order_id: input.order_id, refund }, context);
  if (settled.status === null) {
    throw unknownOutcome("refund_status_unknown", `The refund ${refund.refundId} is "${refund.status}".`);
  }
  if (settled.status === "failed") {
    const { code, message } = failureOf(refund);
    throw refusal(code, message);
  }
  return show(input.order_id, refund, settled.status);
}

async function lookUpRefund(
  desk: Desk,
  input: SendRefundInput,
  context: ToolContext,
): Promise<LookUp<SendRefundOutput>> {
  const refund = await asking(desk.payments.findRefund(toWanted(input, context), context));
  // What failed moved no money: under the same key the provider repeats its first answer, and the status is read anew.
  if (refund === null) return { answer: "did_not_happen" };
  const { status } = await record(desk, { order_id: input.order_id, refund }, context);
  if (status === null) return { answer: "unknown" };
  if (status === "failed") return { answer: "did_not_happen" };
  return { answer: "happened", output: show(input.order_id, refund, status) };
}

/** What has become of a refund that was accepted as pending. */
async function pollRefund(
  desk: Desk,
  input: SendRefundInput,
  context: ToolContext,
): Promise<Settled<SendRefundOutput>> {
  const refund = await asking(desk.payments.findRefund(toWanted(input, context), context));
  if (refund === null) return { answer: "still_pending" };
  const { status } = await record(desk, { order_id: input.order_id, refund }, context);
  if (status === "failed") return { answer: "failed", ...failureOf(refund) };
  if (status === "succeeded") return { answer: "settled", output: show(input.order_id, refund, status) };
  return { answer: "still_pending" };
}

/** How a refund is spoken of whose money did not move. */
function failureOf({ refundId, status }: ProviderRefund): { readonly code: string; readonly message: string } {
  return { code: REFUND_FAILED, message: `The provider could not pay the refund ${refundId} out (${status}).` };
}

async function findMismatch(
  { orders, policy, now }: Desk,
  input: SendRefundInput,
  { operationId }: ToolContext,
): Promise<RefundMismatch | null> {
  const order = await readingOrders(readOrder(orders.pool, input.order_id));
  if (order === null) throw refusal("no_such_order", `There is no order ${input.order_id}.`);
  return findRefundMismatch(order, input, { operationId, policy, now: now() });
}

async function pay({ payments }: Desk, input: SendRefundInput, context: ToolContext): Promise<ProviderRefund> {
  const { amount_minor: amountMinor, reason } = input;
  const wanted = toWanted(input, context);
  const refund = await asking(payments.sendRefund({ ...wanted, amountMinor, reason }, context));
  if (!refund.replayed) return refund;
  // A replayed answer has the status of its first time.
  try {
    return (await payments.findRefund(wanted, context)) ?? refund;
  } catch (cause) {
    throw unknownOutcome("refund_status_unknown", `The refund ${refund.refundId} could not be looked up.`, cause);
  }
}

/** Before a refusal: an earlier attempt of this very refund may have paid it while it still fitted. */
async function findPaidBefore(
  { payments }: Desk,
  { mismatch, ...input }: SendRefundInput & { readonly mismatch: RefundMismatch },
  context: ToolContext,
): Promise<ProviderRefund> {
  const { code, message, lasting } = mismatch;
  const paid = lasting ? null : await asking(payments.findRefund(toWanted(input, context), context));
  if (paid === null) throw refusal(code, message);
  return paid;
}

type RecordedStatus = "succeeded" | "pending" | "failed";

/** Writes a refund that the provider has into the orders; a status that nobody knows is not written. */
async function record(
  { orders }: Desk,
  { order_id: orderId, refund }: { readonly order_id: string; readonly refund: ProviderRefund },
  { operationId }: ToolContext,
): Promise<{ readonly status: RecordedStatus | null }> {
  const status = readStatus(refund.status);
  if (status === null) return { status };
  const { refundId, amountMinor } = refund;
  let recorded: Awaited<ReturnType<typeof recordRefund>>;
  try {
    recorded = await recordRefund(orders.pool, { operationId, orderId, refundId, amountMinor, status });
  } catch (cause) {
    throw unknownOutcome("refund_not_recorded", `The refund ${refundId} could not be recorded.`, cause);
  }
  if (recorded === "different") {
    throw unknownOutcome("refund_differs", `The orders have another refund than ${refundId} for this operation.`);
  }
  return { status };
}

/** `requires_action` is accepted as well: the customer still has to give an account. */
function readStatus(status: string): RecordedStatus | null {
  switch (status) {
    case "succeeded":
    case "pending":
      return status;
    case "requires_action":
      return "pending";
    case "failed":
    case "canceled":
      return "failed";
    default:
      return null;
  }
}

function toWanted(input: SendRefundInput, { operationId }: ToolContext) {
  return { paymentIntent: input.payment_intent, operationId };
}

function show(order_id: string, refund: ProviderRefund, status: SendRefundOutput["status"]): SendRefundOutput {
  const { refundId: refund_id, amountMinor: amount_minor, currency } = refund;
  return { order_id, refund_id, status, amount_minor, currency };
}
