import type { Pool } from "pg";
import { datesOf, listSeedOrders, SEED_POLICY } from "./seed-data.ts";

/**
 * Writes the seed where it is missing; what is there stays as it is. One statement, safe from several processes at once.
 *
 * @param now  the orders' dates count back from here.
 * @returns how many orders were new.
 */
export async function seedOrders(pool: Pool, now: Date): Promise<{ readonly added: number }> {
  const orders = listSeedOrders().map((order) => ({
    id: order.id,
    customer_id: order.customer.id,
    customer_name: order.customer.name,
    customer_email: order.customer.email,
    payment_intent: order.paymentIntent,
    currency: order.currency,
    total_minor: order.totalMinor,
    refunded_minor: order.refundedMinor,
    ...datesOf(order, now),
    items: order.items,
  }));
  const { rows } = await pool.query<{ added: number }>(SEED, [
    JSON.stringify(orders),
    SEED_POLICY.windowDays,
    String(SEED_POLICY.managerLimitMinor),
    String(SEED_POLICY.twoPersonLimitMinor),
  ]);
  return { added: rows[0]?.added ?? 0 };
}

/** Every insert goes in the order of its key, so that two seeders wait for each other and never in a circle. */
const SEED = `
  with seed as (
    select * from jsonb_to_recordset($1::jsonb) as s (
      id text, customer_id text, customer_name text, customer_email text, payment_intent text, currency text,
      total_minor bigint, refunded_minor bigint, ordered_at timestamptz, delivered_at timestamptz, items jsonb)
  ), rules as (
    insert into refund_desk.policy (window_days, manager_limit_minor, two_person_limit_minor)
    values ($2, $3, $4) on conflict do nothing
  ), people as (
    insert into refund_desk.customers (id, name, email)
    select distinct customer_id, customer_name, customer_email from seed order by customer_id on conflict do nothing
  ), added as (
    insert into refund_desk.orders
      (id, customer_id, payment_intent, currency, total_minor, ordered_at, delivered_at, items)
    select id, customer_id, payment_intent, currency, total_minor, ordered_at, delivered_at, items
    from seed order by id on conflict do nothing returning id
  ), given_back as (
    insert into refund_desk.refunds (operation_id, order_id, refund_id, amount_minor, status, recorded_at)
    select 'seed_' || id, id, 're_seed_' || id, refunded_minor, 'succeeded', coalesce(delivered_at, ordered_at)
    from seed where refunded_minor > 0 order by id on conflict do nothing
  )
  select count(*)::int as added from added`;
