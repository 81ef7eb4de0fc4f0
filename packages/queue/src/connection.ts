import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from "bullmq";
import pg from "pg";
import { within } from "./time-limit.ts";

/** Where the queue lives. `schema` (default `holdpoint_queue`) is for the queue's tables alone. */
export type QueueConnection =
  | { readonly kind: "postgres"; readonly url: string; readonly schema?: string }
  | { readonly kind: "redis"; readonly url: string };

type PostgresConnection = Extract<QueueConnection, { kind: "postgres" }>;

/** How patient a connection is: a publisher's caller waits for it, a consumer's loop does not mind. */
export interface Patience {
  readonly connectMs: number;
  readonly commandMs: number;
}

const CONNECT_LIMIT_MS = 3_000;
const MIGRATION_LIMIT_MS = 60_000;
const MAX_RECONNECT_DELAY_MS = 1_000;
const KEEP_ALIVE_MS = 10_000;
/** Options of the pg pool that BullMQ builds for one queue. */
export function postgresOptions(connection: PostgresConnection, patience: Patience) {
  // A connection string beats the options beside it, and BullMQ pins its schema through `options`.
  const url = new URL(connection.url);
  const options = url.searchParams.get("options");
  url.searchParams.delete("options");
  return {
    connectionString: url.href,
    ...(options === null ? {} : { options }),
    schema: schemaOf(connection),
    max: 2,
    application_name: "holdpoint-queue",
    connectionTimeoutMillis: patience.connectMs,
    query_timeout: patience.commandMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  };
}

/** A publisher's Redis connection: fails at once while the server is away, and never lets a command hang. */
export function redisPublisherOptions(url: string, patience: Patience) {
  return {
    url,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: patience.commandMs,
    connectTimeout: patience.connectMs,
    keepAlive: KEEP_ALIVE_MS,
    retryStrategy,
    // After a failover the old primary answers READONLY on a connection that looks healthy.
    reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  };
}

/** A consumer's Redis connection: its blocking fetch may take as long as it likes (the loop watches it). */
export function redisConsumerOptions(url: string, patience: Patience) {
  return {
    url,
    maxRetriesPerRequest: null,
    connectTimeout: patience.connectMs,
    keepAlive: KEEP_ALIVE_MS,
    retryStrategy,
  };
}

/**
 * Creates or updates the queue's tables; on Redis there is nothing to do. Safe when several processes do it at once,
 * and only reads when the tables are up to date (so the runtime's role needs no right to create them then).
 *
 * @throws {Error} the server can't be reached, refuses, or its tables are of a newer major version of BullMQ.
 */
export async function migrateQueue(connection: QueueConnection): Promise<void> {
  if (connection.kind === "redis") return;
  const {
    max: _,
    schema,
    ...config
  } = postgresOptions(connection, { connectMs: CONNECT_LIMIT_MS, commandMs: MIGRATION_LIMIT_MS });
  const client = new pg.Client(config);
  // A connection that breaks fails its query, too; without a listener it would end the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    if (await isUpToDate(client, schema)) return;
    await runMigrations(client, schema);
    await client.query(vacuumEarly(schema));
  } finally {
    await within(client.end(), { what: "Closing the migration's connection", limitMs: 1_000 }).catch(() => undefined);
  }
}

async function isUpToDate(client: pg.Client, schema: string): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client, schema)) >= LATEST_SCHEMA_VERSION;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

/**
 * Each wake-up leaves dead entries at the front of the indexes, where the next one is looked for. By default they stay
 * until they are a fifth of the table, so a long backlog would become slower and slower.
 */
function vacuumEarly(schema: string): string {
  const setting = "autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0";
  return ["job", "event"]
    .map((table) => `alter table ${pg.escapeIdentifier(schema)}.${table} set (${setting})`)
    .join("; ");
}

function schemaOf(connection: PostgresConnection): string {
  return connection.schema ?? "holdpoint_queue";
}

function retryStrategy(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 10), MAX_RECONNECT_DELAY_MS);
}
