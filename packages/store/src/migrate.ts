import { fileURLToPath } from "node:url";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate as applyMigrations } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";

const FOLDER = fileURLToPath(new URL("../migrations", import.meta.url));

/** Any constant will do: whoever migrates this product takes the same lock. */
const LOCK = 4_846_513_709;

/**
 * Brings the schema `holdpoint` up to date. Safe when several processes start at once: one applies what is missing, the
 * others wait for it and find nothing to do.
 *
 * @throws when the server cannot be reached, is older than 15, or a migration fails (then nothing of it is kept).
 */
export async function migrate({ url }: { readonly url: string }): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: "holdpoint migrate" });
  await client.connect();
  try {
    await requireVersion(client);
    const db = drizzle(client);
    await db.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(${LOCK}::bigint)`);
      // The migrator's parameter type names a database; a transaction has all that it uses.
      await applyMigrations(tx as never, { migrationsFolder: FOLDER, migrationsSchema: "holdpoint" });
    });
  } finally {
    await client.end();
  }
}

const OLDEST_VERSION = 150_000;

async function requireVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; text: string }>(
    "select current_setting('server_version_num')::int as version, current_setting('server_version') as text",
  );
  const [row] = rows;
  if (row !== undefined && row.version < OLDEST_VERSION) {
    throw new Error(`This server is Postgres ${row.text}; Holdpoint needs 15 or newer.`);
  }
}
