import { decideApproval, loadRun, recordFact } from "@holdpoint/store";
import { scriptedModel } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool } from "../src/index.ts";
import { ALICE, type Fleet, MANAGER, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});

afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
});

test("a run asks, waits for an answer and for its manager, and ends; every call runs once", async () => {
  const ran: string[] = [];
  const findOrder = defineTool({
    name: "find_order",
    description: "Finds an order",
    input: z.object({ order: z.string() }),
    effect: "read",
    execute: async ({ order }) => {
      ran.push(`find ${order}`);
      return { order, total: "120.00" };
    },
  });
  const sendRefund = defineTool({
    name: "send_refund",
    description: "Sends a refund",
    input: z.object({ order: z.string(), amount: z.string() }),
    effect: { key: { validForMs: 60_000 } },
    rules: [{ name: "over_limit", ask: { roles: ["manager"] } }],
    execute: async ({ amount }) => {
      ran.push(`refund ${amount}`);
      return { refund: "re_1" };
    },
    externalRef: ({ refund }) => refund,
  });
  const model = scriptedModel([
    { text: "Which order?" },
    { calls: [{ tool: "find_order", input: { order: "4411" } }] },
    { calls: [{ tool: "send_refund", input: { amount: "120.00", order: "4411" } }] },
    { text: "Done: re_1" },
  ]);
  const agent = defineAgent({
    name: "first-agent",
    version: "1",
    model,
    instructions: "You refund.",
    tools: [findOrder, sendRefund],
    complete: (_reply, results) => (results.some(({ tool }) => tool === "send_refund") ? { kind: "succeeded" } : null),
  });
  await fleet.start(agent);
  const run = await fleet.submit(agent, "I want my money back");

  const asking = await fleet.untilStatus(run.id, "waiting_input");
  expect(asking.state.waitingFor).toMatchObject({ kind: "requester", principal: "alice" });
  await recordFact(fleet.store, { runId: run.id, kind: "answer", text: "4411", actor: ALICE });
  await fleet.wake(await fleet.untilStatus(run.id, "queued"));

  const held = await fleet.untilStatus(run.id, "waiting_approval");
  expect(held.currentStep).toBe("send_refund");
  const loaded = await loadRun(fleet.store, run.id);
  const [approval] = loaded?.approvals ?? [];
  expect(approval).toMatchObject({ state: "pending" });
  await decideApproval(fleet.store, {
    approvalId: approval?.id ?? "",
    decision: "approve",
    argsHash: approval?.argsHash ?? "",
    note: null,
    actor: MANAGER,
  });
  await fleet.wake(await fleet.untilStatus(run.id, "queued"));

  const ended = await fleet.untilStatus(run.id, "completed", "waiting_operator");
  expect(ended.state).toMatchObject({ status: "completed", outcome: { kind: "succeeded" } });
  expect(ran).toEqual(["find 4411", "refund 120.00"]);
});
