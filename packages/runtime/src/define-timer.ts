import type { JsonObject } from "@holdpoint/core";
import type { z } from "zod";
import { decode } from "./codec.ts";
import { asCallTool, checkName, type StorableObject, type Tool } from "./define-tool.ts";
import { presentationOf, rulesOf, type ToolRule } from "./tool-rules.ts";

/** What `defineTimer` takes. */
export interface TimerDefinition<Input extends StorableObject> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** When it goes off: an instant, or a number of milliseconds from now. One that has passed goes off at once. */
  readonly due: (input: Input) => Date | number;
  readonly rules?: readonly ToolRule[];
}

/**
 * Defines a tool that lets time pass, for as long as it takes: nothing waits in a process. The moment is fixed when the
 * timer is set, on the database's clock.
 *
 * @throws {TypeError} the name is not one that every provider takes.
 */
export function defineTimer<Input extends StorableObject>(definition: TimerDefinition<Input>): Tool {
  checkName(definition.name);
  return asCallTool({
    name: definition.name,
    description: definition.description,
    input: definition.input,
    effect: { kind: "timer" },
    rules: rulesOf(definition.name, definition.rules ?? []),
    presentation: presentationOf(undefined),
    // What is stored was validated by this tool's input before it was frozen.
    due: (args: JsonObject) => definition.due(decode(args) as Input),
  });
}
