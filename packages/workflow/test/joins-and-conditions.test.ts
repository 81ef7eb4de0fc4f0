import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import { play, proceed, settle, start, started } from "./player.ts";
import { agent, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.object({ express: z.boolean().default(false) }) };
const brings = (output: string) => () => ({ output });

describe("a condition that is false", () => {
  const workflow = defineWorkflow({
    ...base,
    nodes: {
      pick: agent,
      gift: { ...agent, after: ["pick"], when: ({ input }) => input.express },
      ship: {
        kind: "agent",
        agent: worker,
        after: ["gift"],
        goal: (scope) => `ship with ${scope.output("gift") ?? "no gift"}`,
        output: text,
      },
    },
  });

  test("passes its node over, and those after it go on with null", () => {
    const goals: string[] = [];
    const { last, history } = play(workflow, (each) => {
      if (each.kind === "agent") goals.push(each.goal);
      return { output: "x" };
    });
    expect(history.executions.map(({ node, state }) => [node, state])).toEqual([
      ["pick", "done"],
      ["gift", "passed_over"],
      ["ship", "done"],
    ]);
    expect(goals.at(-1)).toBe("ship with no gift");
    // What is not needed is not missing.
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("is stored, and does not change its mind with what it reads", () => {
    const passedOver = proceed(workflow, settle(proceed(workflow, started()), { output: "x" }));
    expect(decide(workflow, { ...passedOver, input: { express: true } })).toMatchObject({
      do: "start",
      nodes: [{ node: "ship", input: { goal: "ship with no gift" } }],
    });
  });

  test("is a matter for a person where the rest cannot do without its node", () => {
    const needing = defineWorkflow({
      ...base,
      nodes: {
        gift: { ...agent, when: () => false },
        ship: { kind: "agent", agent: worker, after: ["gift"], goal: (scope) => scope.need("gift"), output: text },
      },
    });
    expect(play(needing, brings("x")).last).toMatchObject({
      do: "hold",
      reason: "graph_error",
      message: 'goal: it needs what "gift" brings, but that was passed over',
    });
  });

  test("gives true or false, and nothing else", () => {
    const odd = (() => "yes") as unknown as () => boolean;
    const workflow = defineWorkflow({ ...base, nodes: { one: { ...agent, when: odd } } });
    expect(decide(workflow, started())).toMatchObject({ do: "hold", message: expect.stringContaining("when: ") });
  });

  test("executes its node where it is true", () => {
    expect(play(workflow, brings("x"), started({ express: true })).started).toEqual(["pick", "gift", "ship"]);
    const gift = play(workflow, brings("card"), started({ express: true })).history.executions[2];
    expect(gift).toMatchObject({ node: "ship", state: "done" });
  });
});

describe("nodes", () => {
  const two = { left: agent, right: agent, both: { ...agent, after: ["left", "right"] } } as const;

  test("start one after the other, as they are declared", () => {
    expect(play(defineWorkflow({ ...base, nodes: two }), brings("x")).started).toEqual(["left", "right", "both"]);
    const { both, ...first } = two;
    const declaredFirst = defineWorkflow({ ...base, nodes: { both, ...first } });
    expect(play(declaredFirst, brings("x")).started).toEqual(["left", "right", "both"]);
  });

  test("start together as many as the workflow allows", () => {
    const workflow = defineWorkflow({ ...base, parallel: 2, nodes: { one: agent, two: agent, three: agent } });
    const first = decide(workflow, started());
    expect(first).toMatchObject({ do: "start", nodes: [{ node: "one" }, { node: "two" }] });
    const history = proceed(workflow, started());
    expect(decide(workflow, history)).toEqual({ do: "wait" });
    expect(decide(workflow, settle(history, { output: "x" }))).toMatchObject({
      do: "start",
      nodes: [{ node: "three" }],
    });
  });
});

describe("a join", () => {
  const parts = { one: agent, two: agent, three: agent } as const;
  const after = ["one", "two", "three"] as const;

  test("of all waits for all", () => {
    const workflow = defineWorkflow({ ...base, nodes: { ...parts, end: { ...agent, after } } });
    expect(play(workflow, brings("x")).started).toEqual(["one", "two", "three", "end"]);
  });

  test("of any starts with the first, reads null of the rest, and the workflow still waits for them", () => {
    const goals: string[] = [];
    const workflow = defineWorkflow({
      ...base,
      parallel: 2,
      nodes: {
        ...parts,
        end: {
          kind: "agent",
          agent: worker,
          after,
          join: "any",
          goal: (scope) => JSON.stringify(after.map((name) => scope.output(name))),
          output: text,
        },
      },
    });
    const { started: names, last } = play(workflow, (each) => {
      if (each.node === "end" && each.kind === "agent") goals.push(each.goal);
      return { output: each.node };
    });
    expect(names).toEqual(["one", "two", "three", "end"]);
    expect(goals).toEqual(['["one","two",null]']);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("of so many waits for so many", () => {
    const workflow = defineWorkflow({
      ...base,
      parallel: 100,
      nodes: { ...parts, end: { ...agent, after, join: { atLeast: 2 } } },
    });
    const one = settle(proceed(workflow, started()), { output: "x" });
    expect(decide(workflow, one)).toEqual({ do: "wait" });
    expect(decide(workflow, settle(one, { output: "x" }))).toMatchObject({ do: "start", nodes: [{ node: "end" }] });
  });

  test("does not count what was passed over, and passes its node over where too few are left", () => {
    const off = { ...agent, when: () => false } as const;
    const nodes = { one: agent, two: off, three: off, end: { ...agent, after, join: { atLeast: 2 } } } as const;
    const workflow = defineWorkflow({ ...base, nodes: { ...nodes, last: { ...agent, after: ["end"] } } });
    const { history } = play(workflow, brings("x"));
    expect(history.executions.map(({ node, state }) => `${node} ${state}`).sort()).toEqual([
      "end passed_over",
      "last done",
      "one done",
      "three passed_over",
      "two passed_over",
    ]);
  });

  test("counts what an operator skipped", () => {
    const workflow = defineWorkflow({ ...base, nodes: { one: agent, end: { ...agent, after: ["one"], join: "any" } } });
    const skipped = settle(start(started(), []), {}, "none");
    const history = settle(proceed(workflow, skipped), { state: "skipped", result: "skipped" });
    expect(decide(workflow, history)).toMatchObject({ do: "start", nodes: [{ node: "end" }] });
  });
});
