import { spawn } from "node:child_process";
import { once } from "node:events";
import { waitFor } from "@holdpoint/testkit";
import { describe, expect, test } from "vitest";
import type { QueueConnection } from "../src/index.ts";
import {
  anAgent,
  consume,
  fetches,
  isGone,
  LATE_MS,
  LIMIT_MS,
  proxyTo,
  publisherOf,
  receive,
  type ServerUnderTest,
  soon,
  wakeUp,
} from "./queue-fixture.ts";

/** What a queue promises while its server is away, hangs or is demoted. */
export function describeOutage(under: { readonly server: ServerUnderTest; readonly direct: QueueConnection }): void {
  describe("an outage", () => {
    test("a publisher fails fast while the server is away, and works when it is back", async () => {
      const proxy = await proxyTo(under.server);
      const agent = anAgent();
      const publisher = publisherOf(under.server.connection(proxy.address), LIMIT_MS);
      await waitFor(() => publisher.check(), soon("a good check"));
      await proxy.cut();
      const startedAt = performance.now();
      const failed = await publisher.publish([wakeUp(agent), wakeUp(agent)]);
      expect(failed).toEqual({ published: 0, failed: 2, error: expect.any(Error) });
      expect(await publisher.waiting(agent)).toBeNull();
      expect(await publisher.check()).toBe(false);
      expect(performance.now() - startedAt).toBeLessThan(3 * LIMIT_MS + LATE_MS);
      await proxy.restore();
      await waitFor(async () => (await publisher.publish([wakeUp(agent)])).published === 1, soon("a publish"));
      await waitFor(() => publisher.check(), soon("a good check"));
    });

    test("a publisher of a server that hangs keeps its limit, and works when the server goes on", async () => {
      const proxy = await proxyTo(under.server);
      const agent = anAgent();
      const publisher = publisherOf(under.server.connection(proxy.address), LIMIT_MS);
      await waitFor(async () => (await publisher.publish([wakeUp(agent)])).published === 1, soon("a publish"));
      proxy.freeze();
      for (const question of ["first", "second"]) {
        const startedAt = performance.now();
        expect((await publisher.publish([wakeUp(agent)])).failed, question).toBe(1);
        expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS + LATE_MS);
      }
      await proxy.restore();
      await waitFor(async () => (await publisher.publish([wakeUp(agent)])).published === 1, soon("a publish"));
    });

    test("a server that was never there costs no more than the limit, and is used once it comes", async () => {
      const proxy = await proxyTo(under.server);
      await proxy.cut();
      const connection = under.server.connection(proxy.address);
      const agent = anAgent();
      const publisher = publisherOf(connection, LIMIT_MS);
      const { consumer, received } = consume(connection, [agent]);
      const startedAt = performance.now();
      expect((await publisher.publish([wakeUp(agent)])).failed).toBe(1);
      expect(await publisher.waiting(agent)).toBeNull();
      expect(performance.now() - startedAt).toBeLessThan(2 * LIMIT_MS + LATE_MS);
      await waitFor(() => consumer.health().sinceFetchMs > 500, soon("the consumer to be unhealthy"));
      await proxy.restore();
      await waitFor(async () => (await publisher.publish([wakeUp(agent)])).published === 1, soon("a publish"));
      await receive(received, 1);
    });

    test("a consumer goes on after the server was away, without a restart", async () => {
      const proxy = await proxyTo(under.server);
      const agent = anAgent();
      const { consumer, received, errors } = consume(under.server.connection(proxy.address), [agent]);
      const publisher = publisherOf(under.direct);
      await publisher.publish([wakeUp(agent)]);
      await receive(received, 1);
      // A fetch that is under way when the connection breaks may still take the next one, for nobody.
      await waitFor(() => isGone(under.direct, agent), soon("the removal, and the fetch with it"));
      await proxy.cut();
      await publisher.publish([wakeUp(agent)]);
      await waitFor(() => consumer.health().sinceFetchMs > 2_500, soon("the consumer to be unhealthy"));
      expect(errors.length).toBeGreaterThan(0);
      expect(errors.length).toBeLessThan(10);
      await proxy.restore();
      await receive(received, 2);
      await fetches(consumer);
    });

    test("a consumer goes on after its signals stopped coming through", async () => {
      const proxy = await proxyTo(under.server);
      const agent = anAgent();
      const { consumer, received } = consume(under.server.connection(proxy.address), [agent], { pollMs: 200 });
      await fetches(consumer);
      proxy.freeze();
      await publisherOf(under.direct).publish([wakeUp(agent)]);
      await waitFor(() => consumer.health().sinceFetchMs > 1_000, soon("the consumer to be unhealthy"));
      await proxy.restore();
      await receive(received, 1);
      await fetches(consumer);
    });

    test("a failover: both go on after the server refused writes for a while", async () => {
      const agent = anAgent();
      const { consumer, received } = consume(under.direct, [agent], { pollMs: 200 });
      const publisher = publisherOf(under.direct);
      await publisher.publish([wakeUp(agent)]);
      await receive(received, 1);
      await under.server.demote();
      try {
        await waitFor(async () => (await publisher.publish([wakeUp(agent)])).failed === 1, soon("a refusal"));
        expect(await publisher.check()).toBe(false);
        await waitFor(() => consumer.health().sinceFetchMs > 1_000, soon("the consumer to be unhealthy"));
      } finally {
        await under.server.promote();
      }
      await waitFor(async () => (await publisher.publish([wakeUp(agent)])).published === 1, soon("a publish"));
      await waitFor(() => publisher.check(), soon("a good check"));
      await waitFor(() => received.length >= 2, soon("a delivery"));
      await fetches(consumer);
    });

    test.for([["well"], ["away"], ["hanging"]] as const)(
      "a process that closes all it opened ends by itself while the server is %s",
      async ([state]) => {
        const proxy = await proxyTo(under.server);
        if (state === "away") await proxy.cut();
        if (state === "hanging") proxy.freeze();
        const script = new URL("closing-process.ts", import.meta.url).pathname;
        const child = spawn(process.execPath, [script, JSON.stringify(under.server.connection(proxy.address))], {
          stdio: ["ignore", "inherit", "inherit"],
        });
        const [code] = await once(child, "exit", { signal: AbortSignal.timeout(20_000) });
        expect(code).toBe(0);
      },
    );

    test("a queue that was emptied under a living consumer delivers what comes next", async () => {
      const agent = anAgent();
      const { received } = consume(under.direct, [agent]);
      const publisher = publisherOf(under.direct);
      await publisher.publish([wakeUp(agent)]);
      await receive(received, 1);
      await under.server.empty();
      await publisher.publish([wakeUp(agent)]);
      await receive(received, 2);
    });
  });
}
