// The agent on real workers, where a refund waits: for the provider, or for people.

import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Fleet, openFleet } from "../../../packages/runtime/test/fleet.ts";
import { decideApproval, grantRoles } from "../../../packages/store/src/index.ts";
import { readOrder } from "../src/orders/read-order.ts";
import type { SeedOrder } from "../src/orders/seed-data.ts";
import { openTestDesk, type TestDesk } from "./desk-harness.ts";

const MINUTE_MS = 60_000;
const stack = new AsyncDisposableStack();
let desk: TestDesk;
let fleet: Fleet;

beforeAll(async () => {
  desk = stack.use(await openTestDesk());
  fleet = stack.use(await openFleet());
  // Leases outlast the minutes by which the clock is moved.
  await fleet.start(desk.agent, { leaseMs: 60 * MINUTE_MS, renewMs: MINUTE_MS });
  const grants = [
    { user: "mona", role: "manager" },
    { user: "fay", role: "finance" },
    { user: "fred", role: "finance" },
  ];
  await grantRoles(fleet.store, { grants, by: "test" });
});
afterAll(() => stack.disposeAsync());

/** Lets the time pass until the provider is asked again. */
async function pass(ms: number): Promise<void> {
  await moveClock(fleet.url, ms);
  await fleet.sweep();
}

const ask = ({ id, customer }: SeedOrder) => fleet.submit(desk.agent, `Refund order ${id}, I am ${customer.email}`);
const refundsOf = async ({ id }: SeedOrder) => (await readOrder(desk.pool, id))?.refunds ?? [];
const ledgerOf = ({ paymentIntent }: SeedOrder) => desk.sandbox.get(`/sandbox/ledger?payment_intent=${paymentIntent}`);

/** What the customer was told: the messages in the outbox, and the agent's own words in the conversation. */
async function toldTo(order: SeedOrder, runId: string): Promise<readonly string[]> {
  const outbox = await desk.pool.query<{ body: string }>(
    "select body from refund_desk.notifications where order_id = $1",
    [order.id],
  );
  const { steps } = await fleet.load(runId);
  const said = steps.flatMap(({ body }) => (body.kind === "model_reply" && body.text !== "" ? [body.text] : []));
  return [...outbox.rows.map(({ body }) => body), ...said];
}

async function pendingRefund(order: SeedOrder): Promise<{ readonly runId: string; readonly refundId: string }> {
  await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
  const { id: runId } = await ask(order);
  await fleet.untilStatus(runId, "waiting_dependency");
  const { rows } = await desk.pool.query<{ refund_id: string }>(
    "select refund_id from refund_desk.refunds where order_id = $1",
    [order.id],
  );
  return { runId, refundId: rows[0]?.refund_id ?? "" };
}

async function decide(runId: string, by: string, edit?: { readonly amount_minor: string }): Promise<string> {
  const { approvals } = await fleet.load(runId);
  const pending = approvals.find(({ state }) => state === "pending");
  if (pending === undefined) throw new Error("there is nothing to decide");
  const args = { ...(typeof pending.args === "object" ? pending.args : {}), ...edit };
  const decided = await decideApproval(fleet.store, {
    approvalId: pending.id,
    argsHash: pending.argsHash,
    note: null,
    actor: { kind: "approver", id: by },
    ...(edit === undefined ? { decision: "approve" } : { decision: "approve_with_edits", args }),
  });
  if (decided.result === "accepted" && decided.run.state.status === "queued") await fleet.wake(decided.run);
  return decided.result === "refused" ? decided.rule : decided.result;
}

describe("a refund that the provider accepts as pending", () => {
  test("keeps its run waiting until it is paid, and only then the customer is told", async () => {
    const order = desk.take("below_limit");
    const { runId, refundId } = await pendingRefund(order);
    expect(await refundsOf(order)).toMatchObject([{ status: "pending" }]);
    const { version } = (await fleet.load(runId)).run;
    await pass(2 * MINUTE_MS);
    const isPolled = async () => {
      const { run } = await fleet.load(runId);
      return run.version > version && run.state.status === "waiting_dependency";
    };
    await waitFor(isPolled, { deadlineMs: 20_000, what: "the run to ask and to wait again" });
    expect(await toldTo(order, runId)).toEqual([]);

    await desk.sandbox.post("/sandbox/settle", { refund: refundId, status: "succeeded" });
    await pass(30 * MINUTE_MS);
    const ended = await fleet.untilStatus(runId, "completed");
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(await refundsOf(order)).toMatchObject([{ status: "succeeded" }]);
    expect(await toldTo(order, runId)).toEqual([
      expect.stringContaining("we have refunded"),
      expect.stringContaining("has been paid out"),
    ]);
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ refund: refundId }] });
    await moveClock(fleet.url, 0);
  });

  test("ends its run as blocked when it fails in the end, and nobody is told that it was paid", async () => {
    const order = desk.take("below_limit");
    const { runId, refundId } = await pendingRefund(order);
    await desk.sandbox.post("/sandbox/settle", { refund: refundId, status: "failed" });
    await pass(2 * MINUTE_MS);
    const ended = await fleet.untilStatus(runId, "completed");
    expect(ended.state.outcome).toEqual({ kind: "blocked", step: "send_refund", reason: "refund_failed" });
    expect(await refundsOf(order)).toMatchObject([{ status: "failed" }]);
    expect(await toldTo(order, runId)).toEqual([expect.stringContaining("could not be paid out")]);
    await moveClock(fleet.url, 0);
  });
});

describe("a refund that people have to approve", () => {
  test("is paid as the manager has changed it, also to below the limit, and the customer is told so", async () => {
    const order = desk.take("above_limit");
    const { id: runId } = await ask(order);
    await fleet.untilStatus(runId, "waiting_approval");
    expect(await decide(runId, "fay", { amount_minor: "9000" })).toBe("not_an_approver");
    expect(await decide(runId, "mona", { amount_minor: "9000" })).toBe("accepted");
    const ended = await fleet.untilStatus(runId, "completed");
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: 9_000 }] });
    for (const text of await toldTo(order, runId)) expect(text).toContain(`${order.currency.toUpperCase()} 90.00`);
  });

  test("needs two of finance for a large order, whatever the first of them makes of the amount", async () => {
    const order = desk.takeWhere(({ kind, totalMinor }) => kind === "above_limit" && totalMinor > 40_000);
    const { id: runId } = await ask(order);
    await fleet.untilStatus(runId, "waiting_approval");
    expect(await decide(runId, "mona")).toBe("not_an_approver");
    expect(await decide(runId, "fay", { amount_minor: "9000" })).toBe("accepted");
    expect((await fleet.load(runId)).run.state.status).toBe("waiting_approval");
    expect(await decide(runId, "fay")).toBe("repeated");
    expect(await ledgerOf(order)).toMatchObject({ rows: [] });
    expect(await decide(runId, "fred")).toBe("accepted");
    await fleet.untilStatus(runId, "completed");
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: 9_000 }] });
  });

  test("is not paid when an edit says something else of the order's total", async () => {
    const order = desk.take("above_limit");
    const { id: runId } = await ask(order);
    await fleet.untilStatus(runId, "waiting_approval");
    const edit = { amount_minor: "9000", order_total_minor: "9000" };
    expect(await decide(runId, "mona", edit)).toBe("accepted");
    const ended = await fleet.untilStatus(runId, "completed");
    expect(ended.state.outcome).toEqual({ kind: "blocked", step: "send_refund", reason: "wrong_total" });
    expect(await ledgerOf(order)).toMatchObject({ rows: [] });
  });
});
