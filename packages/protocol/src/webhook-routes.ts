import { z } from "zod";
import { DeliveryId, RunId } from "./ids.ts";
import { pageOf, pageQuery } from "./page.ts";
import type { Route } from "./route.ts";
import { AddedWebhook, Delivery, DeliveryState, NewWebhook, NoticePolicy, Webhook, WebhookName } from "./webhook.ts";

const ofWebhook = z.strictObject({ name: WebhookName });
const ofDelivery = z.strictObject({ deliveryId: DeliveryId });
const note = z.string().trim().min(1).max(500).optional().describe("Why; kept with who did it");

/** Who is told over HTTP when runs end or change. */
export const WEBHOOK_ROUTES = {
  listWebhooks: {
    method: "GET",
    path: "/webhooks",
    summary: "Webhooks, the oldest first, those that were disabled included",
    access: "operator",
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Webhook),
  },
  addWebhook: {
    method: "POST",
    path: "/webhooks",
    summary: "Tell somebody over HTTP of what happens to runs from now on; the secret that signs it is shown this once",
    access: "operator",
    body: NewWebhook,
    status: 201,
    reply: AddedWebhook,
  },
  changeWebhookPolicy: {
    method: "POST",
    path: "/webhooks/:name/policy",
    summary: "Change what a webhook is told of what happens from now on",
    access: "operator",
    params: ofWebhook,
    body: z.strictObject({ policy: NoticePolicy }),
    status: 200,
    reply: Webhook,
  },
  disableWebhook: {
    method: "POST",
    path: "/webhooks/:name/disable",
    summary: "Tell a webhook nothing any more, for good; what it was still to be told is dismissed in your name",
    access: "operator",
    params: ofWebhook,
    status: 200,
    reply: Webhook,
  },
  listDeliveries: {
    method: "GET",
    path: "/deliveries",
    summary: "What webhooks were told, or are to be, the latest first",
    access: "operator",
    query: z.strictObject({
      ...pageQuery,
      state: DeliveryState.optional(),
      webhook: WebhookName.optional(),
      runId: RunId.optional(),
    }),
    status: 200,
    reply: pageOf(Delivery),
  },
  retryDelivery: {
    method: "POST",
    path: "/deliveries/:deliveryId/retry",
    summary: "Send a delivery at once, with all of its attempts before it",
    access: "operator",
    params: ofDelivery,
    body: z.strictObject({ note }),
    status: 200,
    reply: Delivery,
  },
  dismissDelivery: {
    method: "POST",
    path: "/deliveries/:deliveryId/dismiss",
    summary: "Send a delivery never again",
    access: "operator",
    params: ofDelivery,
    body: z.strictObject({ note }),
    status: 200,
    reply: Delivery,
  },
} as const satisfies Readonly<Record<string, Route>>;
