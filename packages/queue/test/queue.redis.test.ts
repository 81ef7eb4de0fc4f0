import { testRedisUrl } from "@holdpoint/testkit";
import { Redis } from "ioredis";
import { describe } from "vitest";
import { describeQueue } from "./queue.suite.ts";
import type { ServerUnderTest } from "./queue-fixture.ts";

describe.skipIf(testRedisUrl() === null)("with a Redis", () => {
  describeQueue("the queue on Redis", async (): Promise<ServerUnderTest> => {
    const url = new URL(testRedisUrl() ?? "redis://none");
    const at = (database: number, host = url.hostname, port: string | number = url.port) => {
      return { kind: "redis", url: `redis://${host}:${port}/${database}` } as const;
    };
    const run = async (command: (redis: Redis) => Promise<unknown>) => {
      const redis = new Redis(url.href);
      await command(redis);
      await redis.quit();
    };
    const empty = () => run((redis) => redis.flushall());
    await empty();
    return {
      address: { host: url.hostname, port: Number(url.port || 6379) },
      connection: ({ host, port }) => at(0, host, port),
      untouched: () => at(1),
      empty,
      // The primary that it waits for does not exist, so it keeps what it has.
      demote: () => run((redis) => redis.replicaof("127.0.0.1", 1)),
      promote: () => run((redis) => redis.replicaof("NO", "ONE")),
      [Symbol.asyncDispose]: empty,
    };
  });
});
