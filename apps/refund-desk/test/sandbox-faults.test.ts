import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import type { RefundOrder } from "../src/payments.ts";
import type { FaultRule } from "../src/sandbox/faults.ts";
import { openTestSandbox, type TestSandbox } from "./sandbox-harness.ts";

vi.setConfig({ testTimeout: 30_000 }); // a busy machine
const folder = mkdtempSync(join(tmpdir(), "refund-desk-faults-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const Ledger = z.object({ rows: z.array(z.unknown()) });
const limits = { signal: new AbortController().signal, timeoutMs: 20_000 };
const order: RefundOrder = {
  paymentIntent: "pi_1",
  amountMinor: "3000",
  reason: "requested_by_customer",
  operationId: "op_1",
};
const auth = { authorization: "Bearer sk_test_x" };
const rateLimit = { kind: "status", status: 429 } as const;
const once500 = { times: 1, do: { kind: "status", status: 500 } } as const;

async function openWithPayment(): Promise<TestSandbox> {
  const sandbox = await openTestSandbox();
  await sandbox.seed("pi_1", 10_000);
  return sandbox;
}

const send = (sandbox: TestSandbox, changed: Partial<RefundOrder> = {}) =>
  sandbox.payments.sendRefund({ ...order, ...changed }, limits);
const countMoved = async (sandbox: TestSandbox) => Ledger.parse(await sandbox.get("/sandbox/ledger")).rows.length;
const untilMoved = (sandbox: TestSandbox) =>
  waitFor(async () => (await countMoved(sandbox)) === 1, { deadlineMs: 20_000, what: "the money to move" });

describe("throttling", () => {
  test.each([
    ["seconds", { seconds: 600, as: "seconds" }, 600_000],
    ["a whole day, uncut", { seconds: 86_400, as: "seconds" }, 86_400_000],
    ["a date, against the reply's own", { seconds: 600, as: "date" }, 600_000],
    ["a date a day away", { seconds: 86_400, as: "date" }, 86_400_000],
    ["nothing", undefined, null],
  ] as const)("asks to wait in %s", async (_what, retry_after, retryAfterMs) => {
    await using sandbox = await openWithPayment();
    const action = retry_after === undefined ? rateLimit : { ...rateLimit, retry_after };
    await sandbox.control.addFaults({ times: 1, when: "before", do: action });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "throttled", code: "rate_limit", retryAfterMs });
    expect(await countMoved(sandbox)).toBe(0);
    expect(await send(sandbox)).toMatchObject({ status: "succeeded", replayed: false });
  });

  test("goes on until it is told to stop, for reads as for writes", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: null, when: "before", do: rateLimit });
    for (let turn = 0; turn < 3; turn += 1) {
      await expect(send(sandbox)).rejects.toMatchObject({ class: "throttled" });
      await expect(sandbox.payments.findRefund(order, limits)).rejects.toMatchObject({ class: "throttled" });
    }
    expect(await sandbox.control.listFaults()).toMatchObject([{ left: null }]);
    await sandbox.control.clearFaults();
    expect(await send(sandbox)).toMatchObject({ status: "succeeded" });
  });

  test("shows when each request came, on the sandbox's clock, what it met and its status", async () => {
    await using sandbox = await openWithPayment();
    const retry_after = { seconds: 600, as: "date" } as const;
    const [rule] = await sandbox.control.addFaults({ times: 1, when: "before", do: { ...rateLimit, retry_after } });
    await expect(send(sandbox)).rejects.toMatchObject({ retryAfterMs: 600_000 });
    await sandbox.control.advanceClock(600_000);
    await send(sandbox);
    const row = { method: "POST", path: "/v1/refunds", payment_intent: "pi_1", idempotency_key: "op_1" };
    expect((await sandbox.control.listLog()).slice(1)).toEqual([
      { seq: 2, at: "2026-03-02T10:00:00.000Z", ...row, faults: [rule?.id], status: 429 },
      { seq: 3, at: "2026-03-02T10:10:00.000Z", ...row, faults: [], status: 200 },
    ]);
    expect(await sandbox.get("/sandbox/request-log?after=1&limit=1")).toMatchObject({
      requests: [{ seq: 2 }],
      has_more: true,
    });
  });
});

describe("errors of the provider", () => {
  test("happen before the effect: nothing moved, and the same key pays", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ ...once500, when: "before" });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "unknown_outcome", code: "http_500" });
    expect(await countMoved(sandbox)).toBe(0);
    expect(await sandbox.payments.findRefund(order, limits)).toBeNull();
    expect(await send(sandbox)).toMatchObject({ replayed: false });
  });

  test("happen after the effect: the money moved, and the look-up finds it", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ ...once500, when: "after" });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "unknown_outcome", code: "http_500" });
    expect(await countMoved(sandbox)).toBe(1);
    expect(await sandbox.payments.findRefund(order, limits)).toMatchObject({ status: "succeeded" });
    expect(await send(sandbox)).toMatchObject({ replayed: true });
    expect(await countMoved(sandbox)).toBe(1);
  });

  test.each([
    ["before", 0],
    ["after", 1],
  ] as const)("stay with the key when they are remembered (%s the effect)", async (when, moved) => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when, do: { kind: "status", status: 500, remembered: true } });
    for (let time = 0; time < 3; time += 1) {
      await expect(send(sandbox)).rejects.toMatchObject({ class: "unknown_outcome", code: "http_500" });
    }
    expect(await countMoved(sandbox)).toBe(moved);
    expect(await send(sandbox, { operationId: "op_2" })).toMatchObject({ replayed: false });
    // The key forgets it as it forgets every reply.
    await sandbox.control.advanceClock(86_400_000);
    expect(await send(sandbox)).toMatchObject({ replayed: false });
  });

  test("do not take the place of what a key had answered before", async () => {
    await using sandbox = await openWithPayment();
    const first = await send(sandbox);
    for (const when of ["before", "after"] as const) {
      await sandbox.control.addFaults({ times: 1, when, do: { kind: "status", status: 503, remembered: true } });
      await expect(send(sandbox)).rejects.toMatchObject({ code: "http_503" });
    }
    expect(await send(sandbox)).toEqual({ ...first, replayed: true });
  });

  test.each([
    [400, "balance_insufficient", "refused"],
    [402, "card_declined", "refused"],
    [400, "rate_limit", "throttled"],
    [403, "account_invalid", "caller"],
    [408, "request_timeout", "unknown_outcome"],
  ])("are classed by status %i and code %s as %s", async (status, code, expected) => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when: "before", do: { kind: "status", status, code } });
    await expect(send(sandbox)).rejects.toMatchObject({ class: expected, code });
    expect(await countMoved(sandbox)).toBe(0);
  });

  test("may ask a look-up to wait as well", async () => {
    await using sandbox = await openWithPayment();
    const down = { kind: "status", status: 503, retry_after: { seconds: 120 } } as const;
    await sandbox.control.addFaults({ match: { method: "GET" }, times: 1, when: "before", do: down });
    const expected = { class: "transient", code: "http_503", retryAfterMs: 120_000 };
    await expect(sandbox.payments.findRefund(order, limits)).rejects.toMatchObject(expected);
  });

  test("that are remembered stay with the key over a restart, with the money that moved", async () => {
    const file = join(folder, "remembered.jsonl");
    {
      await using sandbox = await openTestSandbox(file);
      await sandbox.seed("pi_1", 10_000);
      const remembered = { kind: "status", status: 500, remembered: true } as const;
      await sandbox.control.addFaults({ times: 1, when: "after", do: remembered });
      await expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    }
    await using again = await openTestSandbox(file);
    await expect(send(again)).rejects.toMatchObject({ code: "http_500" });
    expect(await countMoved(again)).toBe(1);
  });
});

describe("broken connections", () => {
  test.each([
    ["reset", "before", 0],
    ["reset", "after", 1],
    ["half_reply", "after", 1],
  ] as const)("%s %s the effect leaves the outcome unknown after one request", async (kind, when, moved) => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when, do: { kind } });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "unknown_outcome", code: "connection" });
    expect(await countMoved(sandbox)).toBe(moved);
    expect(await sandbox.listRefundPosts()).toMatchObject([{ count: 1 }]);
    expect((await sandbox.control.listLog()).at(-1)).toMatchObject({ path: "/v1/refunds", status: null });
    expect(await send(sandbox)).toMatchObject({ replayed: moved === 1 });
    expect(await countMoved(sandbox)).toBe(1);
  });

  test("send one half of a reply as it would have been", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when: "after", do: { kind: "half_reply" } });
    const response = await fetch(`${sandbox.url}/v1/payment_intents/pi_1`, { headers: auth });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  test("keep a key from paying twice although its first reply was cut", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 4, when: "after", do: { kind: "reset" } });
    for (let time = 0; time < 4; time += 1) await expect(send(sandbox)).rejects.toMatchObject({ code: "connection" });
    const paid = await send(sandbox);
    expect(paid).toMatchObject({ replayed: true });
    expect(await countMoved(sandbox)).toBe(1);
  });
});

describe("latency", () => {
  const aMinute = { kind: "delay", ms: 60_000 } as const;
  const untilCome = (sandbox: TestSandbox) => {
    const hasCome = async () => (await sandbox.listRefundPosts()).length === 1;
    return waitFor(hasCome, { deadlineMs: 20_000, what: "the request to come" });
  };

  test("before the effect lets a request act after its client left and found nothing", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when: "before", do: aMinute });
    const stop = new AbortController();
    const sending = sandbox.payments.sendRefund(order, { ...limits, signal: stop.signal });
    const failed = expect(sending).rejects.toMatchObject({ class: "unknown_outcome", code: "aborted" });
    await untilCome(sandbox);
    stop.abort();
    await failed;
    expect(await sandbox.payments.findRefund(order, limits)).toBeNull();
    await sandbox.control.clearFaults();
    await untilMoved(sandbox);
    expect(await sandbox.payments.findRefund(order, limits)).toMatchObject({ status: "succeeded" });
  });

  test("after the effect keeps the key in use until the reply goes out", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ times: 1, when: "after", do: aMinute });
    const first = send(sandbox);
    await untilMoved(sandbox);
    await expect(send(sandbox)).rejects.toMatchObject({ code: "idempotency_key_in_use" });
    await sandbox.control.clearFaults();
    expect(await first).toMatchObject({ status: "succeeded", replayed: false });
    expect(await send(sandbox)).toMatchObject({ replayed: true });
  });

  test("ends by itself after its time", async () => {
    await using sandbox = await openWithPayment();
    for (const when of ["before", "after"] as const) {
      await sandbox.control.addFaults({ times: 1, when, do: { kind: "delay", ms: 20 } });
    }
    expect(await send(sandbox)).toMatchObject({ status: "succeeded" });
  });

  test("goes on for the rules that are not cleared, and before another fault", async () => {
    await using sandbox = await openWithPayment();
    const [, slow] = await sandbox.control.addFaults(
      { ...once500, when: "after" },
      { times: 1, when: "after", do: aMinute },
    );
    const failed = expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    await untilMoved(sandbox);
    await sandbox.post("/sandbox/faults/clear", { id: "fault_1" });
    expect((await sandbox.control.listLog()).at(-1)).toMatchObject({ faults: ["fault_2", "fault_1"], status: null });
    await sandbox.post("/sandbox/faults/clear", { id: slow?.id });
    await failed;
    expect((await sandbox.control.listLog()).at(-1)).toMatchObject({ status: 500 });
  });

  test("does not make a key last longer", async () => {
    await using sandbox = await openWithPayment();
    const remembered = { kind: "status", status: 500, remembered: true } as const;
    await sandbox.control.addFaults(
      { times: 1, when: "after", do: aMinute },
      { times: 1, when: "after", do: remembered },
    );
    const failed = expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    await untilMoved(sandbox);
    await sandbox.control.advanceClock(3_600_000);
    await sandbox.control.clearFaults();
    await failed;
    await sandbox.control.advanceClock(23 * 3_600_000 - 1);
    await expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    await sandbox.control.advanceClock(1);
    expect(await send(sandbox)).toMatchObject({ replayed: false });
  });

  test("does not outlive a sandbox that is closed, and then nothing moves", async () => {
    const file = join(folder, "closed.jsonl");
    const sandbox = await openTestSandbox(file);
    await sandbox.seed("pi_1", 10_000);
    await sandbox.control.addFaults({ times: 1, when: "before", do: aMinute });
    const failed = expect(send(sandbox)).rejects.toMatchObject({ class: "unknown_outcome", code: "connection" });
    await untilCome(sandbox);
    await sandbox[Symbol.asyncDispose]();
    await failed;
    await using again = await openTestSandbox(file);
    expect(await countMoved(again)).toBe(0);
    expect(await again.control.listFaults()).toEqual([]);
  });
});

describe("the rules", () => {
  test("are met only by what they name, and used up in the order of arrival", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.seed("pi_2", 10_000);
    await sandbox.control.addFaults(
      { match: { method: "POST", path: "/v1/refunds", payment_intent: "pi_1" }, ...once500, when: "before" },
      { match: { payment_intent: "pi_1" }, times: 2, when: "before", do: rateLimit },
    );
    expect(await send(sandbox, { paymentIntent: "pi_2", operationId: "op_2" })).toMatchObject({ status: "succeeded" });
    await expect(sandbox.payments.findRefund(order, limits)).rejects.toMatchObject({ class: "throttled" });
    await expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "throttled" });
    expect(await send(sandbox)).toMatchObject({ status: "succeeded" });
    expect(await sandbox.control.listFaults()).toEqual([]);
  });

  test("after the effect stay for the next request when one ends before it", async () => {
    await using sandbox = await openWithPayment();
    await sandbox.control.addFaults({ ...once500, when: "after" }, { times: 1, when: "before", do: { kind: "reset" } });
    await expect(send(sandbox)).rejects.toMatchObject({ code: "connection" });
    expect(await sandbox.control.listFaults()).toMatchObject([{ id: "fault_1", left: 1 }]);
    await expect(send(sandbox)).rejects.toMatchObject({ code: "http_500" });
    expect(await countMoved(sandbox)).toBe(1);
  });

  test("fit a path as a whole", async () => {
    await using sandbox = await openWithPayment();
    const { refundId } = await send(sandbox);
    await sandbox.control.addFaults({ match: { path: "/v1/refunds" }, times: 1, when: "before", do: rateLimit });
    const statusOf = async (path: string) => (await fetch(`${sandbox.url}${path}`, { headers: auth })).status;
    expect(await statusOf("/v1/payment_intents/pi_1")).toBe(200);
    expect(await statusOf(`/v1/refunds/${refundId}`)).toBe(200);
    expect(await statusOf("/v1/refunds?payment_intent=pi_1")).toBe(429);
  });

  test("find the payment of what is asked by an id", async () => {
    await using sandbox = await openWithPayment();
    const { refundId } = await send(sandbox);
    await sandbox.control.addFaults({ match: { payment_intent: "pi_1" }, times: 2, when: "before", do: rateLimit });
    const statusOf = async (path: string) => (await fetch(`${sandbox.url}${path}`, { headers: auth })).status;
    expect(await statusOf("/v1/refunds/re_other")).toBe(404);
    expect(await statusOf(`/v1/refunds/${refundId}`)).toBe(429);
    expect(await statusOf("/v1/payment_intents/pi_1")).toBe(429);
    expect(await statusOf("/v1/payment_intents/pi_1")).toBe(200);
  });

  test("leave alone what is asked of the sandbox itself, and what is not let in", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.control.addFaults({ times: null, when: "before", do: { kind: "reset" } });
    await sandbox.seed("pi_1", 100);
    expect(await countMoved(sandbox)).toBe(0);
    expect((await fetch(`${sandbox.url}/v1/refunds`)).status).toBe(401);
  });

  test("are taken as the README shows them", async () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    const [, example = ""] = /```json\n([\s\S]*?)```/.exec(readme) ?? [];
    await using sandbox = await openWithPayment();
    expect(await sandbox.post("/sandbox/faults", JSON.parse(example))).toMatchObject({ status: 200 });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "throttled", retryAfterMs: 600_000 });
    expect(await sandbox.control.listFaults()).toMatchObject([{ left: 2 }, { left: null }]);
  });

  test("can be removed one by one", async () => {
    await using sandbox = await openWithPayment();
    const [first] = await sandbox.control.addFaults(
      { ...once500, when: "before" },
      { times: 1, when: "before", do: rateLimit },
    );
    const clear = { id: first?.id };
    expect((await sandbox.post("/sandbox/faults/clear", clear)).body).toEqual({ cleared: 1 });
    expect((await sandbox.post("/sandbox/faults/clear", clear)).body).toEqual({ cleared: 0 });
    await expect(send(sandbox)).rejects.toMatchObject({ class: "throttled" });
  });

  const good: FaultRule = { times: 1, when: "before", do: { kind: "reset" } };
  test.each<[string, object, RegExp]>([
    ["an unknown field", { ...good, count: 3 }, /"count"[\s\S]*rules\[0\]/],
    ["no times", { when: "before", do: { kind: "reset" } }, /rules\[0\]\.times/],
    ["no request at all", { ...good, times: 0 }, /rules\[0\]\.times/],
    ["a path of its own", { ...good, match: { path: "/sandbox/ledger" } }, /whole path below \/v1\/[\s\S]*match\.path/],
    ["a verb that no endpoint has", { ...good, match: { method: "PUT" } }, /match\.method/],
    ["an unknown kind", { ...good, do: { kind: "explode" } }, /rules\[0\]\.do/],
    ["a status that is no error", { ...good, do: { kind: "status", status: 200 } }, /do\.status/],
    ["a delay over a minute", { ...good, do: { kind: "delay", ms: 60_001 } }, /do\.ms/],
    ["half a reply before there is one", { ...good, do: { kind: "half_reply" } }, /must be "after"/],
    ["a 429 after the money moved", { ...good, when: "after", do: rateLimit }, /must be "before"/],
    ["a key that keeps a 429", { ...good, do: { ...rateLimit, remembered: true } }, /keeps only a status of 500/],
  ])("are refused with %s, and none is armed", async (_what, rule, message) => {
    await using sandbox = await openTestSandbox();
    const refused = await sandbox.post("/sandbox/faults", { rules: [good, rule].reverse() });
    expect(refused).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(message) } } });
    expect(await sandbox.control.listFaults()).toEqual([]);
  });

  test("are at most a hundred", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.control.addFaults(...Array.from({ length: 99 }, () => good));
    await expect(sandbox.control.addFaults(good, good)).rejects.toThrow(/Too many rules/);
    expect(await sandbox.control.addFaults(good)).toHaveLength(100);
  });
});
