import { setTimeout as sleep } from "node:timers/promises";
import type { Publisher } from "@holdpoint/queue";
import type { Store } from "@holdpoint/store";
import { MOVING, type Sweep, type SweepContext, type Swept, TIDYING, WAKING, WATCHING } from "@holdpoint/upkeep";
import type { Logger } from "pino";

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
 * and while the wake-up sweeps of one pass wait for the queue, or much is to be removed, the passes go on without them.
 */
export async function runSweeper(options: SweeperOptions, stop: AbortSignal): Promise<void> {
  const beside = [openLane(WAKING, options.log), openLane(TIDYING, options.log)];
  const watching = watch(options, stop);
  const tellHeldBack = openHeldBack(options.log);
  while (!stop.aborted) {
    // The ids of repairs may be the same on two sweepers: then the queue keeps one of them, which is enough.
    const context = { ...options, number: Math.floor(Date.now() / REPAIR_EVERY_MS) };
    for (const sweep of MOVING) tellHeldBack(await pass(sweep, context, options.log));
    if (stop.aborted) break;
    for (const lane of beside) lane.start(context);
    await sleep(options.sweepMs, undefined, { signal: stop }).catch(() => undefined);
  }
  await Promise.all([watching, ...beside.map((lane) => lane.ended())]);
}

/** Notes again and again that the leases are watched, however long the passes take. */
async function watch(options: SweeperOptions, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await pass(WATCHING, { ...options, number: 0 }, options.log);
    await sleep(options.sweepMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Says that workers are waited for although their time is over, once for each change. */
function openHeldBack(log: Logger): (swept: Swept | null) => void {
  let told = "";
  return (swept) => {
    if (swept?.heldBack === undefined) return;
    const { own_gap: ownGap, blast_radius: blastRadius } = swept.heldBack;
    const now = `${ownGap}/${blastRadius}`;
    if (now === told) return;
    // A fleet that is well says nothing at its start.
    const isNews = told !== "" || ownGap + blastRadius > 0;
    told = now;
    if (isNews) log.warn({ event: "workers.held_back", ownGap, blastRadius }, "workers held back");
  };
}

/** Sweeps that are passed over beside the others: not again before the last time has ended. */
function openLane(sweeps: readonly Sweep[], log: Logger) {
  let passing: Promise<unknown> | null = null;
  return {
    start(context: SweepContext): void {
      passing ??= Promise.all(sweeps.map((sweep) => pass(sweep, context, log))).finally(() => {
        passing = null;
      });
    },
    ended: async () => passing,
  };
}

/** One pass of one sweep; what fails is a line of the log. Null: all of it has failed. */
async function pass(sweep: Sweep, context: SweepContext, log: Logger): Promise<Swept | null> {
  const startedMs = performance.now();
  try {
    const swept = await sweep.run(context);
    const { found, moved, errors, counts } = swept;
    const durationMs = Math.round(performance.now() - startedMs);
    if (errors.length > 0) logFailure(log, sweep, errors);
    if (found > 0)
      log.info(
        { event: "sweep.finished", sweep: sweep.name, found, moved, ...counts, limit: context.limit, durationMs },
        "sweep finished",
      );
    return swept;
  } catch (error) {
    logFailure(log, sweep, [error]);
    return null;
  }
}

function logFailure(log: Logger, sweep: Sweep, errors: readonly unknown[]): void {
  const [first] = errors;
  const { name, message } = first instanceof Error ? first : { name: "unknown", message: "" };
  log.error({ event: "sweep.failed", sweep: sweep.name, failed: errors.length, error: name, message }, "sweep failed");
}
