import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "./lease.ts";

/** Until when something is tried: the lease is over, or the drain time is. */
export interface Patience {
  readonly lease: Pick<Lease, "isValid">;
  readonly drained: AbortSignal;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Tries again and again, with growing pauses, until it gives something other than null.
 *
 * @param onError  Hears of each try that fails.
 * @returns null when the patience is over: somebody else takes the run from a worker that is gone.
 */
export async function keepTrying<Value>(
  { lease, drained }: Patience,
  attempt: () => Promise<Value | null>,
  onError: (error: unknown) => void,
): Promise<Value | null> {
  for (let pauseMs = FIRST_PAUSE_MS; lease.isValid(); pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      const value = await attempt();
      if (value !== null) return value;
    } catch (error) {
      onError(error);
    }
    if (drained.aborted) return null;
    // The drain's end only means that there is no time for another pause: one last try.
    await sleep(pauseMs, undefined, { signal: drained }).catch(() => undefined);
  }
  return null;
}
