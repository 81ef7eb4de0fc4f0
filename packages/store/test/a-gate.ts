import { newId, openStore, type Store } from "../src/index.ts";
import { type Bench, reachesWait } from "./a-store.ts";

/**
 * A barrier between a statement's snapshot and its row locks, which no row lock can be for one that passes over locked
 * rows: a role whose view of `runs` goes through a policy, and the policy through a lock.
 */
export async function openGate(bench: Bench) {
  const role = `gate_${newId().replaceAll("-", "")}`;
  await bench.sql(`create role ${role} login`);
  await bench.sql(`grant usage on schema holdpoint to ${role}`);
  await bench.sql(`grant all on all tables in schema holdpoint to ${role}`);
  await bench.sql(`create or replace function holdpoint.gate() returns boolean language plpgsql volatile as
    $$ begin perform pg_advisory_xact_lock_shared(4711); return true; end $$`);
  await bench.sql(`create policy gate_${role} on holdpoint.runs to ${role} using (holdpoint.gate())`);
  await bench.sql("alter table holdpoint.runs enable row level security");
  const url = new URL(bench.url);
  url.username = role;
  const store = openStore({ url: url.href, maxConnections: 1 });
  let trips = 0;
  store.pool.on("acquire", () => {
    trips += 1;
  });
  return {
    /** How many statements the verb has sent. */
    trips: () => trips,
    async whileShut<T>(verb: (store: Store) => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
      const { rows } = await store.pool.query<{ pid: number }>("select pg_backend_pid() as pid");
      trips = 0;
      await bench.sql("select pg_advisory_lock(4711)");
      const late = verb(store);
      await reachesWait(bench.admin, rows[0]?.pid ?? 0, late);
      await meanwhile();
      await bench.sql("select pg_advisory_unlock(4711)");
      return await late;
    },
    async [Symbol.asyncDispose]() {
      await bench.sql("select pg_advisory_unlock_all()");
      await store[Symbol.asyncDispose]();
      await bench.sql("alter table holdpoint.runs disable row level security");
      await bench.sql(`drop owned by ${role}`);
      await bench.sql(`drop role ${role}`);
    },
  };
}
