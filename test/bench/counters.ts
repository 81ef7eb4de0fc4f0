import { cpuSecondsOf } from "./server-cpu.ts";
import type { Servers } from "./servers.ts";
import type { Arena } from "./stage.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** What the servers and the worker processes have used; a CPU time is null where the system does not tell it. */
export interface Counters {
  readonly transactions: number;
  /** Statements that clients have sent: each is a round trip. */
  readonly statements: number;
  readonly walBytes: number;
  /** Tables and indexes on disk. */
  readonly storedBytes: number;
  readonly nodeSeconds: number;
  readonly postgresSeconds: number | null;
  readonly redisSeconds: number | null;
}

/** What has been used until a moment. */
export interface Reading extends Counters {
  /** Statements that this reading itself needed in the arena's database. */
  readonly own: number;
}

/** Statements of a reading on the arena's own connection. */
const OWN = 2;

/** Reads what has been used until now by the database, the servers and the processes. */
export async function readCounters(
  servers: Servers,
  arena: Arena,
  workers: readonly WorkerProcess[],
): Promise<Reading> {
  // The log and the transactions are read last: what the other readings add to them must not count as the workers'.
  const stored = await arena.admin.query<{ bytes: number }>(STORED);
  await arena.admin.query("select pg_stat_force_next_flush()");
  const flushes = await Promise.all(workers.map((worker) => worker.flushStatistics()));
  const usages = await Promise.all(workers.map((worker) => worker.usage()));
  const postgresSeconds = cpuSecondsOf(servers.postgres.pid);
  const redisSeconds = servers.redis === null ? 0 : cpuSecondsOf(servers.redis.pid);
  const { rows } = await servers.admin.query<DatabaseRow>(DATABASE, [arena.database]);
  const [row] = rows;
  if (row === undefined) throw new Error(`The database ${arena.database} is gone`);
  return {
    transactions: row.transactions,
    statements: row.statements,
    walBytes: row.wal_bytes,
    storedBytes: stored.rows[0]?.bytes ?? 0,
    nodeSeconds: usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    postgresSeconds,
    redisSeconds,
    own: flushes.reduce((sum, each) => sum + each, OWN),
  };
}

/**
 * What was used between two readings, without what they needed themselves.
 *
 * @param others  Statements that the benchmark sent to the arena's database in between.
 */
export function subtract(later: Reading, earlier: Reading, others: number): Counters {
  const ours = later.own + others;
  const seconds = (key: "postgresSeconds" | "redisSeconds") => {
    const [to, from] = [later[key], earlier[key]];
    return to === null || from === null ? null : to - from;
  };
  return {
    transactions: later.transactions - earlier.transactions - ours,
    statements: later.statements - earlier.statements - ours,
    walBytes: later.walBytes - earlier.walBytes,
    storedBytes: later.storedBytes - earlier.storedBytes,
    nodeSeconds: later.nodeSeconds - earlier.nodeSeconds,
    postgresSeconds: seconds("postgresSeconds"),
    redisSeconds: seconds("redisSeconds"),
  };
}

interface DatabaseRow {
  readonly transactions: number;
  readonly statements: number;
  readonly wal_bytes: number;
}

const DATABASE = `
select d.xact_commit::float8 + d.xact_rollback::float8 as transactions,
  (select coalesce(sum(s.calls), 0)::float8 from pg_stat_statements(false) s where s.dbid = d.datid) as statements,
  (pg_current_wal_insert_lsn() - '0/0')::float8 as wal_bytes
from pg_stat_database d where d.datname = $1`;

const STORED = `
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 as bytes
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`;
