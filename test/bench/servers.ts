import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openWorkFolder, type RedisServer, startPostgres, startRedis } from "@holdpoint/embedded";
import pg from "pg";

/** The servers of a benchmark, which live no longer than it. */
export interface Servers extends AsyncDisposable {
  readonly postgres: { readonly url: string; readonly pid: number };
  /** Null where Redis is not asked for. */
  readonly redis: { readonly url: string; readonly pid: number } | null;
  /** A connection to the database `postgres`, for what is done about databases and read about the server. */
  readonly admin: pg.Client;
}

/**
 * What differs from Postgres' own defaults. Commits stay durable (`fsync`, `synchronous_commit`); the log is large enough
 * that no checkpoint falls into one trial and not into the other. Nor does autovacuum, which comes once a minute: trials
 * tell the planner themselves what the tables hold.
 */
const POSTGRES_SETTINGS = {
  shared_preload_libraries: "pg_stat_statements",
  max_connections: "300",
  max_wal_size: "4GB",
  checkpoint_timeout: "30min",
  autovacuum: "off",
} as const;

/** Starts Postgres, and Redis if it is asked for, in a temporary folder. */
export async function openServers({ withRedis }: { readonly withRedis: boolean }): Promise<Servers> {
  const stack = new AsyncDisposableStack();
  try {
    const folder = await openWorkFolder("bench");
    stack.defer(() => folder.remove());
    const { url, dataDir } = await startPostgres({ dataDir: folder.postgresDir, settings: POSTGRES_SETTINGS });
    const redis: RedisServer | null = withRedis ? await startRedis({ dir: join(folder.path, "redis") }) : null;
    if (redis !== null) stack.defer(() => redis.stop());
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    stack.defer(() => admin.end());
    await admin.query("create extension if not exists pg_stat_statements");
    return {
      postgres: { url, pid: pidOf(dataDir) },
      redis,
      admin,
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function pidOf(dataDir: string): number {
  return Number.parseInt(readFileSync(join(dataDir, "postmaster.pid"), "utf8"), 10);
}
