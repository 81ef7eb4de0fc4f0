import type { AgentRef, JsonObject } from "@holdpoint/core";
import type { z } from "zod";
import { decode, encode, type Storable } from "./codec.ts";
import { asCallTool, checkName, type StorableObject, type Tool } from "./define-tool.ts";
import { presentationOf, rulesOf, type ToolPresentation, type ToolRule } from "./tool-rules.ts";
import { wholeNumbers } from "./whole-numbers.ts";

/** A run that is to be started. */
export interface ChildRun {
  /** Who does it; it must be registered by the time it is started. */
  readonly agent: AgentRef;
  /** What is to be done: the first message that it gets, and all that it knows of its parent. */
  readonly goal: string;
  /** What a workflow is given. */
  readonly input?: Storable;
}

/** What `defineChildRuns` takes. */
export interface ChildRunsDefinition<Input extends StorableObject> {
  readonly name: string;
  readonly description: string;
  /** As for a tool: validates, and gives what is frozen. */
  readonly input: z.ZodType<Input>;
  /**
   * The runs that one call starts, in order; at most 100. Judged again for every try, so the same input has to give the same
   * runs.
   */
  readonly runs: (input: Input) => readonly ChildRun[];
  /** `all` (the default): until every one has ended. A number: until so many have succeeded; the rest are stopped then. */
  readonly wait?: "all" | "any" | number;
  /** The most that are live at once; 10 by default. */
  readonly atOnce?: number;
  /** A blocked child holds the call for an operator (the default), or the model is told. */
  readonly onBlocked?: "operator" | "tell";
  /** Equal calls are different pieces of work, each to be done. */
  readonly equalCallsAreDistinct?: boolean;
  /** After this long without an end an operator is asked; 30 days by default, since children have deadlines of their own. */
  readonly withinMs?: number;
  readonly rules?: readonly ToolRule[];
  readonly presentation?: ToolPresentation;
}

const DEFAULT_AT_ONCE = 10;
const DEFAULT_WITHIN_MS = 30 * 86_400_000;

/** The most runs that one call may start. */
export const FAN_OUT_LIMIT = 100;

/**
 * Defines a tool that starts child runs and waits for them. What the model is told in the end is each child's outcome,
 * reason and result as data; nothing is read from texts.
 *
 * @throws {TypeError} the name is not one that every provider takes, or a number is out of range.
 */
export function defineChildRuns<Input extends StorableObject>(definition: ChildRunsDefinition<Input>): Tool {
  const { name, wait = "all", atOnce = DEFAULT_AT_ONCE, withinMs = DEFAULT_WITHIN_MS } = definition;
  checkName(name);
  const check = wholeNumbers(`Tool ${name}`);
  const needed = wait === "any" ? 1 : wait;
  if (needed !== "all") check("wait", needed, { least: 1, most: FAN_OUT_LIMIT });
  check("atOnce", atOnce, { least: 1, most: FAN_OUT_LIMIT });
  check("withinMs", withinMs, { least: 1 });
  return asCallTool({
    name,
    description: definition.description,
    input: definition.input,
    effect: {
      kind: "children",
      wait: needed,
      atOnce,
      onBlocked: definition.onBlocked ?? "operator",
      equalCallsAreDistinct: definition.equalCallsAreDistinct ?? false,
      withinMs,
    },
    rules: rulesOf(name, definition.rules ?? []),
    presentation: presentationOf(definition.presentation),
    childRuns: (args: JsonObject) =>
      // What is stored was validated by this tool's input before it was frozen.
      definition.runs(decode(args) as Input).map(({ agent, goal, input = null }) => ({
        agent: { name: agent.name, version: agent.version },
        goal,
        input: encode(input).json,
      })),
  });
}
