import { decideAsOperator } from "@holdpoint/store";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, ToolError, type WorkflowBinding } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, childrenOf, lastReason, nodesOf, ORDER, untilHeld } from "./a-graph.ts";
import { aDesk, aTool, type Recorded } from "./desk.ts";
import { type Fleet, OPERATOR, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const broken = () => new ToolError("the desk is closed", { errorClass: "transient", code: "closed" });

/** A tool that fails so many times before it works. */
function failing(times: number): Recorded {
  return aRead("look", async (attempt, _context, { order }) => {
    if (attempt <= times) throw broken();
    return `seen ${order}`;
  });
}

/** Two nodes after each other: the second tells what it was given by the first. */
function aPair(look: Recorded, binding: Pick<WorkflowBinding, "onFailure"> = {}) {
  const tell = aRead("tell", async (_times, _context, { order }) => `told ${order}`);
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      look: {
        kind: "tool",
        tool: { name: "look" },
        input: ({ input }) => input,
        output: z.string(),
        whenSkipped: "nothing",
      },
      tell: {
        kind: "tool",
        after: ["look"],
        tool: { name: "tell" },
        input: ({ output }) => ({ order: output("look") ?? "null" }),
        output: z.string(),
      },
    },
    result: ({ need }) => need("tell"),
  });
  return { tell, agent: bindWorkflow(workflow, { tools: [look.tool, tell.tool], ...binding }) };
}

async function begin(agent: ReturnType<typeof aPair>["agent"]): Promise<string> {
  await fleet.start(agent);
  return beginGraph(fleet, agent);
}

describe("a node whose tool fails", () => {
  test("is tried once more by itself", async () => {
    const look = failing(1);
    const id = await begin(aPair(look).agent);
    expect((await fleet.untilStatus(id, "completed")).result).toBe("told seen 4411");
    expect(look.executed).toHaveLength(2);
    expect(await nodesOf(fleet, id)).toEqual(["look#1 succeeded", "tell#1 succeeded"]);
  });

  test("twice waits for an operator, who may retry, skip or abort, and nothing else", async () => {
    const look = failing(2);
    const id = await begin(aPair(look).agent);
    const held = await untilHeld(fleet, id, "call_failed");
    expect(look.executed).toHaveLength(2);
    expect(held.currentStep).toBe("look");
    for (const choice of ["mark_done", "not_established", "retry_now"] as const) {
      const decided = { runId: id, choice, actor: OPERATOR, reason: "test", attemptIds: [] };
      expect((await decideAsOperator(fleet.store, decided)).result).toBe("refused");
    }
    await fleet.order(id, { choice: "retry" });
    const { state } = await fleet.untilStatus(id, "completed");
    expect([look.executed.length, state.outcome]).toEqual([3, { kind: "succeeded" }]);
  });

  test("and is skipped gives those after it what it says for that, and the run achieved a part", async () => {
    const id = await begin(aPair(failing(9)).agent);
    await untilHeld(fleet, id, "call_failed");
    await fleet.order(id, { choice: "skip" });
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.result).toBe("told nothing");
    expect(ended.state.outcome).toEqual({ kind: "partial", reason: "skipped: look" });
    expect(await nodesOf(fleet, id)).toEqual(["look#1 skipped", "tell#1 succeeded"]);
  });

  test("and is aborted ends the run as cancelled, with nothing after it started", async () => {
    const { tell, agent } = aPair(failing(9));
    const id = await begin(agent);
    await untilHeld(fleet, id, "call_failed");
    await fleet.order(id, { choice: "abort" });
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "cancelled", endReason: "aborted" });
    expect(tell.executed).toEqual([]);
  });
});

test("a child workflow that failed is started once more, then a person decides; the new run keeps what was completed", async () => {
  const look = aRead("look");
  const tell = aRead("tell", async () => {
    throw new ToolError("no", { errorClass: "refused", code: "no" });
  });
  const work = { kind: "tool", output: z.string() } as const;
  const inner = bindWorkflow(
    defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        look: { ...work, tool: { name: "look" }, input: ({ input }) => input },
        tell: { ...work, after: ["look"], tool: { name: "tell" }, input: ({ input }) => input },
      },
    }),
    { tools: [look.tool, tell.tool], onFailure: "fail" },
  );
  const outer = bindWorkflow(
    defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: { below: { kind: "workflow", workflow: inner.workflow, input: ({ input }) => input, output: z.null() } },
    }),
  );
  await fleet.start(inner);
  const id = await begin(outer);
  await untilHeld(fleet, id, "node_failed");
  const [first, second] = await childrenOf(fleet, id);
  expect([first?.status, second?.status, second?.try]).toEqual(["failed", "failed", 2]);
  expect((await fleet.load(second?.id ?? "")).run.retryOf).toBe(first?.id);
  expect([look.executed.length, tell.executed.length]).toEqual([1, 2]);
  expect(await lastReason(fleet, id)).toBe("node_failed: node_failed");
  await fleet.order(id, { choice: "abort" });
});

test("what a node brings and does not fit is never passed on: a person is told where, and a retry does it anew", async () => {
  const look = aRead("look", async (times) => (times === 1 ? { wrong: 1 } : "right"));
  const { tell, agent } = aPair(look);
  const id = await begin(agent);
  await untilHeld(fleet, id, "invalid_node_output");
  expect(await lastReason(fleet, id)).toMatch(/^invalid_node_output: .*expected string/);
  expect(tell.executed).toEqual([]);
  await fleet.order(id, { choice: "retry" });
  expect((await fleet.untilStatus(id, "completed")).result).toBe("told right");
  expect(await nodesOf(fleet, id)).toEqual(["look#1 succeeded", "look#1 succeeded", "tell#1 succeeded"]);
});

describe("a function of the definition that throws", () => {
  /** A workflow whose functions throw as long as they are told to. */
  function aFragile() {
    const throws = { input: false, result: false };
    const look = aRead("look");
    const guard = (what: keyof typeof throws) => {
      if (throws[what]) throw new Error(`no ${what}`);
    };
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        look: {
          kind: "tool",
          tool: { name: "look" },
          input: ({ input }) => {
            guard("input");
            return input;
          },
          output: z.string(),
        },
      },
      result: ({ output }) => {
        guard("result");
        return output("look");
      },
    });
    return { throws, look, agent: bindWorkflow(workflow, { tools: [look.tool] }) };
  }

  test("holds the run at the node's place, and is asked again on a retry", async () => {
    const { throws, look, agent } = aFragile();
    throws.input = true;
    const id = await begin(agent);
    const held = await untilHeld(fleet, id, "graph_error");
    expect(held.state.waitingFor?.subject).toBe("@look/1");
    expect(await lastReason(fleet, id)).toBe("graph_error: input: no input");
    throws.input = false;
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "completed");
    expect(look.executed).toHaveLength(1);
  });

  test("is passed over with its node on a skip, though nothing was started", async () => {
    const { throws, look, agent } = aFragile();
    throws.input = true;
    const id = await begin(agent);
    await untilHeld(fleet, id, "graph_error");
    await fleet.order(id, { choice: "skip" });
    const { state, result } = await fleet.untilStatus(id, "completed");
    expect([look.executed.length, result]).toEqual([0, null]);
    expect(state.outcome).toEqual({ kind: "partial", reason: "skipped: look" });
  });

  test("for the result holds the run when all is done, and does nothing twice", async () => {
    const { throws, look, agent } = aFragile();
    throws.result = true;
    const id = await begin(agent);
    const held = await untilHeld(fleet, id, "graph_error");
    expect([held.state.waitingFor?.subject, held.currentStep]).toEqual(["@result", "result"]);
    throws.result = false;
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "completed");
    expect(look.executed).toHaveLength(1);
  });
});

test("a child agent that is blocked holds the workflow with its step and reason; a retry is another run", async () => {
  let times = 0;
  const clerk = aDesk([{ text: "I may not do that" }], [], {
    complete: () => {
      times += 1;
      return times === 1
        ? { kind: "blocked", step: "change_setting", reason: "permission_missing" }
        : { kind: "succeeded" };
    },
    onBlocked: "end",
  });
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      change: {
        kind: "agent",
        agent: { name: clerk.name, version: clerk.version },
        goal: () => "change",
        output: z.string(),
      },
    },
  });
  const agent = bindWorkflow(workflow);
  await fleet.start(clerk);
  const id = await begin(agent);
  const held = await untilHeld(fleet, id, "node_blocked");
  expect(held.state.outcome).toBeNull();
  expect(await lastReason(fleet, id)).toBe("node_blocked: change_setting: permission_missing");
  await fleet.order(id, { choice: "retry" });
  expect((await fleet.untilStatus(id, "completed")).state.outcome).toEqual({ kind: "succeeded" });
  expect((await childrenOf(fleet, id)).map(({ outcome }) => outcome?.kind)).toEqual(["blocked", "succeeded"]);
});

test("a feedback loop whose rounds are over waits for a person, who lets it go on once more, or lets it pass", async () => {
  const write = aRead("write", async (times) => `draft ${times}`);
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      write: {
        kind: "tool",
        tool: { name: "write" },
        input: ({ round }) => ({ order: `${round}` }),
        output: z.string(),
      },
      review: {
        kind: "gate",
        gate: "feedback",
        after: ["write"],
        judge: () => ({ pass: false, feedback: "worse" }),
        rework: "write",
      },
    },
    result: ({ need }) => need("write"),
  });
  const agent = bindWorkflow(workflow, { tools: [write.tool] });
  const id = await begin(agent);
  await untilHeld(fleet, id, "rounds_exhausted");
  expect(write.executed).toHaveLength(2);
  expect(await lastReason(fleet, id)).toBe("rounds_exhausted: worse");
  await fleet.order(id, { choice: "retry" });
  await untilHeld(fleet, id, "rounds_exhausted");
  expect(write.executed).toHaveLength(3);
  await fleet.order(id, { choice: "skip" });
  const ended = await fleet.untilStatus(id, "completed");
  expect(ended.result).toBe("draft 3");
  expect(ended.state.outcome).toEqual({ kind: "partial", reason: "skipped: review" });
});

test("while a person decides about one node what is open beside it goes on, and nothing new starts", async () => {
  const look = failing(2);
  const clerk = aDesk([{ text: "done" }], []);
  const after = aTool("after", { effect: "read" });
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    parallel: 2,
    nodes: {
      work: {
        kind: "agent",
        agent: { name: clerk.name, version: clerk.version },
        goal: () => "work",
        output: z.string(),
      },
      look: { kind: "tool", tool: { name: "look" }, input: ({ input }) => input, output: z.string() },
      after: {
        kind: "tool",
        after: ["work"],
        tool: { name: "after" },
        input: ({ input }) => input,
        output: z.string(),
      },
    },
  });
  const agent = bindWorkflow(workflow, { tools: [look.tool, after.tool] });
  await fleet.start(clerk);
  const id = await begin(agent);
  const { state } = await untilHeld(fleet, id, "call_failed");
  const [child] = await childrenOf(fleet, id);
  await fleet.untilStatus(child?.id ?? "", "completed");
  expect(state.liveChildren).toBeLessThanOrEqual(1);
  expect((await fleet.load(id)).run.state.status).toBe("waiting_operator");
  expect(after.executed).toEqual([]);
  await fleet.order(id, { choice: "retry" });
  await fleet.untilStatus(id, "completed");
  expect([look.executed.length, after.executed.length]).toEqual([3, 1]);
});
