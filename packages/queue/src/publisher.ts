import type { AgentRef } from "@holdpoint/core";
import { type AddTogether, addTogether } from "./add-together.ts";
import type { QueueConnection } from "./connection.ts";
import { queueName } from "./queue-name.ts";
import { queueServer, type WakeUpQueue } from "./queue-server.ts";
import { rarely } from "./rarely.ts";
import { toError, within } from "./time-limit.ts";
import { type AgentWakeUp, wakeUpId } from "./wake-up.ts";

/** How many wake-ups the server took, how many it did not, and the first reason. */
export interface Published {
  readonly published: number;
  readonly failed: number;
  readonly error: Error | null;
}

/** Sends wake-ups. It connects when it is first used; while the server is away its calls fail, later ones work again. */
export interface Publisher extends AsyncDisposable {
  /**
   * Publishes after the commit that made the runs `queued`. Never throws and never takes longer than its limit; what
   * failed is published again by the repair sweep, which passes its own number as `sweep`.
   */
  publish(wakeUps: readonly AgentWakeUp[], options?: { readonly sweep?: number }): Promise<Published>;
  /** How many wake-ups wait in the agent's queue, or null when the server can't say in time. */
  waiting(agent: AgentRef): Promise<number | null>;
  /** Whether a write goes to the server and back in time. For readiness. */
  check(): Promise<boolean>;
}

export interface PublisherOptions {
  /** Limit of each call, in milliseconds. Default 1 000. */
  readonly limitMs?: number;
  /** Hears what goes wrong between calls (a call's own failure is in its result), once per 10 s. Must not throw. */
  readonly onError?: (error: Error) => void;
}

const CHECK_QUEUE = "check";
const MIN_PATIENCE_MS = 5_000;

/** Opens a publisher; it connects lazily, one connection pool per agent it publishes to. */
export function openPublisher(connection: QueueConnection, options: PublisherOptions = {}): Publisher {
  const { limitMs = 1_000 } = options;
  const onError = rarely(options.onError ?? (() => undefined), () => performance.now());
  // A call that gave up leaves its connection or command some time more: a slow server must not be tried anew for ever.
  const patienceMs = Math.max(limitMs, MIN_PATIENCE_MS);
  const server = queueServer(connection, { connectMs: patienceMs, commandMs: patienceMs });
  const queues = new Map<string, Promise<OpenQueue>>();
  const closed = new AbortController();

  function open(name: string): Promise<OpenQueue> {
    const known = queues.get(name);
    if (known !== undefined) return known;
    const opening = server.openQueue(name, { onError, signal: closed.signal }).then((queue) => {
      return { ...queue, addTogether: addTogether({ send: queue.add, atOnce: queue.addsAtOnce }) };
    });
    queues.set(name, opening);
    opening.catch(() => queues.delete(name));
    return opening;
  }

  async function ask<T>(name: string, what: string, question: (queue: OpenQueue) => Promise<T>): Promise<T> {
    return within(open(name).then(question), { what, limitMs });
  }

  async function publishTo(name: string, jobs: readonly NamedJob[]): Promise<Published> {
    let isWaiting = true;
    try {
      await ask(name, "Publishing", (queue) => queue.addTogether(jobs, () => isWaiting));
      return { published: jobs.length, failed: 0, error: null };
    } catch (error) {
      return { published: 0, failed: jobs.length, error: toError(error) };
    } finally {
      isWaiting = false;
    }
  }

  return {
    async publish(wakeUps, { sweep } = {}) {
      const { jobsByQueue, refused } = sort(wakeUps, sweep);
      const results = await Promise.all([...jobsByQueue].map(([name, jobs]) => publishTo(name, jobs)));
      return [refused, ...results].reduce((sum, result) => ({
        published: sum.published + result.published,
        failed: sum.failed + result.failed,
        error: sum.error ?? result.error,
      }));
    },
    async waiting(agent) {
      try {
        return await ask(queueName(agent), "Counting", (queue) => queue.countWaiting());
      } catch {
        return null; // what "can't say" means here; the publisher's next call reports why
      }
    },
    async check() {
      try {
        await ask(CHECK_QUEUE, "Checking", (queue) => queue.probe());
        return true;
      } catch {
        return false; // the answer itself
      }
    },
    async [Symbol.asyncDispose]() {
      closed.abort(new Error("the publisher is closed"));
      const opened = await Promise.allSettled(queues.values());
      await Promise.all(opened.map((queue) => (queue.status === "fulfilled" ? queue.value.close() : undefined)));
    },
  };
}

interface OpenQueue extends WakeUpQueue {
  readonly addTogether: AddTogether<NamedJob>;
}

interface NamedJob {
  readonly id: string;
  readonly data: unknown;
}

function sort(wakeUps: readonly AgentWakeUp[], sweep: number | undefined) {
  const jobsByQueue = new Map<string, NamedJob[]>();
  let refused: Published = { published: 0, failed: 0, error: null };
  for (const { agent, runId, version } of wakeUps) {
    try {
      const job = { id: wakeUpId({ runId, version }, sweep), data: { runId, version } };
      const name = queueName(agent);
      const jobs = jobsByQueue.get(name);
      if (jobs === undefined) jobsByQueue.set(name, [job]);
      else jobs.push(job);
    } catch (error) {
      refused = { published: 0, failed: refused.failed + 1, error: refused.error ?? toError(error) };
    }
  }
  return { jobsByQueue, refused };
}
