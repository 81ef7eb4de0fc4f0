import { claimDeliveries, recordSending } from "@holdpoint/store";
import { beforeEach, describe, expect, test } from "vitest";
import { AGENT, problemOf, useTestApi } from "./api-fixture.ts";

const api = useTestApi();
const olga = () => api.as("olga-token");
const alice = () => api.as("alice-token");
const URL_OF_BILLING = "https://billing.example.com/holdpoint";

beforeEach(async () => {
  await api.store.pool.query("truncate holdpoint.webhooks, holdpoint.deliveries, holdpoint.delivery_changes");
});

async function aCancelledRun() {
  const { id: sessionId } = await alice().createSession();
  const run = await alice().submitRun({ sessionId, agent: AGENT, goal: "refund order 4411" });
  return alice().cancelRun({ runId: run.id });
}

/** What a sender does with what is due, as if the receiver had answered 500 for the last time. */
async function giveUp(): Promise<void> {
  const room = { limit: 10, perWebhook: 10, sending: new Map<string, number>(), leaseMs: 60_000 };
  for (const { id: deliveryId, attempt } of await claimDeliveries(api.store, room))
    await recordSending(api.store, { deliveryId, attempt, httpStatus: 500, errorCode: "HTTP_500", retryInMs: null });
}

describe("a webhook", () => {
  test("is added with a secret that is shown this once, and listed without it", async () => {
    const { webhook, secret } = await olga().addWebhook({ name: "billing", url: URL_OF_BILLING });
    expect(secret).toMatch(/^whsec_[\w-]{43}$/);
    expect(webhook).toMatchObject({
      id: expect.stringMatching(/^whk_/),
      name: "billing",
      url: URL_OF_BILLING,
      policy: "done_only",
      agent: null,
      createdBy: "olga",
      disabled: null,
    });
    const listed = await olga().listWebhooks();
    expect(listed).toEqual({ items: [webhook], next: null });
    expect(JSON.stringify(listed)).not.toContain(secret);
    const other = await olga().addWebhook({ name: "other", url: URL_OF_BILLING, agent: AGENT.name });
    expect(other.secret).not.toBe(secret);
  });

  test("changes its policy, and is disabled, by whoever did that", async () => {
    await olga().addWebhook({ name: "billing", url: URL_OF_BILLING });
    expect(await olga().changeWebhookPolicy({ name: "billing", policy: "state_changes" })).toMatchObject({
      policy: "state_changes",
      changedBy: "olga",
    });
    expect(await olga().disableWebhook({ name: "billing" })).toMatchObject({ disabled: { by: "olga" } });
    expect(await problemOf(olga().disableWebhook({ name: "billing" }))).toMatchObject({ status: 404 });
    expect(await problemOf(olga().changeWebhookPolicy({ name: "billing", policy: "silent" }))).toMatchObject({
      status: 404,
    });
    expect((await olga().listWebhooks()).items).toMatchObject([{ name: "billing", disabled: { by: "olga" } }]);
  });

  test.each([
    ["http://example.com/", "must be https: (http: is for localhost alone)"],
    ["ftp://localhost/", "must be https: (http: is for localhost alone)"],
    ["billing", "must be a URL, like https://example.com/holdpoint"],
    ["https://olga:secret@example.com/", "must not name a user or a password"],
    ["https://example.com/#there", "must not have a fragment (#…)"],
    ["https://169.254.169.254/", "nothing is sent to that address"],
    ["https://[::ffff:a9fe:a9fe]/", "nothing is sent to that address"],
  ])("to %s is refused: %s", async (url, message) => {
    const refused = await problemOf(olga().addWebhook({ name: "bad", url }));
    expect(refused).toMatchObject({ status: 400, code: "invalid_request" });
    expect(refused.problem.mistakes).toEqual([{ path: "body.url", message: expect.stringContaining(message) }]);
  });

  test("takes no name that is in use", async () => {
    await olga().addWebhook({ name: "billing", url: "http://localhost:9/" });
    const again = await problemOf(olga().addWebhook({ name: "billing", url: URL_OF_BILLING }));
    expect(again.problem).toMatchObject({ status: 409, rule: "webhook_exists" });
  });
});

describe("a delivery", () => {
  async function aDeadOne() {
    await olga().addWebhook({ name: "billing", url: URL_OF_BILLING });
    const run = await aCancelledRun();
    await giveUp();
    const [delivery] = (await olga().listDeliveries({ state: "dead" })).items;
    if (delivery === undefined) throw new Error("no delivery is dead");
    return { run, delivery };
  }

  test("that was given up says of which run, how, and is found by the audit", async () => {
    const { run, delivery } = await aDeadOne();
    expect(delivery).toMatchObject({
      id: expect.stringMatching(/^dlv_/),
      webhook: "billing",
      runId: run.id,
      status: "cancelled",
      outcome: null,
      state: "dead",
      attempts: 1,
      nextAt: null,
      lastStatus: 500,
      lastErrorCode: "HTTP_500",
      deliveredAt: null,
      changes: [],
    });
    const finding = { code: "delivery_failing", runId: run.id, subject: delivery.id };
    // Being told nothing any more hides nothing of what it was not told.
    await olga().changeWebhookPolicy({ name: "billing", policy: "silent" });
    expect((await olga().audit()).items).toContainEqual(expect.objectContaining(finding));
    expect((await olga().listDeliveries({ runId: run.id })).items).toEqual([delivery]);
    expect((await olga().listDeliveries({ webhook: "billing", state: "pending" })).items).toEqual([]);
  });

  test("is sent again or dismissed, by whoever did that", async () => {
    const { delivery } = await aDeadOne();
    const again = await olga().retryDelivery({ deliveryId: delivery.id, note: "back again" });
    expect(again).toMatchObject({
      state: "pending",
      attempts: 0,
      changes: [{ change: "retried", by: "olga", note: "back again" }],
    });
    const dismissed = await olga().dismissDelivery({ deliveryId: delivery.id });
    expect(dismissed).toMatchObject({
      state: "dismissed",
      changes: [{ change: "dismissed", note: null }, { change: "retried" }],
    });
    expect(await olga().dismissDelivery({ deliveryId: delivery.id })).toEqual(dismissed);
  });

  test("that came through, or whose webhook is disabled, is not sent again", async () => {
    const { delivery } = await aDeadOne();
    await olga().disableWebhook({ name: "billing" });
    const disabled = await problemOf(olga().retryDelivery({ deliveryId: delivery.id }));
    expect(disabled.problem).toMatchObject({ status: 409, rule: "webhook_disabled" });
    await api.store.pool.query(
      "update holdpoint.deliveries set state = 'delivered', next_at = null, delivered_at = holdpoint.clock()",
    );
    const delivered = await problemOf(olga().dismissDelivery({ deliveryId: delivery.id }));
    expect(delivered.problem).toMatchObject({ status: 409, rule: "already_delivered" });
    const nobodys = await problemOf(olga().retryDelivery({ deliveryId: "dlv_01h455vb4pex5vsknk084sn02q" }));
    expect(nobodys).toMatchObject({ status: 404 });
  });
});

test("is for operators only", async () => {
  for (const token of ["alice-token", "mona-token"]) {
    const client = api.as(token);
    for (const ask of [
      () => client.listWebhooks(),
      () => client.addWebhook({ name: "mine", url: URL_OF_BILLING }),
      () => client.changeWebhookPolicy({ name: "billing", policy: "silent" }),
      () => client.disableWebhook({ name: "billing" }),
      () => client.listDeliveries(),
      () => client.retryDelivery({ deliveryId: "dlv_01h455vb4pex5vsknk084sn02q" }),
      () => client.dismissDelivery({ deliveryId: "dlv_01h455vb4pex5vsknk084sn02q" }),
    ]) {
      expect(await problemOf(ask())).toMatchObject({ status: 403, code: "forbidden" });
    }
  }
});
