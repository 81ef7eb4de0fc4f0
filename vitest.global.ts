// One Postgres server for a whole run of the tests, with a migrated template that every test database is a copy of,
// and a Redis where there is one.

import { join } from "node:path";
import type { TestProject } from "vitest/node";
import {
  findRedis,
  openWorkFolder,
  startPostgres,
  startRedis,
  type WorkFolder,
} from "./packages/embedded/src/index.ts";
import { migrate } from "./packages/store/src/migrate.ts";
import { createTemplateDatabase, findTestPostgres } from "./packages/testkit/src/template-database.ts";

// Tests make and drop databases all the time and kill servers that are not this one: it need not survive a power cut.
const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "300", max_wal_size: "4GB" };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (project.vitest.config.project.join() === "unit") return async () => undefined; // these need no server
  const folder = await openWorkFolder("test");
  const stack = new AsyncDisposableStack();
  stack.defer(() => folder.remove());
  try {
    project.provide("postgresUrl", await openPostgres(folder));
    project.provide("redisUrl", await openRedis(folder, stack));
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
  return () => stack.disposeAsync();
}

async function openPostgres({ postgresDir: dataDir }: WorkFolder): Promise<string> {
  const nativeDir = findTestPostgres(process.env.HOLDPOINT_TEST_POSTGRES);
  const { url } = await startPostgres({ dataDir, settings: SETTINGS, nativeDir });
  await createTemplateDatabase(url, migrate);
  return url;
}

async function openRedis({ path }: WorkFolder, stack: AsyncDisposableStack): Promise<string | null> {
  const given = process.env.HOLDPOINT_REDIS_URL;
  if (given !== undefined && given !== "") return given;
  if (findRedis() !== null) {
    const redis = await startRedis({ dir: join(path, "redis") });
    stack.defer(() => redis.stop());
    return redis.url;
  }
  const absent = "there is no Redis (neither HOLDPOINT_REDIS_URL nor the program redis-server)";
  if (process.env.HOLDPOINT_REQUIRE_REDIS === "1") throw new Error(`${absent}, and HOLDPOINT_REQUIRE_REDIS is 1`);
  process.stdout.write(`${absent}: the Redis suites are skipped\n`);
  return null;
}
