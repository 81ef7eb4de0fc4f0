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

export interface LeaseRenewal {
  readonly workerId: string;
  readonly leaseMs: number;
  /** The worker's own clock as it sends this, in milliseconds since the epoch; only shown, to find clocks that are off. */
  readonly wallMs?: number;
}

/** What an operator wants of a worker that is to end: whether its supervisor may start another in its place. */
export interface DrainRequest {
  readonly stayDown: boolean;
}

export type Renewal =
  | {
      readonly renewed: true;
      /** Runs of this worker whose stop or pause request is newer than their claim. */
      readonly stop: readonly string[];
      /** An operator has asked it to drain; null while nobody has. */
      readonly drain: DrainRequest | null;
    }
  /** Somebody has declared this worker gone: it starts nothing more. */
  | { readonly renewed: false };

/**
 * Renews a worker's lease, on a connection of its own. The answer carries the stop list, and whether it is to drain.
 *
 * @throws when the database cannot be reached: the lease that was confirmed last goes on running out.
 */
export async function renewLease(store: Store, { workerId, leaseMs, wallMs }: LeaseRenewal): Promise<Renewal> {
  const { name, text } = RENEW;
  const config: pg.QueryConfig = {
    text,
    values: [store.tenantId, workerId, leaseMs, wallMs ?? null],
    ...(store.named ? { name } : {}),
  };
  const { rows } = await store.leasePool.query<{ stop: readonly string[]; drain: DrainRequest | null }>(config);
  const [row] = rows;
  return row === undefined ? { renewed: false } : { renewed: true, stop: row.stop, drain: row.drain };
}

/** A worker that ends by itself gives its lease back, so that nobody waits for it to run out. */
export async function retireWorker(store: Store, workerId: string): Promise<void> {
  await execute(store, GONE, [store.tenantId, [workerId], "retired"]);
}

/** Declares a worker gone whose process is known to have ended. Set once, never cleared. */
export async function markExited(store: Store, workerId: string): Promise<void> {
  await execute(store, GONE, [store.tenantId, [workerId], "process_exited"]);
}

const REGISTER = statement(
  "register_worker",
  `insert into holdpoint.workers (tenant_id, id, host, pid, agents, slots, started_at, lease_until, lease_ms)
   select $1::uuid, $2::uuid, $3, $4::int, $5::jsonb, $6::int, c.at, c.at + $7::float8 * interval '1 millisecond', $7::int
   from (select holdpoint.clock() as at) c`,
);

const RENEW = statement(
  "renew_lease",
  `with renewed as (
     update holdpoint.workers set lease_until = holdpoint.clock() + $3::float8 * interval '1 millisecond',
       lease_ms = $3::int,
       -- A clock may be off by years: what a column can hold is enough to say so.
       skew_ms = case when $4::float8 is null then skew_ms else least(greatest(
         $4::float8 - extract(epoch from holdpoint.clock())::float8 * 1000, -2147483648), 2147483647)::int end
     where tenant_id = $1::uuid and id = $2::uuid and gone_at is null
     returning id, drain_requested_at, stay_down
   )
   select coalesce((
     select jsonb_agg(r.id) from holdpoint.runs r
     where r.owner = w.id and (r.cancel_requested_at is not null or r.pause_requested_at is not null)
       and r.status in ('running', 'cancelling')
   ), '[]') as stop,
   case when w.drain_requested_at is not null then jsonb_build_object('stayDown', w.stay_down) end as drain
   from renewed w`,
);

const GONE = statement(
  "worker_gone",
  `update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = $3
   where tenant_id = $1::uuid and id = any($2::uuid[]) and gone_at is null`,
);
