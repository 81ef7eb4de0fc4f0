import type { AgentRef, JsonValue } from "@holdpoint/core";
import type { z } from "zod";
import type { Join } from "./node.ts";
import type { Feedback, Verdict } from "./scope-values.ts";

/**
 * What the nodes of one definition say of themselves, each by name: the schema of what they bring, their kind, the schema
 * of a map's items, and what a tool or a child workflow takes. TypeScript reads all four from the definition.
 */
export interface Shapes {
  readonly outputs: object;
  readonly kinds: object;
  readonly items: object;
  readonly accepts: object;
}

type At<Of, Name> = Name extends keyof Of ? Of[Name] : undefined;
type ReadAs<Schema, Else> = Schema extends z.ZodType ? z.output<Schema> : Else;
type GivenAs<Schema> = Schema extends z.ZodType ? z.input<Schema> : JsonValue;

/** What comes back from a person. `expired`: nobody answered in time. */
export type PersonOutput<Answer> =
  | { readonly decision: "answered"; readonly note: string | null; readonly answer: Answer }
  | { readonly decision: "approved" | "rejected" | "expired"; readonly note: string | null; readonly answer: null };

type OneOutput<S extends Shapes, Name> =
  At<S["kinds"], Name> extends "gate"
    ? Verdict
    : At<S["kinds"], Name> extends "human"
      ? PersonOutput<ReadAs<At<S["outputs"], Name>, JsonValue>>
      : ReadAs<At<S["outputs"], Name>, JsonValue>;

/** What reading a node gives: of a map a list, with null where an operator skipped an item. */
export type OutputOf<S extends Shapes, Name> =
  At<S["items"], Name> extends z.ZodType ? readonly (OneOutput<S, Name> | null)[] : OneOutput<S, Name>;

type PreviousOf<S extends Shapes, Name> = [Name] extends [never]
  ? null
  : At<S["items"], Name> extends z.ZodType
    ? null
    : OneOutput<S, Name> | null;

/** What the functions of a node are given. They see only what leads to the node, and must have no effect of their own. */
export interface Scope<Input, S extends Shapes, Name = never> {
  /** What the workflow was started with. */
  readonly input: Input;
  /** The item that a map's function is called for. */
  readonly item: ReadAs<At<S["items"], Name>, never>;
  /** Its place in the list, from 0; null outside of maps. */
  readonly index: number | null;
  /** Which time this node runs, from 1. */
  readonly round: number;
  /** Why the work was sent back, by the gate that did so last; null in the first round. */
  readonly feedback: Feedback | null;
  /** What this node brought in the round before; null in the first round, and for maps. */
  readonly previous: PreviousOf<S, Name>;
  /**
   * What a node upstream brought. If it was skipped: its `whenSkipped`, or null. Null, too, if it was passed over, or, after
   * a join that did not wait for it, is not complete.
   */
  output<Other extends keyof S["outputs"] & string>(name: Other): OutputOf<S, Other> | null;
  /** The same where there has to be something: otherwise the workflow is held, and says what was missing. */
  need<Other extends keyof S["outputs"] & string>(name: Other): OutputOf<S, Other>;
}

interface AnyDefinition<Names extends string, Sc> {
  /** The nodes that it comes after; none: it may start at once. */
  readonly after?: readonly NoInfer<Names>[];
  /**
   * How many of those have to be complete; `all` by default. What was passed over is complete, but counts for nothing in
   * `any` and `atLeast`; if too few are left to count, the node is passed over itself.
   */
  readonly join?: Join;
  /** False: the node is passed over, and those after it go on. Asked once in a round. */
  readonly when?: (scope: Sc) => boolean;
}

interface WorkDefinition<Names extends string, Sc, Output, Item> extends AnyDefinition<Names, Sc> {
  /** What it brings; anything else is never passed on. */
  readonly output: Output;
  /** What the nodes after it are given when an operator skips it; null by default. */
  readonly whenSkipped?: NoInfer<GivenAs<Output>> | null;
  /** Tries after the first that failed; by default the runtime's. */
  readonly retries?: number;
  /** Runs it once for each item. The list is made once in a round. */
  readonly forEach?: (scope: Sc) => readonly GivenAs<Item>[];
  /** The schema of the items; with `forEach`. */
  readonly item?: Item;
  /** The most items that are open at once; 1 by default. */
  readonly atMost?: number;
}

/** A child run of an agent. */
export interface AgentDefinition<Names extends string, Sc, Output, Item>
  extends WorkDefinition<Names, Sc, Output, Item> {
  readonly kind: "agent";
  readonly agent: AgentRef;
  readonly goal: (scope: Sc) => string;
}

/** One call of a tool. */
export interface ToolDefinition<Names extends string, Sc, Output, Item, Accepts>
  extends WorkDefinition<Names, Sc, Output, Item> {
  readonly kind: "tool";
  /** With a tool's own `input` schema its arguments are checked: by the compiler, and before each start. */
  readonly tool: { readonly name: string; readonly input?: Accepts };
  readonly input: (scope: Sc) => GivenAs<Accepts>;
}

/** A child run of another workflow. */
export interface ChildWorkflowDefinition<Names extends string, Sc, Output, Item, Accepts>
  extends WorkDefinition<Names, Sc, Output, Item> {
  readonly kind: "workflow";
  /** With the workflow itself its input is checked: by the compiler, and before each start. */
  readonly workflow: AgentRef & { readonly input?: Accepts };
  readonly input: (scope: Sc) => GivenAs<Accepts>;
}

interface QuestionDefinition<Sc> {
  readonly question: (scope: Sc) => string;
  /** What is shown beside the question. */
  readonly show?: (scope: Sc) => JsonValue;
  readonly approvers: { readonly roles?: readonly string[]; readonly users?: readonly string[] };
  /** How long they have, in milliseconds; by default as for approvals. */
  readonly deadlineMs?: number;
  /** What no answer in time leads to: it goes on as `expired` (which rejects a release), or an operator decides. */
  readonly onDeadline?: "reject" | "operator";
  /** Whoever asked for the run, or steers it, may not answer; true by default. False for a question to the requester. */
  readonly fourEyes?: boolean;
}

/** A question to a person, who approves, rejects, or gives an answer. */
export interface HumanDefinition<Names extends string, Sc, Answer>
  extends AnyDefinition<Names, Sc>,
    QuestionDefinition<Sc> {
  readonly kind: "human";
  /** The schema of an answer; any JSON by default. */
  readonly output?: Answer;
  readonly whenSkipped?: NoInfer<PersonOutput<GivenAs<Answer>>> | null;
}

interface ReworkDefinition<Names extends string> {
  /**
   * Where a no sends the work back to: these nodes and all between them and the gate run again, and are given the
   * feedback.
   */
  readonly rework: NoInfer<Names> | readonly NoInfer<Names>[];
  /** The no that is the last, 2 by default: after it a person decides. Never round again by itself. */
  readonly rounds?: number;
}

/** Where a gate may send the work back, or else what a no leads to. */
type OnNo<Names extends string> =
  | (ReworkDefinition<Names> & { readonly otherwise?: never })
  | {
      readonly rework?: never;
      readonly rounds?: never;
      /** A person decides, or the workflow ends as `blocked`. */
      readonly otherwise?: "hold" | "block";
    };

/** Lets only through what is good enough. */
export type GateDefinition<Names extends string, Sc> = AnyDefinition<Names, Sc> & { readonly kind: "gate" } & (
    | ({ readonly gate: "feedback"; readonly judge: (scope: Sc) => Verdict } & ReworkDefinition<Names>)
    | ({ readonly gate: "go_no_go"; readonly judge: (scope: Sc) => Verdict } & OnNo<Names>)
    | ({ readonly gate: "approval" } & QuestionDefinition<Sc> & OnNo<Names>)
  );

/** What a node says, where its functions are given this scope. */
export type NodeDefinition<S extends Shapes, Name, Sc> =
  | AgentDefinition<keyof S["outputs"] & string, Sc, At<S["outputs"], Name>, At<S["items"], Name>>
  | ToolDefinition<
      keyof S["outputs"] & string,
      Sc,
      At<S["outputs"], Name>,
      At<S["items"], Name>,
      At<S["accepts"], Name>
    >
  | ChildWorkflowDefinition<
      keyof S["outputs"] & string,
      Sc,
      At<S["outputs"], Name>,
      At<S["items"], Name>,
      At<S["accepts"], Name>
    >
  | HumanDefinition<keyof S["outputs"] & string, Sc, At<S["outputs"], Name>>
  | GateDefinition<keyof S["outputs"] & string, Sc>;

/** The shapes, as TypeScript infers them one by one. */
export interface ShapesFrom<Outputs, Kinds, Items, Accepts> extends Shapes {
  readonly outputs: Outputs & object;
  readonly kinds: Kinds & object;
  readonly items: Items & object;
  readonly accepts: Accepts & object;
}
