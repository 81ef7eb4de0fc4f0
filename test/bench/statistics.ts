import type pg from "pg";

/**
 * Makes Postgres count now what a pool's connections have done, which it does some time later by itself.
 *
 * @returns how many statements that took.
 */
export async function flushStatistics(pools: readonly pg.Pool[]): Promise<number> {
  const flushed = await Promise.all(pools.map(flushPool));
  return flushed.reduce((sum, each) => sum + each, 0);
}

/**
 * It reads a table, since a connection that has read none since its last flush does not flush, and its last transaction, this
 * one, would be missing in the count.
 */
const FLUSH = "select pg_stat_force_next_flush() from pg_class limit 1";

async function flushPool(pool: pg.Pool): Promise<number> {
  // All at once, so that each connection of the pool comes by.
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  await Promise.all(clients.map((client) => client.query(FLUSH)));
  for (const client of clients) client.release();
  return clients.length;
}
