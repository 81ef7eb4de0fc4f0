import { performance } from "node:perf_hooks";

/** What a person at the terminal, or whoever started us, asks for. */
export interface StopSignals {
  /** The first request to stop. */
  readonly first: Promise<NodeJS.Signals>;
  /** A second one, later than a second: enough of waiting. */
  readonly again: Promise<NodeJS.Signals>;
  /** Aborted by the first. */
  readonly asked: AbortSignal;
}

/** Some launchers pass the same Ctrl-C on twice. */
const SAME_REQUEST_MS = 1_000;

/** Listens for SIGINT, SIGTERM and SIGHUP from now on; none of them ends the process by itself any more. */
export function untilStopped(): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const again = Promise.withResolvers<NodeJS.Signals>();
  const asked = new AbortController();
  let firstAtMs: number | null = null;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      firstAtMs ??= performance.now();
      first.resolve(signal);
      asked.abort();
      if (performance.now() - firstAtMs > SAME_REQUEST_MS) again.resolve(signal);
    });
  }
  return { first: first.promise, again: again.promise, asked: asked.signal };
}
