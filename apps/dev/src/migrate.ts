#!/usr/bin/env node
import { parseArgs } from "node:util";
import { migrateQueue } from "@holdpoint/queue";
import { checkQueue, explainStartError, readEnvironment, SERVER_ENV, serverSettings } from "@holdpoint/store";
import { migrate } from "@holdpoint/store/migrate";
import { z } from "zod";

const USAGE = `holdpoint migrate

Brings the schema, and the queue's tables where the queue is in Postgres, up to date. Safe when several processes do it
at once; the database itself has to exist.

Environment:
  HOLDPOINT_DATABASE_URL         Postgres 15 or newer, required; the user must be allowed to create schemas
  HOLDPOINT_REDIS_URL            the queue is on this Redis: nothing to do for it
  HOLDPOINT_QUEUE_DATABASE_URL   the queue is on another Postgres url
`;

const Env = z.object(SERVER_ENV).superRefine(checkQueue);

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const { databaseUrl, queue } = serverSettings(readEnvironment(Env, process.env));
  await migrate({ url: databaseUrl });
  process.stdout.write("the schema is up to date\n");
  await migrateQueue(queue);
  process.stdout.write(
    queue.kind === "redis" ? "the queue is on Redis: nothing to do\n" : "the queue's tables are up to date\n",
  );
}

try {
  await main();
} catch (error) {
  process.stderr.write(`holdpoint migrate: ${explainStartError(error)}\n`);
  process.exitCode = 1;
}
