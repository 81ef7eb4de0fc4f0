import { moveClock } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, defineTimer } from "../src/index.ts";
import { aGraphName, beginGraph, nodesOf, ORDER } from "./a-graph.ts";
import { aDesk, ask } from "./desk.ts";
import { type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const DAY_MS = 86_400_000;
/** Longer than a process's own timers can be. */
const LONG_MS = 60 * DAY_MS;

function aTimer(due: () => Date | number) {
  return defineTimer({ name: "wait_a_while", description: "Waits", input: ORDER, due });
}

/** An agent that waits once, and ends. */
function waiting(due: () => Date | number) {
  return aDesk(
    [{ calls: [ask("wait_a_while")] }, { text: "done" }],
    [{ tool: aTimer(due), executed: [], lookedUp: 0 }],
  );
}

async function passTo(ms: number): Promise<void> {
  await moveClock(fleet.url, ms);
  await fleet.sweep();
}

describe("a timer", () => {
  test("of two months is waited for with no worker, no sooner and no longer, and is kept by a restart", async () => {
    const agent = waiting(() => LONG_MS);
    const first = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    const held = await fleet.untilStatus(id, "waiting_dependency");
    expect(held.state).toMatchObject({ owner: null, waitingFor: { kind: "timer" }, onDeadline: "continue" });
    await first.drain(1_000);
    await passTo(LONG_MS - DAY_MS);
    expect((await fleet.load(id)).run.state.status).toBe("waiting_dependency");
    await moveClock(fleet.url, LONG_MS + 1_000);
    await fleet.start(agent);
    await fleet.sweep();
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "timer_set", "wait_a_while succeeded", "model_reply"]);
  });

  test("whose moment has passed is over at once", async () => {
    const agent = waiting(() => new Date(0));
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "completed");
  });

  test.each([Number.NaN, new Date(Number.NaN), Number.NEGATIVE_INFINITY, new Date("+010000-01-01T00:00:00Z")])(
    "that says %s is shown to a person: no clock comes to that",
    async (due) => {
      const agent = waiting(() => due);
      await fleet.start(agent);
      const { id } = await fleet.submit(agent);
      const held = await fleet.untilStatus(id, "waiting_operator");
      expect(held.state.waitingFor).toMatchObject({ reason: "timer_out_of_range" });
      await fleet.order(id, { choice: "skip" });
      await fleet.untilStatus(id, "completed");
    },
  );

  test("is the tool of a node in a workflow", async () => {
    const timer = aTimer(() => LONG_MS);
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        pause: { kind: "tool", tool: { name: "wait_a_while" }, input: ({ input }) => input, output: z.string() },
      },
    });
    const agent = bindWorkflow(workflow, { tools: [timer] });
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await fleet.untilStatus(id, "waiting_dependency");
    await passTo(LONG_MS + 1_000);
    await fleet.untilStatus(id, "completed");
    expect(await nodesOf(fleet, id)).toEqual(["pause#1 succeeded"]);
  });
});
