import type { Pool } from "pg";
import { datesOf, listSeedOrders } from "./seed-data.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** Short enough that what was refundable still is when it is refreshed: seeded deliveries are at most 13 days old. */
const STALE_AFTER_MS = 7 * DAY_MS;

/**
 * Moves the dates of the seed's orders so that they count back from `now` again, where they counted from more than 7
 * days before; without this a kept database would only have orders that are too late. An order that a refund of its
 * own touched, whatever became of it, keeps its dates. Safe from several processes at once.
 *
 * @returns how many orders were moved.
 */
export async function refreshOrders(pool: Pool, now: Date): Promise<{ readonly refreshed: number }> {
  const orders = listSeedOrders().map((order) => {
    const dates = datesOf(order, now);
    const stale_before = new Date(Date.parse(dates.ordered_at) - STALE_AFTER_MS).toISOString();
    return { id: order.id, ...dates, stale_before };
  });
  const { rows } = await pool.query<{ refreshed: number }>(REFRESH, [JSON.stringify(orders)]);
  return { refreshed: rows[0]?.refreshed ?? 0 };
}

/** The rows are locked in the order of their key, so that two never wait for each other in a circle. */
const REFRESH = `
  with seed as (
    select * from jsonb_to_recordset($1::jsonb) as s (
      id text, ordered_at timestamptz, delivered_at timestamptz, stale_before timestamptz)
  ), stale as (
    select o.id, seed.ordered_at, seed.delivered_at
    from refund_desk.orders o join seed on seed.id = o.id
    where o.ordered_at < seed.stale_before
      and not exists (select from refund_desk.refunds r where r.order_id = o.id and r.operation_id <> 'seed_' || o.id)
    order by o.id for update of o
  ), moved as (
    update refund_desk.orders o set ordered_at = stale.ordered_at, delivered_at = stale.delivered_at
    from stale where o.id = stale.id returning o.id
  ), given_back as (
    update refund_desk.refunds r set recorded_at = coalesce(stale.delivered_at, stale.ordered_at)
    from stale where r.operation_id = 'seed_' || stale.id
  )
  select count(*)::int as refreshed from moved`;
