import { readdir, readFile } from "node:fs/promises";
import { createTestDatabase } from "@holdpoint/testkit";
import pg from "pg";

const MIGRATIONS = new URL("../migrations/", import.meta.url);

/** The tenant that there is from the start. */
export const TENANT = "00000000-0000-7000-8000-000000000000";

/**
 * A database with the schema as it was before a migration.
 *
 * @param next  the migration's file; it and those after it are applied by `migrateOn`.
 */
export async function anOldDatabase(next: string) {
  const names = (await readdir(MIGRATIONS)).filter((name) => name.endsWith(".sql")).toSorted();
  const place = names.indexOf(next);
  if (place < 0) throw new RangeError(`There is no migration ${next}`);
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const apply = async (files: readonly string[]): Promise<void> => {
    for (const name of files) await client.query(await readFile(new URL(name, MIGRATIONS), "utf8"));
  };
  await client.query("drop schema holdpoint cascade");
  await apply(names.slice(0, place));
  return {
    url: database.url,
    client,
    migrateOn: () => apply(names.slice(place)),
    async [Symbol.asyncDispose](): Promise<void> {
      await client.end();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Inserts a row of the tenant; what it does not name is as the schema has it. */
export async function insertRow(
  client: pg.Client,
  table: string,
  row: Readonly<Record<string, unknown>>,
): Promise<void> {
  const whole = { tenant_id: TENANT, ...row };
  const columns = Object.keys(whole).join(", ");
  await client.query(
    `insert into holdpoint.${table} (${columns})
     select ${columns} from jsonb_populate_record(null::holdpoint.${table}, $1)`,
    [JSON.stringify(whole)],
  );
}
