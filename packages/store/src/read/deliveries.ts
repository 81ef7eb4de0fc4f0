import type { Status } from "@holdpoint/core";
import { and, asc, desc, eq, inArray, lt, sql } from "drizzle-orm";
import type { Store } from "../db.ts";
import { deliveries, deliveryChanges, webhooks } from "../schema-deliveries.ts";
import { type Webhook, webhookOf } from "../webhook.ts";
import { idCursor, msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";

export type DeliveryState = "pending" | "delivered" | "dead" | "dismissed";

/** What a webhook is told of one version of a run, and what became of that. */
export interface DeliveryView {
  readonly id: string;
  readonly webhook: string;
  readonly runId: string;
  readonly version: number;
  readonly status: Status;
  readonly outcome: string | null;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly nextAtMs: number | null;
  readonly lastStatus: number | null;
  readonly lastErrorCode: string | null;
  readonly createdAtMs: number;
  readonly deliveredAtMs: number | null;
  /** What people did to it, the latest first. */
  readonly changes: readonly DeliveryChangeView[];
}

export interface DeliveryChangeView {
  readonly change: "retried" | "dismissed";
  readonly by: string;
  readonly note: string | null;
  readonly atMs: number;
}

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  /** A webhook's name; of those that had it, all. */
  readonly webhook?: string | undefined;
  readonly runId?: string | undefined;
}

/** Most changes of one delivery that are shown. */
const CHANGES_SHOWN = 5;

/** What a webhook is shown by: not what signs. */
const SHOWN = {
  id: webhooks.id,
  name: webhooks.name,
  url: webhooks.url,
  policy: webhooks.policy,
  agentName: webhooks.agentName,
  createdAt: webhooks.createdAt,
  createdBy: webhooks.createdBy,
  changedAt: webhooks.changedAt,
  changedBy: webhooks.changedBy,
  disabledAt: webhooks.disabledAt,
  disabledBy: webhooks.disabledBy,
};

/** The webhooks, those that were disabled included, by their age. What signs is not read. */
export async function listWebhooks(store: Store, page: PageRequest): Promise<Page<Webhook>> {
  const after = page.after === null ? null : idCursor(page.after);
  const rows = await reader(store)
    .select(SHOWN)
    .from(webhooks)
    .where(
      and(eq(webhooks.tenantId, store.tenantId), after === null ? undefined : sql`${webhooks.id} > ${after}::uuid`),
    )
    .orderBy(asc(webhooks.id))
    .limit(rowsFor(page));
  return pageOf(rows.map(webhookOf), page, ({ id }) => id);
}

/** Deliveries, the latest first. */
export async function listDeliveries(
  store: Store,
  filter: DeliveryFilter,
  page: PageRequest,
): Promise<Page<DeliveryView>> {
  const after = page.after === null ? null : idCursor(page.after);
  const rows = await selectDeliveries(store)
    .where(
      and(
        eq(deliveries.tenantId, store.tenantId),
        filter.state === undefined ? undefined : eq(deliveries.state, filter.state),
        filter.webhook === undefined ? undefined : eq(webhooks.name, filter.webhook),
        filter.runId === undefined ? undefined : eq(deliveries.runId, filter.runId),
        after === null ? undefined : lt(deliveries.id, after),
      ),
    )
    .orderBy(desc(deliveries.id))
    .limit(rowsFor(page));
  return pageOf(await viewsOf(store, rows), page, ({ id }) => id);
}

/** One delivery; null if there is none of this id. */
export async function findDelivery(store: Store, id: string): Promise<DeliveryView | null> {
  const rows = await selectDeliveries(store)
    .where(and(eq(deliveries.tenantId, store.tenantId), eq(deliveries.id, id)))
    .limit(1);
  return (await viewsOf(store, rows))[0] ?? null;
}

type Row = { readonly delivery: typeof deliveries.$inferSelect; readonly webhook: string };

function selectDeliveries(store: Store) {
  return reader(store)
    .select({ delivery: deliveries, webhook: webhooks.name })
    .from(deliveries)
    .innerJoin(webhooks, eq(webhooks.id, deliveries.webhookId));
}

async function viewsOf(store: Store, rows: readonly Row[]): Promise<readonly DeliveryView[]> {
  const ids = rows.map(({ delivery }) => delivery.id);
  const changes = ids.length === 0 ? [] : await changesOf(store, ids);
  const byDelivery = Map.groupBy(changes, ({ deliveryId }) => deliveryId);
  return rows.map(({ delivery, webhook }) => {
    const {
      nextAt,
      createdAt,
      deliveredAt,
      tenantId: _tenant,
      webhookId: _webhook,
      notice: _notice,
      ...row
    } = delivery;
    return {
      ...row,
      webhook,
      nextAtMs: msOf(nextAt),
      createdAtMs: msOf(createdAt),
      deliveredAtMs: msOf(deliveredAt),
      changes: (byDelivery.get(delivery.id) ?? []).map(({ change, actorId, note, at }) => ({
        change,
        by: actorId,
        note,
        atMs: msOf(at),
      })),
    };
  });
}

/** The latest changes of each of these, a few. */
function changesOf(store: Store, ids: readonly string[]) {
  const { deliveryId, change, actorId, note, at, id } = deliveryChanges;
  const latest = reader(store)
    .select({
      deliveryId,
      change,
      actorId,
      note,
      at,
      id,
      place: sql<number>`row_number() over (partition by ${deliveryId} order by ${id} desc)`.as("place"),
    })
    .from(deliveryChanges)
    .where(inArray(deliveryId, [...ids]))
    .as("latest");
  return reader(store).select().from(latest).where(sql`${latest.place} <= ${CHANGES_SHOWN}`).orderBy(desc(latest.id));
}
