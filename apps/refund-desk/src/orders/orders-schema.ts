import type { Pool } from "pg";

/** Processes that start at once take turns: "if not exists" alone fails when two create the same table. */
const ORDERS_LOCK = 7_412_001;

const SCHEMA = `
create schema if not exists refund_desk;
create table if not exists refund_desk.customers (
  id text primary key,
  name text not null,
  email text not null unique check (email = lower(email))
);
create table if not exists refund_desk.orders (
  id text primary key,
  customer_id text not null references refund_desk.customers,
  payment_intent text not null unique,
  currency text not null check (currency ~ '^[a-z]{3}$'),
  total_minor bigint not null check (total_minor > 0),
  ordered_at timestamptz not null,
  delivered_at timestamptz check (delivered_at >= ordered_at),
  items jsonb not null
);
create table if not exists refund_desk.policy (
  only_row boolean primary key default true check (only_row),
  window_days integer not null check (window_days > 0),
  manager_limit_minor bigint not null check (manager_limit_minor >= 0)
);
-- What was set up before this limit was there gets it, too.
alter table refund_desk.policy add column if not exists
  two_person_limit_minor bigint not null default 40000 check (two_person_limit_minor >= 0);
create table if not exists refund_desk.refunds (
  operation_id text primary key,
  order_id text not null references refund_desk.orders,
  refund_id text not null unique,
  amount_minor bigint not null check (amount_minor > 0),
  status text not null check (status in ('succeeded', 'pending', 'failed')),
  recorded_at timestamptz not null default now()
);
create index if not exists refunds_by_order on refund_desk.refunds (order_id);
create table if not exists refund_desk.notifications (
  operation_id text primary key,
  order_id text not null references refund_desk.orders,
  email text not null,
  template text not null,
  body text not null,
  recorded_at timestamptz not null default now()
);
`;

/** Creates the schema `refund_desk` where it is missing. Safe when several processes start at once. */
export async function createOrdersSchema(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    // Several statements in one simple query are one transaction; the lock ends with it.
    await client.query(`select pg_advisory_xact_lock(${ORDERS_LOCK}); ${SCHEMA}`);
  } finally {
    client.release();
  }
}
