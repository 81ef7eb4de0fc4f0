// One working process. Its supervisor gives it an id, sees its end, and starts the next one.
import { once } from "node:events";
import { createWorker } from "@holdpoint/runtime";
import { openStore } from "@holdpoint/store";
import { pino } from "pino";
import { readConfig } from "./config.ts";
import { loadAgents } from "./load-agents.ts";

/** Exit code of a process whose lease was over: start the next one at once. */
export const LEASE_OVER = 75;

async function main(): Promise<number> {
  const [workerId = "", module = "", slots = "1"] = process.argv.slice(2);
  const config = readConfig(process.env);
  const log = pino({ level: config.logLevel, base: { service: "worker", pid: process.pid } });
  // The supervisor hears a Ctrl-C and says what is to happen; a closed channel means that it is gone.
  process.on("SIGINT", () => undefined);
  const stopped = Promise.race([once(process, "SIGTERM"), once(process, "disconnect")]);
  const opened = await loadAgents(module, process.env);
  await using store = openStore({ url: config.databaseUrl, pooled: config.pooled, applicationName: "holdpoint worker" });
  const worker = await createWorker({ ...config, store, agents: opened.agents, slots: Number(slots), log, workerId });
  log.info({ event: "worker.started", workerId, slots: Number(slots) }, "worker started");
  process.send?.({ event: "worker.started", workerId, pid: process.pid });
  const ending = await Promise.race([stopped.then(() => "stopped" as const), worker.lost.then(() => "lost" as const)]);
  const before = worker.active;
  log.info({ event: "worker.draining", workerId, ending, active: before, drainMs: config.drainMs }, "worker draining");
  await worker.drain(ending === "lost" ? 0 : config.drainMs);
  await opened.close();
  log.info({ event: "worker.drained", workerId, runs: before }, "worker drained");
  return ending === "lost" ? LEASE_OVER : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.send?.({ event: "worker.failed", message });
  process.exitCode = 1;
}
process.disconnect?.();
