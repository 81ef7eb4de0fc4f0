import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import pg from "pg";
import { describeQueue } from "./queue.suite.ts";
import { type ServerUnderTest, soon } from "./queue-fixture.ts";

describeQueue("the queue on Postgres", async (): Promise<ServerUnderTest> => {
  const database = await createTestDatabase();
  const url = new URL(database.url);
  const at = (schema: string, host = url.hostname, port = url.port) => {
    const moved = new URL(url);
    moved.hostname = host;
    moved.port = String(port);
    return { kind: "postgres", url: moved.href, schema } as const;
  };
  async function run<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]> {
    const options = "-c default_transaction_read_only=off";
    const client = new pg.Client({ connectionString: database.url, options });
    await client.connect();
    try {
      return (await client.query<Row>(statement)).rows;
    } finally {
      await client.end();
    }
  }
  return {
    address: { host: url.hostname, port: Number(url.port) },
    connection: ({ host, port }) => at("holdpoint_queue", host, String(port)),
    untouched: () => at("never_used"),
    async empty() {
      const rows = await run<{ name: string }>(
        "select quote_ident(tablename) as name from pg_tables where schemaname = 'holdpoint_queue' and tablename <> 'migration'",
      );
      await run(`truncate ${rows.map(({ name }) => `holdpoint_queue.${name}`).join(", ")}`);
    },
    // A connection's transactions are surely counted when it has ended.
    async commands() {
      const others = "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
      await waitFor(async () => (await run(others)).length === 0, soon("the connections to end"));
      const [row] = await run<{ transactions: string }>(
        "select xact_commit + xact_rollback as transactions from pg_stat_database where datname = current_database()",
      );
      return Number(row?.transactions);
    },
    async demote() {
      await run(`alter database ${database.name} set default_transaction_read_only = on`);
      await run(`select pg_terminate_backend(pid) from pg_stat_activity
                  where datname = current_database() and pid <> pg_backend_pid()`);
    },
    async promote() {
      await run(`alter database ${database.name} reset default_transaction_read_only`);
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
});
