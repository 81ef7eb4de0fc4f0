import { onAborted } from "./on-aborted.ts";

/** The end of one call to the outside: one timer and one signal, given back when the call has come home. */
export interface Deadline {
  /** Aborted when the time is up, or at the stop. */
  readonly signal: AbortSignal;
  /** Whether the time is up. */
  isOver(): boolean;
  /** What the work brings, or null once the signal is aborted: work that ignores it does not hold the run. */
  race<Value>(work: Promise<Value>): Promise<Value | null>;
  /** Ends the timer, and forgets the stop: a stop outlives many calls, and keeps nothing of those that are over. */
  end(): void;
}

/** @param stop  Ends it earlier; null where nothing may. */
export function openDeadline(withinMs: number, stop: AbortSignal | null): Deadline {
  const over = new AbortController();
  const waiting: (() => void)[] = [];
  let isOver = false;
  const cut = (reason: unknown): void => {
    over.abort(reason);
    for (const giveUp of waiting) giveUp();
  };
  const onTime = (): void => {
    isOver = !over.signal.aborted;
    cut(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  };
  // A process that has nothing else to do is not kept alive by a deadline.
  const timer = setTimeout(onTime, Math.max(1, Math.ceil(withinMs))).unref();
  const forget = stop === null ? null : onAborted(stop, cut);
  return {
    signal: over.signal,
    isOver: () => isOver,
    race: (work) =>
      new Promise((resolve, reject) => {
        if (over.signal.aborted) resolve(null);
        else waiting.push(() => resolve(null));
        work.then(resolve, reject);
      }),
    end: () => {
      clearTimeout(timer);
      forget?.();
    },
  };
}
