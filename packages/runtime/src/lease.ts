import { type Renewal, renewLease, type Store } from "@holdpoint/store";
import type { Clock } from "./clock.ts";
import { type Log, nameOf } from "./log.ts";
import { onAborted } from "./on-aborted.ts";

/** The right of this process to work until its lease ends, by its own monotonic clock. */
export interface Lease {
  /** Whether the process may start something: asked directly before every outside call. */
  isValid(): boolean;
  /** Aborted once the lease is over or the process was declared gone; it never comes back under this id. */
  readonly signal: AbortSignal;
  /** Resolves when an operator asks this process to drain; the answer to a renewal says so. */
  readonly drainRequested: Promise<void>;
  /** Whether no other process is to be started in the place of this one. */
  staysDown(): boolean;
  /**
   * Watches a claimed run until it is given back. One process may have an old and a new claim of the same run.
   *
   * @param also  Stops it as well.
   */
  watch(runId: string, also?: AbortSignal): Watch;
  /** Ends the renewals. */
  close(): void;
}

/** What tells the work on a claimed run to stop. */
export interface Watch {
  /** Aborted when the run is to stop or to pause, or the lease is over. */
  readonly stop: AbortSignal;
  end(): void;
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
  /** Hears of each renewal, for the metrics. Must not throw. */
  readonly onRenewal?: (report: RenewalReport) => void;
}

/** One try to renew the lease. */
export interface RenewalReport {
  readonly confirmed: boolean;
  /** How long ago the last confirmed one was sent, in milliseconds, now that this one's answer is here. */
  readonly sinceMs: number;
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
  const drain = Promise.withResolvers<void>();
  let staysDown = false;
  const watched = new Set<Watched>();
  const usableMs = leaseMs * (1 - MARGIN);
  let confirmed = { monotonicMs: options.begunAtMs, wallMs: clock.wallMs() };
  let timer: NodeJS.Timeout | undefined;
  let expiry: NodeJS.Timeout | undefined;
  let closed = false;

  const end = (reason: string): void => {
    if (over.signal.aborted || closed) return;
    clearTimeout(expiry);
    log.warn({ event: "lease.ended", workerId, reason }, "lease ended");
    over.abort(new Error(`The lease of this worker is over: ${reason}`));
    for (const { stop } of watched) stop.abort(over.signal.reason);
  };
  const isValid = (): boolean => {
    if (over.signal.aborted || closed) return false;
    const passedMs = clock.monotonicMs() - confirmed.monotonicMs;
    if (passedMs > usableMs) end("not_renewed_in_time");
    else if (clock.wallMs() - confirmed.wallMs - passedMs > SUSPENDED_MS) end("suspended");
    return !over.signal.aborted;
  };
  const accept = (renewal: Renewal, sent: typeof confirmed): void => {
    if (!renewal.renewed) end("declared_gone");
    // An answer that comes after the end does not bring the lease back.
    if (!renewal.renewed || !isValid()) return;
    confirmed = sent;
    expectEnd();
    if (renewal.drain !== null) {
      staysDown = renewal.drain.stayDown;
      drain.resolve();
    }
    for (const { runId, stop } of watched) {
      if (renewal.stop.includes(runId)) stop.abort(new Error("A stop or a pause of this run was requested"));
    }
  };
  // A renewal that hangs must not keep what is under way from being ended in time.
  const expectEnd = (): void => {
    clearTimeout(expiry);
    const leftMs = usableMs - (clock.monotonicMs() - confirmed.monotonicMs);
    expiry = setTimeout(() => isValid() && expectEnd(), Math.max(1, leftMs + 1));
  };
  const renew = async (): Promise<void> => {
    const sent = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const before = confirmed;
    try {
      accept(await renewLease(store, { workerId, leaseMs, wallMs: sent.wallMs }), sent);
    } catch (error) {
      // The lease that was confirmed last goes on running out; the next renewal may reach the database.
      log.warn({ event: "lease.renewal_failed", workerId, error: nameOf(error) }, "lease renewal failed");
    }
    const sinceMs = clock.monotonicMs() - before.monotonicMs;
    if (!closed) options.onRenewal?.({ confirmed: confirmed === sent, sinceMs });
    if (isValid()) timer = setTimeout(() => void renew(), Math.min(renewMs, retryPauseMs(sent)));
  };
  const retryPauseMs = (sent: typeof confirmed): number => (confirmed === sent ? renewMs : renewMs / 5);

  timer = setTimeout(() => void renew(), renewMs);
  expectEnd();
  return {
    isValid,
    signal: over.signal,
    drainRequested: drain.promise,
    staysDown: () => staysDown,
    watch: (runId, also) => {
      const stop = new AbortController();
      if (over.signal.aborted) stop.abort(over.signal.reason);
      return watchIn(watched, { runId, stop }, also);
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      clearTimeout(expiry);
    },
  };
}

interface Watched {
  readonly runId: string;
  readonly stop: AbortController;
}

function watchIn(watched: Set<Watched>, entry: Watched, also: AbortSignal | undefined): Watch {
  watched.add(entry);
  const forget = also === undefined ? null : onAborted(also, (reason) => entry.stop.abort(reason));
  return {
    stop: entry.stop.signal,
    end: () => {
      watched.delete(entry);
      forget?.();
    },
  };
}
