import { listSeedOrders, type SeedOrder } from "./seed-data.ts";

const PARALLEL = 8;
const REQUEST_MS = 5_000;

/**
 * Makes the seed's payments known to a running payment sandbox; again changes nothing.
 *
 * @throws {Error} the sandbox cannot be reached, or knows one of the payments with another amount.
 */
export async function seedSandbox(url: string, signal: AbortSignal): Promise<{ readonly payments: number }> {
  const orders = listSeedOrders();
  for (let from = 0; from < orders.length; from += PARALLEL) {
    await Promise.all(orders.slice(from, from + PARALLEL).map((order) => seedPayment(url, order, signal)));
  }
  return { payments: orders.length };
}

async function seedPayment(url: string, order: SeedOrder, signal: AbortSignal): Promise<void> {
  const response = await fetch(new URL("/v1/test/payment_intents", url), {
    method: "POST",
    headers: { authorization: "Bearer sk_test_seed" },
    body: new URLSearchParams({
      id: order.paymentIntent,
      amount: String(order.totalMinor),
      amount_refunded: String(order.refundedMinor),
      currency: order.currency,
      "metadata[order_id]": order.id,
    }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the payment sandbox refused ${order.paymentIntent} (${response.status}): ${text}`);
}
