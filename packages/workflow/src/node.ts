import type { AgentRef, Approvers, JsonObject, JsonValue } from "@holdpoint/core";
import type { z } from "zod";
import type { ScopeValues } from "./scope-values.ts";

/** How many of the nodes before it have to be complete before a node starts; `all` unless it says otherwise. */
export type Join = "all" | "any" | { readonly atLeast: number };

/** A function of a definition, its types forgotten: it is given a scope, and what it gives is checked where it is used. */
export type ScopeFunction = (scope: ScopeValues) => unknown;

interface NodeBase {
  readonly name: string;
  readonly after: readonly string[];
  readonly join: Join;
  readonly when: ScopeFunction | null;
}

/** How a node runs once for each item of a list. */
export interface MapOver {
  readonly forEach: ScopeFunction;
  readonly item: z.ZodType;
  /** The most items that are open at once. */
  readonly atMost: number;
}

interface WorkBase extends NodeBase {
  readonly output: z.ZodType;
  readonly whenSkipped: JsonValue;
  readonly retries: number | null;
  readonly map: MapOver | null;
}

export type AgentNode = WorkBase & { readonly kind: "agent"; readonly agent: AgentRef; readonly goal: ScopeFunction };

export type ToolNode = WorkBase & {
  readonly kind: "tool";
  readonly tool: string;
  readonly input: ScopeFunction;
  /** What the tool takes; null: not known here. */
  readonly accepts: z.ZodType | null;
};

export type WorkflowNode = WorkBase & {
  readonly kind: "workflow";
  readonly workflow: AgentRef;
  readonly input: ScopeFunction;
  readonly accepts: z.ZodType | null;
};

/** What a person is asked. */
export interface Question {
  readonly question: ScopeFunction;
  readonly show: ScopeFunction | null;
  readonly approvers: Approvers;
  readonly deadlineMs: number | null;
  readonly onDeadline: "reject" | "operator";
  readonly fourEyes: boolean;
}

export type HumanNode = NodeBase & {
  readonly kind: "human";
  readonly ask: Question;
  /** The schema of an answer. */
  readonly answer: z.ZodType;
  /** The same as JSON schema, for whoever takes the answer; null: any JSON. */
  readonly answerSchema: JsonObject | null;
  /** The schema of all that comes back: decision, note and answer. */
  readonly output: z.ZodType;
  readonly whenSkipped: JsonValue;
};

export type GateNode = NodeBase & {
  readonly kind: "gate";
  /** The nodes that a no sends the work back to; empty: nowhere. */
  readonly rework: readonly string[];
  /** The no that is the last: then a person decides. */
  readonly rounds: number;
  /** What a no leads to where there is nowhere to send the work back to. */
  readonly otherwise: "hold" | "block";
} & (
    | { readonly gate: "feedback" | "go_no_go"; readonly judge: ScopeFunction }
    | { readonly gate: "approval"; readonly ask: Question }
  );

/** A node as it is executed: complete, and without the types that its definition had. */
export type Node = AgentNode | ToolNode | WorkflowNode | HumanNode | GateNode;
export type WorkNode = AgentNode | ToolNode | WorkflowNode;
export type NodeKind = Node["kind"];
