import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { FOLLOWED } from "./follow-delivery.ts";
import { newId } from "./ids.ts";

export type ControlDeliveryResult =
  | { readonly result: "accepted" }
  /** Nothing to do: it is so already. */
  | { readonly result: "ignored" }
  | { readonly result: "delivered" }
  | { readonly result: "webhook_disabled" }
  | { readonly result: "not_found" };

interface Asked {
  readonly deliveryId: string;
  readonly by: string;
  readonly note: string | null;
}

/** Sends a delivery at once, with all of its attempts before it; whatever was told meanwhile. Not one that was delivered. */
export async function retryDelivery(store: Store, { deliveryId, by, note }: Asked): Promise<ControlDeliveryResult> {
  const rows = await execute(store, RETRY, [store.tenantId, deliveryId, newId(), by, note]);
  return rows.length > 0 ? { result: "accepted" } : explain(store, deliveryId, "retried");
}

/** Sends a delivery never again: somebody has seen that it was not told. */
export async function dismissDelivery(store: Store, { deliveryId, by, note }: Asked): Promise<ControlDeliveryResult> {
  const rows = await execute(store, DISMISS, [store.tenantId, deliveryId, newId(), by, note]);
  return rows.length > 0 ? { result: "accepted" } : explain(store, deliveryId, "dismissed");
}

async function explain(
  store: Store,
  deliveryId: string,
  change: "retried" | "dismissed",
): Promise<ControlDeliveryResult> {
  const [row] = await execute<{ state: string; disabled: boolean }>(store, FIND, [store.tenantId, deliveryId]);
  if (row === undefined) return { result: "not_found" };
  if (row.state === "delivered") return { result: "delivered" };
  return change === "retried" && row.disabled ? { result: "webhook_disabled" } : { result: "ignored" };
}

/** Dismisses what disabled webhooks have not been told, at most `limit`, in the name of whoever has disabled them. */
export async function dismissOfDisabled(store: Store, limit: number): Promise<number> {
  const rows = await execute<{ count: number }>(store, DISMISS_OF_DISABLED, [store.tenantId, limit]);
  return rows[0]?.count ?? 0;
}

const FIND = statement(
  "find_delivery_state",
  `select d.state, w.disabled_at is not null as disabled from holdpoint.deliveries d
   join holdpoint.webhooks w on w.id = d.webhook_id where d.tenant_id = $1::uuid and d.id = $2::uuid`,
);

const CHANGED = `
changed as (
  insert into holdpoint.delivery_changes (tenant_id, id, delivery_id, run_id, change, actor_id, note, at)
  select $1::uuid, $3::uuid, s.id, s.run_id, case when s.state = 'pending' then 'retried' else 'dismissed' end, $4, $5,
    holdpoint.clock()
  from settled s
)`;

const RETRY = statement(
  "retry_delivery",
  `with settled as (
     update holdpoint.deliveries d set state = 'pending', attempts = 0, next_at = holdpoint.clock()
     from holdpoint.webhooks w
     where d.tenant_id = $1::uuid and d.id = $2::uuid and d.state <> 'delivered'
       and w.id = d.webhook_id and w.disabled_at is null
     returning d.*
   ),
   ${CHANGED}
   select 1 from settled`,
);

const DISMISS = statement(
  "dismiss_delivery",
  `with settled as (
     update holdpoint.deliveries d set state = 'dismissed', next_at = null
     where d.tenant_id = $1::uuid and d.id = $2::uuid and d.state in ('pending', 'dead')
     returning d.*
   ),
   ${CHANGED},
   ${FOLLOWED}
   select 1 from settled`,
);

const DISMISS_OF_DISABLED = statement(
  "dismiss_deliveries_of_disabled",
  `with open as materialized (
     select d.id, w.disabled_by from holdpoint.webhooks w cross join lateral (
       select o.id from holdpoint.deliveries o where o.webhook_id = w.id and o.state = 'pending'
       union all
       select o.id from holdpoint.deliveries o where o.webhook_id = w.id and o.state = 'dead'
       limit $2::int) d
     where w.tenant_id = $1::uuid and w.disabled_at is not null limit $2::int
   ),
   locked as materialized (
     select d.id, o.disabled_by from holdpoint.deliveries d join open o on o.id = d.id
     order by d.id for update of d skip locked
   ),
   settled as (
     update holdpoint.deliveries d set state = 'dismissed', next_at = null
     from locked l where d.id = l.id and d.state in ('pending', 'dead')
     returning d.id, d.run_id, l.disabled_by
   ),
   changed as (
     insert into holdpoint.delivery_changes (tenant_id, id, delivery_id, run_id, change, actor_id, note, at)
     select $1::uuid, holdpoint.new_id(holdpoint.clock()), s.id, s.run_id, 'dismissed', s.disabled_by, 'webhook disabled',
       holdpoint.clock()
     from settled s
   )
   select count(*)::int as count from settled`,
);
