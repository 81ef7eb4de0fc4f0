import type { Store } from "../src/index.ts";

/** Somebody has looked at the leases for a whole day without a gap, up to this moment of the database's clock. */
export async function watched(store: Store, graceMs = 5_000): Promise<void> {
  await store.pool.query(WATCHED, [graceMs]);
}

const WATCHED = `insert into holdpoint.lease_watch (tenant_id, since, seen_at, seen_by, grace_ms)
  select id, holdpoint.clock() - interval '400 days', holdpoint.clock(), 'earlier', $1 from holdpoint.tenants
  on conflict (tenant_id) do update set since = excluded.since, seen_at = excluded.seen_at, grace_ms = excluded.grace_ms`;
