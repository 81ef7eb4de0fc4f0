import { createHash } from "node:crypto";
import pg from "pg";

/** The tenant that everything belongs to until there are more. */
export const DEFAULT_TENANT = "00000000-0000-7000-8000-000000000000";

export interface StoreOptions {
  readonly url: string;
  /** Connections of the shared pool. */
  readonly maxConnections?: number;
  /**
   * The url leads to a pooler in transaction mode: statements are sent unnamed, and no setting is made on a connection
   * (give the role `lock_timeout`, `statement_timeout` and `jit = off` instead).
   */
  readonly pooled?: boolean;
  /**
   * Whether it sends the store's own statements and nothing else, as a worker does: none of them is planned better for
   * knowing its values, and each would be planned five times on every connection. Not where lists are read.
   */
  readonly plansOnce?: boolean;
  readonly tenantId?: string;
  /** The name under which `pg_stat_activity` shows the connections. */
  readonly applicationName?: string;
}

/** An open store. Every verb takes it as its first argument. */
export interface Store extends AsyncDisposable {
  readonly pool: pg.Pool;
  /** One connection of its own for lease renewals, so that work never keeps a heartbeat waiting. */
  readonly leasePool: pg.Pool;
  readonly tenantId: string;
  readonly named: boolean;
}

/** A statement of constant text; it can be sent named or unnamed. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A plan is made once and used for thousands of rows of a few microseconds each: compiling it costs more than it ever saves. */
const NO_JIT = "-c jit=off";
const PLAN_ONCE = "-c plan_cache_mode=force_generic_plan";
const LOCK_TIMEOUT_MS = 1_000;
const STATEMENT_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Opens the store's pools; the first statement connects. */
export function openStore(options: StoreOptions): Store {
  const planning = options.plansOnce === true ? `${NO_JIT} ${PLAN_ONCE}` : NO_JIT;
  const limits = { lock_timeout: LOCK_TIMEOUT_MS, statement_timeout: STATEMENT_TIMEOUT_MS, options: planning };
  const shared: pg.PoolConfig = {
    connectionString: options.url,
    application_name: options.applicationName ?? "holdpoint",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
    ...(options.pooled === true ? {} : limits),
  };
  const pool = new pg.Pool({ ...shared, max: options.maxConnections ?? 8 });
  const leasePool = new pg.Pool({ ...shared, max: 1, query_timeout: CONNECT_TIMEOUT_MS });
  // A pool drops a broken idle connection by itself and opens a new one; the statement that needs it reports a failure.
  for (const each of [pool, leasePool]) {
    each.on("error", () => undefined);
    // A pool listens to those that are idle, and a statement to its own: in between, the server's word that it ends a
    // connection would end this process.
    each.on("connect", (client) => client.on("error", () => undefined));
  }
  return {
    pool,
    leasePool,
    tenantId: options.tenantId ?? DEFAULT_TENANT,
    named: options.pooled !== true,
    async [Symbol.asyncDispose]() {
      await Promise.all([pool.end(), leasePool.end()]);
    },
  };
}

/** A statement named by its verb and its text, so that two versions of the product can share a server connection. */
export function statement(verb: string, text: string): Statement {
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return { name: `holdpoint_${verb}_${digest}`, text };
}
