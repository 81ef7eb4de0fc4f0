// Opens what a real process opens, uses it, closes it, and does nothing to end: an open timer or socket would keep it.
import { openConsumer, openPublisher, type QueueConnection } from "../src/index.ts";

// The parent wrote it a moment ago.
const connection = JSON.parse(process.argv[2] ?? "null") as QueueConnection;
const agent = { name: "closing", version: "1" };
const publisher = openPublisher(connection, { limitMs: 300 });
const options = { agents: [agent], concurrency: 1, handler: async () => {}, onError: () => {} };
// Closed before it has connected: what is only being opened ends as well.
await openConsumer(connection, options).close(0);
const consumer = openConsumer(connection, options);
await publisher.publish([{ agent, runId: "run", version: 1 }]);
await publisher.check();
await consumer.close(500);
await publisher[Symbol.asyncDispose]();
