import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTestDatabase } from "@holdpoint/testkit";
import pg from "pg";
import { expect, test } from "vitest";
import { newId, openStore } from "../src/index.ts";
import { migrate } from "../src/migrate.ts";
import { aRun } from "./a-run.ts";

const MIGRATE = fileURLToPath(new URL("../src/migrate.ts", import.meta.url));

/** An empty database on the tests' server. */
async function emptyDatabase() {
  await using existing = await createTestDatabase();
  const server = new URL(existing.url);
  server.pathname = "/postgres";
  const name = `t_${newId().replaceAll("-", "")}`;
  await onServer(server.href, `create database ${name}`);
  const url = new URL(existing.url);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    [Symbol.asyncDispose]: async () => void (await onServer(server.href, `drop database ${name} with (force)`)),
  };
}

async function onServer(url: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const APPLIED = "select hash from holdpoint.__drizzle_migrations";

test("four processes that start at once bring an empty database up to date, and none fails", {
  timeout: 120_000,
}, async () => {
  await using database = await emptyDatabase();
  const script = `const { migrate } = await import(process.argv[1]); await migrate({ url: process.argv[2] });`;
  const run = () => promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, MIGRATE, database.url]);
  await Promise.all(Array.from({ length: 4 }, run));
  const applied = await onServer(database.url, APPLIED);
  await migrate({ url: database.url });
  expect(await onServer(database.url, APPLIED)).toEqual(applied);
  expect(applied.length).toBeGreaterThan(0);
  await using store = openStore({ url: database.url });
  expect(await aRun(store)).toMatchObject({ version: 1, state: { status: "queued" } });
});

test("migrating twice leaves everything as it was", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  const run = await aRun(store);
  await migrate({ url: database.url });
  expect(await onServer(database.url, "select id, version from holdpoint.runs")).toEqual([{ id: run.id, version: 1 }]);
});

test("a server that cannot be reached is said so, with its address", async () => {
  const unreachable = { url: "postgres://somebody:secret@127.0.0.1:1/holdpoint" };
  const error = await migrate(unreachable).then(
    () => null,
    (cause: unknown) => cause,
  );
  expect(String(error)).toContain("127.0.0.1:1");
  expect(String(error)).not.toContain("secret");
});
