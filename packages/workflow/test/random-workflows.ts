import fc from "fast-check";
import { z } from "zod";
import { defineWorkflow } from "../src/define-workflow.ts";
import { isMap } from "../src/standing.ts";
import type { Workflow } from "../src/workflow.ts";
import { agent } from "./workflows.ts";

const MOST = 6;

/** A node of a random graph, as numbers: what it comes after is taken from those before it. */
interface Sketch {
  readonly before: readonly number[];
  readonly kind: "agent" | "optional" | "any" | "map";
}

const sketch: fc.Arbitrary<Sketch> = fc.record({
  before: fc.uniqueArray(fc.nat(MOST), { maxLength: 3 }),
  kind: fc.constantFrom("agent", "agent", "optional", "any", "map"),
});

const nameAt = (index: number) => `n${index}`;

/** Any graph without gates. `isPlain`: without conditions and joins that do not wait for all. */
export function anyGraph({ isPlain }: { readonly isPlain: boolean }): fc.Arbitrary<Workflow> {
  const sketches = fc.array(sketch, { minLength: 1, maxLength: MOST });
  return fc.tuple(sketches, fc.integer({ min: 1, max: 4 })).map(([nodes, parallel]) =>
    readable(
      defined(
        nodes.map(({ before, kind }) => ({ before, kind: isPlain && kind !== "map" ? "agent" : kind })),
        parallel,
      ),
    ),
  );
}

/** A counterexample shows edges, not schemas. */
function readable(workflow: Workflow): Workflow {
  const nodes = [...workflow.nodes.values()].map((node) => {
    const back = node.kind === "gate" ? { rework: node.rework, rounds: node.rounds } : {};
    return { name: node.name, after: node.after, join: node.join, isMap: isMap(node), ...back };
  });
  const text = JSON.stringify({ parallel: workflow.parallel, nodes });
  return Object.assign(workflow, { [fc.toStringMethod]: () => text });
}

function defined(sketches: readonly Sketch[], parallel: number): Workflow {
  const entries = sketches.map(({ before, kind }, index) => {
    const after = [...new Set(before.filter((each) => each < index).map(nameAt))];
    return [nameAt(index), { ...agent, ...extras(kind, after.length), after }] as const;
  });
  const nodes: Record<string, typeof agent> = Object.fromEntries(entries);
  return defineWorkflow({ name: "random", version: "1", input: z.json(), parallel, nodes });
}

function extras(kind: Sketch["kind"], upstream: number): object {
  if (kind === "optional") return { when: () => upstream % 2 === 0 };
  if (kind === "map") return { forEach: () => ["a", "b", "c"], item: z.string(), atMost: 2 };
  return kind === "any" && upstream > 0 ? { join: "any" } : {};
}

/** A chain of so many nodes, with gates that send it back: each from its place to an earlier one, in nested loops. */
export const anyGates = fc
  .tuple(
    fc.array(fc.record({ back: fc.nat(3), rounds: fc.integer({ min: 1, max: 3 }) }), { minLength: 1, maxLength: 3 }),
    fc.integer({ min: 1, max: 2 }),
  )
  .map(([gates, length]) => {
    const nodes: Record<string, object> = {};
    const names: string[] = [];
    const add = (name: string, node: object) => {
      nodes[name] = { ...node, after: names.slice(-1) };
      names.push(name);
    };
    gates.forEach(({ back, rounds }, gate) => {
      for (let step = 0; step < length; step += 1) add(`s${gate}-${step}`, agent);
      const rework = names.at(-1 - (back % names.length)) ?? "";
      const judge = (scope: { output: (name: string) => unknown }) => ({
        pass: scope.output(`s${gate}-0`) === "good",
        feedback: "bad",
      });
      add(`g${gate}`, { kind: "gate", gate: "feedback", judge, rework, rounds });
    });
    // Built from what the compiler cannot see; what it would check is checked when it is defined.
    return readable(
      defineWorkflow({ name: "gates", version: "1", input: z.json(), nodes: nodes as Record<string, never> }),
    );
  });
