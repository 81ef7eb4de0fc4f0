import { type Renewal, renewLease, type Store } from "@holdpoint/store";
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** The right of this process to work until its lease ends, by its own monotonic clock. */
export interface Lease {
  /** Whether the process may start something: asked directly before every outside call. */
  isValid(): boolean;
  /** Aborted once the lease is over or the process was declared gone; it never comes back under this id. */
  readonly signal: AbortSignal;
  /** Aborted when this run is to stop or to pause, or the lease is over. */
  stopSignal(runId: string): AbortSignal;
  /** Forgets a run that was given back. */
  release(runId: string): void;
  /** Ends the renewals. */
  close(): void;
}

export interface LeaseOptions {
  readonly store: Store;
  readonly workerId: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** When the registration that began the lease was sent, on the monotonic clock. */
  readonly begunAtMs: number;
}

/** The process stops this much before its lease is over, for what is under way at that moment. */
const MARGIN = 0.1;
/** A difference between the clocks beyond this means that the machine was suspended. */
const SUSPENDED_MS = 2_000;

/**
 * Keeps a lease: renews it from the main loop (a blocked loop must not renew), counts its end from before each renewal
 * was sent, and takes a gap between the clocks as its end.
 */
export function keepLease(options: LeaseOptions): Lease {
  const { store, workerId, leaseMs, renewMs, clock, log } = options;
  const over = new AbortController();
  const stops = new Map<string, AbortController>();
  const usableMs = leaseMs * (1 - MARGIN);
  let confirmed = { monotonicMs: options.begunAtMs, wallMs: clock.wallMs() };
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  const end = (reason: string): void => {
    if (over.signal.aborted || closed) return;
    log.warn({ event: "lease.ended", workerId, reason }, "lease ended");
    over.abort(new Error(`The lease of this worker is over: ${reason}`));
  };
  const isValid = (): boolean => {
    if (over.signal.aborted) return false;
    const passedMs = clock.monotonicMs() - confirmed.monotonicMs;
    if (passedMs > usableMs) end("not_renewed_in_time");
    else if (clock.wallMs() - confirmed.wallMs - passedMs > SUSPENDED_MS) end("suspended");
    return !over.signal.aborted;
  };
  const accept = (renewal: Renewal, sent: typeof confirmed): void => {
    if (!renewal.renewed) return end("declared_gone");
    // An answer that comes after the end does not bring the lease back.
    if (!isValid()) return;
    confirmed = sent;
    for (const runId of renewal.stop) stops.get(runId)?.abort(new Error("A stop or a pause of this run was requested"));
  };
  const renew = async (): Promise<void> => {
    const sent = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    try {
      accept(await renewLease(store, workerId, leaseMs), sent);
    } catch (error) {
      // The lease that was confirmed last goes on running out; the next renewal may reach the database.
      log.warn({ event: "lease.renewal_failed", workerId, error: nameOf(error) }, "lease renewal failed");
    }
    if (isValid() && !closed) timer = setTimeout(() => void renew(), Math.min(renewMs, retryPauseMs(sent)));
  };
  const retryPauseMs = (sent: typeof confirmed): number => (confirmed === sent ? renewMs : renewMs / 5);

  timer = setTimeout(() => void renew(), renewMs);
  return {
    isValid,
    signal: over.signal,
    stopSignal: (runId) => {
      const stop = stops.get(runId) ?? new AbortController();
      stops.set(runId, stop);
      return AbortSignal.any([over.signal, stop.signal]);
    },
    release: (runId) => void stops.delete(runId),
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
