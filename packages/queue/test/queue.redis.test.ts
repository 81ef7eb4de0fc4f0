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
    async function run<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
      const redis = new Redis(url.href);
      try {
        return await command(redis);
      } finally {
        await redis.quit();
      }
    }
    const empty = async () => void (await run((redis) => redis.flushall()));
    await empty();
    return {
      address: { host: url.hostname, port: Number(url.port || 6379) },
      connection: ({ host, port }) => at(0, host, port),
      untouched: () => at(1),
      empty,
      // Each move of a job is one script.
      async commands() {
        const stats = await run((redis) => redis.info("commandstats"));
        return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      },
      // The primary that it waits for does not exist, so it keeps what it has.
      demote: async () => void (await run((redis) => redis.replicaof("127.0.0.1", 1))),
      promote: async () => void (await run((redis) => redis.replicaof("NO", "ONE"))),
      [Symbol.asyncDispose]: empty,
    };
  });
});
