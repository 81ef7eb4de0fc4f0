import type { JsonValue } from "@holdpoint/core";
import { z } from "zod";
import { checkGraph } from "./check-graph.ts";
import { checkNode, checkNumber, NAME, VERSION } from "./check-node.ts";
import type { NodeDefinition, Scope, ShapesFrom } from "./definition.ts";
import { graphOf } from "./graph.ts";
import { DEFAULT_ITEMS, LIMITS } from "./limits.ts";
import { makeNode, type UntypedDefinition } from "./make-node.ts";
import type { Node, ScopeFunction } from "./node.ts";
import type { Workflow } from "./workflow.ts";

/** What `defineWorkflow` takes. The last four parameters are read from the nodes, and are never written by hand. */
export interface WorkflowDefinition<
  Input extends z.ZodType,
  Output extends z.ZodType,
  Outputs,
  Kinds,
  Items,
  Accepts,
  S extends ShapesFrom<Outputs, Kinds, Items, Accepts> = ShapesFrom<Outputs, Kinds, Items, Accepts>,
> {
  readonly name: string;
  /** A run stays with the version that it was started with; `checkMigration` says whether it may change. */
  readonly version: string;
  /** What it is started with. */
  readonly input: Input;
  /** By name, in the order in which they are to start where nothing else says so. */
  readonly nodes: {
    readonly [Name in keyof Outputs]: NodeDefinition<S, Name, Scope<z.output<Input>, S, Name>>;
  } & { readonly [Name in keyof Kinds]: { readonly kind: Kinds[Name] } } & {
    readonly [Name in keyof Items]: { readonly item?: Items[Name] };
  } & {
    readonly [Name in keyof Accepts]: {
      readonly tool?: { readonly input?: Accepts[Name] };
      readonly workflow?: { readonly input?: Accepts[Name] };
    };
  };
  /** The schema of what it brings; any JSON by default. Needs `result`. */
  readonly output?: Output;
  /** Makes what it brings, once every node is complete; without it, null. */
  readonly result?: (scope: Scope<z.output<Input>, S>) => z.input<Output>;
  /** The most nodes that are open at once; 1 by default: one node after the other. */
  readonly parallel?: number;
  /** `items`: the most that one map may have, 1 000 by default. */
  readonly limits?: { readonly items?: number };
}

/**
 * Defines a workflow: a graph of nodes, each with what it comes after. TypeScript knows what each node brings, and what the
 * functions of the others may read.
 *
 * ```ts
 * const refund = defineWorkflow({
 *   name: "refund",
 *   version: "1",
 *   input: z.object({ orderId: z.string() }),
 *   nodes: {
 *     intake: {
 *       kind: "agent",
 *       agent: { name: "intake", version: "1" },
 *       goal: ({ input }) => `Find out what is wrong with order ${input.orderId}`,
 *       output: z.object({ amountCents: z.number(), reason: z.string() }),
 *     },
 *     policy: {
 *       kind: "gate",
 *       gate: "go_no_go",
 *       after: ["intake"],
 *       judge: (scope) => ({ pass: scope.need("intake").amountCents <= 50_000, feedback: "above the limit" }),
 *       otherwise: "block",
 *     },
 *     letter: {
 *       kind: "agent",
 *       agent: { name: "writer", version: "1" },
 *       after: ["policy"],
 *       goal: ({ feedback }) => (feedback === null ? "Write to the customer" : `Write it again: ${feedback.text}`),
 *       output: z.object({ text: z.string() }),
 *     },
 *     quality: {
 *       kind: "gate",
 *       gate: "feedback",
 *       after: ["letter"],
 *       judge: (scope) => ({ pass: scope.need("letter").text.length < 1_000, feedback: "too long" }),
 *       rework: "letter",
 *     },
 *   },
 *   output: z.object({ letter: z.string() }),
 *   result: (scope) => ({ letter: scope.need("letter").text }),
 * });
 * ```
 *
 * @throws {TypeError} it could not be executed as it is; the message names every problem, and what to do about it.
 */
export function defineWorkflow<
  Input extends z.ZodType,
  Outputs,
  const Kinds,
  Items,
  Accepts,
  Output extends z.ZodType = z.ZodType<JsonValue, JsonValue>,
>(
  definition: WorkflowDefinition<Input, Output, Outputs, Kinds, Items, Accepts>,
): Workflow<z.input<Input>, z.output<Output>> {
  const { name, version, input, parallel = 1, limits = {} } = definition;
  const { items: maxItems = DEFAULT_ITEMS } = limits;
  // The types have done their work: from here on a node is what it is, whatever its functions read.
  const given = Object.entries(definition.nodes as Record<string, UntypedDefinition>);
  const nodes = new Map(given.map(([key, node]): [string, Node] => [key, makeNode(key, node)]));
  const problems = [
    ...(NAME.test(name) ? [] : [`name "${name}": use a-z, 0-9 and -, at most 64, letter first`]),
    ...(VERSION.test(version) ? [] : [`version "${version}" may have letters, digits, . _ -`]),
    ...checkNumber("parallel", parallel, { least: 1, most: LIMITS.atOnce }),
    ...checkNumber("limits.items", maxItems, { least: 1, most: LIMITS.items }),
    ...(definition.output === undefined || definition.result !== undefined
      ? []
      : ['"output" needs "result", which makes it from what the nodes brought']),
    ...given.flatMap(([key, node]) => checkNode(key, node)),
    ...checkGraph(nodes),
  ];
  if (problems.length > 0) throw new TypeError(`Workflow ${name}: ${listed(problems)}`);
  const output = definition.output ?? z.json();
  return {
    name,
    version,
    input,
    // Both are the schemas whose types the definition has, or any JSON where it has none.
    output: output as unknown as z.ZodType<z.output<Output>>,
    nodes,
    graph: graphOf(nodes),
    parallel,
    maxItems,
    result: (definition.result as ScopeFunction | undefined) ?? null,
  } as Workflow<z.input<Input>, z.output<Output>>;
}

function listed(problems: readonly string[]): string {
  const more = problems.length - LIMITS.problems;
  return [...problems.slice(0, LIMITS.problems), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
