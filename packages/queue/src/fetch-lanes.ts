// Owns: taking jobs from one source and delivering each with a slot, in as few round trips as possible: the command that
// removes a job brings the next one. Does not own: connections, waiting for jobs, when to try again.
import type { TakenJob, WakeUpSource } from "./queue-server.ts";
import type { Slots } from "./slots.ts";
import { toError, within } from "./time-limit.ts";

interface LanesOptions {
  readonly source: WakeUpSource;
  readonly slots: Slots;
  /** Gets each job together with a slot, and releases it. */
  readonly deliver: (job: TakenJob) => void;
  readonly onError: (error: Error) => void;
  /** Hears of each answer to a fetch. */
  readonly onAnswer: () => void;
  /** Once this fired nothing is delivered; what is fetched is given back. */
  readonly stopping: AbortSignal;
  /** Once this fired no answer is waited for. */
  readonly abandoning: AbortSignal;
}

interface Lanes {
  /** With a slot that it takes over: delivers until no job waits (true) or no slot is free (false). */
  fetch(): Promise<boolean>;
  /** Has another consumer signalled when this one was, and all its slots are taken. */
  passOn(): Promise<void>;
  /** Waits for what is under way. Never rejects. */
  settled(): Promise<void>;
}

/** Above this an answer is not late but lost. */
export const ANSWER_LIMIT_MS = 10_000;
const MAX_LANES = 4;
// Each lane costs one fetch that finds no job, or no slot for the next one; so it must serve several.
const SLOTS_PER_LANE = 8;

/** Opens one lane; while many jobs and many slots wait for each other there are more. */
export function openLanes({ source, slots, deliver, onError, onAnswer, stopping, abandoning }: LanesOptions): Lanes {
  const underWay = new Set<Promise<void>>();
  let lanes = 1;

  async function fetch(): Promise<boolean> {
    let job = await withSlot(source.take());
    while (job !== null) {
      if (stopping.aborted) {
        await move(job.giveBack());
        return false;
      }
      if (!slots.tryAcquire()) {
        keep(move(job.remove()));
        deliver(job);
        return false;
      }
      const next = withSlot(job.removeAndTake());
      deliver(job);
      try {
        job = await next;
      } catch (error) {
        // It may be this one job's failure; if it is the connection's, the next fetch fails as well.
        report(error);
        return false;
      }
      if (job !== null) addLanes();
    }
    return true;
  }

  function addLanes(): void {
    while (lanes < MAX_LANES && (lanes + 1) * SLOTS_PER_LANE <= slots.free && slots.tryAcquire()) {
      lanes += 1;
      const lane = fetch().then(() => undefined, report);
      keep(lane.finally(() => (lanes -= 1)));
    }
  }

  /** What is cut short because it is stopped is no failure. */
  function report(error: unknown): void {
    if (!stopping.aborted) onError(toError(error));
  }

  /** The slot is free again when the fetch brings nothing to deliver. */
  async function withSlot(fetching: Promise<TakenJob | null>): Promise<TakenJob | null> {
    let job: TakenJob | null = null;
    try {
      job = await within(fetching, { what: "Fetching a wake-up", limitMs: ANSWER_LIMIT_MS, signal: abandoning });
      onAnswer();
      return job;
    } finally {
      if (job === null || stopping.aborted) slots.release();
    }
  }

  /** A job that could not be moved is given again after a while, which does no harm. */
  async function move(moved: Promise<void>): Promise<void> {
    const limit = { what: "Moving a wake-up", limitMs: ANSWER_LIMIT_MS, signal: abandoning };
    await within(moved, limit).catch(onError);
  }

  function keep(work: Promise<void>): void {
    const kept = work.finally(() => underWay.delete(kept));
    underWay.add(kept);
  }

  async function passOn(): Promise<void> {
    if (!source.wakesOne || slots.free > 0) return;
    const limit = { what: "Passing on a wake-up", limitMs: ANSWER_LIMIT_MS, signal: abandoning };
    const job = await within(source.take(), limit);
    onAnswer();
    if (job !== null) await move(job.giveBack());
  }

  async function settled(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  return { fetch, passOn, settled };
}
