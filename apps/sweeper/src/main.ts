#!/usr/bin/env node
import { once } from "node:events";
import { openLog } from "@holdpoint/log";
import { openPublisher } from "@holdpoint/queue";
import { explainStartError, newId, openStore, showId } from "@holdpoint/store";
import { asksForHelp, readConfig, USAGE } from "./config.ts";
import { runSender } from "./run-sender.ts";
import { runSweeper } from "./run-sweeper.ts";

async function main(): Promise<void> {
  if (asksForHelp(process.argv.slice(2))) {
    process.stdout.write(USAGE);
    return;
  }
  const config = readConfig(process.env);
  const log = openLog({ service: "sweeper", level: config.logLevel });
  await using store = openStore({
    url: config.databaseUrl,
    pooled: config.pooled,
    maxConnections: 4,
    applicationName: "holdpoint sweeper",
  });
  // Of its own, so that no sweep waits for what is sent.
  await using outbox = openStore({
    url: config.databaseUrl,
    pooled: config.pooled,
    maxConnections: 2,
    applicationName: "holdpoint sender",
  });
  await store.pool.query("select 1 from holdpoint.runs limit 0");
  await using publisher = openPublisher(config.queue);
  const id = `sweeper-${showId("worker", newId()).slice(-6)}`;
  const stop = new AbortController();
  // A signal that comes twice must not end what drains.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => undefined);
  void Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(process, "disconnect")]).then(() =>
    stop.abort(),
  );
  log.info({ event: "sweeper.started", id, sweepMs: config.sweepMs, graceMs: config.graceMs }, "sweeper started");
  if (process.connected) process.send?.({ event: "sweeper.started", pid: process.pid });
  await Promise.all([
    runSweeper({ ...config, store, publisher, id, log }, stop.signal),
    runSender({ store: outbox, pollMs: config.sweepMs, log }, stop.signal),
  ]);
  log.info({ event: "sweeper.stopped", id }, "sweeper stopped");
}

try {
  await main();
} catch (error) {
  process.stderr.write(`holdpoint sweeper: ${explainStartError(error)}\n`);
  process.exitCode = 1;
}
if (process.connected) process.disconnect();
