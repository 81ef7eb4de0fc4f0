import type { AgentRef, JsonObject, JsonValue, Limits } from "@holdpoint/core";
import type { Workflow } from "@holdpoint/workflow";
import { z } from "zod";
import { toPlain } from "./codec.ts";
import { asCallTool, type StorableObject, type Tool } from "./define-tool.ts";
import { presentationOf } from "./tool-rules.ts";
import { wholeNumbers } from "./whole-numbers.ts";

/** What a workflow needs of the process that runs it. */
export interface WorkflowBinding {
  /** The tools that its tool nodes name. */
  readonly tools?: readonly Tool[];
  /** `turns` counts how often the graph may be asked; 10 000 by default. */
  readonly limits?: Partial<Pick<Limits, "turns" | "wallMs">>;
  /**
   * What a node that failed for good leads to: an operator retries, skips or aborts (the default), or the run ends as `failed`,
   * and can be resumed as a run of its own that keeps what was completed.
   */
  readonly onFailure?: "operator" | "fail";
  /** A run that shows no progress for this long is taken from its worker; by default a minute more than its longest call. */
  readonly idleMs?: number;
}

/** A workflow as a worker runs it: its graph decides the turns that a model decides for an agent. */
export interface WorkflowAgent extends AgentRef {
  readonly kind: "workflow";
  readonly workflow: Workflow;
  /** What its nodes call: tools by their own names, everything else by the node's. */
  readonly tools: ReadonlyMap<string, Tool>;
  readonly limits: Limits;
  readonly onFailure: "operator" | "fail";
  readonly idleMs: number;
  readonly memories: false;
}

const DEFAULT_TURNS = 10_000;
const IDLE_SLACK_MS = 60_000;
/** A node that failed is tried once more; then a person decides. */
const NODE_RETRIES = 1;
/** A backstop: children have deadlines of their own. */
const CHILD_WITHIN_MS = 30 * 86_400_000;

/**
 * Binds a workflow to the tools that its nodes name, so that a worker can run it.
 *
 * @throws {TypeError} a node names a tool that is not there, or has the name of one.
 */
export function bindWorkflow(workflow: Workflow, binding: WorkflowBinding = {}): WorkflowAgent {
  const given = new Map((binding.tools ?? []).map((tool) => [tool.name, tool]));
  const bound = [...workflow.nodes.values()].flatMap((node) => toolOf(workflow, { node, given }) ?? []);
  const longestMs = Math.max(0, ...bound.map(({ timeoutMs }) => timeoutMs));
  const { idleMs = longestMs + IDLE_SLACK_MS, limits = {} } = binding;
  const check = wholeNumbers(`Workflow ${workflow.name}`);
  check("limits.turns", limits.turns ?? 1, { least: 1 });
  check("limits.wallMs", limits.wallMs ?? 1, { least: 1 });
  check("idleMs", idleMs, { least: longestMs });
  const { turns = DEFAULT_TURNS, wallMs = null } = limits;
  return {
    kind: "workflow",
    name: workflow.name,
    version: workflow.version,
    workflow,
    tools: new Map(bound.map((tool) => [tool.name, tool])),
    limits: { turns, wallMs, tokens: Number.MAX_SAFE_INTEGER, costUsd: null },
    onFailure: binding.onFailure ?? "operator",
    idleMs,
    memories: false,
  };
}

/** What a node calls; null for what the graph settles by itself. */
function toolOf(
  { name }: Workflow,
  { node, given }: { readonly node: Node; readonly given: ReadonlyMap<string, Tool> },
): Tool | null {
  if (node.kind === "tool") {
    const tool = given.get(node.tool);
    if (tool !== undefined) return tool;
    throw new TypeError(`Workflow ${name}: node ${node.name} needs the tool ${node.tool}; give it in tools`);
  }
  if (given.has(node.name))
    throw new TypeError(`Workflow ${name}: node ${node.name} has the name of a tool; rename one of them`);
  if (node.kind === "agent") return childTool(node.name, node.agent);
  if (node.kind === "workflow") return childTool(node.name, node.workflow);
  return node.kind === "human" || node.gate === "approval" ? personTool(node.name) : null;
}

type Node = Workflow["nodes"] extends ReadonlyMap<string, infer Value> ? Value : never;

const CHILD_INPUT = z.object({ goal: z.string(), input: z.unknown() });

/** A node that is a child run. What it comes to, the graph judges. */
function childTool(name: string, agent: AgentRef): Tool {
  const tool = asCallTool({
    name,
    description: `Node ${name}`,
    input: CHILD_INPUT as unknown as z.ZodType<StorableObject>,
    effect: {
      kind: "children",
      wait: "all",
      atOnce: 1,
      onBlocked: "tell",
      // Another round, or a retry, starts its child anew, and what the one before has done counts for it.
      equalCallsAreDistinct: true,
      sameWork: "place",
      withinMs: CHILD_WITHIN_MS,
    },
    rules: [],
    presentation: presentationOf(undefined),
    childRuns: (args: JsonObject) => {
      const { goal, input } = args as { goal: string; input: JsonValue };
      // Frozen as every argument is; the child is given what its node said.
      return [{ agent: { name: agent.name, version: agent.version }, goal, input: toPlain(input) }];
    },
  });
  return { ...tool, retries: NODE_RETRIES };
}

const PERSON_INPUT = z.object({ question: z.string(), shown: z.unknown() });

/** A node that waits for a person: a call that needs their word, and is over with it (`personWord`). */
function personTool(name: string): Tool {
  return asCallTool({
    name,
    description: `Node ${name}`,
    input: PERSON_INPUT as unknown as z.ZodType<StorableObject>,
    effect: { kind: "read" },
    rules: [],
    presentation: presentationOf(undefined),
  });
}
