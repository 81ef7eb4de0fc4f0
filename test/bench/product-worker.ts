import { openLog } from "@holdpoint/log";
import { type Agent, createWorker, type Log } from "@holdpoint/runtime";
import { openStore } from "@holdpoint/store";
import type { WorkerStart, Working } from "./worker-channel.ts";

const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
const DRAIN_MS = 2_000;

/** As in production, to an output that nobody keeps; warnings are also heard by whoever watches the benchmark. */
const quiet = openLog({ service: "worker", level: "info" });
const warn = (line: object): void => void process.stderr.write(`${JSON.stringify(line)}\n`);
const log = {
  debug: quiet.debug.bind(quiet),
  info: quiet.info.bind(quiet),
  warn,
  error: warn,
} as Log;

/** Starts the product's worker as its own program runs it (apps/worker). */
export async function startProductWorker(
  { url, queue, slots }: Pick<WorkerStart, "url" | "queue" | "slots">,
  agent: Agent,
): Promise<Working> {
  const store = openStore({ url, plansOnce: true });
  const agents = [agent];
  const worker = await createWorker({ store, queue, agents, slots, leaseMs: LEASE_MS, renewMs: RENEW_MS, log });
  return {
    pools: [store.pool, store.leasePool],
    async stop() {
      await worker.drain(DRAIN_MS);
      await store[Symbol.asyncDispose]();
    },
  };
}
