import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { UntypedDefinition } from "../src/make-node.ts";
import { agent, refund, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.json() };

/** Nodes as they come from where no compiler has looked. */
function problemsOf(nodes: Record<string, object>, more: object = {}): string {
  try {
    defineWorkflow({ ...base, nodes: nodes as Record<string, never>, ...more });
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return "";
}

const gate = { kind: "gate", gate: "go_no_go", judge: () => ({ pass: true, feedback: "" }) };
const human = { kind: "human", question: () => "?", approvers: { roles: ["lead"] } } satisfies UntypedDefinition;
const after = (...names: readonly string[]) => ({ ...agent, after: names });

describe("defineWorkflow", () => {
  test("keeps the nodes in the order of their declaration, complete", () => {
    expect([...refund.nodes.keys()]).toEqual(["intake", "policy", "pay", "letter", "quality", "sign"]);
    expect(refund.nodes.get("quality")).toMatchObject({
      kind: "gate",
      after: ["letter"],
      join: "all",
      when: null,
      rework: ["letter"],
      rounds: 2,
      otherwise: "hold",
    });
    expect(refund).toMatchObject({ name: "refund", version: "1", parallel: 1, maxItems: 1_000 });
  });

  test("says what is sent back by which gate", () => {
    expect(refund.graph.loops).toEqual(new Map([["quality", new Set(["letter", "quality"])]]));
    expect(refund.graph.gatesOf.get("letter")).toEqual(["quality"]);
    expect(refund.graph.upstream.get("letter")).toEqual(new Set(["pay", "policy", "intake"]));
  });

  const cases: readonly (readonly [string, Record<string, object>, string])[] = [
    ["no end", {}, "it has no nodes, so it has no end: give it at least one"],
    ["an unknown node", { one: after("two") }, 'node "one": "after" names "two", and there is no such node'],
    [
      "an unknown node to go back to",
      { one: agent, two: { ...gate, after: ["one"], rework: "three" } },
      'node "two": "rework" names "three", and there is no such node',
    ],
    ["the same node twice", { one: agent, two: after("one", "one") }, 'node "two": "after" names "one" twice'],
    ["a bad name", { One: agent }, 'node "One": a node\'s name is made of a-z, 0-9 and -, at most 64, letter first'],
    [
      "a cycle",
      { a: agent, b: after("a", "d"), c: after("b"), d: after("c") },
      'the nodes c → d → b → c wait for each other: only a gate may send work back, by "rework"',
    ],
    ["a node that waits for itself", { a: after("a") }, "the nodes a → a wait for each other"],
    [
      "what is never reached",
      { a: after("a"), b: after("a") },
      'node "b" is never reached: it waits for nodes that wait for each other',
    ],
    [
      "a join that can never be met",
      { a: agent, b: { ...after("a"), join: { atLeast: 2 } } },
      'node "b": join atLeast 2 can never be met: it comes after 1 nodes',
    ],
    ["a join of nothing", { a: { ...agent, join: "any" } }, 'node "a": join "any" needs nodes in "after"'],
    ["a gate with nothing to judge", { a: gate }, 'node "a": a gate needs something to judge, in "after"'],
    [
      "a loop without a bound",
      { a: agent, b: { ...gate, after: ["a"], rework: "a", rounds: Number.POSITIVE_INFINITY } },
      'node "b": rounds is Infinity; it must be a whole number from 1 to 100, or its loop would have no bound',
    ],
    [
      "a way back to what does not come before",
      { a: agent, b: { ...gate, after: ["a"], rework: "c" }, c: agent },
      'node "b": "rework" names "c", which does not come before it',
    ],
    [
      "a way out of a loop beside its gate",
      { a: agent, b: { ...gate, after: ["a"], rework: "a" }, c: after("a") },
      'node "c" comes after "a", which gate "b" may send back: let it come after the gate',
    ],
    [
      "rounds without a way back",
      { a: agent, b: { ...gate, after: ["a"], rounds: 2 } },
      'node "b": "rounds" needs "rework": where a no sends the work to',
    ],
    [
      "two things that a no leads to",
      { a: agent, b: { ...gate, after: ["a"], rework: "a", otherwise: "hold" } },
      'node "b": it has both "rework" and "otherwise": a no leads to one of them',
    ],
    [
      "a map of gates",
      { a: agent, b: { ...gate, after: ["a"], forEach: () => [], item: text } },
      'node "b": a gate node has no "forEach"',
    ],
    [
      "a map of questions",
      { a: { ...human, forEach: () => [], item: text } },
      'node "a": a human node has no "forEach"',
    ],
    ["a map of what", { a: { ...agent, forEach: () => [] } }, 'node "a": "forEach" needs "item"'],
    ["items of no map", { a: { ...agent, atMost: 2 } }, 'node "a": "item" and "atMost" say how a map runs'],
    [
      "too many items at once",
      { a: { ...agent, forEach: () => [], item: text, atMost: 101 } },
      'node "a": atMost is 101; it must be a whole number from 1 to 100',
    ],
    ["retries that are none", { a: { ...agent, retries: -1 } }, 'node "a": retries is -1; it must be a whole number'],
    ["nobody to ask", { a: { ...human, approvers: {} } }, 'node "a": "approvers" names nobody: give it roles or users'],
    ["no time to answer", { a: { ...human, deadlineMs: 0 } }, 'node "a": deadlineMs is 0; it must be a whole number'],
    [
      "a value for the skipped that does not fit",
      { a: { ...agent, whenSkipped: 3 } },
      'node "a": "whenSkipped" does not fit its output: Invalid input: expected string, received number',
    ],
    [
      "an answer for the skipped that does not fit",
      { a: { ...human, whenSkipped: { decision: "yes" } } },
      'node "a": "whenSkipped" does not fit its output: decision: ',
    ],
    ["a kind that there is not", { a: { kind: "robot" } }, 'node "a": kind "robot" is none of agent, tool, workflow'],
    [
      "a gate that there is not",
      { a: { ...gate, gate: "vote" } },
      'node "a": gate "vote" is none of feedback, go_no_go',
    ],
    ["what a kind needs", { a: { kind: "agent", output: text } }, 'node "a": its kind needs "agent"'],
    ["what a tool needs", { a: { kind: "tool" } }, 'node "a": its kind needs "tool"'],
    [
      "what a child needs",
      { a: { kind: "workflow", output: text, input: () => 1 } },
      'node "a": its kind needs "workflow"',
    ],
    ["what a gate needs", { a: agent, b: { kind: "gate", after: ["a"], gate: "feedback" } }, 'its kind needs "judge"'],
    [
      "whom an approval asks",
      { a: agent, b: { kind: "gate", after: ["a"], gate: "approval" } },
      'its kind needs "approvers"',
    ],
    [
      "more nodes than can be read",
      Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`n${index}`, agent])),
      "it has 201 nodes, and may have 200: move a part into a workflow of its own",
    ],
  ];

  test.each(cases)("refuses %s", (_, nodes, problem) => {
    expect(problemsOf(nodes)).toContain(problem);
  });

  test("refuses names, versions and numbers that cannot be used, all at once", () => {
    const more = { name: "Bad", version: "", parallel: 0, limits: { items: 0.5 }, output: text };
    expect(problemsOf({ one: agent }, more)).toBe(
      [
        'Workflow Bad: name "Bad": use a-z, 0-9 and -, at most 64, letter first',
        'version "" may have letters, digits, . _ -',
        "parallel is 0; it must be a whole number from 1 to 100",
        "limits.items is 0.5; it must be a whole number from 1 to 10000",
        '"output" needs "result", which makes it from what the nodes brought',
      ].join("; "),
    );
  });

  test("names so many problems, and counts the others", () => {
    const bad = Object.fromEntries(Array.from({ length: 22 }, (_, index) => [`N${index}`, agent]));
    expect(problemsOf(bad)).toMatch(/and 2 more$/);
  });

  test("takes a value for the skipped that fits", () => {
    const whenSkipped = { decision: "rejected", answer: null, note: null } as const;
    expect(
      problemsOf({
        a: { ...agent, whenSkipped: "nothing" },
        b: { ...human, whenSkipped },
        c: { ...agent, whenSkipped: null },
      }),
    ).toBe("");
  });

  test("takes only the name of a child's definition", () => {
    const nodes = {
      child: { kind: "workflow", workflow: refund, input: () => ({ orderId: "1" }), output: text },
    } as const;
    expect(defineWorkflow({ ...base, nodes }).nodes.get("child")).toMatchObject({
      workflow: { name: "refund", version: "1" },
      accepts: refund.input,
    });
    expect(worker).toEqual({ name: "worker", version: "1" });
  });
});
