import { registerAgent } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, defineChildRuns, type WorkflowBinding } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, childrenOf, nodesOf, ORDER } from "./a-graph.ts";
import { aDesk, aTool } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** A workflow that says how often it has looked at what it was given. */
function anInner() {
  const look = aRead("look", async (times, _context, { order }) => `${order}, look ${times}`);
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      look: { kind: "tool", tool: { name: "look" }, input: ({ input }) => input, output: z.string() },
    },
    result: ({ need }) => need("look"),
  });
  return { look, workflow, agent: bindWorkflow(workflow, { tools: [look.tool] }) };
}

describe("a child workflow that is started anew in the line of one before it", () => {
  test("does its work again where that one had completed: what a gate has sent back is worked on", async () => {
    const inner = anInner();
    const outer = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        draft: {
          kind: "workflow",
          workflow: inner.workflow,
          input: ({ input, feedback }) => ({ order: `${input.order}${feedback?.text ?? ""}` }),
          output: z.string(),
        },
        review: {
          kind: "gate",
          gate: "feedback",
          after: ["draft"],
          judge: ({ need }) => ({ pass: need("draft").includes("better"), feedback: " better" }),
          rework: "draft",
        },
      },
      result: ({ need }) => need("draft"),
    });
    const agent = bindWorkflow(outer);
    await fleet.start(inner.agent);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const ended = await fleet.untilStatus(id, "completed", "waiting_operator");
    expect(ended.result).toBe("4411 better, look 2");
    const [first, second] = await childrenOf(fleet, id);
    expect((await fleet.load(second?.id ?? "")).run).toMatchObject({ line: first?.id, retryOf: first?.id });
  });
});

describe("a failed workflow that is resumed after a node", () => {
  /** A workflow that ends as failed when its only child, or its gate, has said no. */
  function aBlocking(node: "child" | "gate" | "output", isOpen: () => boolean) {
    const child = aDesk([() => ({ text: isOpen() ? "done" : "I may not" })], [], {
      complete: (text) =>
        text === "done" ? { kind: "succeeded" } : { kind: "blocked", step: "look", reason: "permission_missing" },
      onBlocked: "end",
    });
    const look = aRead("look", async () => (isOpen() || node !== "output" ? "seen" : 7));
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        first: { kind: "tool", tool: { name: "look" }, input: ({ input }) => input, output: z.string() },
        ask: {
          kind: "agent",
          after: ["first"],
          agent: child,
          when: () => node === "child",
          goal: () => "look",
          output: z.string(),
        },
        check: {
          kind: "gate",
          gate: "go_no_go",
          after: ["ask"],
          judge: () => ({ pass: node !== "gate" || isOpen(), feedback: "not yet" }),
        },
      },
      result: ({ need }) => need("first"),
    });
    const binding: WorkflowBinding = { tools: [look.tool], onFailure: "fail" };
    return { child, look, agent: bindWorkflow(workflow, binding) };
  }

  test.each([
    ["child", "node_blocked", ["ask#1 succeeded", "check#1 done"]],
    ["gate", "no_go", ["check#1 done"]],
    ["output", "invalid_node_output", ["first#1 succeeded", "ask#1 passed_over", "check#1 done"]],
  ] as const)("whose %s was in the way (%s) tries that again, and no more", async (node, reason, started) => {
    let isOpen = false;
    const made = aBlocking(node, () => isOpen);
    await fleet.start(made.child);
    await fleet.start(made.agent);
    const id = await beginGraph(fleet, made.agent);
    expect((await fleet.untilStatus(id, "failed")).state.endReason).toBe(reason);
    const again = await beginGraph(fleet, made.agent, { retryOf: id });
    expect((await fleet.untilStatus(again, "failed", "completed")).state.endReason).toBe(reason);
    isOpen = true;
    const third = await beginGraph(fleet, made.agent, { retryOf: again });
    expect((await fleet.untilStatus(third, "failed", "completed")).state.status).toBe("completed");
    expect(await nodesOf(fleet, third)).toEqual(started);
  });
});

describe("a tool node that starts child runs", () => {
  function aDelegating(orders: readonly string[], { parallel = 2 } = {}) {
    const child = aDesk([{ text: "the work is done" }], []);
    const delegate = defineChildRuns({
      name: "delegate",
      description: "Has others do it",
      input: z.object({ order: z.string() }),
      runs: ({ order }) => [...order].map((letter) => ({ agent: child, goal: `do ${letter}` })),
    });
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      parallel,
      nodes: {
        each: {
          kind: "tool",
          tool: { name: "delegate" },
          forEach: () => [...orders],
          item: z.string(),
          atMost: parallel,
          input: ({ item }) => ({ order: item }),
          output: z.json(),
        },
      },
      result: ({ need }) => need("each"),
    });
    return { child, agent: bindWorkflow(workflow, { tools: [delegate] }) };
  }

  test("brings what all of them have brought", async () => {
    const { child, agent } = aDelegating(["ab"]);
    await fleet.start(child);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const { result } = await fleet.untilStatus(id, "completed");
    expect(result).toMatchObject([{ children: [{ outcome: "succeeded" }, { outcome: "succeeded" }] }]);
  });

  test("waits for an equal one that is open, and is answered from its record: nobody is asked", async () => {
    const { child, agent } = aDelegating(["a", "a"]);
    await fleet.start(child);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await fleet.untilStatus(id, "completed", "waiting_operator");
    expect(await nodesOf(fleet, id)).toEqual(["each#1 done", "each#1.0 succeeded", "each#1.1 answered_from_record"]);
    expect(await childrenOf(fleet, id)).toHaveLength(1);
  });
});

test("a node whose effect settles later keeps no other waiting, and the end of a child beside it is seen at once", async () => {
  const refund = aTool("refund", {
    effect: { key: { validForMs: 86_400_000 } },
    behave: async () => ({ status: "pending" }),
    settlement: { isPending: () => true, poll: async () => ({ answer: "still_pending" }), withinMs: 86_400_000 },
  });
  const child = aDesk([{ text: "done" }], []);
  const tell = aRead("tell");
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    parallel: 2,
    nodes: {
      refund: { kind: "tool", tool: { name: "refund" }, input: ({ input }) => input, output: z.json() },
      write: { kind: "agent", agent: child, goal: () => "write", output: z.string() },
      tell: { kind: "tool", after: ["write"], tool: { name: "tell" }, input: ({ input }) => input, output: z.json() },
    },
  });
  const agent = bindWorkflow(workflow, { tools: [refund.tool, tell.tool] });
  await registerAgent(fleet.store, { name: child.name, version: child.version, tools: [] });
  await fleet.start(agent);
  const id = await beginGraph(fleet, agent);
  await fleet.untilStatus(id, "waiting_dependency");
  await fleet.start(child);
  await waitFor(async () => tell.executed.length > 0, { deadlineMs: 20_000, what: "what comes after the child" });
  expect(await nodesOf(fleet, id)).toEqual(["refund#1 open", "write#1 succeeded", "tell#1 succeeded"]);
});

test("a tool node's output that has children of its own is passed on as it is", async () => {
  const look = aRead("look", async () => ({ children: [{ name: "left", result: 1 }, { name: "right" }] }));
  const work = { kind: "tool", tool: { name: "look" }, output: z.json() } as const;
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: { look: { ...work, input: ({ input }) => input } },
    result: ({ need }) => need("look"),
  });
  const agent = bindWorkflow(workflow, { tools: [look.tool] });
  await fleet.start(agent);
  const id = await beginGraph(fleet, agent);
  const { result } = await fleet.untilStatus(id, "completed", "waiting_operator");
  expect(result).toEqual({ children: [{ name: "left", result: 1 }, { name: "right" }] });
});
