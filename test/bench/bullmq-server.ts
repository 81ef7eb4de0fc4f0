import type { QueueConnection } from "@holdpoint/queue";
import { createPostgresBackend, createRedisBackend, withBackend } from "bullmq";

const STRAW_QUEUE = "straw";

/** A job of the straw man's: a run to work on. */
export interface StrawJob {
  readonly id: string;
}

/** BullMQ as it comes, on the server that the connection names. */
export interface BareQueue {
  add(ids: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface BareWorker {
  close(): Promise<void>;
}

const JOB = { removeOnComplete: true, removeOnFail: true } as const;

export async function openBareQueue(connection: QueueConnection): Promise<BareQueue> {
  const queue = makeQueue(connection);
  await queue.waitUntilReady();
  return {
    async add(ids) {
      await queue.addBulk(ids.map((id) => ({ name: "work", data: { id }, opts: JOB })));
    },
    close: () => queue.close(),
  };
}

export async function openBareWorker(
  connection: QueueConnection,
  { concurrency, work }: { readonly concurrency: number; readonly work: (job: StrawJob) => Promise<void> },
): Promise<BareWorker> {
  const worker = makeWorker(connection, concurrency, work);
  await worker.waitUntilReady();
  return { close: () => worker.close(true) };
}

function makeQueue(connection: QueueConnection) {
  if (connection.kind === "postgres") {
    const { Queue } = withBackend(createPostgresBackend);
    return new Queue(STRAW_QUEUE, { connection: postgresOptions(connection.url) });
  }
  const { Queue } = withBackend(createRedisBackend);
  return new Queue(STRAW_QUEUE, { connection: { url: connection.url } });
}

function makeWorker(connection: QueueConnection, concurrency: number, work: (job: StrawJob) => Promise<void>) {
  const processor = ({ data }: { readonly data: StrawJob }) => work(data);
  if (connection.kind === "postgres") {
    const { Worker } = withBackend(createPostgresBackend);
    return new Worker(STRAW_QUEUE, processor, { connection: postgresOptions(connection.url), concurrency });
  }
  const { Worker } = withBackend(createRedisBackend);
  return new Worker(STRAW_QUEUE, processor, {
    connection: { url: connection.url, maxRetriesPerRequest: null },
    concurrency,
  });
}

/** As many connections as the product's queue has, and the schema that its migration has made. */
function postgresOptions(url: string) {
  return { connectionString: url, schema: "holdpoint_queue", max: 2 };
}
