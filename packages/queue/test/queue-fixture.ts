import { randomUUID } from "node:crypto";
import type { AgentRef } from "@holdpoint/core";
import { waitFor } from "@holdpoint/testkit";
import { expect, onTestFinished } from "vitest";
import {
  type AgentWakeUp,
  type Consumer,
  type ConsumerOptions,
  openConsumer,
  openPublisher,
  type Publisher,
  type QueueConnection,
  queueName,
} from "../src/index.ts";
import { type QueueServer, queueServer } from "../src/queue-server.ts";
import { type Address, type FaultProxy, openFaultProxy } from "./fault-proxy.ts";

/** A server that the queue can live on. */
export interface ServerUnderTest extends AsyncDisposable {
  readonly address: Address;
  /** The connection through another address, the proxy's. */
  connection(address: Address): QueueConnection;
  /** The same server, never used before. */
  untouched(): QueueConnection;
  /** Removes all that the queue holds. */
  empty(): Promise<void>;
  /** How many commands the server has done for queues; only those of connections that are closed are surely counted. */
  commands(): Promise<number>;
  /** Breaks all connections and refuses writes on new ones: another server has taken over. */
  demote(): Promise<void>;
  /** Takes writes again; connections that were opened before need not. */
  promote(): Promise<void>;
}

const SOON_MS = 15_000;
/** A publisher's limit where the server is away. */
export const LIMIT_MS = 500;
/** How much later than a limit an answer may come on a busy machine. */
export const LATE_MS = 1_500;

export function anAgent(): AgentRef {
  return { name: `agent ${randomUUID()}`, version: "1.0" };
}

export function wakeUp(agent: AgentRef): AgentWakeUp {
  return { agent, runId: randomUUID(), version: 1 };
}

export function pick<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

export const soon = (what: string) => ({ deadlineMs: SOON_MS, what });
export const opening = {
  onError: (error: Error) => expect.unreachable(error.message),
  signal: new AbortController().signal,
};

interface Consuming extends Partial<Omit<ConsumerOptions, "agents" | "handler" | "onError">> {
  readonly work?: (wakeUp: AgentWakeUp) => Promise<void>;
}

/** A consumer that notes what it gets, closed at the end of the test. */
export function consume(
  connection: QueueConnection,
  agents: readonly AgentRef[],
  { work, ...options }: Consuming = {},
) {
  const received: AgentWakeUp[] = [];
  const errors: string[] = [];
  const consumer = openConsumer(connection, {
    concurrency: 5,
    ...options,
    agents,
    handler: async (wakeUp) => {
      received.push(wakeUp);
      await work?.(wakeUp);
    },
    onError: (error) => errors.push(error.message),
  });
  onTestFinished(() => consumer.close(1_000));
  return { consumer, received, errors };
}

export function publisherOf(connection: QueueConnection, limitMs = SOON_MS): Publisher {
  const publisher = openPublisher(connection, { limitMs });
  onTestFinished(() => publisher[Symbol.asyncDispose]());
  return publisher;
}

/** Publishes through a publisher of its own, which is closed afterwards. */
export async function publishAll(connection: QueueConnection, wakeUps: readonly AgentWakeUp[]): Promise<void> {
  await using publisher = openPublisher(connection, { limitMs: SOON_MS });
  expect(await publisher.publish(wakeUps)).toEqual({ published: wakeUps.length, failed: 0, error: null });
}

export async function proxyTo(server: ServerUnderTest): Promise<FaultProxy> {
  const proxy = await openFaultProxy(server.address);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return proxy;
}

export function serverOf(connection: QueueConnection): QueueServer {
  return queueServer(connection, { connectMs: SOON_MS, commandMs: SOON_MS });
}

export async function receive(list: readonly unknown[], count: number): Promise<void> {
  await waitFor(() => list.length >= count, soon(`${count} of them`));
  expect(list).toHaveLength(count);
}

/** Waits until the consumer's fetch has just been answered. */
export async function fetches(consumer: Consumer): Promise<void> {
  await waitFor(() => consumer.health().sinceFetchMs < 200, soon("a fetch"));
}

/** Whether the queue holds nothing any more, neither waiting nor taken: the same ids can be added again. */
export async function isGone(connection: QueueConnection, agent: AgentRef): Promise<boolean> {
  const source = await serverOf(connection).openSource(queueName(agent), { ...opening, abandonedAfterMs: 30_000 });
  const queue = await serverOf(connection).openQueue(queueName(agent), opening);
  try {
    return (await queue.countWaiting()) === 0 && (await source.take()) === null;
  } finally {
    await source.close();
    await queue.close();
  }
}
