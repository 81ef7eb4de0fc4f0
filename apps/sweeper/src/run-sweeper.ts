import { setTimeout as sleep } from "node:timers/promises";
import type { Publisher } from "@holdpoint/queue";
import type { Store } from "@holdpoint/store";
import type { Logger } from "pino";
import { SWEEPS } from "./schedule.ts";
import type { SweepContext } from "./sweep.ts";

export interface SweeperOptions {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly id: string;
  readonly sweepMs: number;
  readonly graceMs: number;
  readonly limit: number;
  readonly log: Logger;
}

/** A run is published again at most once in this time, however often the sweeps pass, in milliseconds. */
const REPAIR_EVERY_MS = 10_000;

/** Passes over all sweeps, again and again, until the signal. A sweep that fails does not keep the others from running. */
export async function runSweeper(options: SweeperOptions, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    // The ids of repairs may be the same on two sweepers: then the queue keeps one of them, which is enough.
    const number = Math.floor(Date.now() / REPAIR_EVERY_MS);
    await pass({ ...options, number }, options.log);
    await sleep(options.sweepMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** One pass over all sweeps. */
export async function pass(context: SweepContext, log: Logger): Promise<void> {
  for (const sweep of SWEEPS) {
    const startedMs = performance.now();
    try {
      const { found, moved } = await sweep.run(context);
      const durationMs = Math.round(performance.now() - startedMs);
      if (found > 0)
        log.info(
          { event: "sweep.finished", sweep: sweep.name, found, moved, limit: context.limit, durationMs },
          "sweep finished",
        );
    } catch (error) {
      const { name, message } = error instanceof Error ? error : { name: "unknown", message: "" };
      log.error({ event: "sweep.failed", sweep: sweep.name, error: name, message }, "sweep failed");
    }
  }
}
