import type { Delivery, Webhook } from "@holdpoint/protocol";
import { type Webhook as StoredWebhook, showId } from "@holdpoint/store";
import type { DeliveryView } from "@holdpoint/store/read";
import { shown } from "./show.ts";

/** Who is told of runs; what signs is not part of it. */
export function showWebhook(webhook: StoredWebhook): Webhook {
  const { id, name, url, policy, agentName, createdBy, changedBy, disabled } = webhook;
  return {
    id: showId("webhook", id),
    name,
    url,
    policy,
    agent: agentName,
    createdAt: shown(webhook.createdAtMs),
    createdBy,
    changedAt: shown(webhook.changedAtMs),
    changedBy,
    disabled: disabled === null ? null : { at: shown(disabled.atMs), by: disabled.by },
  };
}

/** One notice, and what became of it. */
export function showDelivery(delivery: DeliveryView): Delivery {
  const { nextAtMs, createdAtMs, deliveredAtMs, changes, ...told } = delivery;
  return {
    ...told,
    id: showId("delivery", delivery.id),
    runId: showId("run", delivery.runId),
    nextAt: shown(nextAtMs),
    createdAt: shown(createdAtMs),
    deliveredAt: shown(deliveredAtMs),
    changes: changes.map(({ atMs, ...change }) => ({ ...change, at: shown(atMs) })),
  };
}
