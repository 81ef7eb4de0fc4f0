import { requestCancel } from "@holdpoint/store";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, ToolError } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, nodesOf, ORDER, submitGraph } from "./a-graph.ts";
import { aTool } from "./desk.ts";
import { ALICE, type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** A workflow that ends as failed when a node has: it looks, asks a manager, maps a list, and pays. */
function aFailing() {
  const broken = new Set<string>();
  const check = (what: string) => {
    if (broken.has(what)) throw new ToolError(`no ${what}`, { errorClass: "refused", code: "no" });
    return `${what} done`;
  };
  const look = aRead("look", async () => check("look"));
  const count = aRead("count", async (_times, _context, { order }) => check(order));
  const pay = aTool("pay", { effect: { key: { validForMs: 60_000 } }, behave: async () => check("pay") });
  const work = { kind: "tool", output: z.string() } as const;
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      look: { ...work, tool: { name: "look" }, input: ({ input }) => input },
      sign: { kind: "human", after: ["look"], question: () => "Go on?", approvers: { roles: ["manager"] } },
      each: {
        ...work,
        after: ["sign"],
        tool: { name: "count" },
        forEach: () => ["a", "b", "c"],
        item: z.string(),
        input: ({ item }) => ({ order: item }),
      },
      pay: { ...work, after: ["each"], tool: { name: "pay" }, input: ({ input }) => input },
    },
    result: ({ need, input }) => [input.order, need("look"), need("sign").decision, need("each"), need("pay")],
  });
  const agent = bindWorkflow(workflow, { tools: [look.tool, count.tool, pay.tool], onFailure: "fail" });
  const executed = () => [look, count, pay].map((tool) => tool.executed.length);
  return { broken, agent, executed };
}

const RESULT = ["4411", "look done", "rejected", ["a done", "b done", "c done"], "pay done"];

async function failOnce(what: string) {
  const made = aFailing();
  made.broken.add(what);
  await fleet.start(made.agent);
  const id = await beginGraph(fleet, made.agent, { instanceKey: what });
  await fleet.untilStatus(id, "waiting_approval");
  await fleet.decide(id, "reject");
  const failed = await fleet.untilStatus(id, "failed");
  expect(failed.state.endReason).toBe("node_failed");
  return { ...made, id };
}

async function resume(made: Pick<ReturnType<typeof aFailing>, "agent">, retryOf: string): Promise<string> {
  return beginGraph(fleet, made.agent, { retryOf });
}

describe("a failed workflow that is resumed", () => {
  test("keeps what was completed, asks nobody again, and starts anew what had failed", async () => {
    const made = await failOnce("b");
    expect(made.executed()).toEqual([1, 2, 0]);
    made.broken.clear();
    const id = await resume(made, made.id);
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended).toMatchObject({ retryOf: made.id, line: made.id, instanceKey: "b", result: RESULT });
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(made.executed()).toEqual([1, 4, 1]);
    expect(await nodesOf(fleet, id)).toEqual(["each#1.1 succeeded", "each#1.2 succeeded", "pay#1 succeeded"]);
  });

  test("and fails again can be resumed again, with what both have completed", async () => {
    const made = await failOnce("c");
    made.broken.clear();
    made.broken.add("pay");
    const second = await resume(made, made.id);
    await fleet.untilStatus(second, "failed");
    made.broken.clear();
    const third = await resume(made, second);
    expect((await fleet.untilStatus(third, "completed")).result).toEqual(RESULT);
    expect(await nodesOf(fleet, third)).toEqual(["pay#1 succeeded"]);
    expect(made.executed()).toEqual([1, 4, 2]);
  });

  test("is one run of its line: beside a live one there is no other", async () => {
    const made = await failOnce("a");
    made.broken.clear();
    const second = await resume(made, made.id);
    await fleet.untilStatus(second, "completed");
    expect(await submitGraph(fleet, made.agent, { retryOf: second })).toEqual({ result: "retried_run_is_over" });
  });
});

describe("a workflow that is not to be resumed", () => {
  /** One that waits for a manager. */
  async function waiting(instanceKey?: string) {
    const made = aFailing();
    await fleet.start(made.agent);
    const id = await beginGraph(fleet, made.agent, instanceKey === undefined ? {} : { instanceKey });
    await fleet.untilStatus(id, "waiting_approval");
    return { ...made, id };
  }

  test("is one that still runs", async () => {
    const { agent, id } = await waiting();
    expect(await submitGraph(fleet, agent, { retryOf: id })).toEqual({ result: "line_is_live" });
  });

  test("is one that was stopped, or has completed", async () => {
    const stopped = await waiting();
    await requestCancel(fleet.store, { runId: stopped.id, actor: ALICE, reason: "no more" });
    expect(await submitGraph(fleet, stopped.agent, { retryOf: stopped.id })).toEqual({ result: "retried_run_is_over" });
    const done = await waiting();
    await fleet.decide(done.id, "approve");
    await fleet.untilStatus(done.id, "completed");
    expect(await submitGraph(fleet, done.agent, { retryOf: done.id })).toEqual({ result: "retried_run_is_over" });
  });

  test("is any beside a live one with its instance key; after that has ended there may be another", async () => {
    const first = await waiting("order-4411");
    expect(await submitGraph(fleet, first.agent, { instanceKey: "order-4411" })).toMatchObject({
      result: "instance_is_live",
    });
    expect((await submitGraph(fleet, first.agent, { instanceKey: "order-4412" })).result).toBe("submitted");
    await requestCancel(fleet.store, { runId: first.id, actor: ALICE, reason: "no more" });
    expect((await submitGraph(fleet, first.agent, { instanceKey: "order-4411" })).result).toBe("submitted");
  });
});
