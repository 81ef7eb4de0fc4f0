const REPEAT_AFTER_MS = 10_000;

/** Passes on an error only if it is new, or the same one was last passed on a while ago: an outage is one story. */
export function rarely(report: (error: Error) => void, now: () => number): (error: Error) => void {
  const reportedAtMs = new Map<string, number>();
  return (error) => {
    for (const [message, atMs] of reportedAtMs) if (now() - atMs >= REPEAT_AFTER_MS) reportedAtMs.delete(message);
    if (reportedAtMs.has(error.message)) return;
    reportedAtMs.set(error.message, now());
    report(error);
  };
}
