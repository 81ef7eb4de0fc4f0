import { FindOrderOutput, QuoteRefundOutput, SendRefundOutput } from "./tool-outputs.ts";
import { failureOf, INVALID, type ToolResult } from "./tool-result.ts";

/** What a refund conversation came to. `step` is the tool that it ended at, `reason` a code. */
export type RefundOutcome =
  | { readonly kind: "succeeded" }
  | { readonly kind: "partial"; readonly reason: string }
  | { readonly kind: "blocked"; readonly step: string; readonly reason: string };

/**
 * Whether a reply without tool calls ends the work, judged by what the tools brought; `null` says the reply is a
 * question. Works for any model: it reads no markers in the text, only that something was said.
 *
 * - Money that moved decides first: told about it, `succeeded`; else, or while it is pending, `partial`.
 * - A refund that a person says is done, in words that do not say what was paid: `partial`.
 * - A refund that was not sent, a quote that refuses, an order of somebody else: `blocked`, once it was explained.
 * - Nothing looked up yet, no such order, or arguments to be corrected: a question.
 *
 * @param results  the run's tool results, oldest first.
 */
export function completeRefund(reply: string, results: readonly ToolResult[]): RefundOutcome | null {
  const paid = findPaid(results);
  if (paid !== null) return judgePaid(paid, results);
  const last = results.at(-1);
  if (last === undefined || reply.trim() === "") return null;
  if (results.some(isDoneRefund)) return { kind: "partial", reason: "refund_unreadable" };
  const reason = failureOf(last) ?? findRefusal(last);
  return reason === null || reason === INVALID ? null : { kind: "blocked", step: last.tool, reason };
}

/** What a refund brings home: what was paid last; null if nothing was. */
export function bringRefund(_: string, results: readonly ToolResult[]): SendRefundOutput | null {
  return findPaid(results);
}

function findPaid(results: readonly ToolResult[]): SendRefundOutput | null {
  for (const result of results.toReversed()) {
    if (!isDoneRefund(result)) continue;
    const parsed = SendRefundOutput.safeParse(result.output);
    if (parsed.success) return parsed.data;
  }
  return null;
}

function judgePaid(paid: SendRefundOutput, results: readonly ToolResult[]): RefundOutcome {
  const notified = results.some((result) => result.tool === "notify_customer" && failureOf(result) === null);
  if (!notified) return { kind: "partial", reason: "customer_not_notified" };
  return paid.status === "pending" ? { kind: "partial", reason: "refund_pending" } : { kind: "succeeded" };
}

function isDoneRefund(result: ToolResult): boolean {
  return result.tool === "send_refund" && failureOf(result) === null;
}

/** What a tool that did its work answered instead of a way on; a wrong number is only asked for again. */
function findRefusal({ tool, output }: ToolResult): string | null {
  if (tool === "quote_refund") {
    const quote = QuoteRefundOutput.safeParse(output);
    return quote.success && !quote.data.refundable ? quote.data.reason : null;
  }
  const order = tool === "find_order" ? FindOrderOutput.safeParse(output) : null;
  return order?.success && !order.data.found && order.data.reason === "not_yours" ? "not_yours" : null;
}
