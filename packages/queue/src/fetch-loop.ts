// Owns: the loop that fetches from one queue, for ever. Whatever fails or hangs, it drops the connection, waits a moment
// and opens another; it ends only when it is stopped.
import { ANSWER_LIMIT_MS, openLanes } from "./fetch-lanes.ts";
import type { TakenJob, WakeUpSource } from "./queue-server.ts";
import type { Slots } from "./slots.ts";
import { pause, toError, within } from "./time-limit.ts";

interface FetchLoopOptions {
  /** Connects; gives up when the signal fires. */
  readonly open: (signal: AbortSignal) => Promise<WakeUpSource>;
  readonly slots: Slots;
  /** Gets each job together with a slot, and releases it. */
  readonly deliver: (job: TakenJob) => void;
  readonly onError: (error: Error) => void;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Longest wait for a signal before asking anyway, since signals get lost; in milliseconds. */
  readonly pollMs: number;
}

interface FetchLoop {
  /** For how long, in milliseconds, no fetch has been answered; 0 while all slots are taken. */
  sinceFetchMs(): number;
  /** Nothing is delivered from this moment on. */
  stop(): void;
  /** Settles when the loop has ended and its connection is closed. Never rejects. */
  readonly ended: Promise<void>;
}

// What is asked when the loop is stopped gets this long: a job that is fetched but not given back is late for others.
const STOP_GRACE_MS = 1_000;
const MAX_BACKOFF_MS = 2_000;

/** Starts to fetch. */
export function startFetchLoop(options: FetchLoopOptions): FetchLoop {
  const { slots, now } = options;
  const stopping = new AbortController();
  const abandoning = new AbortController();
  let graceTimer: NodeJS.Timeout | undefined;
  let answeredAtMs = now();
  let waitsForSlot = false;
  let failures = 0;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await fetchFrom(await options.open(stopping.signal));
      } catch (error) {
        if (!stopping.signal.aborted) options.onError(toError(error));
        await pause(Math.min(50 * 2 ** failures, MAX_BACKOFF_MS), stopping.signal);
        failures += 1;
      }
    }
  }

  async function fetchFrom(source: WakeUpSource): Promise<void> {
    const lanes = openLanes({ ...options, source, onAnswer, stopping: stopping.signal, abandoning: abandoning.signal });
    try {
      while (!stopping.signal.aborted) {
        await getSlot();
        if (stopping.signal.aborted) return;
        const isEmpty = await lanes.fetch();
        if (isEmpty && (await waitForJob(source))) await lanes.passOn();
      }
    } finally {
      await lanes.settled();
      await source.close();
    }
  }

  function onAnswer(): void {
    answeredAtMs = now();
    failures = 0;
  }

  async function getSlot(): Promise<void> {
    if (slots.tryAcquire()) return;
    waitsForSlot = true;
    await within(slots.acquire(), { what: "Waiting for a slot", signal: stopping.signal });
    waitsForSlot = false;
    answeredAtMs = now();
  }

  async function waitForJob(source: WakeUpSource): Promise<boolean> {
    const limitMs = options.pollMs + ANSWER_LIMIT_MS;
    return within(source.wait(options.pollMs), { what: "Waiting for a wake-up", limitMs, signal: stopping.signal });
  }

  return {
    sinceFetchMs: () => (waitsForSlot ? 0 : Math.max(0, now() - answeredAtMs)),
    stop() {
      if (stopping.signal.aborted) return;
      stopping.abort();
      graceTimer = setTimeout(() => abandoning.abort(), STOP_GRACE_MS);
    },
    ended: run().finally(() => clearTimeout(graceTimer)),
  };
}
