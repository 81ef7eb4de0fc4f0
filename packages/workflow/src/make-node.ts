import type { AgentRef, JsonObject, JsonValue } from "@holdpoint/core";
import { z } from "zod";
import { toJson } from "./json.ts";
import { DEFAULT_ROUNDS } from "./limits.ts";
import type { GateNode, Join, MapOver, Node, Question, ScopeFunction } from "./node.ts";
import { personOutput } from "./read-output.ts";

/** A node's definition without its types: all that one may say, whatever its kind. */
export interface UntypedDefinition {
  readonly kind: Node["kind"];
  readonly after?: readonly string[];
  readonly join?: Join;
  readonly when?: ScopeFunction;
  readonly output?: z.ZodType;
  readonly whenSkipped?: JsonValue;
  readonly retries?: number;
  readonly forEach?: ScopeFunction;
  readonly item?: z.ZodType;
  readonly atMost?: number;
  readonly agent?: AgentRef;
  readonly goal?: ScopeFunction;
  readonly tool?: { readonly name: string; readonly input?: z.ZodType };
  readonly workflow?: AgentRef & { readonly input?: z.ZodType };
  readonly input?: ScopeFunction;
  readonly question?: ScopeFunction;
  readonly show?: ScopeFunction;
  readonly approvers?: { readonly roles?: readonly string[]; readonly users?: readonly string[] };
  readonly deadlineMs?: number;
  readonly onDeadline?: "reject" | "operator";
  readonly fourEyes?: boolean;
  readonly gate?: GateNode["gate"];
  readonly judge?: ScopeFunction;
  readonly rework?: string | readonly string[];
  readonly rounds?: number;
  readonly otherwise?: "hold" | "block";
}

/** The node of a definition, complete. What its kind needs and it does not have is found by `checkNode`. */
export function makeNode(name: string, definition: UntypedDefinition): Node {
  const { kind, after = [], join = "all", when = null, whenSkipped = null } = definition;
  const base = { name, after, join, when };
  const { output = z.json() } = definition;
  // Each takes from the definition what its kind has, so that nothing is in a node which it does not use.
  if (kind === "gate") return { ...base, kind, ...gateOf(definition) } as GateNode;
  if (kind === "human") {
    const ask = questionOf(definition);
    const answerSchema = definition.output === undefined ? null : answerSchemaOf(output);
    return { ...base, kind, ask, answer: output, answerSchema, output: personOutput(output), whenSkipped };
  }
  const work = { ...base, output, whenSkipped, retries: definition.retries ?? null, map: mapOf(definition) };
  const { agent, goal, tool, workflow, input } = definition;
  if (kind === "agent") return { ...work, kind, agent: refOf(agent), goal } as Node;
  if (kind === "tool") return { ...work, kind, tool: tool?.name, input, accepts: tool?.input ?? null } as Node;
  return { ...work, kind, workflow: refOf(workflow), input, accepts: workflow?.input ?? null } as Node;
}

/** What JSON schema cannot say is left to the check of what came back. */
function answerSchemaOf(answer: z.ZodType): JsonObject {
  // zod's JSON schema is plain JSON.
  return toJson(z.toJSONSchema(answer, { io: "input", unrepresentable: "any" })) as JsonObject;
}

function gateOf({ gate, judge, rework = [], rounds = DEFAULT_ROUNDS, ...definition }: UntypedDefinition) {
  const back = typeof rework === "string" ? [rework] : rework;
  if (gate !== "approval") return { gate, judge, rework: back, rounds, otherwise: definition.otherwise ?? "hold" };
  return { gate, ask: questionOf(definition), rework: back, rounds, otherwise: definition.otherwise ?? "block" };
}

function questionOf({
  question,
  show,
  approvers,
  deadlineMs,
  onDeadline,
  fourEyes,
}: Partial<UntypedDefinition>): Question {
  const { roles = [], users = [] } = approvers ?? {};
  return {
    question: question as ScopeFunction,
    show: show ?? null,
    approvers: { roles, users },
    deadlineMs: deadlineMs ?? null,
    onDeadline: onDeadline ?? "reject",
    fourEyes: fourEyes ?? true,
  };
}

function mapOf({ forEach, item = z.json(), atMost = 1 }: UntypedDefinition): MapOver | null {
  return forEach === undefined ? null : { forEach, item, atMost };
}

/** Only the name: a workflow that is given whole is more. */
function refOf(ref: AgentRef | undefined): AgentRef | undefined {
  return ref === undefined ? undefined : { name: ref.name, version: ref.version };
}
