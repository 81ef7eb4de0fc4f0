import { createHmac } from "node:crypto";
import { SIGNATURE_HEADER } from "@holdpoint/protocol";
import { addWebhook, disableWebhook, type NewWebhook, openStore, type Store } from "@holdpoint/store";
import { listDeliveries } from "@holdpoint/store/read";
import { breakConnection, moveClock, openFaultPoints, waitFor } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aHeldRun, ended, QUESTION } from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { ATTEMPTS_LIMIT, type SentDelivery, sendDeliveries } from "../src/index.ts";
import { openReceiver, type Receiver, status } from "./a-receiver.ts";

const bench = useBench();
const SECRET = "whsec_of-the-tests-of-deliveries-0123";
const LEASE_MS = 60_000;
let receiver: Receiver;

beforeEach(async () => {
  await bench.sql("truncate holdpoint.webhooks, holdpoint.deliveries, holdpoint.delivery_changes");
  receiver = await openReceiver();
});
afterEach(async () => {
  await moveClock(bench.url, 0);
  await receiver[Symbol.asyncDispose]();
});

async function aWebhook(more: Partial<NewWebhook> = {}): Promise<void> {
  const usual = { name: "billing", url: receiver.url, secret: SECRET, agentName: null, by: "olga" } as const;
  const { result } = await addWebhook(bench.store, { policy: "done_only", ...usual, ...more });
  expect(result).toBe("added");
}

/** A sender of its own, until the end of its block: what it has begun is ended then. */
function startSender(options: { readonly store?: Store; readonly timeoutMs?: number } = {}) {
  const sent: SentDelivery[] = [];
  const errors: unknown[] = [];
  const stop = new AbortController();
  const running = sendDeliveries(
    {
      store: options.store ?? bench.store,
      pollMs: 20,
      onSent: (each) => sent.push(each),
      onError: (error) => errors.push(error),
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    },
    stop.signal,
  );
  return {
    sent,
    errors,
    until: (count: number) => waitFor(() => sent.length >= count, { deadlineMs: 10_000, what: `${count} attempts` }),
    stop: () => stop.abort(),
    ended: running,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

async function statesOf(runId: string): Promise<readonly string[]> {
  const { items } = await listDeliveries(bench.store, { runId }, { limit: 200, after: null });
  return items.toReversed().map(({ state }) => state);
}

describe("a notice", () => {
  test("is sent once, signed, under the delivery's id, and says what happened and nothing of what was said", async () => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    await using sender = startSender();
    await sender.until(1);
    const [first] = receiver.received;
    expect(first?.notice).toMatchObject({
      runId: expect.stringMatching(/^run_/),
      agent: { name: "refunds", version: "1" },
      status: "completed",
      outcome: "succeeded",
      version: run.version,
      at: new Date(run.updatedAtMs).toISOString(),
    });
    expect(first?.headers).toMatchObject({
      "content-type": "application/json",
      "idempotency-key": first?.notice.deliveryId,
    });
    expect(first?.body).not.toContain("refund order 4411");
    const [, time, given] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(first?.headers[SIGNATURE_HEADER])) ?? [];
    expect(given).toBe(createHmac("sha256", SECRET).update(`${time}.${first?.body}`).digest("hex"));
    expect(sender.sent).toMatchObject([{ state: "delivered", attempt: 1, httpStatus: 204, errorCode: null }]);
    expect(await statesOf(run.id)).toEqual(["delivered"]);
  });

  test("comes in the order of what happened to its run", async () => {
    await aWebhook({ policy: "state_changes" });
    const runs = [await aHeldRun(bench.store, QUESTION), await aHeldRun(bench.store, QUESTION)];
    await using sender = startSender();
    await sender.until(6);
    const byRun = Map.groupBy(receiver.received, ({ notice }) => notice.runId);
    expect(byRun.size).toBe(runs.length);
    for (const told of byRun.values())
      expect(told.map(({ notice }) => notice.status)).toEqual(["queued", "running", "waiting_input"]);
  });

  test("is sent once by two senders", async () => {
    await aWebhook();
    for (let n = 0; n < 12; n += 1) await ended(bench.store, "completed");
    await using one = startSender();
    await using other = startSender();
    await waitFor(() => one.sent.length + other.sent.length >= 12, { deadlineMs: 10_000, what: "12 attempts" });
    const ids = receiver.received.map(({ notice }) => notice.deliveryId);
    expect(new Set(ids).size).toBe(12);
    expect(ids).toHaveLength(12);
  });
});

describe("an attempt that fails", () => {
  test.each([
    ["HTTP_500", status(500)],
    ["HTTP_302", status(302, { location: "http://127.0.0.1:9/elsewhere" })],
    ["ECONNRESET", ((response) => response.destroy()) satisfies Parameters<Receiver["answer"]>[0]],
    ["TIMEOUT", () => undefined],
  ])("%s: is made again later under the same key", async (errorCode, how) => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    receiver.answer(how);
    const failing = startSender(errorCode === "TIMEOUT" ? { timeoutMs: 500 } : {});
    await failing.until(1);
    failing.stop();
    await failing.ended;
    expect(failing.sent).toMatchObject([{ errorCode, state: "pending", attempt: 1 }]);
    receiver.answer(status(200));
    await moveClock(bench.url, 11_000);
    await using sender = startSender();
    await sender.until(1);
    expect(sender.sent).toMatchObject([{ state: "delivered", attempt: 2 }]);
    const keys = receiver.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(receiver.received[1]?.body).toBe(receiver.received[0]?.body);
    expect(await statesOf(run.id)).toEqual(["delivered"]);
  });

  test("a receiver that is not there: told again until it is given up after a day, and its run is untouched", async () => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    const row = async () => (await bench.sql("select r::text from holdpoint.runs r where id = $1", [run.id]))[0];
    const before = await row();
    await receiver[Symbol.asyncDispose]();
    await using sender = startSender();
    for (let attempt = 1; attempt <= ATTEMPTS_LIMIT; attempt += 1) {
      await sender.until(attempt);
      await moveClock(bench.url, attempt * 4 * 3_600_000 + 1_000);
    }
    expect(sender.sent.map(({ state }) => state)).toEqual([...Array(ATTEMPTS_LIMIT - 1).fill("pending"), "dead"]);
    expect(sender.sent.every(({ errorCode }) => errorCode === "ECONNREFUSED")).toBe(true);
    expect(await statesOf(run.id)).toEqual(["dead"]);
    expect(await row()).toEqual(before);
  });

  test("a receiver that never answers holds up nobody else", async () => {
    await using silent = await openReceiver();
    silent.answer(() => undefined);
    await aWebhook({ name: "silent", url: silent.url });
    for (let n = 0; n < 20; n += 1) await ended(bench.store, "completed");
    await using sender = startSender();
    await silent.until(8);
    await aWebhook({ name: "quick" });
    const run = await ended(bench.store, "completed");
    await sender.until(1);
    // Eight of the silent one are under way, and the others of it wait.
    expect(sender.sent).toMatchObject([{ state: "delivered" }]);
    expect(silent.received).toHaveLength(8);
    expect((await statesOf(run.id)).toSorted()).toEqual(["delivered", "pending"]);
    sender.stop();
    await silent[Symbol.asyncDispose]();
  });

  test("nothing is sent to addresses that are nobody's receiver", async () => {
    await aWebhook({ url: "https://169.254.169.254/latest/meta-data" });
    await ended(bench.store, "completed");
    await using sender = startSender();
    await sender.until(1);
    expect(sender.sent[0]).toMatchObject({ httpStatus: null, errorCode: "ADDRESS_REFUSED" });
  });
});

describe("a sender that dies", () => {
  test.each([
    ["after it has taken a delivery, before it has sent it", "statement:claim_deliveries:answered", 1],
    ["after it has sent it, before that is recorded", "statement:record_sending:sent", 2],
    ["while that is recorded: the record counts", "statement:record_sending:answered", 1],
  ])("%s: another one delivers it under the same key", async (_, at, requests) => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    await using real = openStore({ url: bench.url });
    const points = openFaultPoints({ at, fault: breakConnection });
    const dying = startSender({ store: points.store(real) });
    await waitFor(() => dying.errors.length > 0, { deadlineMs: 10_000, what: "the fault" });
    dying.stop();
    await dying.ended;
    expect(points.passed).toContain(at);
    await using sender = startSender();
    await moveClock(bench.url, LEASE_MS + 1_000);
    await waitFor(async () => (await statesOf(run.id))[0] === "delivered", {
      deadlineMs: 10_000,
      what: "the delivery",
    });
    const keys = receiver.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(requests);
    expect(new Set(keys).size).toBe(1);
    expect(sender.errors).toEqual([]);
  });

  test("drains: what is under way is ended and recorded, what is not stays due", async () => {
    await aWebhook({ policy: "state_changes" });
    const run = await aHeldRun(bench.store, QUESTION);
    let release: () => void = () => undefined;
    receiver.answer((response) => {
      release = () => void response.writeHead(204).end();
    });
    const draining = startSender();
    await receiver.until(1);
    draining.stop();
    release();
    await draining.ended;
    expect(draining.sent).toMatchObject([{ state: "delivered" }]);
    expect(await statesOf(run.id)).toEqual(["delivered", "pending", "pending"]);
    receiver.answer(status(204));
    await using next = startSender();
    await next.until(2);
    expect(receiver.received.map(({ notice }) => notice.status)).toEqual(["queued", "running", "waiting_input"]);
  });
});

test("a disabled webhook is sent nothing, and what it was to be told is settled", async () => {
  await aWebhook();
  const run = await ended(bench.store, "completed");
  await disableWebhook(bench.store, { name: "billing", by: "olga" });
  await using sender = startSender();
  await waitFor(async () => (await statesOf(run.id))[0] === "dismissed", {
    deadlineMs: 10_000,
    what: "it to be settled",
  });
  expect(sender.sent).toEqual([]);
  expect(receiver.received).toEqual([]);
});
