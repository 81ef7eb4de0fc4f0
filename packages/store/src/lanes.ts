// Owns: which of a process's moves share a statement, and when it is sent. Does not own: statements.
// I1  A batch has at most one move of a run.
// I2  Whatever is handed in is settled exactly once, by its own result or its own error.
// I3  Nobody waits for a row of somebody else: what a batch has missed is settled outside of its lane.
import { asError } from "./execute.ts";
import type { Gate } from "./gate.ts";

/** One batch, for the metrics. */
export interface LaneReport {
  readonly size: number;
  /** How long the oldest of the batch had waited for its statement, in milliseconds. */
  readonly waitedMs: number;
  /** How long the statement took, in milliseconds. */
  readonly tookMs: number;
  /** How many were split off: their rows were not moved, or met an error. */
  readonly splitOff: number;
}

export interface LanesOptions<Item, Result> {
  /** Most statements under way at once. */
  readonly lanes: number;
  /** Most items of one statement. */
  readonly limit: number;
  /** Where its statements wait with those of others. */
  readonly gate: Gate;
  /** Two items of one key never share a statement. */
  readonly keyOf: (item: Item) => string;
  /** Sends a batch; null for what was not moved. */
  readonly send: (items: readonly Item[]) => Promise<readonly (Result | Error | null)[]>;
  /** What became of an item that a batch has missed. */
  readonly settle: (item: Item, missed: Error | null) => Promise<Result>;
  readonly onBatch: (report: LaneReport) => void;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly key: string;
  readonly sinceMs: number;
  readonly resolve: (result: Result | Promise<Result>) => void;
}

/**
 * Opens lanes: gives what hands an item in. Items wait only while all lanes are under way or the gate is full, and else for
 * the end of the loop's turn, so that what became ready together is sent together.
 */
export function openLanes<Item, Result>(options: LanesOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { lanes, keyOf, gate } = options;
  let waiting: Waiting<Item, Result>[] = [];
  const flying = new Set<string>();
  let underWay = 0;
  let isScheduled = false;

  /** Takes off what goes now: from then on it is flying. */
  const next = (): Waiting<Item, Result>[] => {
    const behind = new Set<string>();
    const batch: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    for (const each of waiting) {
      // A later one of the same run stays behind the earlier one.
      if (batch.length < options.limit && !flying.has(each.key) && !behind.has(each.key)) {
        flying.add(each.key);
        batch.push(each);
      } else {
        behind.add(each.key);
        left.push(each);
      }
    }
    waiting = left;
    return batch;
  };

  const pump = (leave: () => void): void => {
    isScheduled = false;
    const batch = next();
    if (batch.length === 0) {
      // What is left waits for an earlier one of its own run.
      leave();
      return;
    }
    underWay += 1;
    void sendBatch(options, batch).finally(() => {
      for (const { key } of batch) flying.delete(key);
      underWay -= 1;
      leave();
      schedule();
    });
    // More than one statement holds has come.
    schedule();
  };

  const schedule = (): void => {
    if (isScheduled || underWay >= lanes || !waiting.some(({ key }) => !flying.has(key))) return;
    isScheduled = true;
    setImmediate(() => gate.enter(pump));
  };

  return (item) =>
    new Promise((resolve) => {
      waiting.push({ item, key: keyOf(item), sinceMs: performance.now(), resolve });
      schedule();
    });
}

/** Never rejects: what fails is each item's own. */
async function sendBatch<Item, Result>(
  { send, settle, onBatch }: LanesOptions<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
): Promise<void> {
  const sentMs = performance.now();
  const outcomes = await outcomesOf(() => send(batch.map(({ item }) => item)), batch.length);
  let splitOff = 0;
  batch.forEach(({ item, resolve }, index) => {
    const outcome = outcomes[index] ?? null;
    const isMissed = outcome === null || outcome instanceof Error;
    if (isMissed) splitOff += 1;
    resolve(isMissed ? settle(item, outcome) : outcome);
  });
  const sinceMs = Math.min(...batch.map((each) => each.sinceMs));
  onBatch({ size: batch.length, waitedMs: sentMs - sinceMs, tookMs: performance.now() - sentMs, splitOff });
}

async function outcomesOf<Outcome>(
  send: () => Promise<readonly Outcome[]>,
  count: number,
): Promise<readonly (Outcome | Error)[]> {
  try {
    return await send();
  } catch (error) {
    return Array.from({ length: count }, () => asError(error));
  }
}
