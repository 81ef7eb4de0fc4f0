// Owns: the only place that builds BullMQ objects, once for both servers. Does not own: limits, loops, retries.
//
// A wake-up is only a hint, so its job is removed when it is taken, before anybody acts on it: no lock to renew while a
// handler works, nothing left behind by a process that dies, and its id is free again at once.
import {
  type BackendFactory,
  createPostgresBackend,
  createRedisBackend,
  type IQueueBackend,
  Job,
  type JobJson,
  withBackend,
} from "bullmq";
import {
  migrateQueue,
  type Patience,
  postgresOptions,
  type QueueConnection,
  redisConsumerOptions,
  redisPublisherOptions,
} from "./connection.ts";
import { toError, within } from "./time-limit.ts";

/** One queue as a publisher sees it. */
export interface WakeUpQueue {
  /** Adds the jobs; one whose id still waits is left as it is. */
  add(jobs: readonly { readonly id: string; readonly data: unknown }[]): Promise<void>;
  /** As many adds at a time are quicker than one after the other; more only wait. */
  readonly addsAtOnce: number;
  countWaiting(): Promise<number>;
  /** Adds a job that nobody fetches and removes it: a write there and back. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** One job, taken from its queue. Exactly one of its verbs must follow. */
export interface TakenJob {
  readonly id: string;
  readonly data: unknown;
  /** Twice in a row a process died between taking it and removing it. */
  readonly deadly: boolean;
  remove(): Promise<void>;
  /** Removes it and takes the next one, in one round trip. */
  removeAndTake(): Promise<TakenJob | null>;
  giveBack(): Promise<void>;
}

/** One queue as a consumer sees it. */
export interface WakeUpSource {
  take(): Promise<TakenJob | null>;
  /** Ends when a job may be there (true), at the latest after `limitMs` (false). */
  wait(limitMs: number): Promise<boolean>;
  /** A signal ends only one of the waits for it, not all. */
  readonly wakesOne: boolean;
  close(): Promise<void>;
}

interface OpenOptions {
  readonly onError: (error: Error) => void;
  /** Ends the attempt to open. */
  readonly signal: AbortSignal;
}

interface SourceOptions extends OpenOptions {
  /** After this time, in milliseconds, a job that a dead process had taken and not removed is given again, once. */
  readonly abandonedAfterMs: number;
}

/** A server that holds queues. Opening fails when the server can't be reached; nothing stays behind then. */
export interface QueueServer {
  openQueue(name: string, options: OpenOptions): Promise<WakeUpQueue>;
  openSource(name: string, options: SourceOptions): Promise<WakeUpSource>;
}

const JOB = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;
const JOB_NAME = "wake-up";
const PREFIX = "holdpoint";
// BullMQ writes an event for each move of a job. Nobody reads them, so few are kept.
const MAX_EVENTS = 100;
const READY_LIMIT_MS = 10_000;
const CLOSE_LIMIT_MS = 2_000;

/** Binds the one code path to the server that the connection names. */
export function queueServer(connection: QueueConnection, patience: Patience): QueueServer {
  if (connection.kind === "postgres") {
    const options = postgresOptions(connection, patience);
    return bind(createPostgresBackend, {
      publisher: options,
      consumer: options,
      prepare: preparing(connection),
      wakesOne: false,
      endsOpening: true,
      maxSingleAdds: 4,
      addsAtOnce: options.max,
    });
  }
  return bind(createRedisBackend, {
    publisher: redisPublisherOptions(connection.url, patience),
    consumer: redisConsumerOptions(connection.url, patience),
    prepare: async () => undefined,
    wakesOne: true,
    endsOpening: false,
    maxSingleAdds: 1,
    addsAtOnce: 16,
  });
}

/** Migrates once per process and connection; a failure is forgotten, so that the next one tries again. */
function preparing(connection: QueueConnection): () => Promise<void> {
  let prepared: Promise<void> | null = null;
  return () => {
    prepared ??= migrateQueue(connection).catch((error) => {
      prepared = null;
      throw error;
    });
    return prepared;
  };
}

interface Binding<C> {
  readonly publisher: C;
  readonly consumer: C;
  readonly prepare: () => Promise<void>;
  readonly wakesOne: boolean;
  /** An attempt to open has an end, also when the server is away. */
  readonly endsOpening: boolean;
  /** Up to so many jobs are added one by one. On Postgres a bulk makes temporary tables, which cost as much as eight. */
  readonly maxSingleAdds: number;
  readonly addsAtOnce: number;
}

function bind<B extends IQueueBackend, C>(factory: BackendFactory<B, C>, binding: Binding<C>): QueueServer {
  const { Queue, Worker } = withBackend(factory);

  async function openQueue(name: string, options: OpenOptions): Promise<WakeUpQueue> {
    await binding.prepare();
    const queue = new Queue(name, {
      connection: binding.publisher,
      prefix: PREFIX,
      streams: { events: { maxLen: MAX_EVENTS } },
    });
    // Forced: a polite end needs an answer from the server, and without one the connection would be tried for ever.
    const close = () => closing(queue.getBackend().close(true));
    await ready(queue, { close, signal: options.signal });
    queue.on("error", options.onError);
    return {
      async add(jobs) {
        const entries = jobs.map((job) => ({ name: JOB_NAME, data: job.data, opts: { ...JOB, jobId: job.id } }));
        if (entries.length > binding.maxSingleAdds) await queue.addBulk(entries);
        else await Promise.all(entries.map((entry) => queue.add(entry.name, entry.data, entry.opts)));
      },
      addsAtOnce: binding.addsAtOnce,
      countWaiting: () => queue.getWaitingCount(),
      async probe() {
        const { id = "" } = await queue.add("probe", {}, { ...JOB });
        await queue.remove(id);
      },
      close,
    };
  }

  async function openSource(name: string, options: SourceOptions): Promise<WakeUpSource> {
    await binding.prepare();
    const worker = new Worker(name, null, {
      connection: binding.consumer,
      prefix: PREFIX,
      autorun: false,
      lockDuration: options.abandonedAfterMs,
      stalledInterval: options.abandonedAfterMs,
      maxStalledCount: 1,
    });
    // What is closed in the middle of its opening goes on with it, and its last connection stays open for ever.
    const opened = binding.endsOpening ? () => worker.waitUntilReady().catch(() => undefined) : async () => undefined;
    const giveUp = () => closing(opened().then(() => worker.close(true)));
    await ready(worker, { close: giveUp, signal: options.signal });
    worker.on("error", options.onError);
    const backend = worker.getBackend();
    await worker.startStalledCheckTimer();
    const nextJob: NextJob = (json, id) => takenJob(Job.fromJSON(worker, json, id), worker.id, nextJob);
    return {
      async take() {
        const job = await worker.getNextJob(worker.id, { block: false });
        return job === undefined ? null : takenJob(job, worker.id, nextJob);
      },
      wait: async (limitMs) => (await backend.waitForJob(limitMs / 1_000)) !== null,
      wakesOne: binding.wakesOne,
      // A wait would otherwise keep its timer, and the process, until it is over.
      close: () => closing(backend.disconnectBlocking(false).then(() => worker.close(true))),
    };
  }

  return { openQueue, openSource };
}

type NextJob = (json: JobJson, id: string) => TakenJob;

function takenJob(job: Job, token: string, nextJob: NextJob): TakenJob {
  return {
    id: job.id ?? "",
    data: job.data,
    deadly: job.deferredFailure !== undefined,
    async remove() {
      await job.moveToCompleted(null, token, false);
    },
    async removeAndTake() {
      // What BullMQ documents for workers that fetch by hand: [job, id, …], without a job if none waits.
      const [json, id] = (await job.moveToCompleted(null, token, true)) ?? [];
      return json ? nextJob(json, id) : null;
    },
    async giveBack() {
      await job.moveToWait(token);
    },
  };
}

interface Opening {
  on(event: "error", listener: (error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
}

interface Attempt {
  readonly close: () => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Waits for the first connection. BullMQ would wait for ever for a server that is away, and keeps a failed start for
 * good; so the first error ends the attempt, and the caller opens anew. The listener stays: an `error` that nobody
 * listens to would end the process.
 */
async function ready(opening: Opening, { close, signal }: Attempt): Promise<void> {
  try {
    const connected = new Promise<void>((resolve, reject) => {
      opening.on("error", reject);
      opening.waitUntilReady().then(() => resolve(), reject);
    });
    await within(connected, { what: "Connecting to the queue server", limitMs: READY_LIMIT_MS, signal });
  } catch (error) {
    await close();
    throw toError(error);
  }
}

/** A connection may already be broken when it is closed; there is nothing left to do about it then. */
async function closing(closed: Promise<void>): Promise<void> {
  await within(closed, { what: "Closing a queue", limitMs: CLOSE_LIMIT_MS }).catch(() => undefined);
}
