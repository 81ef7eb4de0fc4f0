import { loseAndRecover, markExited, registerAgent, requestCancel, requestPause, resumeRun } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { MOVING } from "../../upkeep/src/schedule.ts";
import { bindWorkflow, type WorkflowAgent } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, childrenOf, nodesOf, ORDER, say } from "./a-graph.ts";
import { aDesk, ask, aTool, type Behaviour } from "./desk.ts";
import { faultyStore } from "./faulty-store.ts";
import { ALICE, type Fleet, OPERATOR, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** One pass of all sweeps that move runs. */
async function sweepAll(): Promise<void> {
  const { store, publisher } = fleet;
  for (const sweep of MOVING) await sweep.run({ store, publisher, id: "test", graceMs: 1_000, limit: 100, number: 1 });
}

/** A workflow of an agent that asks its requester something first, and a tool after it. */
function aPair() {
  const clerk = aDesk([{ text: "?" }, { text: "done" }], []);
  const after = aRead("after");
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      work: {
        kind: "agent",
        agent: { name: clerk.name, version: clerk.version },
        goal: () => "work",
        output: z.string(),
      },
      after: {
        kind: "tool",
        after: ["work"],
        tool: { name: "after" },
        input: ({ input }) => input,
        output: z.string(),
      },
    },
  });
  return { clerk, after, agent: bindWorkflow(workflow, { tools: [after.tool] }) };
}

async function childThatAsks(runId: string): Promise<string> {
  await fleet.untilStatus(runId, "waiting_dependency");
  const [child] = await childrenOf(fleet, runId);
  await fleet.untilStatus(child?.id ?? "", "waiting_input");
  return child?.id ?? "";
}

describe("a workflow that is asked to stop", () => {
  test("has stopped when everything below it has, and starts nothing more", async () => {
    const { clerk, after, agent: inner } = aPair();
    const outer = bindWorkflow(
      defineWorkflow({
        name: aGraphName(),
        version: "1",
        input: ORDER,
        nodes: { below: { kind: "workflow", workflow: inner.workflow, input: ({ input }) => input, output: z.null() } },
      }),
    );
    await fleet.start(clerk);
    await fleet.start(inner);
    await fleet.start(outer);
    const id = await beginGraph(fleet, outer);
    await fleet.untilStatus(id, "waiting_dependency");
    const [middle] = await childrenOf(fleet, id);
    const lowest = await childThatAsks(middle?.id ?? "");
    const asked = await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: "no more" });
    expect(asked).toMatchObject({ run: { state: { status: "cancelling", liveChildren: 1 } } });
    const isStopped = async () => {
      await sweepAll();
      return (await fleet.load(id)).run.state.status === "cancelled";
    };
    await waitFor(isStopped, { deadlineMs: 20_000, what: "the workflow to stop" });
    for (const below of [middle?.id ?? "", lowest]) {
      expect((await fleet.load(below)).run.state).toMatchObject({ status: "cancelled", endReason: "parent_cancelled" });
    }
    expect(after.executed).toEqual([]);
  });
});

describe("a workflow that is paused", () => {
  test("takes in what its child brings meanwhile, and goes on when it is resumed", async () => {
    const { clerk, after, agent } = aPair();
    await fleet.start(clerk);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    const child = await childThatAsks(id);
    expect((await requestPause(fleet.store, { runId: id, actor: OPERATOR })).result).toBe("accepted");
    await say(fleet, child, "go on");
    await fleet.untilStatus(child, "completed");
    const isTold = async () => (await fleet.load(id)).run.state.liveChildren === 0;
    await waitFor(isTold, { deadlineMs: 20_000, what: "the end of the child to be counted" });
    expect((await fleet.load(id)).run.state.status).toBe("paused");
    expect(after.executed).toEqual([]);
    const resumed = await resumeRun(fleet.store, { runId: id, actor: OPERATOR });
    if (resumed.result !== "accepted") throw new Error(resumed.result);
    await fleet.wake(resumed.run);
    await fleet.untilStatus(id, "completed");
    expect(await nodesOf(fleet, id)).toEqual(["work#1 succeeded", "after#1 succeeded"]);
  });
});

const NODES = ["look", "pay", "check", "tell"] as const;
type Name = (typeof NODES)[number];

/** A workflow in which one of the tools does not come back until it is let go, the first time. */
function aFragile(name: Name) {
  const [reached, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const behaviour = (tool: Name): Behaviour => {
    return async (times) => {
      if (tool === name && times === 1) {
        reached.resolve();
        await open.promise;
      }
      return tool;
    };
  };
  const tools = {
    look: aTool("look", { effect: "read", behave: behaviour("look") }),
    pay: aTool("pay", { effect: { key: { validForMs: 60_000 } }, behave: behaviour("pay") }),
    check: aTool("check", { effect: "read", behave: behaviour("check") }),
    tell: aTool("tell", { effect: { key: { validForMs: 60_000 } }, behave: behaviour("tell") }),
  };
  const clerk = aDesk([{ calls: [ask("check")] }, { text: "well" }], [tools.check]);
  const work = { kind: "tool", input: ({ input }: { input: { order: string } }) => input, output: z.string() } as const;
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      find: { ...work, tool: { name: "look" } },
      policy: {
        kind: "gate",
        gate: "go_no_go",
        after: ["find"],
        judge: () => ({ pass: true, feedback: "" }),
        otherwise: "block",
      },
      refund: { ...work, after: ["policy"], tool: { name: "pay" } },
      quality: {
        kind: "agent",
        after: ["refund"],
        agent: { name: clerk.name, version: clerk.version },
        goal: () => "check",
        output: z.string(),
      },
      sign: {
        kind: "gate",
        gate: "approval",
        after: ["quality"],
        question: () => "Well?",
        approvers: { roles: ["manager"] },
      },
      close: { ...work, after: ["sign"], tool: { name: "tell" } },
    },
  });
  const bound = [tools.look.tool, tools.pay.tool, tools.tell.tool];
  return {
    tools,
    clerk,
    reached: reached.promise,
    open: open.resolve,
    agent: bindWorkflow(workflow, { tools: bound }),
  };
}

/** The workflow's run, or the child of it that has an owner now. */
async function ownedRun(runId: string): Promise<string> {
  const [child] = await childrenOf(fleet, runId);
  return child === undefined || child.ended ? runId : child.id;
}

describe("a workflow whose worker dies", () => {
  test.each(NODES)("in %s goes on with another, and every node is executed once", async (name) => {
    const { tools, clerk, agent, reached, open } = aFragile(name);
    const slots = { slots: 1 };
    await fleet.start(clerk, slots);
    await fleet.start(agent, slots);
    const id = await beginGraph(fleet, agent);
    if (name === "tell") {
      await fleet.untilStatus(id, "waiting_approval");
      await fleet.decide(id, "approve");
    }
    await reached;
    const { run } = await fleet.load(await ownedRun(id));
    await markExited(fleet.store, run.state.owner ?? "");
    const { moved } = await loseAndRecover(fleet.store, [{ run, reason: "process_exited" }], {
      kind: "sweeper",
      id: "test",
    });
    await fleet.start(name === "check" ? clerk : agent, slots);
    for (const each of moved) await fleet.wake(each);
    if (name !== "tell") {
      await fleet.untilStatus(id, "waiting_approval");
      await fleet.decide(id, "approve");
    }
    const ended = await fleet.untilStatus(id, "completed");
    open();
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(await nodesOf(fleet, id)).toEqual([
      "find#1 succeeded",
      "policy#1 done",
      "refund#1 succeeded",
      "quality#1 succeeded",
      "sign#1 succeeded",
      "close#1 succeeded",
    ]);
    // The provider sees one operation: what is repeated has the same id.
    for (const effect of [tools.pay, tools.tell]) expect(new Set(effect.executed).size).toBe(1);
    const times = NODES.map((tool) => tools[tool].executed.length);
    expect(times).toEqual(NODES.map((tool) => (tool === name ? 2 : 1)));
    expect(await childrenOf(fleet, id)).toHaveLength(1);
  });
});

/** A workflow of a list, a loop and branches, whose tools only count. */
function aTangle() {
  const look = aRead("look", async (_times, _context, { order }) => `seen ${order}`);
  const pay = aTool("pay", { effect: { key: { validForMs: 60_000 } } });
  const work = { kind: "tool", tool: { name: "look" }, output: z.string() } as const;
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    parallel: 2,
    nodes: {
      each: {
        ...work,
        forEach: () => ["a", "b", "c"],
        item: z.string(),
        atMost: 2,
        input: ({ item }) => ({ order: item }),
      },
      beside: { ...work, input: () => ({ order: "beside" }) },
      draft: { ...work, after: ["each"], input: ({ round }) => ({ order: `draft ${round}` }) },
      review: {
        kind: "gate",
        gate: "feedback",
        after: ["draft"],
        judge: ({ round }) => ({ pass: round === 2, feedback: "again" }),
        rework: "draft",
      },
      never: { ...work, after: ["beside"], when: () => false, input: () => ({ order: "never" }) },
      pay: {
        kind: "tool",
        tool: { name: "pay" },
        after: ["review", "never"],
        input: ({ input }) => input,
        output: z.string(),
      },
    },
    result: ({ need }) => [need("each"), need("draft"), need("pay")],
  });
  return { look, pay, agent: bindWorkflow(workflow, { tools: [look.tool, pay.tool] }) };
}

/** Works on the run until so many commits are stored, then stops the worker. */
async function workFor(agent: WorkflowAgent, runId: string, commits: number): Promise<void> {
  const enough = Promise.withResolvers<void>();
  let stored = 0;
  const store = faultyStore(fleet.store, async ({ verb, send }) => {
    const answer = await send();
    if (verb === "commit_steps") stored += 1;
    if (stored === commits) enough.resolve();
    return answer;
  });
  const worker = await fleet.start(agent, { store, slots: 1 });
  await fleet.wake((await fleet.load(runId)).run);
  await Promise.race([enough.promise, fleet.untilStatus(runId, "completed")]);
  await worker.drain(5_000);
}

test("whoever goes on, and wherever the one before stopped, the same nodes are executed in the same order, once", {
  timeout: 120_000,
}, async () => {
  const { look, pay, agent } = aTangle();
  await registerAgent(fleet.store, { name: agent.name, version: agent.version, kind: agent.kind, tools: [] });
  let before: { nodes: readonly string[]; result: unknown } | null = null;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 6 }), async (cuts) => {
      look.executed.length = 0;
      pay.executed.length = 0;
      const id = await beginGraph(fleet, agent);
      for (const commits of cuts) await workFor(agent, id, commits);
      await workFor(agent, id, Number.POSITIVE_INFINITY);
      const { run } = await fleet.load(id);
      const now = { nodes: await nodesOf(fleet, id), result: run.result };
      before ??= now;
      expect(now).toEqual(before);
      expect([look.executed.length, pay.executed.length, run.state.takeovers]).toEqual([6, 1, 0]);
    }),
    { numRuns: 5, examples: [[[]], [[1, 1, 1, 1, 1, 1]]], endOnFailure: true },
  );
});
