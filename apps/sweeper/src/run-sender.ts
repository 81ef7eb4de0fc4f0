import type { Store } from "@holdpoint/store";
import { type SentDelivery, sendDeliveries } from "@holdpoint/upkeep";
import type { Logger } from "pino";

/**
 * Sends what webhooks are to be told until the signal, and ends what is under way. It is no sweep: a receiver may take its
 * time, and nothing that moves a run waits for it.
 */
export function runSender(
  { store, pollMs, log }: { readonly store: Store; readonly pollMs: number; readonly log: Logger },
  stop: AbortSignal,
): Promise<void> {
  return sendDeliveries(
    { store, pollMs, onSent: (sent) => logSent(log, sent), onError: (error) => logError(log, error) },
    stop,
  );
}

/** Neither address nor contents: the address may hold what only its receiver is to know. */
function logSent(log: Logger, { state, ...sent }: SentDelivery): void {
  if (state === "delivered") log.info({ event: "delivery.delivered", ...sent }, "delivery delivered");
  else if (state === "dead") log.error({ event: "delivery.dead", ...sent }, "delivery given up");
  else log.warn({ event: "delivery.failed", ...sent }, "delivery failed");
}

function logError(log: Logger, thrown: unknown): void {
  const { name, message } = thrown instanceof Error ? thrown : { name: "unknown", message: "" };
  log.error({ event: "sender.failed", error: name, message }, "sender failed");
}
