import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { type NoticePolicy, SHOWN_COLUMNS, type Webhook, type WebhookRow, webhookOf } from "./webhook.ts";

/** Most webhooks that a tenant has at a time: each of them is a row for every end of a run. */
export const WEBHOOKS_LIMIT = 50;

export interface NewWebhook {
  readonly name: string;
  readonly url: string;
  /** Signs what is sent; at least 32 bytes. */
  readonly secret: string;
  readonly policy: NoticePolicy;
  readonly agentName: string | null;
  readonly by: string;
}

export type AddWebhookResult =
  | { readonly result: "added"; readonly webhook: Webhook }
  | { readonly result: "name_taken" }
  | { readonly result: "too_many" };

/** Registers who is told of what happens to runs from now on. */
export async function addWebhook(store: Store, webhook: NewWebhook): Promise<AddWebhookResult> {
  const { name, url, secret, policy, agentName, by } = webhook;
  try {
    const values = [store.tenantId, newId(), name, url, secret, policy, agentName, by, WEBHOOKS_LIMIT];
    const [row] = await execute<WebhookRow>(store, ADD, values);
    return row === undefined ? { result: "too_many" } : { result: "added", webhook: webhookOf(row) };
  } catch (error) {
    if (constraintOf(error) === "webhooks_name") return { result: "name_taken" };
    throw error;
  }
}

const ADD = statement(
  "add_webhook",
  `insert into holdpoint.webhooks as w (tenant_id, id, name, url, secret, policy, agent_name, created_at, created_by,
     changed_at, changed_by)
   select $1::uuid, $2::uuid, $3, $4, $5, $6, $7, at.at, $8, at.at, $8
   from (select holdpoint.clock() as at) as at
   where (select count(*) from holdpoint.webhooks o where o.tenant_id = $1::uuid and o.disabled_at is null) < $9::int
   returning ${SHOWN_COLUMNS}`,
);
