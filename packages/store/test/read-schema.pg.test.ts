import { createTestDatabase } from "@holdpoint/testkit";
import { getTableConfig, getViewConfig, type PgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import { expect, test } from "vitest";
import * as schema from "../src/schema.ts";
import * as views from "../src/schema-views.ts";

const columnsOf = (kinds: string): string => `
  select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required
  from pg_attribute a join pg_class c on c.oid = a.attrelid
  where c.relnamespace = 'holdpoint'::regnamespace and c.relkind in (${kinds}) and not c.relispartition
    and a.attnum > 0 and not a.attisdropped and c.relname not like '\\_\\_drizzle%'
  order by c.relname, a.attname`;

interface Declared {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly notNull: boolean; getSQLType(): string }[];
}

function declared(all: readonly Declared[]) {
  return all
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

async function found<Row extends pg.QueryResultRow>(kinds: string): Promise<readonly Row[]> {
  await using database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<Row>(columnsOf(kinds))).rows;
  } finally {
    await client.end();
  }
}

test("the tables that the reads know are those of the migrations: columns, types and what may be null", async () => {
  const tables: readonly PgTable[] = Object.values(schema);
  expect(declared(tables.map(getTableConfig))).toEqual(await found("'r', 'p'"));
});

test("so are the views, whose columns the database says nothing more of", async () => {
  const known = Object.values(views).map((view) => {
    const { name, selectedFields } = getViewConfig(view);
    return { name, columns: Object.values(selectedFields) as unknown as Declared["columns"] };
  });
  expect(declared(known).map((column) => ({ ...column, required: false }))).toEqual(await found("'v'"));
});
