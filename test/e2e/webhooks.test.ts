import { afterAll, beforeAll, expect, test } from "vitest";
import { addWebhook, requestCancel } from "../../packages/store/src/index.ts";
import { moveClock } from "../../packages/testkit/src/move-clock.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { openReceiver, type Receiver, status } from "../../packages/upkeep/test/a-receiver.ts";
import { type Fleet, openFleet } from "./processes.ts";

let fleet: Fleet;
let receiver: Receiver;

beforeAll(async () => {
  fleet = await openFleet();
  receiver = await openReceiver();
}, 60_000);
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await fleet[Symbol.asyncDispose]();
}, 60_000);

const stateOf = async (): Promise<string | undefined> =>
  (await fleet.store.pool.query<{ state: string }>("select state from holdpoint.deliveries")).rows[0]?.state;

test("a notice that was sent when its sweeper was killed comes again from another, under the same key", async () => {
  const webhook = { name: "billing", url: receiver.url, secret: "s".repeat(32), policy: "done_only" } as const;
  await addWebhook(fleet.store, { ...webhook, agentName: null, by: "olga" });
  // It has arrived, and its sender does not know that.
  receiver.answer(() => undefined);
  const first = await fleet.sweeper();
  const [runId = ""] = await fleet.submit("refund order 4411");
  await requestCancel(fleet.store, { runId, actor: { kind: "requester", id: "alice" }, reason: null });
  await receiver.until(1);
  first.process.kill("SIGKILL");
  await first.ended;
  expect(await stateOf()).toBe("pending");
  receiver.answer(status(204));
  await moveClock(fleet.url, 61_000);
  const second = await fleet.sweeper();
  await waitFor(async () => (await stateOf()) === "delivered", {
    deadlineMs: 20_000,
    what: "the notice to come through",
  });
  const keys = receiver.received.map(({ headers }) => headers["idempotency-key"]);
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
  expect(receiver.received.map(({ notice }) => notice.status)).toEqual(["cancelled", "cancelled"]);
  expect(second.output()).toContain('"event":"delivery.delivered"');
  second.process.kill("SIGTERM");
  expect(await second.ended).toBe(0);
}, 90_000);
