import { registerAgent } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, defineTool } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, nodesOf, ORDER } from "./a-graph.ts";
import { aDesk, ask, aTool } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const ref = ({ name, version }: { name: string; version: string }) => ({ name, version });

/** An agent that writes a better draft when it is asked again, and what publishes it. */
function aPress() {
  const writer = aDesk(
    [({ prompt }) => ({ text: JSON.stringify(prompt).includes("again") ? "second draft" : "first draft" })],
    [],
  );
  const executed: string[] = [];
  const publish = defineTool({
    name: "publish_draft",
    description: "Publishes",
    input: z.object({ text: z.string() }),
    effect: { key: { validForMs: 60_000 } },
    execute: async ({ text }, { operationId }) => {
      executed.push(operationId);
      return { published: text };
    },
  });
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      write: {
        kind: "agent",
        agent: ref(writer),
        goal: ({ input, feedback }) => `write ${input.order} ${feedback?.text ?? ""}`,
        output: z.string(),
      },
      review: {
        kind: "gate",
        gate: "feedback",
        after: ["write"],
        judge: ({ output }) => ({ pass: output("write") === "second draft", feedback: "again" }),
        rework: "write",
      },
      release: {
        kind: "gate",
        gate: "approval",
        after: ["review"],
        question: () => "Publish it?",
        approvers: { roles: ["manager"] },
        otherwise: "block",
      },
      publish: {
        kind: "tool",
        after: ["release"],
        tool: { name: "publish_draft" },
        input: ({ need }) => ({ text: need("write") }),
        output: z.object({ published: z.string() }),
      },
    },
    result: ({ need }) => need("publish").published,
  });
  return { writer, executed, agent: bindWorkflow(workflow, { tools: [publish] }) };
}

describe("a workflow run", () => {
  test("goes from an agent through a feedback loop, a person and a tool to its end", async () => {
    const { writer, executed, agent } = aPress();
    await fleet.start(writer);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await fleet.untilStatus(id, "waiting_approval");
    const { approvals } = await fleet.load(id);
    expect(approvals[0]?.args).toEqual({ question: "Publish it?", shown: null });
    await fleet.decide(id, "approve");
    const ended = await fleet.untilStatus(id, "completed");
    expect(await nodesOf(fleet, id)).toEqual([
      "write#1 succeeded",
      "review#1 done",
      "write#2 succeeded",
      "review#2 done",
      "release#1 succeeded",
      "publish#1 succeeded",
    ]);
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(ended.result).toBe("second draft");
    expect(executed).toHaveLength(1);
  });

  test("passes over what its condition says is not needed, and joins what is there", async () => {
    const look = aRead("look", async (_times, _context, { order }) => `seen ${order}`);
    const work = { kind: "tool", tool: { name: "look" }, output: z.string() } as const;
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        small: { ...work, input: () => ({ order: "small" }), when: ({ input }) => input.order.length < 10 },
        large: { ...work, input: () => ({ order: "large" }), when: ({ input }) => input.order.length >= 10 },
        both: {
          ...work,
          after: ["small", "large"],
          input: ({ output }) => ({ order: `${output("small")}, ${output("large")}` }),
        },
        either: { ...work, after: ["large", "both"], join: "any", input: () => ({ order: "either" }) },
        neither: { ...work, after: ["large"], join: "any", input: () => ({ order: "never" }) },
      },
      result: ({ output }) => [output("both"), output("either"), output("neither")],
    });
    const agent = bindWorkflow(workflow, { tools: [look.tool] });
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const ended = await fleet.untilStatus(id, "completed");
    expect(await nodesOf(fleet, id)).toEqual([
      "large#1 passed_over",
      "neither#1 passed_over",
      "small#1 succeeded",
      "both#1 succeeded",
      "either#1 succeeded",
    ]);
    expect(ended.result).toEqual(["seen seen small, null", "seen either", null]);
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
  });

  test("maps a list over agents, never more at once than it says, and brings the results in their order", async () => {
    let [live, most] = [0, 0];
    const together = Promise.withResolvers<void>();
    const look = aTool("look", {
      effect: "read",
      behave: async () => {
        live += 1;
        most = Math.max(most, live);
        if (live === 2) together.resolve();
        await together.promise;
        live -= 1;
        return "seen";
      },
    });
    const clerk = aDesk(
      [{ calls: [ask("look")] }, ({ prompt }) => ({ text: `did ${/item (\d)/.exec(JSON.stringify(prompt))?.[1]}` })],
      [look],
    );
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        each: {
          kind: "agent",
          agent: ref(clerk),
          forEach: () => [1, 2, 3, 4, 5],
          item: z.number(),
          atMost: 2,
          goal: ({ item }) => `item ${item}`,
          output: z.string(),
        },
      },
      result: ({ need }) => need("each"),
    });
    const agent = bindWorkflow(workflow);
    await fleet.start(clerk);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.result).toEqual(["did 1", "did 2", "did 3", "did 4", "did 5"]);
    expect([look.executed.length, most]).toEqual([5, 2]);
    expect(await nodesOf(fleet, id)).toEqual([
      "each#1 done",
      ...[0, 1, 2, 3, 4].map((item) => `each#1.${item} succeeded`),
    ]);
  });

  test("starts another workflow as a child, which is given what its node says and brings its result home", async () => {
    const look = aRead("look", async (_times, _context, { order }) => ({ found: order }));
    const inner = bindWorkflow(
      defineWorkflow({
        name: aGraphName(),
        version: "1",
        input: z.object({ order: z.string(), tag: z.json() }),
        nodes: {
          look: {
            kind: "tool",
            tool: { name: "look" },
            input: ({ input }) => ({ order: input.order }),
            output: z.object({ found: z.string() }),
          },
        },
        result: ({ input, need }) => ({ ...need("look"), tag: input.tag }),
      }),
      { tools: [look.tool] },
    );
    const outer = bindWorkflow(
      defineWorkflow({
        name: aGraphName(),
        version: "1",
        input: ORDER,
        nodes: {
          below: {
            kind: "workflow",
            workflow: inner.workflow,
            // What looks like a date of the store's is the user's own text.
            input: ({ input }) => ({ order: input.order, tag: { $date: "2026-10-21" } }),
            output: z.object({ found: z.string(), tag: z.json() }),
          },
        },
        result: ({ need }) => need("below"),
      }),
    );
    await registerAgent(fleet.store, { ...ref(inner), kind: "workflow", tools: [] });
    await fleet.start(outer);
    const id = await beginGraph(fleet, outer);
    const waiting = await fleet.untilStatus(id, "waiting_dependency");
    expect(waiting).toMatchObject({
      currentStep: "below",
      state: { waitingFor: { kind: "child", reason: "child_running" } },
    });
    await fleet.start(inner);
    const ended = await fleet.untilStatus(id, "completed");
    const { children } = await fleet.load(id);
    expect(children).toMatchObject([{ agent: ref(inner), status: "completed", outcome: { kind: "succeeded" } }]);
    expect((await fleet.load(children[0]?.id ?? "")).run.input).toEqual({
      order: "4411",
      tag: { $date: "2026-10-21" },
    });
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
  });

  test("says which node has its turn, and what it completed last", async () => {
    const gate = Promise.withResolvers<void>();
    const look = aRead("look", async () => {
      await gate.promise;
      return "seen";
    });
    const work = { kind: "tool", tool: { name: "look" }, output: z.string() } as const;
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        policy: { ...work, input: () => ({ order: "a" }), when: () => false },
        search: { ...work, after: ["policy"], input: () => ({ order: "b" }) },
      },
    });
    const agent = bindWorkflow(workflow, { tools: [look.tool] });
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await waitFor(async () => look.executed.length === 1, { deadlineMs: 20_000, what: "the second node" });
    const { run } = await fleet.load(id);
    expect([run.currentStep, run.checkpoint.lastCompleted]).toEqual(["search", "policy"]);
    gate.resolve();
    await fleet.untilStatus(id, "completed");
  });
});

describe("a go/no-go gate", () => {
  /** A workflow whose gate lets through what its tool brings at the n-th time. */
  function aGate(passesAt: number, onNo: { rework: "look" } | { otherwise: "block" | "hold" }) {
    const look = aRead("look", async (times) => times);
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        look: { kind: "tool", tool: { name: "look" }, input: ({ input }) => input, output: z.number() },
        policy: {
          kind: "gate",
          gate: "go_no_go",
          after: ["look"],
          judge: ({ need }) => ({ pass: need("look") >= passesAt, feedback: "too few" }),
          ...onNo,
        },
      },
    });
    return { look, agent: bindWorkflow(workflow, { tools: [look.tool] }) };
  }

  test("sends the work back, and then lets it through", async () => {
    const { agent } = aGate(2, { rework: "look" });
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const { state } = await fleet.untilStatus(id, "completed");
    expect(state.outcome).toEqual({ kind: "succeeded" });
    expect(await nodesOf(fleet, id)).toEqual([
      "look#1 succeeded",
      "policy#1 done",
      "look#2 succeeded",
      "policy#2 done",
    ]);
  });

  test("ends the workflow as blocked, which is no success, with the gate and why", async () => {
    const { agent } = aGate(2, { otherwise: "block" });
    await fleet.start(agent);
    const { state } = await fleet.untilStatus(await beginGraph(fleet, agent), "completed");
    expect(state.outcome).toEqual({ kind: "blocked", step: "policy", reason: "too few" });
  });
});
