import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type NoticePolicy, SHOWN_COLUMNS, type Webhook, type WebhookRow, webhookOf } from "./webhook.ts";

/**
 * Tells a webhook nothing any more, for good; its name is free again. What it has not been told yet is dismissed by the
 * sender (`dismissOfDisabled`), in the name of whoever does this.
 *
 * @returns null if there is no webhook of this name.
 */
export async function disableWebhook(
  store: Store,
  { name, by }: { readonly name: string; readonly by: string },
): Promise<Webhook | null> {
  const [row] = await execute<WebhookRow>(store, DISABLE, [store.tenantId, name, by]);
  return row === undefined ? null : webhookOf(row);
}

/**
 * Changes what a webhook is told of what happens from now on; what it is still to be told stays.
 *
 * @returns null if there is no webhook of this name.
 */
export async function changePolicy(
  store: Store,
  { name, policy, by }: { readonly name: string; readonly policy: NoticePolicy; readonly by: string },
): Promise<Webhook | null> {
  const [row] = await execute<WebhookRow>(store, CHANGE, [store.tenantId, name, by, policy]);
  return row === undefined ? null : webhookOf(row);
}

const DISABLE = statement(
  "disable_webhook",
  `update holdpoint.webhooks w set disabled_at = holdpoint.clock(), disabled_by = $3
   where w.tenant_id = $1::uuid and w.name = $2 and w.disabled_at is null
   returning ${SHOWN_COLUMNS}`,
);

const CHANGE = statement(
  "change_webhook_policy",
  `update holdpoint.webhooks w set policy = $4, changed_at = holdpoint.clock(), changed_by = $3
   where w.tenant_id = $1::uuid and w.name = $2 and w.disabled_at is null
   returning ${SHOWN_COLUMNS}`,
);
