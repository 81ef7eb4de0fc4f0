import type { JsonValue } from "@holdpoint/core";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { PersonOutput } from "../src/definition.ts";
import type { Feedback, Verdict } from "../src/scope-values.ts";
import type { Workflow } from "../src/workflow.ts";
import { started } from "./player.ts";
import { refund, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.object({ orderId: z.string() }) };
const order = { kind: "agent", agent: worker, goal: () => "x", output: z.object({ cents: z.number() }) } as const;

describe("a scope", () => {
  test("knows what each node brings, by its kind", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        order,
        items: { ...order, forEach: () => ["a"], item: text, output: z.boolean() },
        check: { kind: "gate", gate: "go_no_go", after: ["order"], judge: () => ({ pass: true, feedback: "" }) },
        ask: { kind: "human", question: () => "?", approvers: { users: ["ada"] }, output: z.enum(["a", "b"]) },
        free: { kind: "human", question: () => "?", approvers: { users: ["ada"] } },
        last: {
          kind: "agent",
          agent: worker,
          after: ["order", "items", "check", "ask", "free"],
          goal: (scope) => {
            expectTypeOf(scope.input).toEqualTypeOf<{ orderId: string }>();
            expectTypeOf(scope.output("order")).toEqualTypeOf<{ cents: number } | null>();
            expectTypeOf(scope.need("order")).toEqualTypeOf<{ cents: number }>();
            expectTypeOf(scope.need("items")).toEqualTypeOf<readonly (boolean | null)[]>();
            expectTypeOf(scope.need("check")).toEqualTypeOf<Verdict>();
            expectTypeOf(scope.need("ask")).toEqualTypeOf<PersonOutput<"a" | "b">>();
            expectTypeOf(scope.need("free")).toEqualTypeOf<PersonOutput<JsonValue>>();
            expectTypeOf(scope.feedback).toEqualTypeOf<Feedback | null>();
            expectTypeOf(scope.previous).toEqualTypeOf<string | null>();
            expectTypeOf(scope.item).toBeNever();
            // @ts-expect-error there is no such node
            expect(() => scope.output("nothing")).toThrow("there is no such node");
            return "x";
          },
          output: text,
        },
      },
      result: (scope) => scope.output("last"),
    });
    expect(workflow.nodes.size).toBe(6);
  });

  test("of a map knows the item", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        each: {
          kind: "agent",
          agent: worker,
          item: z.object({ sku: z.string() }),
          forEach: (scope) => [{ sku: scope.input.orderId }],
          goal: (scope) => {
            expectTypeOf(scope.item).toEqualTypeOf<{ sku: string }>();
            return scope.item.sku;
          },
          output: text,
        },
      },
    });
    expect(workflow.nodes.has("each")).toBe(true);
  });
});

describe("a workflow", () => {
  test("knows what it is started with, and what it brings", () => {
    expectTypeOf(refund).toExtend<Workflow<{ orderId: string }, { letter: string; signedBy: string | null }>>();
    expectTypeOf(refund).not.toExtend<Workflow<{ orderId: number }>>();
    // Whoever only executes it needs to know neither.
    expect(decide(refund, started({ orderId: "1" }))).toMatchObject({ do: "start" });
  });
});

describe("what does not fit does not compile:", () => {
  test("an unknown node in after", () => {
    // @ts-expect-error "ordr" is none of its nodes
    expect(() => defineWorkflow({ ...base, nodes: { order, ship: { ...order, after: ["ordr"] } } })).toThrow("ordr");
  });

  test("an unknown node to go back to", () => {
    const nodes = {
      kind: "gate",
      gate: "feedback",
      after: ["order"],
      judge: () => ({ pass: true, feedback: "" }),
    } as const;
    // @ts-expect-error "ordr" is none of its nodes
    expect(() => defineWorkflow({ ...base, nodes: { order, check: { ...nodes, rework: "ordr" } } })).toThrow("ordr");
  });

  test("an input that a tool does not take", () => {
    const tool = { name: "pay", input: z.object({ cents: z.number() }) };
    const workflow = defineWorkflow({
      ...base,
      // @ts-expect-error cents is a number
      nodes: { pay: { kind: "tool", tool, input: () => ({ cents: "1" }), output: text } },
    });
    expect(decide(workflow, started({ orderId: "1" }))).toMatchObject({ do: "hold", reason: "graph_error" });
  });

  test("an input that a child workflow does not take", () => {
    const workflow = defineWorkflow({
      ...base,
      // @ts-expect-error it takes orderId
      nodes: { child: { kind: "workflow", workflow: refund, input: () => ({ order: "1" }), output: text } },
    });
    expect(decide(workflow, started({ orderId: "1" }))).toMatchObject({ do: "hold", reason: "graph_error" });
  });

  test("a value for the skipped that is none of its outputs", () => {
    // @ts-expect-error cents is a number
    expect(() => defineWorkflow({ ...base, nodes: { one: { ...order, whenSkipped: { cents: "0" } } } })).toThrow(
      "cents",
    );
  });

  test("a list of something else than its items", () => {
    const workflow = defineWorkflow({
      ...base,
      // @ts-expect-error the items are texts
      nodes: { one: { ...order, item: text, forEach: () => [1, 2] } },
    });
    expect(decide(workflow, started({ orderId: "1" }))).toMatchObject({ do: "hold", reason: "graph_error" });
  });

  test("a result that is none of its outputs", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: { order },
      output: z.object({ cents: z.number() }),
      // @ts-expect-error cents is a number
      result: (scope) => ({ cents: String(scope.need("order").cents) }),
    });
    expect(workflow.result).not.toBeNull();
  });

  test("a property that its kind does not have", () => {
    const nodes = { order, check: { kind: "gate", gate: "feedback", after: ["order"], rework: "order" } as const };
    // @ts-expect-error a feedback gate needs a judge
    expect(() => defineWorkflow({ ...base, nodes })).toThrow("judge");
  });
});
