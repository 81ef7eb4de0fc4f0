import { migrateQueue, openPublisher, type QueueConnection } from "@holdpoint/queue";
import { migrate } from "@holdpoint/store/migrate";
import pg from "pg";

const DATABASE = "holdpoint";
const REFUND_DESK_DATABASE = "refund_desk";
/** Any constant will do: every fleet on this server takes the same lock. */
const LOCK = 7_223_061_442;
const APPLICATION = "holdpoint fleet";

/** Where the fleet's data is. */
export interface FleetDatabase {
  readonly url: string;
  readonly refundDeskUrl: string;
}

/** The right to run the fleet of one Postgres server. It ends with our process, however that ends. */
export interface FleetLock extends AsyncDisposable {
  /** Lets those who come later know where this fleet's api is. */
  announce(apiUrl: string): Promise<void>;
}

/** Another fleet runs on the same data. */
export class FleetRunsError extends Error {
  readonly code = "FLEET_RUNS";
  constructor(holder: string) {
    super(`The fleet of this folder runs already: ${holder}. Stop it with Ctrl-C where it runs, then try again.`);
    this.name = "FleetRunsError";
  }
}

/**
 * Takes the lock, which is the server's own, so that nothing stays behind when a fleet is killed.
 *
 * @throws {FleetRunsError} somebody else has it.
 */
export async function takeFleetLock(serverUrl: string): Promise<FleetLock> {
  const client = new pg.Client({
    connectionString: serverUrl,
    application_name: `${APPLICATION}: process ${process.pid}`,
  });
  // The server is stopped by us, last of all; if it ends before, its parts say so.
  client.on("error", () => undefined);
  await client.connect();
  const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [LOCK]);
  if (rows[0]?.taken !== true) {
    const holder = await findHolder(client);
    await client.end();
    throw new FleetRunsError(holder);
  }
  return {
    async announce(apiUrl) {
      const name = `${APPLICATION}: process ${process.pid}, ${apiUrl}`;
      await client.query("select set_config('application_name', $1, false)", [name]);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

async function findHolder(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name from pg_stat_activity
     where application_name like $1 and pid <> pg_backend_pid() order by backend_start limit 1`,
    [`${APPLICATION}: %`],
  );
  return rows[0]?.name.slice(APPLICATION.length + 2) ?? "it is just starting or stopping";
}

/** The databases of a fleet on this server. */
export function fleetDatabase(serverUrl: string): FleetDatabase {
  return { url: databaseUrl(serverUrl, DATABASE), refundDeskUrl: databaseUrl(serverUrl, REFUND_DESK_DATABASE) };
}

/** Makes the fleet's database where it is missing and brings schema and queue up to date. */
export async function prepareDatabase(
  serverUrl: string,
  { database: { url }, redisUrl }: { readonly database: FleetDatabase; readonly redisUrl: string | null },
): Promise<void> {
  await createIfMissing(serverUrl);
  await migrate({ url });
  const queue: QueueConnection = redisUrl === null ? { kind: "postgres", url } : { kind: "redis", url: redisUrl };
  await migrateQueue(queue);
  if (redisUrl !== null) await requireRedis(redisUrl);
}

const REDIS_LIMIT_MS = 3_000;

async function requireRedis(url: string): Promise<void> {
  await using publisher = openPublisher({ kind: "redis", url }, { limitMs: REDIS_LIMIT_MS });
  if (await publisher.check()) return;
  const { host } = new URL(url);
  throw new Error(
    `Redis at ${host} (HOLDPOINT_REDIS_URL) takes no job and gives none back. Is it running? Without the variable the queue lives in Postgres.`,
  );
}

async function createIfMissing(serverUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query("select 1 from pg_database where datname = $1", [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  } finally {
    await client.end();
  }
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
