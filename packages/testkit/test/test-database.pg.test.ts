import { Client } from "pg";
import { afterEach, describe, expect, inject, test } from "vitest";
import { backendPid, createTestDatabase, untilWaiting } from "../src/index.ts";

const open: Client[] = [];

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined); // a test drops the database under a connection
  await client.connect();
  open.push(client);
  return client;
}

afterEach(async () => {
  await Promise.allSettled(open.splice(0).map((client) => client.end()));
});

describe("createTestDatabase", () => {
  test("gives every caller a database of its own", async () => {
    await using one = await createTestDatabase();
    await using other = await createTestDatabase();
    await (await connect(one.url)).query("create table mine (n int)");
    const { rows } = await (await connect(other.url)).query("select to_regclass('mine') as found");
    expect(rows).toEqual([{ found: null }]);
  });

  test("has it migrated", async () => {
    await using database = await createTestDatabase();
    const { rows } = await (await connect(database.url)).query(
      "select to_regclass('holdpoint.runs') is not null as there",
    );
    expect(rows).toEqual([{ there: true }]);
  });

  test("drops it at the end, also under an open connection", async () => {
    const database = await createTestDatabase();
    await connect(database.url);
    await database[Symbol.asyncDispose]();
    const server = await connect(inject("postgresUrl"));
    const { rowCount } = await server.query("select from pg_database where datname = $1", [database.name]);
    expect(rowCount).toBe(0);
  });
});

describe("untilWaiting", () => {
  test("resolves when a statement waits for another's row lock", async () => {
    await using database = await createTestDatabase();
    const [first, second, admin] = [
      await connect(database.url),
      await connect(database.url),
      await connect(database.url),
    ];
    await first.query("create table counter as select 1 as n");
    await first.query("begin");
    await first.query("update counter set n = n + 1");
    const pid = await backendPid(second);
    const late = second.query<{ n: number }>("update counter set n = n * 10 returning n");
    await untilWaiting(admin, pid);
    await first.query("commit");
    expect((await late).rows).toEqual([{ n: 20 }]);
  });
});
