import { setTimeout as pause } from "node:timers/promises";

/** What is waited for, in words that fit after "waited in vain for", and how long at most. */
export interface Wait {
  readonly what: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

const POLL_MS = 30;

/**
 * Asks until there is an answer other than null.
 *
 * @throws {Error} the limit passed, or the signal was aborted.
 */
export async function until<T>(ask: () => Promise<T | null>, { what, limitMs, signal }: Wait): Promise<T> {
  const endsAtMs = performance.now() + limitMs;
  for (;;) {
    signal.throwIfAborted();
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > endsAtMs) throw new Error(`waited ${limitMs / 1_000} s in vain for ${what}`);
    await pause(POLL_MS, undefined, { signal });
  }
}
