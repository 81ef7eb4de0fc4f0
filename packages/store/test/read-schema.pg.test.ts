import { createTestDatabase } from "@holdpoint/testkit";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import { expect, test } from "vitest";
import * as schema from "../src/schema.ts";

const COLUMNS = `
  select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required
  from pg_attribute a join pg_class c on c.oid = a.attrelid
  where c.relnamespace = 'holdpoint'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and a.attnum > 0 and not a.attisdropped and c.relname not like '\\_\\_drizzle%'
  order by c.relname, a.attname`;

function declared() {
  const tables: readonly PgTable[] = Object.values(schema);
  return tables
    .map(getTableConfig)
    .flatMap(({ name, columns }) =>
      columns.map((column) => ({
        table: name,
        column: column.name,
        type: column.getSQLType(),
        required: column.notNull,
      })),
    )
    .toSorted((a, b) => compare(a.table, b.table) || compare(a.column, b.column));
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

test("the tables that the reads know are those of the migrations: columns, types and what may be null", async () => {
  await using database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows } = await client.query(COLUMNS);
    expect(declared()).toEqual(rows);
  } finally {
    await client.end();
  }
});
