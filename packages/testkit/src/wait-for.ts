import { setTimeout as pause } from "node:timers/promises";

export interface Deadline {
  /** How long to wait before giving up. */
  readonly deadlineMs: number;
  /** What is waited for, for the error message: "the run to be lost". */
  readonly what: string;
}

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;

/**
 * Asks again and again until the condition gives something other than `false`, `null` or `undefined`, and returns that.
 * An error of the condition ends the waiting at once.
 *
 * @throws {Error} the deadline passed; the message names what was waited for and the last answer.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { deadlineMs, what }: Deadline,
): Promise<Exclude<T, false | null | undefined>> {
  const endsAtMs = performance.now() + deadlineMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const answer = await condition();
    if (isMet(answer)) return answer;
    if (performance.now() >= endsAtMs) {
      throw new Error(`waited ${deadlineMs} ms in vain for ${what}; the last answer was ${String(answer)}`);
    }
    await pause(pauseMs);
  }
}

function isMet<T>(answer: T): answer is Exclude<T, false | null | undefined> {
  return answer !== false && answer !== null && answer !== undefined;
}
