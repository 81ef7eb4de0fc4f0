import { LONE_TAKEOVERS } from "@holdpoint/core";
import { claimRuns, type LoadedRun, type Store } from "@holdpoint/store";

/** A run that is this worker's now. */
export interface Claimed {
  readonly loaded: LoadedRun;
  /** The work on it is over: called exactly once, however it ended. */
  end(): void;
}

/** Claims runs for one process: one statement at a time, shared by the wake-ups that came while the last was under way. */
export interface ClaimGroup {
  /** Null if the run is not to be had: somebody has it, it waits, or it is a suspect and this process has one already. */
  claim(runId: string): Promise<Claimed | null>;
}

const BATCH_LIMIT = 64;

/**
 * Opens a group. A run that was lost twice in a row is claimed only while this process works on no other such run, so
 * that the guilty one fails alone; one statement at a time is what makes that true.
 */
export function openClaimGroup(
  store: Store,
  { workerId, progressMs }: { readonly workerId: string; readonly progressMs: number },
): ClaimGroup {
  type Waiting = { runId: string; resolve: (claimed: Claimed | null) => void; reject: (error: unknown) => void };
  let waiting: Waiting[] = [];
  let busy = false;
  let hasSuspect = false;

  const claimBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    try {
      const loaded = await claimRuns(store, { runIds, workerId, progressMs, mayTakeSuspect: !hasSuspect });
      const byId = new Map(loaded.map((each) => [each.run.id, each]));
      for (const { runId, resolve } of batch) {
        const mine = byId.get(runId);
        // Of two wake-ups for one run, one gets it.
        byId.delete(runId);
        resolve(mine === undefined ? null : claimedOf(mine));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const claimedOf = (loaded: LoadedRun): Claimed => {
    const isSuspect = loaded.run.state.takeovers >= LONE_TAKEOVERS;
    if (isSuspect) hasSuspect = true;
    return {
      loaded,
      end: () => {
        if (isSuspect) hasSuspect = false;
      },
    };
  };

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_LIMIT);
      waiting = waiting.slice(BATCH_LIMIT);
      await claimBatch(batch);
    }
    busy = false;
  };

  return {
    claim: (runId) =>
      new Promise((resolve, reject) => {
        waiting.push({ runId, resolve, reject });
        if (busy) return;
        busy = true;
        void flush();
      }),
  };
}
