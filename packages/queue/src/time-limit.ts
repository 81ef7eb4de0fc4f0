/** Thrown by `within` when the limit passes first. */
class TimeLimitError extends Error {
  constructor(what: string, limitMs: number) {
    super(`${what} took longer than ${limitMs} ms`);
    this.name = "TimeLimitError";
  }
}

/** What something is (for the error), how long it may take in milliseconds, and what ends the waiting early. */
interface TimeLimit {
  readonly what: string;
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Waits for `work`, but not longer than its limit, and not after the signal. Work that was abandoned goes on; its later
 * failure is nobody's.
 *
 * @throws {TimeLimitError} the limit passed. The signal's reason, if that came first.
 */
export async function within<T>(work: Promise<T>, { what, limitMs, signal }: TimeLimit): Promise<T> {
  const { promise: abandoned, reject } = Promise.withResolvers<never>();
  const timer =
    limitMs === undefined ? undefined : setTimeout(() => reject(new TimeLimitError(what, limitMs)), limitMs);
  const stop = () => reject(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  try {
    return await Promise.race([work, abandoned]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** Resolves after `delayMs`, or at once when the signal fires. */
export function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    signal.addEventListener("abort", end);
  });
}

/** Whatever was thrown, as an Error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
