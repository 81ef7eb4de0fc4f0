import { randomUUID } from "node:crypto";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type QueueConnection, queueName } from "../src/index.ts";
import { describeOutage } from "./outage.suite.ts";
import {
  anAgent,
  consume,
  fetches,
  isGone,
  LATE_MS,
  opening,
  pick,
  publishAll,
  publisherOf,
  receive,
  type ServerUnderTest,
  serverOf,
  soon,
  wakeUp,
} from "./queue-fixture.ts";

/** What a queue promises, whichever server it lives on. */
export function describeQueue(name: string, openServer: () => Promise<ServerUnderTest>): void {
  describe(name, () => {
    let server: ServerUnderTest;
    let direct: QueueConnection;

    beforeAll(async () => {
      server = await openServer();
      direct = server.connection(server.address);
    });
    afterAll(() => server[Symbol.asyncDispose]());

    describe("delivery", () => {
      test("brings the ids of a run and its agent, and nothing else", async () => {
        const agent = anAgent();
        const { received } = consume(direct, [agent]);
        const runId = randomUUID();
        const result = await publisherOf(direct).publish([{ agent, runId, version: 3 }]);
        expect(result).toEqual({ published: 1, failed: 0, error: null });
        await receive(received, 1);
        expect(received).toEqual([{ agent, runId, version: 3 }]);
      });

      test("brings each of many, of several agents, to exactly one of two consumers", async () => {
        const agents = [anAgent(), anAgent()];
        const [first, second] = [consume(direct, agents), consume(direct, agents)];
        const sent = Array.from({ length: 60 }, (_, index) => wakeUp(pick(agents, index)));
        expect((await publisherOf(direct).publish(sent)).published).toBe(60);
        await waitFor(() => first.received.length + second.received.length >= 60, soon("60 deliveries"));
        const ids = [...first.received, ...second.received].map((received) => received.runId);
        expect(ids.toSorted()).toEqual(sent.map(({ runId }) => runId).toSorted());
      });

      test("shares the work: a consumer whose slots are taken leaves the rest to others", async () => {
        const agent = anAgent();
        const gate = Promise.withResolvers<void>();
        const busy = consume(direct, [agent], { concurrency: 1, work: () => gate.promise });
        const publisher = publisherOf(direct);
        await publisher.publish([wakeUp(agent)]);
        await receive(busy.received, 1);
        const other = consume(direct, [agent]);
        await publisher.publish([wakeUp(agent), wakeUp(agent)]);
        await receive(other.received, 2);
        expect(busy.received).toHaveLength(1);
        gate.resolve();
      });

      test("never has more handlers at work than slots, over all agents together", async () => {
        const agents = [anAgent(), anAgent(), anAgent()];
        let atWork = 0;
        let most = 0;
        const full = Promise.withResolvers<void>();
        const work = async () => {
          most = Math.max(most, ++atWork);
          if (atWork === 2) full.resolve();
          await full.promise;
          atWork -= 1;
        };
        await publisherOf(direct).publish(Array.from({ length: 30 }, (_, index) => wakeUp(pick(agents, index))));
        const { received } = consume(direct, agents, { concurrency: 2, work });
        await receive(received, 30);
        expect(most).toBe(2);
      });
    });

    describe("round trips", () => {
      test("of many that wait, each costs one command: its removal brings the next", async () => {
        const agent = anAgent();
        const count = 300;
        await publishAll(
          direct,
          Array.from({ length: count }, () => wakeUp(agent)),
        );
        const before = await server.commands();
        const { consumer, received } = consume(direct, [agent], { concurrency: 50 });
        await receive(received, count);
        await consumer.close();
        const commands = (await server.commands()) - before;
        expect(commands).toBeGreaterThanOrEqual(count);
        expect(commands).toBeLessThan(1.1 * count + 30);
      });

      test("one signal is enough where the consumer that it reaches has no slot free", async () => {
        const [busy, shared] = [anAgent(), anAgent()];
        const gate = Promise.withResolvers<void>();
        const patient = { concurrency: 1, pollMs: 60_000 };
        const first = consume(direct, [busy, shared], { ...patient, work: () => gate.promise });
        await fetches(first.consumer);
        const publisher = publisherOf(direct);
        await publisher.publish([wakeUp(busy)]);
        await receive(first.received, 1);
        const second = consume(direct, [shared], patient);
        await fetches(second.consumer);
        await publisher.publish([wakeUp(shared)]);
        await receive(second.received, 1);
        expect(first.received).toHaveLength(1);
        gate.resolve();
      });
    });

    describe("ids", () => {
      test("while one waits, the same again changes nothing", async () => {
        const agent = anAgent();
        const publisher = publisherOf(direct);
        const same = wakeUp(agent);
        await publisher.publish([same]);
        expect((await publisher.publish([same, same])).error).toBeNull();
        expect(await publisher.waiting(agent)).toBe(1);
        const last = wakeUp(agent);
        await publisher.publish([last]);
        const { received } = consume(direct, [agent], { concurrency: 1 });
        await receive(received, 2);
        expect(received).toEqual([same, last]);
      });

      test("after it was taken, the same id is delivered again, also while its handler works", async () => {
        const agent = anAgent();
        const gate = Promise.withResolvers<void>();
        const { received } = consume(direct, [agent], { work: () => gate.promise });
        const publisher = publisherOf(direct);
        const same = wakeUp(agent);
        await publisher.publish([same]);
        await receive(received, 1);
        await waitFor(() => isGone(direct, agent), soon("the job to be gone"));
        await publisher.publish([same]);
        await receive(received, 2);
        gate.resolve();
      });

      test("a repair is delivered beside the wake-up it repairs", async () => {
        const agent = anAgent();
        const publisher = publisherOf(direct);
        const same = wakeUp(agent);
        await publisher.publish([same]);
        await publisher.publish([same], { sweep: 7 });
        await publisher.publish([same], { sweep: 8 });
        expect(await publisher.waiting(agent)).toBe(3);
        const { received } = consume(direct, [agent]);
        await receive(received, 3);
        expect(received).toEqual([same, same, same]);
      });

      test("what can't be an id fails by itself; the rest is published", async () => {
        const agent = anAgent();
        const publisher = publisherOf(direct);
        const result = await publisher.publish([wakeUp(agent), { agent, runId: "a:b", version: 1 }]);
        expect(result).toMatchObject({ published: 1, failed: 1, error: expect.any(RangeError) });
        expect(await publisher.waiting(agent)).toBe(1);
      });
    });

    describe("failure", () => {
      test("a handler that throws is reported, its job is gone, and the next one is delivered", async () => {
        const agent = anAgent();
        const { received, errors } = consume(direct, [agent], {
          work: async () => {
            if (received.length === 1) throw new Error("the handler failed");
          },
        });
        const publisher = publisherOf(direct);
        await publisher.publish([wakeUp(agent)]);
        await receive(errors, 1);
        expect(errors).toEqual(["the handler failed"]);
        await waitFor(() => isGone(direct, agent), soon("the job to be gone"));
        await publisher.publish([wakeUp(agent)]);
        await receive(received, 2);
      });

      test.for([[null], ["text"], [{ runId: "a" }], [{ runId: 7, version: 1 }], [{ runId: "a", version: -1 }]])(
        "a job that holds %j is reported and never handled",
        async ([data]) => {
          const agent = anAgent();
          const raw = await serverOf(direct).openQueue(queueName(agent), opening);
          onTestFinished(() => raw.close());
          await raw.add([{ id: "foreign-1", data }]);
          await raw.add([{ id: "foreign-2", data: { runId: "run", version: 1 } }]);
          const { received, errors } = consume(direct, [agent]);
          await receive(received, 1);
          await receive(errors, 1);
          expect(received).toEqual([{ agent, runId: "run", version: 1 }]);
          expect(errors).toEqual([expect.stringContaining("foreign-1")]);
        },
      );

      test("a job whose taker died is given again once, then dropped and reported", async () => {
        const agent = anAgent();
        await publisherOf(direct).publish([wakeUp(agent)]);
        const source = { ...opening, abandonedAfterMs: 100 };
        for (const deadly of [false, false, true]) {
          const dying = await serverOf(direct).openSource(queueName(agent), source);
          const job = await waitFor(() => dying.take(), soon("the job"));
          expect(job.deadly).toBe(deadly);
          await dying.close();
        }
        const { received, errors } = consume(direct, [agent], { abandonedAfterMs: 100 });
        await receive(errors, 1);
        expect(errors).toEqual([expect.stringContaining("twice a process died")]);
        expect(received).toEqual([]);
      });
    });

    describe("stopping", () => {
      test("after pause nothing starts, what is at work goes on, and another consumer gets the rest", async () => {
        const agent = anAgent();
        const gate = Promise.withResolvers<void>();
        let finished = 0;
        const first = consume(direct, [agent], {
          work: async () => {
            await gate.promise;
            finished += 1;
          },
        });
        const publisher = publisherOf(direct);
        await publisher.publish([wakeUp(agent)]);
        await receive(first.received, 1);
        first.consumer.pause();
        expect(first.consumer.health()).toMatchObject({ stopped: true, handling: 1 });
        await publisher.publish([wakeUp(agent), wakeUp(agent)]);
        const second = consume(direct, [agent]);
        await receive(second.received, 2);
        expect(first.received).toHaveLength(1);
        const closed = first.consumer.close();
        gate.resolve();
        await closed;
        expect(finished).toBe(1);
      });

      test("what was fetched along with a removal is given back when a pause comes first", async () => {
        const agent = anAgent();
        await publishAll(
          direct,
          Array.from({ length: 5 }, () => wakeUp(agent)),
        );
        const first = consume(direct, [agent], { concurrency: 3, work: async () => first.consumer.pause() });
        await receive(first.received, 1);
        await first.consumer.close();
        const second = consume(direct, [agent], { abandonedAfterMs: 60_000 });
        await receive(second.received, 4);
        expect(first.received).toHaveLength(1);
        expect(first.errors).toEqual([]);
      });

      test("close waits for handlers no longer than its deadline", async () => {
        const agent = anAgent();
        const gate = Promise.withResolvers<void>();
        const { consumer, received } = consume(direct, [agent], { work: () => gate.promise });
        await publisherOf(direct).publish([wakeUp(agent)]);
        await receive(received, 1);
        const startedAt = performance.now();
        await consumer.close(100);
        expect(performance.now() - startedAt).toBeLessThan(100 + LATE_MS);
        expect(consumer.health().handling).toBe(1);
        gate.resolve();
      });

      test("an idle consumer closes at once", async () => {
        const { consumer } = consume(direct, [anAgent()], { pollMs: 60_000 });
        await fetches(consumer);
        const startedAt = performance.now();
        await consumer.close();
        expect(performance.now() - startedAt).toBeLessThan(2_000);
      });
    });

    describeOutage({
      get server() {
        return server;
      },
      get direct() {
        return direct;
      },
    });

    test("health: an idle consumer fetches, one whose slots are taken counts as well", async () => {
      const agent = anAgent();
      const gate = Promise.withResolvers<void>();
      const { consumer, received } = consume(direct, [agent], { concurrency: 1, pollMs: 50, work: () => gate.promise });
      await fetches(consumer);
      await publisherOf(direct).publish([wakeUp(agent)]);
      await receive(received, 1);
      await waitFor(() => consumer.health().sinceFetchMs === 0, soon("the consumer to wait for a slot"));
      expect(consumer.health()).toEqual({ sinceFetchMs: 0, handling: 1, stopped: false });
      gate.resolve();
      await waitFor(() => consumer.health().handling === 0, soon("the handler to end"));
    });

    test("several processes may start at once on a server that was never used", async () => {
      const connection = server.untouched();
      const agent = anAgent();
      const consumers = Array.from({ length: 4 }, () => consume(connection, [agent]));
      const publishers = Array.from({ length: 4 }, () => publisherOf(connection));
      const results = await Promise.all(publishers.map((publisher) => publisher.publish([wakeUp(agent)])));
      expect(results).toEqual(Array(4).fill({ published: 1, failed: 0, error: null }));
      await waitFor(() => consumers.flatMap(({ received }) => received).length === 4, soon("4 deliveries"));
      expect(consumers.flatMap(({ errors }) => errors)).toEqual([]);
    });
  });
}
