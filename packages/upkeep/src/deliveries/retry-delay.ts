const FIRST_MS = 10_000;
const FACTOR = 3;
const LONGEST_MS = 4 * 3_600_000;

/** How often a delivery is sent before it is given up: the last time about 23 hours after the first. */
export const ATTEMPTS_LIMIT = 13;

/**
 * How long after a failed attempt a delivery is sent again, in milliseconds; null: it is given up.
 *
 * @param attempt  1 for the first.
 */
export function retryInMs(attempt: number): number | null {
  return attempt >= ATTEMPTS_LIMIT ? null : Math.min(FIRST_MS * FACTOR ** (attempt - 1), LONGEST_MS);
}
