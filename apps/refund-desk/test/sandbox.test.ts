import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { createPayments } from "../src/payments.ts";
import { openTestSandbox } from "./sandbox-harness.ts";

const folder = mkdtempSync(join(tmpdir(), "refund-desk-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const auth = { authorization: "Bearer sk_test_x" };
const Listening = z.strictObject({ event: z.literal("sandbox.listening"), port: z.int() });
const limits = { signal: new AbortController().signal, timeoutMs: 5_000 };
const order = { paymentIntent: "pi_1", amountMinor: "3000", reason: "requested_by_customer" } as const;

describe("the sandbox's requests", () => {
  test.each([
    ["an unknown parameter", { payment_intent: "pi_1", charge: "ch_1" }, 400, "parameter_unknown"],
    ["no payment", { amount: "5" }, 400, "parameter_missing"],
    ["a fraction", { payment_intent: "pi_1", amount: "1.5" }, 400, "parameter_invalid_integer"],
    ["nothing to refund", { payment_intent: "pi_1", amount: "0" }, 400, "parameter_invalid_integer"],
    ["an unknown payment", { payment_intent: "pi_none" }, 400, "resource_missing"],
  ])("refuses %s with Stripe's code", async (_what, fields, status, code) => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 100);
    const body = new URLSearchParams(fields);
    const response = await fetch(`${sandbox.url}/v1/refunds`, { method: "POST", headers: auth, body });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", code } });
  });

  test("does not use a key up for a request that was wrong from the start", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 100);
    const send = (amount: string) =>
      fetch(`${sandbox.url}/v1/refunds`, {
        method: "POST",
        headers: { ...auth, "idempotency-key": "k" },
        body: new URLSearchParams({ payment_intent: "pi_1", amount }),
      });
    expect((await send("x")).status).toBe(400);
    const good = await send("40");
    expect(good.status).toBe(200);
    expect(good.headers.get("idempotent-replayed")).toBeNull();
    expect((await send("40")).headers.get("idempotent-replayed")).toBe("true");
  });

  test("lets only test keys in", async () => {
    await using sandbox = await openTestSandbox();
    const ask = (headers: Record<string, string>) => fetch(`${sandbox.url}/v1/payment_intents/pi_1`, { headers });
    expect((await ask({})).status).toBe(401);
    expect((await ask({ authorization: "Bearer sk_live_1" })).status).toBe(401);
    expect((await ask(auth)).status).toBe(404);
  });

  test("answers a body that is too large with 413, and JSON where a form belongs with 400", async () => {
    await using sandbox = await openTestSandbox();
    const send = (body: string, type: string) =>
      fetch(`${sandbox.url}/v1/refunds`, { method: "POST", headers: { ...auth, "content-type": type }, body });
    expect((await send("a=".padEnd(200_000, "x"), "application/x-www-form-urlencoded")).status).toBe(413);
    expect((await send("{}", "application/json")).status).toBe(400);
    expect((await sandbox.post("/sandbox/hold", { payment_intent: "order" })).status).toBe(400);
    expect((await sandbox.post("/sandbox/nothing", {})).status).toBe(404);
  });

  test("shows refunds newest first, page by page", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    const ids: string[] = [];
    for (const operationId of ["a", "b", "c"]) {
      ids.unshift((await sandbox.payments.sendRefund({ ...order, operationId }, limits)).refundId);
    }
    const list = async (query: string) =>
      (await fetch(`${sandbox.url}/v1/refunds?payment_intent=pi_1&${query}`, { headers: auth })).json();
    expect(await list("limit=2")).toMatchObject({ data: [{ id: ids[0] }, { id: ids[1] }], has_more: true });
    expect(await list(`limit=2&starting_after=${ids[1]}`)).toMatchObject({ data: [{ id: ids[2] }], has_more: false });
  });

  test("gives the amount of a failed refund free again, and shows the failure wherever the refund is asked for", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 3_000);
    await sandbox.control.acceptAsPending("pi_1");
    const first = await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
    const second = () => sandbox.payments.sendRefund({ ...order, operationId: "b" }, limits);
    await expect(second()).rejects.toMatchObject({ code: "charge_already_refunded" });
    await sandbox.control.settle(first.refundId, "failed");
    const ask = async (path: string) => (await fetch(`${sandbox.url}${path}`, { headers: auth })).json();
    const failed = { id: first.refundId, status: "failed", failure_reason: "unknown" };
    expect(await ask(`/v1/refunds/${first.refundId}`)).toMatchObject(failed);
    expect(await ask("/v1/refunds?payment_intent=pi_1")).toMatchObject({ data: [failed] });
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [] });
    // A key repeats the answer of its first time, which was not the end.
    const replayed = await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
    expect(replayed).toEqual({ ...first, replayed: true });
    const third = await sandbox.payments.sendRefund({ ...order, operationId: "c" }, limits);
    expect(third.status).toBe("succeeded");
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ refund: third.refundId }] });
  });

  test.each([
    ["succeeded", "failed", 1],
    ["failed", "succeeded", 0],
  ] as const)(
    "settles a refund once as %s: the same again changes nothing, %s is refused",
    async (first, other, rows) => {
      await using sandbox = await openTestSandbox();
      await sandbox.seed("pi_1", 10_000);
      const settle = (refund: string, status: string) => sandbox.post("/sandbox/settle", { refund, status });
      expect(await settle("re_early", first)).toMatchObject({
        status: 400,
        body: { error: { code: "resource_missing" } },
      });
      await sandbox.control.acceptAsPending("pi_1");
      const { refundId } = await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
      const settled = await settle(refundId, first);
      expect(settled).toMatchObject({ status: 200, body: { id: refundId, status: first } });
      expect(await settle(refundId, first)).toEqual(settled);
      const message = expect.stringContaining(`${refundId} is ${first}`);
      expect(await settle(refundId, other)).toMatchObject({ status: 400, body: { error: { message } } });
      expect(await sandbox.payments.findRefund({ ...order, operationId: "a" }, limits)).toMatchObject({
        status: first,
      });
      expect(await sandbox.get("/sandbox/ledger")).toMatchObject({
        rows: Array(rows).fill({}),
      });
    },
  );

  test("does not let a refund that was paid at once fail later", async () => {
    await using sandbox = await openTestSandbox();
    await sandbox.seed("pi_1", 10_000);
    const { refundId } = await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
    expect((await sandbox.post("/sandbox/settle", { refund: refundId, status: "failed" })).status).toBe(400);
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ refund: refundId }] });
  });
});

describe("the sandbox's file", () => {
  test("keeps payments, refunds, keys and the clock over a restart, and cuts a torn last line off", async () => {
    const file = join(folder, "journal.jsonl");
    {
      await using sandbox = await openTestSandbox(file);
      await sandbox.seed("pi_1", 10_000);
      await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
      await sandbox.post("/sandbox/clock", { advance_ms: 3_600_000 });
    }
    appendFileSync(file, '{"type":"refund","refund":{"id":"re_torn"');
    for (let restart = 0; restart < 2; restart += 1) {
      await using sandbox = await openTestSandbox(file);
      expect(await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits)).toMatchObject({
        replayed: true,
      });
      expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [{ seq: 1, idempotency_key: "a" }] });
      expect((await sandbox.post("/sandbox/clock", { advance_ms: 0 })).body).toEqual({
        now: "2026-03-02T11:00:00.000Z",
      });
    }
  });

  test("keeps pending refunds and how they ended over a restart", async () => {
    const file = join(folder, "pending.jsonl");
    const find = (sandbox: Awaited<ReturnType<typeof openTestSandbox>>) =>
      sandbox.payments.findRefund({ ...order, operationId: "a" }, limits);
    {
      await using sandbox = await openTestSandbox(file);
      await sandbox.seed("pi_1", 3_000);
      await sandbox.control.acceptAsPending("pi_1");
      await sandbox.payments.sendRefund({ ...order, operationId: "a" }, limits);
    }
    {
      await using sandbox = await openTestSandbox(file);
      const pending = await find(sandbox);
      expect(pending).toMatchObject({ status: "pending" });
      await sandbox.control.settle(pending?.refundId ?? "", "failed");
    }
    await using sandbox = await openTestSandbox(file);
    expect(await find(sandbox)).toMatchObject({ status: "failed" });
    expect(await sandbox.get("/sandbox/ledger")).toMatchObject({ rows: [] });
  });

  test("refuses a file that is no journal", async () => {
    const file = join(folder, "other.txt");
    appendFileSync(file, "hello\n");
    await expect(openTestSandbox(file)).rejects.toThrow(/line 1 of .*other\.txt/);
  });
});

describe("the sandbox's process", { timeout: 30_000 }, () => {
  const children: ChildProcess[] = [];
  afterAll(() => {
    for (const child of children) child.kill("SIGKILL");
  });
  const program = fileURLToPath(new URL("../src/sandbox/main.ts", import.meta.url));
  const run = (...args: string[]) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "ignore"] });
    children.push(child);
    return child;
  };
  const exitOf = (child: ChildProcess) => new Promise((resolve) => child.once("exit", resolve));

  test("says its port, survives SIGKILL with its ledger, and ends on SIGTERM", async () => {
    const file = join(folder, "process.jsonl");
    const listen = async () => {
      const child = run("--port", "0", "--data", file);
      for await (const line of createInterface({ input: child.stdout })) {
        const { port } = Listening.parse(JSON.parse(line));
        return { child, url: new URL(`http://127.0.0.1:${port}`) };
      }
      throw new Error("the sandbox ended without a line");
    };
    const first = await listen();
    const seed = new URLSearchParams({ id: "pi_1", amount: "10000", currency: "eur" });
    await fetch(new URL("/v1/test/payment_intents", first.url), { method: "POST", headers: auth, body: seed });
    const payments = createPayments({ url: first.url, key: "sk_test_x" });
    const sent = await payments.sendRefund({ ...order, operationId: "a" }, limits);
    const killed = exitOf(first.child);
    first.child.kill("SIGKILL");
    await killed;

    const second = await listen();
    const found = await createPayments({ url: second.url, key: "sk_test_x" }).findRefund(
      { paymentIntent: "pi_1", operationId: "a" },
      limits,
    );
    expect(found?.refundId).toBe(sent.refundId);
    const ended = exitOf(second.child);
    second.child.kill("SIGTERM");
    expect(await ended).toBe(0);
  });

  test("explains itself, and refuses a bad port", async () => {
    const runs = [run("--help"), run("--port", "99999"), run("--prot", "1")];
    expect(await Promise.all(runs.map(exitOf))).toEqual([0, 1, 1]);
  });
});
