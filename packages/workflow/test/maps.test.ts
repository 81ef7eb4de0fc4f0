import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import { choose, play, proceed, type Result, settle, started } from "./player.ts";
import { agent, worker } from "./workflows.ts";

const workflow = defineWorkflow({
  name: "labels",
  version: "1",
  input: z.object({ skus: z.array(z.string()) }),
  limits: { items: 3 },
  nodes: {
    label: {
      kind: "agent",
      agent: worker,
      forEach: ({ input }) => input.skus,
      item: z.string().min(1),
      atMost: 2,
      goal: (scope) => `label ${scope.item}, ${scope.index} of the list`,
      output: z.object({ label: z.string() }),
      whenSkipped: { label: "none" },
    },
    count: {
      kind: "tool",
      tool: { name: "count" },
      after: ["label"],
      input: (scope) => scope.need("label").map((each) => each?.label ?? null),
      output: z.number(),
    },
  },
  result: (scope) => scope.need("count"),
});
const skus = (...list: string[]) => started({ skus: list });
const labels: Record<string, Result> = { count: { output: 3 } };
const labelled = (start: { readonly node: string; readonly item: number | null }) =>
  labels[start.node] ?? { output: { label: `L${start.item}` } };

describe("a map", () => {
  test("stores its list first, then executes so many items at once", () => {
    const listed = proceed(workflow, skus("a", "b", "c"));
    expect(listed.executions).toMatchObject([{ node: "label", item: null, state: "done", output: ["a", "b", "c"] }]);
    expect(decide(workflow, listed)).toMatchObject({
      do: "start",
      nodes: [
        { item: 0, input: { goal: "label a, 0 of the list" } },
        { item: 1, input: { goal: "label b, 1 of the list" } },
      ],
    });
    const open = proceed(workflow, listed);
    expect(decide(workflow, open)).toEqual({ do: "wait" });
    expect(decide(workflow, settle(open, { output: { label: "L" } }))).toMatchObject({ nodes: [{ item: 2 }] });
  });

  test("gives those after it a list, in the order of the items", () => {
    const inputs: unknown[] = [];
    const { last, started: names } = play(
      workflow,
      (each) => {
        if (each.node === "count") inputs.push(each.input);
        return labelled(each);
      },
      skus("a", "b", "c"),
    );
    expect(names).toEqual(["label", "label[0]", "label[1]", "label[2]", "count"]);
    expect(inputs).toEqual([["L0", "L1", "L2"]]);
    expect(last).toEqual({ do: "end", outcome: { kind: "succeeded" }, output: 3 });
  });

  test("is complete at once where its list is empty", () => {
    expect(play(workflow, labelled, skus()).started).toEqual(["label", "count"]);
  });

  test("keeps the list it was started with", () => {
    const listed = proceed(workflow, skus("a"));
    const changed = { ...listed, input: { skus: ["x", "y"] } };
    expect(decide(workflow, changed)).toMatchObject({
      nodes: [{ item: 0, input: { goal: "label a, 0 of the list" } }],
    });
  });

  test("is held for one item, of which a skip says what is given instead", () => {
    const first = play(workflow, ({ item }) => (item === 1 ? { state: "failed" } : labelled({ node: "label", item })), {
      ...skus("a", "b"),
    });
    expect(first.last).toMatchObject({ do: "hold", reason: "node_failed", node: "label", item: 1, callId: "call-3" });
    const inputs: unknown[] = [];
    const { last } = play(
      workflow,
      (each) => {
        inputs.push(each.input);
        return labelled(each);
      },
      choose(first.history, "skip", first.last),
    );
    expect(inputs).toEqual([["L0", "none"]]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "partial", reason: "achieved in part: label" } });
  });

  test("tries an item again where an operator says so, and no other", () => {
    const first = play(workflow, ({ item }) => (item === 0 ? { state: "failed" } : labelled({ node: "label", item })), {
      ...skus("a", "b"),
    });
    // What was open meanwhile goes on.
    const history = settle(first.history, { output: { label: "L1" } });
    const { started: names, last } = play(workflow, labelled, choose(history, "retry", first.last));
    expect(names).toEqual(["label", "label[0]", "label[1]", "label[0]", "count"]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("is held before any item where its list is not what it may be", () => {
    expect(decide(workflow, skus("a", "b", "c", "d"))).toMatchObject({
      do: "hold",
      reason: "graph_error",
      node: "label",
      callId: null,
      message: "forEach: it gives 4 items; limits.items is 3",
    });
    expect(decide(workflow, skus("a", ""))).toMatchObject({
      reason: "graph_error",
      message: "forEach: item 1: Too small: expected string to have >=1 characters",
    });
    const noList = defineWorkflow({
      name: "none",
      version: "1",
      input: z.json(),
      nodes: { each: { ...agent, forEach: (() => "abc") as unknown as () => string[], item: z.string() } },
    });
    expect(decide(noList, started())).toMatchObject({ message: "forEach: it gives no list" });
  });

  test("is held where its stored list is none", () => {
    const listed = proceed(workflow, skus("a"));
    const [list] = listed.executions;
    if (list === undefined) throw new Error("no list was stored");
    expect(decide(workflow, { ...listed, executions: [{ ...list, output: "a" }] })).toMatchObject({
      do: "hold",
      reason: "invalid_node_output",
      item: null,
    });
  });

  test("goes on before another node starts", () => {
    const nodes = {
      other: agent,
      each: { ...agent, forEach: () => ["a", "b"], item: z.string() },
    } as const;
    const both = defineWorkflow({ name: "both", version: "1", input: z.json(), nodes });
    const listed = proceed(both, started());
    expect(decide(both, listed)).toMatchObject({ nodes: [{ node: "other" }] });
    // As after a migration: the map had begun before there was another node.
    const alone = defineWorkflow({ name: "both", version: "0", input: z.json(), nodes: { each: nodes.each } });
    const begun = settle(proceed(alone, listed), { output: "x" });
    expect(decide(both, begun)).toMatchObject({ nodes: [{ node: "each", item: 1 }] });
  });

  test("gives null for an item that was skipped, where its definition says nothing else", () => {
    const plain = defineWorkflow({
      name: "plain",
      version: "1",
      input: z.json(),
      nodes: { each: { ...agent, forEach: () => ["a", "b"], item: z.string() } },
      result: (scope) => [...scope.need("each"), scope.round, scope.feedback, scope.previous],
    });
    const { last } = play(plain, ({ item }) => (item === 0 ? { state: "skipped" } : { output: "B" }));
    expect(last).toMatchObject({ do: "end", outcome: { kind: "partial" }, output: [null, "B", 1, null, null] });
  });

  test("that is sent back makes its list anew, and knows of each item only this round's", () => {
    const goals: string[] = [];
    const reviewed = defineWorkflow({
      name: "reviewed",
      version: "1",
      input: z.json(),
      nodes: {
        each: {
          kind: "agent",
          agent: worker,
          forEach: ({ round }) => Array.from({ length: 3 - round }, (_, index) => `${round}.${index}`),
          item: z.string(),
          goal: (scope) => `${scope.item} ${scope.previous} ${scope.feedback?.text}`,
          output: z.string(),
        },
        check: {
          kind: "gate",
          gate: "feedback",
          after: ["each"],
          judge: (scope) => ({ pass: scope.need("each").length === 1, feedback: "too many" }),
          rework: "each",
        },
      },
    });
    const { last, started: names } = play(reviewed, (start) => {
      if (start.kind === "agent") goals.push(start.goal);
      return { output: "x" };
    });
    expect(names).toEqual(["each", "each[0]", "each[1]", "check", "each#2", "each#2[0]", "check#2"]);
    expect(goals).toEqual(["1.0 null undefined", "1.1 null undefined", "2.0 null too many"]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("skipped as a whole gives null", () => {
    const held = decide(workflow, skus("a", "b", "c", "d"));
    const skipped = choose(skus("a", "b", "c", "d"), "skip", held);
    expect(decide(workflow, skipped)).toMatchObject({
      do: "hold",
      node: "count",
      reason: "graph_error",
      message: expect.stringContaining("input:"),
    });
  });
});
