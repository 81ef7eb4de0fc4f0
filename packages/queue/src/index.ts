export { migrateQueue, type QueueConnection } from "./connection.ts";
export { type Consumer, type ConsumerHealth, type ConsumerOptions, openConsumer } from "./consumer.ts";
export { openPublisher, type Published, type Publisher, type PublisherOptions } from "./publisher.ts";
export { queueName } from "./queue-name.ts";
export { type AgentWakeUp, type WakeUp, wakeUpId } from "./wake-up.ts";
