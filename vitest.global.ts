// One Postgres server for a whole run of the tests, with a migrated template that every test database is a copy of,
// and a Redis where there is one.

import { chmodSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findRedis, removePostgres, startPostgres, startRedis } from "./packages/embedded/src/index.ts";
import { migrate } from "./packages/store/src/migrate.ts";
import { createTemplateDatabase, findTestPostgres } from "./packages/testkit/src/template-database.ts";

const FOLDER = /^holdpoint-test-(\d+)$/;

// Tests make and drop databases all the time and kill servers that are not this one: it need not survive a power cut.
const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "300", max_wal_size: "4GB" };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (project.vitest.config.project.join() === "unit") return async () => undefined; // these need no server
  await removeLeftOvers();
  const folder = join(tmpdir(), `holdpoint-test-${process.pid}`);
  mkdirSync(folder);
  chmodSync(folder, 0o755); // Postgres' user goes through it
  const stack = new AsyncDisposableStack();
  stack.defer(() => removeFolder(folder));
  try {
    project.provide("postgresUrl", await openPostgres(folder));
    project.provide("redisUrl", await openRedis(folder, stack));
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
  return () => stack.disposeAsync();
}

async function openPostgres(folder: string): Promise<string> {
  const nativeDir = findTestPostgres(process.env.HOLDPOINT_TEST_POSTGRES);
  const { url } = await startPostgres({ dataDir: join(folder, "postgres"), settings: SETTINGS, nativeDir });
  await createTemplateDatabase(url, migrate);
  return url;
}

async function openRedis(folder: string, stack: AsyncDisposableStack): Promise<string | null> {
  const given = process.env.HOLDPOINT_REDIS_URL;
  if (given !== undefined && given !== "") return given;
  if (findRedis() !== null) {
    const redis = await startRedis({ dir: join(folder, "redis") });
    stack.defer(() => redis.stop());
    return redis.url;
  }
  const absent = "there is no Redis (neither HOLDPOINT_REDIS_URL nor the program redis-server)";
  if (process.env.HOLDPOINT_REQUIRE_REDIS === "1") throw new Error(`${absent}, and HOLDPOINT_REQUIRE_REDIS is 1`);
  process.stdout.write(`${absent}: the Redis suites are skipped\n`);
  return null;
}

/** Removes the servers and folders of our test runs that were killed. */
async function removeLeftOvers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(FOLDER.exec(name)?.[1]);
    const folder = join(tmpdir(), name);
    if (pid > 0 && !isAlive(pid) && statSync(folder).uid === process.getuid?.()) await removeFolder(folder);
  }
}

async function removeFolder(folder: string): Promise<void> {
  await removePostgres({ dataDir: join(folder, "postgres") });
  rmSync(folder, { recursive: true, force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // it lives, as another user
  }
}
