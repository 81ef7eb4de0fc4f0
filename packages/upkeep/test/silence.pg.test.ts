import {
  addWebhook,
  changePolicy,
  claimDeliveries,
  findViolations,
  recordSending,
  retryDelivery,
} from "@holdpoint/store";
import { listDeliveries } from "@holdpoint/store/read";
import { expect, test } from "vitest";
import { ended } from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { auditFleet } from "../src/index.ts";

const bench = useBench();

const publisher = {
  publish: async () => ({ published: 0, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

test("a webhook that is silenced hides nothing that it was to be told before: it is found, and can be sent again", async () => {
  const added = await addWebhook(bench.store, {
    name: "billing",
    url: "https://example.com",
    secret: "s".repeat(32),
    policy: "done_only",
    agentName: null,
    by: "olga",
  });
  expect(added.result).toBe("added");
  const run = await ended(bench.store, "completed");
  const take = () => claimDeliveries(bench.store, { limit: 10, perWebhook: 10, sending: new Map(), leaseMs: 60_000 });
  const [given] = await take();
  if (given === undefined) throw new Error("nothing was due");
  const { id: deliveryId, attempt } = given;
  await recordSending(bench.store, { deliveryId, attempt, httpStatus: 500, errorCode: "HTTP_500", retryInMs: null });

  await changePolicy(bench.store, { name: "billing", policy: "silent", by: "otto" });
  await ended(bench.store, "completed");
  const { items } = await listDeliveries(bench.store, { state: "dead" }, { limit: 10, after: null });
  expect(items.map(({ id }) => id)).toEqual([deliveryId]);
  expect(await auditFleet({ store: bench.store, publisher })).toMatchObject([
    { code: "delivery_failing", runId: run.id, subject: deliveryId },
  ]);
  expect(await retryDelivery(bench.store, { deliveryId, by: "otto", note: null })).toEqual({ result: "accepted" });
  expect((await take()).map(({ id }) => id)).toEqual([deliveryId]);
  expect(await findViolations(bench.store)).toEqual([]);
});
