#!/usr/bin/env node
import { once } from "node:events";
import { openLog } from "@holdpoint/log";
import { openPublisher } from "@holdpoint/queue";
import type { Log } from "@holdpoint/runtime";
import { explainStartError, openStore } from "@holdpoint/store";
import { type MetricsPlace, readConfig } from "./config.ts";
import { readArguments, USAGE } from "./options.ts";
import { supervise } from "./supervise.ts";

async function main(): Promise<number> {
  const given = readArguments(process.argv.slice(2), process.cwd());
  if (given === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  const config = readConfig(process.env);
  const log = openLog({ service: "supervisor", level: config.logLevel });
  await using store = openStore({ url: config.databaseUrl, pooled: config.pooled, maxConnections: 2 });
  await store.pool.query("select 1 from holdpoint.workers limit 0");
  await using publisher = openPublisher(config.queue);
  await using metrics = config.metrics === null ? null : await showMetrics(config.metrics, log);
  const supervisor = supervise({ ...given, store, publisher, log, onFork: metrics?.watch });
  // A signal that comes twice (npm passes a Ctrl-C on again) must not end what drains.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => undefined);
  const stopped = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(process, "disconnect")]);
  const ended = supervisor.allDown.then(() => null);
  const failure = await Promise.race([stopped.then(() => null), ended, supervisor.failed]);
  await supervisor.stop();
  if (failure === null) return 0;
  process.stderr.write(`holdpoint worker: ${failure}\n`);
  return 1;
}

/** Whoever shows no metrics does not load what makes them. */
async function showMetrics(place: MetricsPlace, log: Log) {
  const { openMetricsServer } = await import("./metrics-server.ts");
  return openMetricsServer(place, log);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`holdpoint worker: ${explainStartError(error)}\n`);
  process.exitCode = 1;
}
if (process.connected) process.disconnect();
