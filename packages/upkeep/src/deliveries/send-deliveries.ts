import { setTimeout as sleep } from "node:timers/promises";
import { type ClaimedDelivery, claimDeliveries, dismissOfDisabled, recordSending, type Store } from "@holdpoint/store";
import { type Posted, postNotice } from "./post-notice.ts";
import { retryInMs } from "./retry-delay.ts";

/** What became of one attempt to send a delivery. */
export interface SentDelivery extends Posted, Pick<ClaimedDelivery, "attempt" | "webhookId"> {
  readonly deliveryId: string;
  readonly runId: string;
  /** Null: somebody else has settled it meanwhile. */
  readonly state: "delivered" | "pending" | "dead" | null;
}

export interface SenderOptions {
  readonly store: Store;
  /** How often it looks for what is due, in milliseconds. */
  readonly pollMs: number;
  readonly timeoutMs?: number;
  readonly onSent: (sent: SentDelivery) => void;
  /** What kept it from looking, or from recording what became of a delivery: that is sent again under the same key. */
  readonly onError: (error: unknown) => void;
}

const TIMEOUT_MS = 10_000;
/** Longer than an attempt and its record can take: a sender that has not reported by then is gone, or was. */
const LEASE_MS = 60_000;
/** Most that are under way at once; and of one webhook, so that a slow receiver delays no other. */
const AT_ONCE = 32;
const AT_ONCE_PER_WEBHOOK = 8;
const DISMISSED_AT_ONCE = 500;
/** Those that end together are looked after together. */
const GATHER_MS = 25;

/**
 * Sends what webhooks are to be told, again and again, until the signal; then what is under way is still ended, and
 * everything else stays due. Any number of processes may do this at once.
 */
export async function sendDeliveries(options: SenderOptions, stop: AbortSignal): Promise<void> {
  const underWay = new Map<Promise<void>, string>();
  while (!stop.aborted) {
    try {
      await dismissOfDisabled(options.store, DISMISSED_AT_ONCE);
      for (const delivery of await claim(options.store, [...underWay.values()])) {
        const sending = send(options, delivery).finally(() => underWay.delete(sending));
        underWay.set(sending, delivery.webhookId);
      }
    } catch (error) {
      options.onError(error);
    }
    await untilNextLook([...underWay.keys()], { pollMs: options.pollMs, stop });
  }
  await Promise.all(underWay.keys());
}

async function claim(store: Store, underWay: readonly string[]): Promise<readonly ClaimedDelivery[]> {
  const limit = AT_ONCE - underWay.length;
  if (limit <= 0) return [];
  const sending = new Map([...Map.groupBy(underWay, (webhookId) => webhookId)].map(([id, each]) => [id, each.length]));
  return claimDeliveries(store, { limit, perWebhook: AT_ONCE_PER_WEBHOOK, sending, leaseMs: LEASE_MS });
}

async function send(
  { store, timeoutMs = TIMEOUT_MS, onSent, onError }: SenderOptions,
  delivery: ClaimedDelivery,
): Promise<void> {
  const { id: deliveryId, webhookId, attempt, notice } = delivery;
  try {
    const posted = await postNotice(delivery, timeoutMs);
    const again = posted.errorCode === null ? null : retryInMs(attempt);
    const state = await recordSending(store, { deliveryId, attempt, ...posted, retryInMs: again });
    onSent({ deliveryId, webhookId, runId: notice.runId, attempt, ...posted, state });
  } catch (error) {
    onError(error);
  }
}

/** Waits for the time to look again, or until one of these has ended: then the next of its run may be due. */
async function untilNextLook(
  underWay: readonly Promise<void>[],
  { pollMs, stop }: { readonly pollMs: number; readonly stop: AbortSignal },
): Promise<void> {
  const looked = new AbortController();
  const signal = AbortSignal.any([stop, looked.signal]);
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined);
  await Promise.race([pause(pollMs), ...underWay.map((sending) => sending.then(() => pause(GATHER_MS)))]);
  looked.abort();
}
