import { setTimeout as sleep } from "node:timers/promises";
import type { Publisher } from "@holdpoint/queue";
import type { Store } from "@holdpoint/store";
import type { Logger } from "pino";
import { MOVING, WAKING } from "./schedule.ts";
import type { Sweep, SweepContext } from "./sweep.ts";

export interface SweeperOptions {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly id: string;
  readonly sweepMs: number;
  readonly graceMs: number;
  readonly limit: number;
  readonly log: Logger;
}

/** While a repaired wake-up waits in the queue, its run is not published again within this time, in milliseconds. */
const REPAIR_EVERY_MS = 10_000;

/**
 * Passes over all sweeps, again and again, until the signal. A sweep that fails does not keep the others from running,
 * and while the wake-up sweeps of one pass wait for the queue, the passes go on without them.
 */
export async function runSweeper(options: SweeperOptions, stop: AbortSignal): Promise<void> {
  let waking: Promise<unknown> | null = null;
  while (!stop.aborted) {
    // The ids of repairs may be the same on two sweepers: then the queue keeps one of them, which is enough.
    const context = { ...options, number: Math.floor(Date.now() / REPAIR_EVERY_MS) };
    for (const sweep of MOVING) await pass(sweep, context, options.log);
    if (stop.aborted) break;
    waking ??= Promise.all(WAKING.map((sweep) => pass(sweep, context, options.log))).finally(() => {
      waking = null;
    });
    await sleep(options.sweepMs, undefined, { signal: stop }).catch(() => undefined);
  }
  await waking;
}

/** One pass of one sweep; what fails is a line of the log. */
async function pass(sweep: Sweep, context: SweepContext, log: Logger): Promise<void> {
  const startedMs = performance.now();
  try {
    const { found, moved, errors } = await sweep.run(context);
    const durationMs = Math.round(performance.now() - startedMs);
    if (errors.length > 0) logFailure(log, sweep, errors);
    if (found > 0)
      log.info(
        { event: "sweep.finished", sweep: sweep.name, found, moved, limit: context.limit, durationMs },
        "sweep finished",
      );
  } catch (error) {
    logFailure(log, sweep, [error]);
  }
}

function logFailure(log: Logger, sweep: Sweep, errors: readonly unknown[]): void {
  const [first] = errors;
  const { name, message } = first instanceof Error ? first : { name: "unknown", message: "" };
  log.error({ event: "sweep.failed", sweep: sweep.name, failed: errors.length, error: name, message }, "sweep failed");
}
