import type { AgentRef } from "@holdpoint/core";
import type { z } from "zod";
import type { Node, ScopeFunction } from "./node.ts";

/** What follows from a workflow's edges, computed once. */
export interface Graph {
  /** So that every node comes after those before it; otherwise as declared. */
  readonly order: readonly string[];
  /** All that a node may read: whatever leads to it. */
  readonly upstream: ReadonlyMap<string, ReadonlySet<string>>;
  /** By gate: what a no of it runs again, the gate itself included. */
  readonly loops: ReadonlyMap<string, ReadonlySet<string>>;
  /** By node: the gates that may send it back. */
  readonly gatesOf: ReadonlyMap<string, readonly string[]>;
}

/** A workflow, checked. `Input` and `Output` are what whoever starts it gives, and what it gives back. */
export interface Workflow<Input = unknown, Output = unknown> extends AgentRef {
  readonly input: z.ZodType<unknown, Input>;
  /** What its result is checked by; any JSON where it declares none. */
  readonly output: z.ZodType<Output>;
  /** In the order in which they were declared. */
  readonly nodes: ReadonlyMap<string, Node>;
  readonly graph: Graph;
  /** The most nodes that are open at once. */
  readonly parallel: number;
  /** The most items of one map. */
  readonly maxItems: number;
  /** Makes the workflow's output from its nodes'; null: it has none. */
  readonly result: ScopeFunction | null;
}
