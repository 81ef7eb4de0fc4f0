import { LONE_TAKEOVERS } from "@holdpoint/core";
import type { WakeUp } from "@holdpoint/queue";
import {
  claimRuns,
  failureKind,
  findOwnRuns,
  isUnloaded,
  type LoadedRun,
  loadRun,
  type Run,
  type UnloadedRun,
} from "@holdpoint/store";
import { type Giver, giveAway } from "./give-away.ts";
import { keepTrying } from "./keep-trying.ts";
import { nameOf } from "./log.ts";

/** A run that is this worker's now. */
export interface Claimed {
  readonly loaded: LoadedRun;
  /** The work on it is over: called exactly once, however it ended. */
  end(): void;
}

/** Claims runs for one process: one statement at a time, shared by the wake-ups that came while the last was under way. */
export interface ClaimGroup {
  /**
   * Null if the run is not to be had: somebody has it, it waits, or it is a suspect and this process has one already.
   *
   * @throws when the claim failed. A run that was taken nevertheless and cannot be loaded has been given away.
   */
  claim(wakeUp: Pick<WakeUp, "runId" | "version">): Promise<Claimed | null>;
}

export interface ClaimGroupOptions extends Giver {
  /** The run must show progress within this time, in milliseconds. */
  readonly progressMs: number;
  /** Begins a claim when it is its turn among the statements of the process. By default at once. */
  readonly turn?: (claim: () => Promise<void>) => Promise<void>;
  /** Hears of each batch, for the metrics. Must not throw. */
  readonly onClaim?: (report: ClaimReport) => void;
}

/** One batch of wake-ups. */
export interface ClaimReport {
  /** Wake-ups, of which two may be for one run. */
  readonly size: number;
  /** Runs that are now this worker's. */
  readonly claimed: number;
  /** Those of them of which an owner was lost since they last got on. */
  readonly takeovers: number;
  /** Wake-ups that found nothing to claim. */
  readonly missed: number;
  /** Runs whose claim or load has failed: settled alone. */
  readonly splitOff: number;
  /** How long the oldest of the batch had waited, in milliseconds. */
  readonly waitedMs: number;
  readonly tookMs: number;
}

interface Waiting {
  readonly runId: string;
  readonly version: number;
  readonly sinceMs: number;
  readonly resolve: (claimed: Claimed | null) => void;
  readonly reject: (error: unknown) => void;
}

const BATCH_LIMIT = 100;
/** The version of a run to which nothing has happened since its submission. */
const SUBMITTED_VERSION = 1;

/**
 * Opens a group. A run that was lost twice in a row is claimed only while this process works on no other such run, so
 * that the guilty one fails alone; one statement at a time is what makes that true.
 *
 * Whatever fails after a claim's commit, no run stays this worker's that nobody here works on: what a failed claim has
 * taken is found by its rows, and loaded or given away.
 */
export function openClaimGroup(options: ClaimGroupOptions): ClaimGroup {
  const { store, workerId, progressMs, turn = (claim) => claim() } = options;
  type Answer = () => Promise<Claimed | null>;
  const work = openWork();
  let waiting: Waiting[] = [];
  let busy = false;

  const answersFor = async (batch: readonly Waiting[]): Promise<Map<string, Answer>> => {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    const areNew = batch.every(({ version }) => version === SUBMITTED_VERSION);
    const results = await told(options, batch, () =>
      claimRuns(store, { runIds, workerId, progressMs, mayTakeSuspect: !work.hasSuspect(), areNew }),
    );
    const answers = new Map<string, Answer>();
    for (const each of results) {
      if (isUnloaded(each)) continue;
      const end = work.begin(each.run);
      answers.set(each.run.id, async () => ({ loaded: each, end }));
    }
    const failed = results.filter(isUnloaded);
    const taken = await findTaken(options, failed);
    for (const { runId, error } of failed) {
      const run = taken.get(runId);
      if (run === undefined || work.has(run)) {
        answers.set(runId, () => Promise.reject(error));
      } else {
        const end = work.begin(run);
        answers.set(runId, () => load(options, run, end));
      }
    }
    return answers;
  };

  const claimBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const answers = await answersFor(batch);
      for (const { runId, resolve, reject } of batch) {
        const answer = answers.get(runId);
        // Of two wake-ups for one run, one gets it.
        answers.delete(runId);
        if (answer === undefined) resolve(null);
        else answer().then(resolve, reject);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      await turn(() => {
        const batch = waiting.slice(0, BATCH_LIMIT);
        waiting = waiting.slice(BATCH_LIMIT);
        return claimBatch(batch);
      });
    }
    busy = false;
  };

  return {
    claim: ({ runId, version }) =>
      new Promise((resolve, reject) => {
        waiting.push({ runId, version, sinceMs: performance.now(), resolve, reject });
        if (busy) return;
        busy = true;
        // In the next turn of the loop, so that wake-ups which came together share the first statement as well.
        setImmediate(() => void flush());
      }),
  };
}

type Results = Awaited<ReturnType<typeof claimRuns>>;

/** Claims a batch, and tells of it, also where that fails. */
async function told(
  { onClaim = () => undefined }: ClaimGroupOptions,
  batch: readonly Waiting[],
  claim: () => Promise<Results>,
): Promise<Results> {
  const sentMs = performance.now();
  let results: Results | null = null;
  try {
    results = await claim();
    return results;
  } finally {
    const runs = results?.flatMap((each) => (isUnloaded(each) ? [] : [each.run])) ?? [];
    onClaim({
      size: batch.length,
      claimed: runs.length,
      takeovers: runs.filter(({ state }) => state.takeovers > 0).length,
      missed: results === null ? 0 : batch.length - results.length,
      splitOff: results === null ? batch.length : results.length - runs.length,
      // They wait in the order in which they came.
      waitedMs: sentMs - (batch[0]?.sinceMs ?? sentMs),
      tookMs: performance.now() - sentMs,
    });
  }
}

/** What this process works on: its claims, each with the epoch that makes it one of its own. */
function openWork() {
  const claims = new Set<string>();
  let suspects = 0;
  return {
    hasSuspect: () => suspects > 0,
    has: (run: Run): boolean => claims.has(claimOf(run)),
    /** Gives what ends the work on the run. */
    begin: (run: Run): (() => void) => {
      const isSuspect = run.state.takeovers >= LONE_TAKEOVERS;
      claims.add(claimOf(run));
      if (isSuspect) suspects += 1;
      return () => {
        claims.delete(claimOf(run));
        if (isSuspect) suspects -= 1;
      };
    },
  };
}

function claimOf({ id, epoch }: Run): string {
  return `${id} ${epoch}`;
}

/** The runs that failed claims have taken: known by the claim's answer, or, where that was lost, by their rows. */
async function findTaken(options: ClaimGroupOptions, failed: readonly UnloadedRun[]): Promise<Map<string, Run>> {
  const { store, workerId, log } = options;
  const known = failed.flatMap(({ taken }) => (taken === null ? [] : [taken]));
  const lost = failed.filter(({ taken, error }) => taken === null && failureKind(error) === "connection");
  const runIds = lost.map(({ runId }) => runId);
  const find = () => findOwnRuns(store, { workerId, runIds });
  const own =
    lost.length === 0
      ? []
      : await keepTrying(options, find, (error) =>
          log.warn({ event: "claim.not_read_back", runs: lost.length, error: nameOf(error) }, "claim not read back"),
        );
  // Without an answer until the lease is over, the sweeper takes what this worker has from it.
  return new Map([...known, ...(own ?? [])].map((run) => [run.id, run]));
}

async function load(options: ClaimGroupOptions, run: Run, end: () => void): Promise<Claimed | null> {
  try {
    const loaded = await loadRun(options.store, run.id);
    if (loaded?.run.state.owner === options.workerId && loaded.run.epoch === run.epoch) return { loaded, end };
  } catch (error) {
    await giveAway(options, run, error);
    end();
    throw error;
  }
  // Somebody has taken it away meanwhile.
  end();
  return null;
}
