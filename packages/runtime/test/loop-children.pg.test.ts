import { registerAgent, requestCancel, stopDescendants } from "@holdpoint/store";
import { type ScriptedTurn, waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Agent, type ChildRunsDefinition, defineChildRuns, type Tool } from "../src/index.ts";
import { aDesk, ask, aTool } from "./desk.ts";
import { ALICE, type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

type Options = Partial<Omit<ChildRunsDefinition<{ order: string }>, "name" | "runs">>;

/** A tool that starts one run of the agent for each letter of its order. */
function delegation(agent: Agent, options: Options = {}): Tool {
  return defineChildRuns({
    name: "delegate",
    description: "Has others do it",
    input: z.object({ order: z.string() }),
    runs: ({ order }) => [...order].map((letter) => ({ agent, goal: `do ${letter}` })),
    ...options,
  });
}

/** A parent that delegates once and ends with what it is told. */
function aParent(child: Agent, order: string, options: Options = {}) {
  const tool = delegation(child, options);
  const script: readonly ScriptedTurn[] = [{ calls: [ask("delegate", order)] }, { text: "all done" }];
  return aDesk(script, [{ tool, executed: [], lookedUp: 0 }]);
}

/** What the children of a run are now, in their order. */
async function childrenOf(runId: string) {
  const { children } = await fleet.load(runId);
  return children;
}

describe("a call that starts child runs", () => {
  test("waits for them with no worker, and brings their outcomes home as data", async () => {
    const child = aDesk([{ text: "the work is done" }], []);
    const parent = aParent(child, "ab");
    await registerAgent(fleet.store, { name: child.name, version: child.version, tools: [] });
    await fleet.start(parent);
    const { id } = await fleet.submit(parent);
    const waiting = await fleet.untilStatus(id, "waiting_dependency");
    const [first] = await childrenOf(id);
    expect(waiting).toMatchObject({
      currentStep: "delegate",
      state: {
        owner: null,
        liveChildren: 2,
        waitingFor: { kind: "child", principal: `${first?.shownId} and 1 more`, reason: "child_running" },
        onDeadline: "operator",
      },
    });
    await fleet.start(child);
    await fleet.untilStatus(id, "completed");
    const loaded = await fleet.load(id);
    expect(story(loaded)).toEqual(["model_reply", "children_started", "delegate succeeded", "model_reply"]);
    expect(loaded.run.state.liveChildren).toBe(0);
    expect(loaded.steps.find(({ body }) => body.kind === "tool_result")?.body).toMatchObject({
      output: {
        children: [
          { run: first?.shownId, status: "completed", outcome: "succeeded", result: "the work is done" },
          { status: "completed", outcome: "succeeded", result: "the work is done" },
        ],
      },
    });
  });

  test("starts no more than may live at once", async () => {
    let live = 0;
    let most = 0;
    const look = aTool("look", {
      effect: "read",
      behave: async () => {
        live += 1;
        most = Math.max(most, live);
        // Two have been at it at once; who comes later may be alone.
        await waitFor(async () => most >= 2, { deadlineMs: 10_000, what: "another one beside it" });
        live -= 1;
        return "seen";
      },
    });
    const child = aDesk([{ calls: [ask("look")] }, { text: "done" }], [look]);
    const parent = aParent(child, "abcdef", { atOnce: 2 });
    await fleet.start(parent);
    await fleet.start(child);
    const { id } = await fleet.submit(parent);
    await fleet.untilStatus(id, "completed");
    expect(look.executed).toHaveLength(6);
    expect(most).toBe(2);
  });

  test("stops the others once enough have succeeded", async () => {
    const child = aDesk(
      [({ prompt }) => (JSON.stringify(prompt).includes("do a") ? { text: "done" } : { text: "?" })],
      [],
    );
    const parent = aParent(child, "abc", { wait: "any" });
    await fleet.start(parent);
    await fleet.start(child);
    const { id } = await fleet.submit(parent);
    await fleet.untilStatus(id, "completed");
    expect((await childrenOf(id)).map(({ status }) => status).toSorted()).toEqual([
      "cancelled",
      "cancelled",
      "completed",
    ]);
  });

  test("is held with the reason while a child that ended blocked is not seen to", async () => {
    const child = aDesk([{ text: "I may not do that" }], [], {
      complete: () => ({ kind: "blocked", step: "change_setting", reason: "permission_missing" }),
      onBlocked: "end",
    });
    const parent = aParent(child, "a");
    await fleet.start(parent);
    await fleet.start(child);
    const { id } = await fleet.submit(parent);
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state.waitingFor).toMatchObject({ reason: "child_blocked" });
    await fleet.order(id, { choice: "retry" });
    await waitFor(async () => (await childrenOf(id)).length === 2, { deadlineMs: 10_000, what: "another try" });
    await fleet.untilStatus(id, "waiting_operator");
    const [first, second] = await childrenOf(id);
    expect([first?.try, second?.try]).toEqual([1, 2]);
    expect((await fleet.load(second?.id ?? "")).run).toMatchObject({ retryOf: first?.id, line: first?.id });
    await fleet.order(id, { choice: "skip" });
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id)).filter((line) => line.startsWith("delegate"))).toEqual(["delegate skipped"]);
  });

  test("starts nothing more once the run is asked to stop, and the run has stopped when its children have", async () => {
    const child = aDesk([{ text: "?" }], []);
    const parent = aParent(child, "ab");
    await fleet.start(parent);
    await fleet.start(child);
    const { id } = await fleet.submit(parent);
    await fleet.untilStatus(id, "waiting_dependency");
    await waitFor(async () => (await childrenOf(id)).every(({ status }) => status === "waiting_input"), {
      deadlineMs: 10_000,
      what: "the children to ask",
    });
    const cancelled = await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: "no more" });
    expect(cancelled).toMatchObject({ result: "accepted", run: { state: { status: "cancelling", liveChildren: 2 } } });
    const { moved } = await stopDescendants(fleet.store, id);
    expect(moved.map(({ state }) => state.status)).toEqual(["cancelled", "cancelled"]);
  });

  test("gives a run back whose ancestor was asked to stop, until its own request comes", async () => {
    const effect = aTool("pay", { effect: { key: { validForMs: 60_000 } } });
    const parked: (() => void)[] = [];
    const look = aTool("look", {
      effect: "read",
      behave: () => new Promise((resolve) => parked.push(() => resolve("seen"))),
    });
    const child = aDesk([{ calls: [ask("look")] }, { calls: [ask("pay")] }, { text: "done" }], [look, effect]);
    const parent = aParent(child, "a");
    await fleet.start(parent);
    await fleet.start(child);
    const { id } = await fleet.submit(parent);
    await waitFor(async () => parked.length === 1, { deadlineMs: 10_000, what: "the child to look" });
    await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: null });
    for (const goOn of parked) goOn();
    const [started] = await childrenOf(id);
    const given = await fleet.untilStatus(started?.id ?? "", "retrying");
    expect(given.state.owner).toBeNull();
    expect(effect.executed).toEqual([]);
    await stopDescendants(fleet.store, id);
    expect((await fleet.load(started?.id ?? "")).run.state.status).toBe("cancelled");
  });
});
