import { defineTool, type LookUp, type Tool, type ToolContext } from "@holdpoint/runtime";
import { findRefundMismatch, needsManager, type RefundMismatch } from "../orders/judge-refund.ts";
import { readOrder } from "../orders/read-order.ts";
import { recordRefund } from "../orders/record-refund.ts";
import type { ProviderRefund } from "../payments.ts";
import { SendRefundInput } from "../tool-inputs.ts";
import type { SendRefundOutput } from "../tool-outputs.ts";
import type { Desk } from "./desk.ts";
import { asking, readingOrders, refusal, unknownOutcome } from "./tool-failures.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** Stripe may forget an idempotency key after 24 hours. */
const KEY_VALID_MS = DAY_MS;

const MANAGER = { rule: "over_limit", roles: ["manager"], deadlineMs: DAY_MS, onDeadline: "reject" } as const;

/**
 * `send_refund`: gives money back. The operation id is the idempotency key, and metadata that the look-up finds the
 * refund by. Above the policy's limit a manager approves first, which is decided by the frozen amount alone.
 */
export function sendRefundTool(desk: Desk): Tool {
  return defineTool({
    name: "send_refund",
    description:
      "Refunds an order, with the payment, amount and currency exactly as quote_refund gave them. Moves money. A manager may have to approve it first; the call then returns after the decision.",
    input: SendRefundInput,
    effect: { key: { validForMs: KEY_VALID_MS }, lookUp: {} },
    approval: ({ amount_minor }) => (needsManager(BigInt(amount_minor), desk.policy) ? MANAGER : null),
    execute: (input, context) => sendRefund(desk, input, context),
    externalRef: ({ refund_id }) => refund_id,
    reconcile: (input, context) => lookUpRefund(desk, input, context),
  });
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
    throw refusal("refund_failed", `The provider could not pay the refund ${refund.refundId} out (${refund.status}).`);
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
