import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "@holdpoint/testkit";
import { describe, expect, test } from "vitest";
import { readRetryAfterMs } from "../src/payment-error.ts";
import { createPayments, type RefundOrder } from "../src/payments.ts";
import { openTestSandbox, type TestSandbox } from "./sandbox-harness.ts";

const order: RefundOrder = {
  paymentIntent: "pi_1",
  amountMinor: "3000",
  reason: "requested_by_customer",
  operationId: "op_1",
};
const limits = { signal: new AbortController().signal, timeoutMs: 5_000 };

async function untilHeld(sandbox: TestSandbox): Promise<void> {
  const isHeld = async () => (await sandbox.countHeld()) === 1;
  await waitFor(isHeld, { deadlineMs: 5_000, what: "the reply to be held back" });
}

describe("sendRefund", () => {
  test("moves the money once and replays the reply for the same key", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    const first = await sandbox.payments.sendRefund(order, limits);
    const second = await sandbox.payments.sendRefund(order, limits);
    expect(first).toMatchObject({ amountMinor: "3000", currency: "eur", status: "succeeded", replayed: false });
    expect(second).toEqual({ ...first, replayed: true });
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({
      rows: [{ seq: 1, amount: 3_000, idempotency_key: "op_1", metadata: { operation_id: "op_1" } }],
      has_more: false,
    });
  });

  test("refuses the same key with another amount", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    await sandbox.payments.sendRefund(order, limits);
    const other = sandbox.payments.sendRefund({ ...order, amountMinor: "4000" }, limits);
    await expect(other).rejects.toMatchObject({ class: "caller", code: "idempotency_mismatch" });
  });

  test("pays again with a key that is 24 hours old, and not a millisecond earlier", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    const first = await sandbox.payments.sendRefund(order, limits);
    await sandbox.post("/sandbox/clock", { advance_ms: 24 * 3_600_000 - 1 });
    expect(await sandbox.payments.sendRefund(order, limits)).toMatchObject({
      refundId: first.refundId,
      replayed: true,
    });
    await sandbox.post("/sandbox/clock", { advance_ms: 1 });
    const again = await sandbox.payments.sendRefund(order, limits);
    expect(again.replayed).toBe(false);
    expect(again.refundId).not.toBe(first.refundId);
  });

  test("gives a refused refund again for its key, after the reason is gone", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 1_000);
    const tooLarge = { class: "refused", code: "amount_too_large" };
    await expect(sandbox.payments.sendRefund(order, limits)).rejects.toMatchObject(tooLarge);
    await expect(sandbox.payments.sendRefund(order, limits)).rejects.toMatchObject(tooLarge);
    expect(await sandbox.listRefundPosts()).toEqual([
      { method: "POST", path: "/v1/refunds", idempotency_key: "op_1", count: 2 },
    ]);
  });

  test("is refused when all was given back", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 5_000, 5_000);
    const refund = sandbox.payments.sendRefund(order, limits);
    await expect(refund).rejects.toMatchObject({ class: "refused", code: "charge_already_refunded" });
  });

  test("sends exactly one request when it is aborted after the money moved; the look-up finds it", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    await sandbox.post("/sandbox/hold", { payment_intent: "pi_1" });
    const stop = new AbortController();
    const sending = sandbox.payments.sendRefund(order, { ...limits, signal: stop.signal });
    // The package never sees the reason's own code, on which it would try again.
    const failed = expect(sending).rejects.toMatchObject({
      class: "unknown_outcome",
      code: "aborted",
      cause: { detail: { message: "stopped while the request was under way" } },
    });
    await untilHeld(sandbox);
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ amount: 3_000 }] });
    stop.abort(Object.assign(new Error("lease lost"), { code: "ECONNRESET" }));
    await failed;
    expect(await sandbox.listRefundPosts()).toEqual([
      { method: "POST", path: "/v1/refunds", idempotency_key: "op_1", count: 1 },
    ]);
    const found = await sandbox.payments.findRefund(order, limits);
    expect(found).toMatchObject({ amountMinor: "3000", status: "succeeded" });
    const isGone = async () => (await sandbox.countHeld()) === 0;
    await waitFor(isGone, { deadlineMs: 5_000, what: "the sandbox to notice that its client is gone" });
    expect(await sandbox.payments.sendRefund(order, limits)).toMatchObject({ replayed: true });
  });

  test("does not know the outcome when the reply does not come in time, or the line is cut", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    await sandbox.post("/sandbox/hold", { payment_intent: "pi_1", count: 2 });
    const late = sandbox.payments.sendRefund(order, { ...limits, timeoutMs: 200 });
    await expect(late).rejects.toMatchObject({ class: "unknown_outcome", code: "timeout" });

    const cut = sandbox.payments.sendRefund({ ...order, operationId: "op_2" }, limits);
    const failed = expect(cut).rejects.toMatchObject({ class: "unknown_outcome", code: "connection" });
    await untilHeld(sandbox);
    expect(await sandbox.post("/sandbox/release", { cut: true })).toMatchObject({ body: { released: 1 } });
    await failed;
    expect(await sandbox.listRefundPosts()).toMatchObject([{ count: 1 }, { count: 1 }]);
  });

  test("is told that its key is in use while the first reply is held back; both end with one refund", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    await sandbox.post("/sandbox/hold", { payment_intent: "pi_1" });
    const first = sandbox.payments.sendRefund(order, limits);
    await untilHeld(sandbox);
    const inUse = { class: "unknown_outcome", code: "idempotency_key_in_use" };
    await expect(sandbox.payments.sendRefund(order, limits)).rejects.toMatchObject(inUse);
    await sandbox.post("/sandbox/release", { payment_intent: "pi_1" });
    expect(await first).toMatchObject({ status: "succeeded", replayed: false });
    expect(await sandbox.payments.sendRefund(order, limits)).toMatchObject({ replayed: true });
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ seq: 1 }] });
  });

  test("sends nothing when it is stopped before", async () => {
    await using sandbox = await openTestSandbox();
    const stopped = sandbox.payments.sendRefund(order, { ...limits, signal: AbortSignal.abort() });
    await expect(stopped).rejects.toMatchObject({ class: "transient", code: "not_sent" });
    expect(await sandbox.listRefundPosts()).toEqual([]);
  });

  test("reports a refund that was accepted as pending, and no money until it is settled", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    await sandbox.post("/sandbox/pending", { payment_intent: "pi_1" });
    const refund = await sandbox.payments.sendRefund(order, limits);
    expect(refund.status).toBe("pending");
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [] });
    await sandbox.post("/sandbox/settle", { refund: refund.refundId, status: "succeeded" });
    expect(await sandbox.payments.findRefund(order, limits)).toMatchObject({ status: "succeeded" });
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ refund: refund.refundId }] });
  });

  test("refuses an amount that is no whole number of minor units", async () => {
    await using sandbox = await openTestSandbox();
    for (const amountMinor of ["0", "-5", "1.5", "", "12345678901234567890"]) {
      const refund = sandbox.payments.sendRefund({ ...order, amountMinor }, limits);
      await expect(refund).rejects.toMatchObject({ class: "caller", code: "bad_amount" });
    }
  });
});

describe("findRefund", () => {
  test("looks through all pages and says null when there is none", { timeout: 30_000 }, async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 99_999);
    for (let index = 0; index < 120; index += 1) {
      await sandbox.payments.sendRefund({ ...order, amountMinor: "1", operationId: `op_${index}` }, limits);
    }
    expect(await sandbox.payments.findRefund({ ...order, operationId: "op_0" }, limits)).toMatchObject({
      amountMinor: "1",
      paymentIntent: "pi_1",
    });
    expect(await sandbox.payments.findRefund({ ...order, operationId: "op_none" }, limits)).toBeNull();
  });

  test("fails as transient when nobody answers: a look-up moves nothing", async () => {
    const sandbox = await openTestSandbox();
    await sandbox[Symbol.asyncDispose]();
    await expect(sandbox.payments.findRefund(order, limits)).rejects.toMatchObject({ class: "transient" });
    await expect(sandbox.payments.sendRefund(order, limits)).rejects.toMatchObject({ class: "unknown_outcome" });
  });
});

/** A provider that answers everything with the same reply, whatever is asked. */
async function answerAll(reply: { readonly status: number; readonly headers?: object; readonly body: string }) {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.writeHead(reply.status, { ...reply.headers }).end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  // A server on a TCP port has an address of this type.
  const { port } = server.address() as AddressInfo;
  return {
    payments: createPayments({ url: new URL(`http://127.0.0.1:${port}`), key: "sk_test_x" }),
    countRequests: () => requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("classifyStripeError", () => {
  const stripeBody = (type: string, code?: string) => JSON.stringify({ error: { type, code, message: "no" } });
  const refund = { id: "re_1", amount: 3_000, currency: "eur", status: "succeeded" };
  test.each([
    [429, { "retry-after": "7" }, stripeBody("invalid_request_error", "rate_limit"), "throttled", 7_000],
    [429, { "retry-after": "86400" }, "<html>slow down</html>", "throttled", 86_400_000],
    [429, {}, '{"message":"slow down"}', "throttled", null],
    [500, {}, stripeBody("api_error"), "unknown_outcome", null],
    [502, {}, "<html>bad gateway</html>", "unknown_outcome", null],
    [503, { "retry-after": "7" }, '{"message":"down"}', "unknown_outcome", 7_000],
    [404, {}, '{"message":"no such page"}', "unknown_outcome", null],
    [500, {}, JSON.stringify(refund), "unknown_outcome", null],
    [200, {}, "not json", "unknown_outcome", null],
    [200, {}, "{}", "unknown_outcome", null],
    [200, {}, JSON.stringify({ ...refund, amount: "3000" }), "unknown_outcome", null],
    [401, {}, stripeBody("invalid_request_error"), "caller", null],
    [402, {}, stripeBody("card_error", "card_declined"), "refused", null],
    [400, {}, stripeBody("invalid_request_error", "charge_disputed"), "refused", null],
    [400, {}, stripeBody("invalid_request_error", "parameter_unknown"), "caller", null],
  ])("classes the reply %i of a write (%o, %s)", async (status, headers, body, expected, retryAfterMs) => {
    await using provider = await answerAll({ status, headers, body });
    const sending = provider.payments.sendRefund(order, limits);
    await expect(sending).rejects.toMatchObject({ class: expected, retryAfterMs });
    expect(provider.countRequests()).toBe(1);
  });

  test.each([
    [503, '{"data":[],"has_more":false}', "http_503"],
    [200, "{}", "unreadable_reply"],
    [200, '{"data":[]}', "unreadable_reply"],
    [200, '{"data":[{"id":"re_1"}],"has_more":false}', "unreadable_reply"],
  ])("does not take the reply %i %s for a look-up that found nothing", async (status, body, code) => {
    await using provider = await answerAll({ status, body });
    const looking = provider.payments.findRefund(order, limits);
    await expect(looking).rejects.toMatchObject({ class: "transient", code });
  });
});

describe("readRetryAfterMs", () => {
  const nowMs = Date.parse("2026-03-02T10:00:00Z");
  test.each([
    ["7", 7_000],
    ["0", 0],
    ["86400", 86_400_000],
    ["999999999", 999_999_999_000],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER],
    ["Mon, 02 Mar 2026 10:00:30 GMT", 30_000],
    ["Tue, 03 Mar 2026 10:00:00 GMT", 86_400_000],
    ["Monday, 02-Mar-26 10:00:30 GMT", 30_000],
    ["Mon Mar  2 10:00:30 2026", 30_000],
    ["Mon, 02 Mar 2026 09:00:00 GMT", 0],
    // What Date.parse alone would take for a day of the past: "at once".
    ["soon 5", null],
    ["-5", null],
    ["1.5", null],
    ["Mon, 99 Mar 2026 10:00:30 GMT", null],
    ["", null],
    [null, null],
  ])("reads %s as %s", (retryAfter, expected) => {
    expect(readRetryAfterMs({ retryAfter, date: null }, nowMs)).toBe(expected);
  });

  test.each([
    ["Sun, 01 Mar 2026 10:00:00 GMT", 86_430_000],
    ["Mon, 02 Mar 2026 10:00:10 GMT", 20_000],
    ["yesterday", 30_000],
  ])("counts a date from the reply's own date %s", (date, expected) => {
    const retryAfter = "Mon, 02 Mar 2026 10:00:30 GMT";
    expect(readRetryAfterMs({ retryAfter, date }, nowMs)).toBe(expected);
    expect(readRetryAfterMs({ retryAfter: "7", date }, nowMs)).toBe(7_000);
  });
});
