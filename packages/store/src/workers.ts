import type { AgentRef } from "@holdpoint/core";
import type pg from "pg";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** One process incarnation that may own runs. */
export interface WorkerRegistration {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly agents: readonly AgentRef[];
  readonly slots: number;
  readonly leaseMs: number;
}

/** Adds a worker with a lease from now on; its id is new for every incarnation. */
export async function registerWorker(store: Store, worker: WorkerRegistration): Promise<void> {
  await execute(store, REGISTER, [
    store.tenantId,
    worker.id,
    worker.host,
    worker.pid,
    JSON.stringify(worker.agents),
    worker.slots,
    worker.leaseMs,
  ]);
}

export type Renewal =
  /** Runs of this worker whose stop or pause request is newer than their claim. */
  | { readonly renewed: true; readonly stop: readonly string[] }
  /** Somebody has declared this worker gone: it starts nothing more. */
  | { readonly renewed: false };

/**
 * Renews a worker's lease, on a connection of its own. The answer carries the stop list.
 *
 * @throws when the database cannot be reached: the lease that was confirmed last goes on running out.
 */
export async function renewLease(store: Store, workerId: string, leaseMs: number): Promise<Renewal> {
  const { name, text } = RENEW;
  const config: pg.QueryConfig = {
    text,
    values: [store.tenantId, workerId, leaseMs],
    ...(store.named ? { name } : {}),
  };
  const { rows } = await store.leasePool.query<{ stop: readonly string[] }>(config);
  const [row] = rows;
  return row === undefined ? { renewed: false } : { renewed: true, stop: row.stop };
}

/** A worker that ends by itself gives its lease back, so that nobody waits for it to run out. */
export async function retireWorker(store: Store, workerId: string): Promise<void> {
  await execute(store, GONE, [store.tenantId, [workerId], "retired"]);
}

/** Declares a worker gone whose process is known to have ended. Set once, never cleared. */
export async function markExited(store: Store, workerId: string): Promise<void> {
  await execute(store, GONE, [store.tenantId, [workerId], "process_exited"]);
}

/**
 * Declares the workers gone whose lease, and the grace after it, are over. A renewal that arrives meanwhile wins: the
 * condition stands on the row that is updated.
 *
 * @returns the ids of those that are gone since this call.
 */
export async function markGone(store: Store, graceMs: number, limit: number): Promise<readonly string[]> {
  const rows = await execute<{ id: string }>(store, EXPIRE, [store.tenantId, graceMs, limit]);
  return rows.map(({ id }) => id);
}

const REGISTER = statement(
  "register_worker",
  `insert into holdpoint.workers (tenant_id, id, host, pid, agents, slots, started_at, lease_until)
   select $1::uuid, $2::uuid, $3, $4::int, $5::jsonb, $6::int, c.at, c.at + $7::float8 * interval '1 millisecond'
   from (select holdpoint.clock() as at) c`,
);

const RENEW = statement(
  "renew_lease",
  `with renewed as (
     update holdpoint.workers set lease_until = holdpoint.clock() + $3::float8 * interval '1 millisecond'
     where tenant_id = $1::uuid and id = $2::uuid and gone_at is null
     returning id
   )
   select coalesce((
     select jsonb_agg(r.id) from holdpoint.runs r
     where r.owner = w.id and (r.cancel_requested_at is not null or r.pause_requested_at is not null)
       and r.status in ('running', 'cancelling')
   ), '[]') as stop
   from renewed w`,
);

const GONE = statement(
  "worker_gone",
  `update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = $3
   where tenant_id = $1::uuid and id = any($2::uuid[]) and gone_at is null`,
);

const EXPIRE = statement(
  "workers_expired",
  `with due as materialized (
     select id from holdpoint.workers
     where gone_at is null and tenant_id = $1::uuid
       and lease_until < holdpoint.now() - $2::float8 * interval '1 millisecond'
     order by id limit $3::int for update skip locked
   )
   update holdpoint.workers w set gone_at = holdpoint.clock(), gone_reason = 'lease_expired'
   from due where w.id = due.id and w.gone_at is null
     and w.lease_until < holdpoint.clock() - $2::float8 * interval '1 millisecond'
   returning w.id`,
);
