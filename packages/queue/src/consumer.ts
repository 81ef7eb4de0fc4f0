import type { AgentRef } from "@holdpoint/core";
import type { QueueConnection } from "./connection.ts";
import { ANSWER_LIMIT_MS } from "./fetch-lanes.ts";
import { startFetchLoop } from "./fetch-loop.ts";
import { queueName } from "./queue-name.ts";
import { queueServer, type TakenJob } from "./queue-server.ts";
import { rarely } from "./rarely.ts";
import { Slots } from "./slots.ts";
import { toError, within } from "./time-limit.ts";
import { type AgentWakeUp, parseWakeUp } from "./wake-up.ts";

/** Whether the consumer really fetches. */
export interface ConsumerHealth {
  /**
   * For how long, in milliseconds, the slowest queue has had no answer to a fetch. At most about `pollMs` while all is
   * well, 0 while all slots are taken; it grows while the server is away or hangs.
   */
  readonly sinceFetchMs: number;
  /** Handlers at work. */
  readonly handling: number;
  /** Paused or closed: it fetches no more. */
  readonly stopped: boolean;
}

/** Takes wake-ups until it is closed, through any outage of the server. */
export interface Consumer extends AsyncDisposable {
  /** Stops fetching: no handler starts after this call. Handlers at work go on; nothing starts it again. */
  pause(): void;
  /** Pauses, waits for the handlers, and closes the connections; after `deadlineMs` it waits for handlers no longer. */
  close(deadlineMs?: number): Promise<void>;
  health(): ConsumerHealth;
}

export interface ConsumerOptions {
  /** Whose wake-ups it takes. */
  readonly agents: readonly AgentRef[];
  /** Most handlers at once, over all agents together. */
  readonly concurrency: number;
  /** What to do about a wake-up. The queue has forgotten it by then: whoever fails here is woken by a repair. */
  readonly handler: (wakeUp: AgentWakeUp) => Promise<void>;
  /** Hears of failed handlers, jobs that are no wake-ups, and outages (each kind once per 10 s). Must not throw. */
  readonly onError: (error: Error, agent: AgentRef) => void;
  /** Longest time, in milliseconds, until a wake-up is found whose signal got lost. Default 5 000. */
  readonly pollMs?: number;
  /** A wake-up that died between being taken and being removed is given again after twice this. Default 30 000 ms. */
  readonly abandonedAfterMs?: number;
  /** A monotonic clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

const CLOSE_DEADLINE_MS = 30_000;

/**
 * Starts to consume. It returns at once, also while the server is away; `health` tells whether it fetches.
 *
 * @throws {RangeError} `concurrency` is not a positive integer.
 */
export function openConsumer(connection: QueueConnection, options: ConsumerOptions): Consumer {
  const { agents, onError, pollMs = 5_000, abandonedAfterMs = 30_000, now = () => performance.now() } = options;
  const server = queueServer(connection, { connectMs: ANSWER_LIMIT_MS / 2, commandMs: ANSWER_LIMIT_MS });
  const slots = new Slots(options.concurrency);
  const handling = new Set<Promise<void>>();
  let stopped = false;

  const loops = agents.map((agent) => {
    const onOutage = rarely((error) => onError(error, agent), now);
    return startFetchLoop({
      open: (signal) => server.openSource(queueName(agent), { abandonedAfterMs, onError: onOutage, signal }),
      slots,
      deliver: (job) => deliver(agent, job),
      onError: onOutage,
      now,
      pollMs,
    });
  });

  function deliver(agent: AgentRef, job: TakenJob): void {
    const handled = handle(agent, job)
      .catch((error) => onError(toError(error), agent))
      .finally(() => {
        handling.delete(handled);
        slots.release();
      });
    handling.add(handled);
  }

  async function handle(agent: AgentRef, job: TakenJob): Promise<void> {
    const wakeUp = parseWakeUp(job.data);
    if (wakeUp === null) throw new Error(`Job ${job.id} in queue ${queueName(agent)} is no wake-up; it was dropped`);
    if (job.deadly) throw new Error(`Wake-up ${job.id} was dropped: twice a process died right after taking it`);
    await options.handler({ agent, ...wakeUp });
  }

  function pause(): void {
    stopped = true;
    for (const loop of loops) loop.stop();
  }

  async function close(deadlineMs = CLOSE_DEADLINE_MS): Promise<void> {
    pause();
    const done = Promise.all([...loops.map((loop) => loop.ended), ...handling]);
    // What is late goes on by itself: handlers are their owner's, connections close within their own limits.
    await within(done, { what: "Closing the consumer", limitMs: deadlineMs }).catch(() => undefined);
  }

  return {
    pause,
    close,
    health: () => ({
      sinceFetchMs: Math.max(0, ...loops.map((loop) => loop.sinceFetchMs())),
      handling: handling.size,
      stopped,
    }),
    [Symbol.asyncDispose]: () => close(),
  };
}
