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
  let isOver = false;
  const onTime = (): void => {
    isOver = !over.signal.aborted;
    over.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  };
  const onStop = (): void => over.abort(stop?.reason);
  // A process that has nothing else to do is not kept alive by a deadline.
  const timer = setTimeout(onTime, Math.max(1, Math.ceil(withinMs))).unref();
  if (stop?.aborted) onStop();
  else stop?.addEventListener("abort", onStop, { once: true });
  return {
    signal: over.signal,
    isOver: () => isOver,
    race: (work) => race(work, over.signal),
    end: () => {
      clearTimeout(timer);
      stop?.removeEventListener("abort", onStop);
    },
  };
}

function race<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value | null> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(null);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject);
  });
}
