import { decideApproval } from "@holdpoint/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Agent, defineTool, type ToolRule } from "../src/index.ts";
import { aDesk, ask, aTool, NEEDS_MANAGER } from "./desk.ts";
import { type Fleet, MANAGER, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

let tools = 0;

/** A payment whose input has a rule that no JSON schema can say: the amount is even. */
function anEvenPayment(rules: readonly ToolRule[] = NEEDS_MANAGER) {
  const paid: string[] = [];
  tools += 1;
  const tool = defineTool({
    name: "pay",
    description: "Pays an even amount",
    input: z.object({ amount: z.string() }).refine(({ amount }) => Number(amount) % 2 === 0, "the amount is odd"),
    effect: { key: { validForMs: 60_000 } },
    service: `even-${tools}`,
    rules,
    execute: async ({ amount }) => {
      paid.push(amount);
      return "paid";
    },
  });
  return { tool, paid };
}

async function pendingOf(runId: string) {
  const { approvals } = await fleet.load(runId);
  const pending = approvals.find(({ state }) => state === "pending");
  if (pending === undefined) throw new Error("nothing is pending");
  return pending;
}

/** A manager changes the amount, and approves it as changed. */
async function edit(runId: string, amount: string): Promise<void> {
  const { id: approvalId, argsHash } = await pendingOf(runId);
  const decided = await decideApproval(fleet.store, {
    approvalId,
    decision: "approve_with_edits",
    argsHash,
    args: { amount },
    note: null,
    actor: MANAGER,
  });
  expect(decided.result).toBe("accepted");
  await fleet.wake((await fleet.load(runId)).run);
}

async function hold(agent: Agent): Promise<string> {
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  await fleet.untilStatus(id, "waiting_approval");
  return id;
}

describe("what a tool gave", () => {
  test("is given to the completion condition as it was given", async () => {
    const at = new Date("2026-10-21T07:28:00.000Z");
    const tool = defineTool({
      name: "quote",
      description: "Quotes",
      input: z.object({}),
      effect: "read",
      execute: async () => ({ at, units: 9_007_199_254_740_993n }),
    });
    const seen: unknown[] = [];
    const agent = aDesk([{ calls: [{ tool: "quote", input: {} }] }, { text: "done" }], [], {
      tools: [tool],
      complete: (_reply, results) => {
        seen.push(...results);
        return { kind: "succeeded" };
      },
    });
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "completed");
    const output = { at, units: 9_007_199_254_740_993n };
    expect(seen).toStrictEqual([{ tool: "quote", result: "succeeded", output }]);
  });
});

describe("arguments that a person has changed", () => {
  test("run as they were changed", async () => {
    const { tool, paid } = anEvenPayment();
    const agent = aDesk([{ calls: [{ tool: "pay", input: { amount: "8" } }] }, { text: "done" }], [], {
      tools: [tool],
    });
    const id = await hold(agent);
    await edit(id, "4");
    await fleet.untilStatus(id, "completed");
    expect(paid).toEqual(["4"]);
    // The model is told what ran, which is not what it said.
    const told = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    const value = '[A reviewer changed the arguments of this call. It ran with {"amount":"4"}]\npaid';
    expect(told?.content).toMatchObject([{ output: { type: "text", value } }]);
  });

  test("that the tool does not take are never run: people are asked anew, and told why", async () => {
    const { tool, paid } = anEvenPayment();
    const agent = aDesk([{ calls: [{ tool: "pay", input: { amount: "8" } }] }, { text: "done" }], [], {
      tools: [tool],
    });
    const id = await hold(agent);
    await edit(id, "5");
    // The run is asked again once its worker has seen that it does not fit.
    await fleet.wake(await fleet.untilStatus(id, "queued", "waiting_approval"));
    await fleet.untilStatus(id, "waiting_approval");
    expect(paid).toEqual([]);
    const { approvals } = await fleet.load(id);
    expect(approvals.map(({ state, editedBy }) => [state, editedBy])).toEqual([
      ["superseded", null],
      ["withdrawn", MANAGER.id],
      ["pending", MANAGER.id],
    ]);
    const [, withdrawn, asked] = await fleet.rows("approvals", id, "hold_seq, id");
    expect(withdrawn).toMatchObject({ closed_reason: "edited arguments do not fit" });
    expect(asked?.request).toMatchObject({
      evidence: [{ tool: "pay", result: "invalid", excerpt: expect.stringContaining("the amount is odd") }],
    });
    // Another change, and it runs.
    await edit(id, "6");
    await fleet.untilStatus(id, "completed");
    expect(paid).toEqual(["6"]);
    expect(await fleet.rows("attempts", id)).toHaveLength(1);
  });
});

describe("a frozen call whose tool has changed under it", () => {
  const script = [{ calls: [ask("pay")] }, { text: "done" }];

  const changed = (
    agent: Agent,
    tool: Agent["tools"] extends ReadonlyMap<string, infer Tool> ? Tool | null : never,
  ) => ({
    ...agent,
    tools: new Map(tool === null ? [] : [["pay", tool]]),
  });
  const stricter = defineTool({
    name: "pay",
    description: "Pays",
    input: z.object({ order: z.string(), currency: z.string() }),
    effect: "unsafe",
    execute: async () => "paid",
  });

  test.each([
    ["is missing", () => null],
    ["takes other arguments", () => stricter],
    ["has become a read", () => aTool("pay", { effect: "read" }).tool],
  ])("is never run where it %s: an operator is asked, and can pass over it", async (_how, tool) => {
    const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER });
    const agent = aDesk(script, [pay]);
    const first = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "waiting_approval");
    await first.drain(1_000);
    await fleet.decide(id, "approve");
    await fleet.start(changed(agent, tool()));
    const held = await fleet.untilStatus(id, "waiting_operator");
    const [call] = (await fleet.load(id)).calls;
    expect(held.state.waitingFor).toMatchObject({ reason: "incompatible_tool", subject: call?.id });
    expect(await fleet.rows("attempts", id)).toEqual([]);
    await fleet.order(id, { choice: "skip" });
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "operator skip", "pay skipped", "model_reply"]);
    expect(pay.executed).toEqual([]);
  });

  test("is run by an operator's retry, once its tool is there again, on the same approval", async () => {
    const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER });
    const agent = aDesk(script, [pay]);
    const first = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "waiting_approval");
    await first.drain(1_000);
    await fleet.decide(id, "approve");
    const without = await fleet.start(changed(agent, null));
    await fleet.untilStatus(id, "waiting_operator");
    await without.drain(1_000);
    await fleet.start(agent);
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "completed");
    expect(pay.executed).toHaveLength(1);
    expect((await fleet.load(id)).approvals).toMatchObject([{ state: "spent", decidedBy: MANAGER.id }]);
  });
});
