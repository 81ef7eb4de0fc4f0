import { connect } from "node:net";
import { expect, test } from "vitest";
import { testRedisUrl } from "../../packages/testkit/src/index.ts";
import { loseTheQueue } from "./lost-queue.ts";
import { openFleet } from "./processes.ts";

test.skipIf(testRedisUrl() === null)(
  "FLUSHALL in the middle of 200 runs loses none of them",
  async () => {
    const redisUrl = testRedisUrl() ?? "";
    await using fleet = await openFleet({ redisUrl });
    await loseTheQueue(fleet, async () => expect(await flushAll(new URL(redisUrl))).toContain("+OK"));
  },
  120_000,
);

/** Speaks to Redis by itself: only the queue knows a client. */
function flushAll({ hostname, port, password }: URL): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(Number(port === "" ? 6379 : port), hostname);
  socket.on("error", reject);
  socket.setEncoding("utf8").on("data", (said: string) => {
    if (!said.includes("+OK") && !said.startsWith("-")) return;
    socket.end();
    resolve(said);
  });
  socket.write(`${password === "" ? "" : `AUTH ${password}\r\n`}FLUSHALL\r\n`);
  return promise;
}
