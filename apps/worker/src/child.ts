// One working process. Its supervisor gives it an id, sees its end, and starts the next one.
import { once } from "node:events";
import { openLog } from "@holdpoint/log";
import { createWorker, type Log } from "@holdpoint/runtime";
import { explainStartError, openStore } from "@holdpoint/store";
import { readConfig } from "./config.ts";
import { LEASE_OVER, STAY_DOWN } from "./exit-codes.ts";
import { loadAgents, type OpenedAgents } from "./load-agents.ts";

/** What is still open this long after the work is over (a connection, what the agents hold) does not keep the process. */
const CLOSE_MS = 10_000;

async function main(): Promise<void> {
  const [workerId = "", module = "", slots = "1"] = process.argv.slice(2);
  // The supervisor hears a Ctrl-C and says what is to happen; a closed channel means that it is gone. A signal that
  // comes twice (to the group, and from the supervisor) must not end what drains.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => undefined);
  const stopped = Promise.race([once(process, "SIGTERM"), once(process, "disconnect")]);
  const opened = await loadAgents(module, process.env);
  try {
    await work(opened, { workerId, slots: Number(slots), stopped });
  } finally {
    endSoon(1);
    await opened.close();
  }
}

/** Works until it is stopped or its lease is over, and gives every run back. */
async function work(
  { agents, tasks = [] }: Pick<OpenedAgents, "agents" | "tasks">,
  { workerId, slots, stopped }: { workerId: string; slots: number; stopped: Promise<unknown> },
): Promise<void> {
  const config = readConfig(process.env);
  const log = openLog({ service: "worker", level: config.logLevel });
  await using store = openStore({
    url: config.databaseUrl,
    pooled: config.pooled,
    plansOnce: true,
    applicationName: "holdpoint worker",
  });
  const metrics = config.metrics === null ? {} : { meterProvider: await openMetrics(log) };
  const worker = await createWorker({ ...config, ...metrics, store, agents, tasks, slots, log, workerId });
  log.info({ event: "worker.started", workerId, slots }, "worker started");
  tell({ event: "worker.started", workerId, pid: process.pid });
  const ending = await Promise.race([
    stopped.then(() => "stopped" as const),
    worker.lost.then(() => "lost" as const),
    worker.drainRequested.then(() => "drain_requested" as const),
  ]);
  const before = worker.active;
  log.info({ event: "worker.draining", workerId, ending, active: before, drainMs: config.drainMs }, "worker draining");
  await worker.drain(ending === "lost" ? 0 : config.drainMs);
  log.info({ event: "worker.drained", workerId, runs: before }, "worker drained");
  if (ending === "lost") endSoon(LEASE_OVER);
  else endSoon(worker.staysDown() ? STAY_DOWN : 0);
}

/** Whoever shows no metrics does not load what makes them. */
async function openMetrics(log: Log) {
  const { openProcessMetrics } = await import("./process-metrics.ts");
  return openProcessMetrics(log);
}

/** The process ends with the first code that is given, by itself or after a while. */
function endSoon(code: number): void {
  process.exitCode ??= code;
  setTimeout(() => process.exit(), CLOSE_MS).unref();
}

try {
  await main();
} catch (error) {
  tell({ event: "worker.failed", message: explainStartError(error) });
  process.exitCode = 1;
}
if (process.connected) process.disconnect();

/** Nobody is told when the supervisor is gone. */
function tell(message: { readonly event: string } & Record<string, string | number>): void {
  if (process.connected) process.send?.(message);
}
