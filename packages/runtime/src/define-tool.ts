import type { ApprovalRule, EffectProperties, JsonObject, JsonValue } from "@holdpoint/core";
import type { z } from "zod";
import { LONGEST_TIMEOUT_MS, MOST_RETRIES, wholeNumbers } from "./whole-numbers.ts";

/** What a tool is given besides its input. */
export interface ToolContext {
  /** The same for every attempt of one call: send it as the idempotency key, and where a look-up can find it. */
  readonly operationId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Aborted at the call's deadline; for reads also when the run stops or the worker loses its lease. */
  readonly signal: AbortSignal;
  /** Milliseconds until the call's deadline. */
  readonly timeoutMs: number;
  /** The run, as people see its id. */
  readonly runId: string;
  /** Who asked for the run. */
  readonly requester: string;
}

/** What the other side of a tool offers. */
export type Effect =
  | "read"
  /** Neither a key nor a look-up: an unknown outcome always goes to a person. */
  | "unsafe"
  | {
      /** The same operation id twice acts once, for this long after its first use. */
      readonly key?: { readonly validForMs: number };
      /** `reconcile` can find an operation; "it did not happen" counts this long after the call's deadline, 60 s by default. */
      readonly lookUp?: { readonly settlesWithinMs?: number };
      /** Equal calls are different operations, each to be done. */
      readonly equalCallsAreDistinct?: boolean;
    };

/** What a look-up says of an operation. `unknown`: it cannot tell. */
export type LookUp<Output> =
  | { readonly answer: "happened"; readonly output: Output }
  | { readonly answer: "did_not_happen" | "still_pending" | "unknown" };

/** Who has to release a call, or why it may not run at all. Null: it needs nobody. */
export type Policy =
  | null
  | {
      readonly rule: string;
      readonly roles?: readonly string[];
      readonly users?: readonly string[];
      /** Limits the decision; 24 h by default. */
      readonly deadlineMs?: number;
      readonly onDeadline?: ApprovalRule["onDeadline"];
      /** How long the approval may be spent after the decision; 24 h by default. */
      readonly validForMs?: number;
    }
  | { readonly rule: string; readonly deny: string };

interface ToolBase<Input extends JsonObject, Output extends JsonValue> {
  readonly name: string;
  readonly description: string;
  /** Validates, and gives what is frozen: plain JSON, money and large numbers as strings. */
  readonly input: z.ZodType<Input>;
  /** Asked once, with the frozen arguments, when the model makes the call. */
  readonly approval?: (input: Input, context: { readonly requester: string }) => Policy;
  /** The call's deadline, in milliseconds; 30 s by default. */
  readonly timeoutMs?: number;
  /** Tries after the first that failed for certain, before a person is asked; 1 by default. */
  readonly retry?: { readonly retries?: number; readonly firstDelayMs?: number };
  /** The other side's name for what was done, taken from the output. */
  readonly externalRef?: (output: Output) => string;
  readonly execute: (input: Input, context: ToolContext) => Promise<Output>;
}

/** A tool with a look-up must say how; one without cannot. */
type Reconcile<Input, Output, E extends Effect> = E extends { readonly lookUp: object }
  ? { readonly reconcile: (input: Input, context: ToolContext) => Promise<LookUp<Output>> }
  : { readonly reconcile?: never };

/** What `defineTool` takes. */
export type ToolDefinition<Input extends JsonObject, Output extends JsonValue, E extends Effect> = ToolBase<
  Input,
  Output
> & { readonly effect: E } & Reconcile<Input, Output, E>;

/** A tool as the runtime uses it: arguments come in as stored, results go out as JSON. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<JsonObject>;
  readonly effect: EffectProperties;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly firstDelayMs: number;
  policy(input: JsonObject, requester: string): Policy;
  execute(input: JsonObject, context: ToolContext): Promise<JsonValue>;
  reconcile(input: JsonObject, context: ToolContext): Promise<LookUp<JsonValue>>;
  externalRef(output: JsonValue): string | null;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_SETTLES_WITHIN_MS = 60_000;
const DEFAULT_FIRST_DELAY_MS = 1_000;
const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/**
 * Defines a tool. A wrong input type, and an effect with a look-up but without `reconcile`, do not compile.
 *
 * @throws {TypeError} the name is not one that every provider takes, or a number is out of range.
 */
export function defineTool<Input extends JsonObject, Output extends JsonValue, const E extends Effect>(
  definition: ToolDefinition<Input, Output, E>,
): Tool {
  const { name, timeoutMs = DEFAULT_TIMEOUT_MS, retry = {} } = definition;
  if (!NAME.test(name))
    throw new TypeError(`Tool name "${name}": use letters, digits, _ and -, at most 64, letter first`);
  const { retries = 1, firstDelayMs = DEFAULT_FIRST_DELAY_MS } = retry;
  const check = wholeNumbers(`Tool ${name}`);
  check("timeoutMs", timeoutMs, { least: 1, most: LONGEST_TIMEOUT_MS });
  check("retry.retries", retries, { least: 0, most: MOST_RETRIES });
  check("retry.firstDelayMs", firstDelayMs, { least: 0, most: LONGEST_TIMEOUT_MS });
  const effect = propertiesOf(definition.effect);
  if (effect.kind === "effect") {
    check("key.validForMs", effect.keyValidForMs ?? 1, { least: 1 });
    check("lookUp.settlesWithinMs", effect.lookUpSettlesWithinMs ?? 0, { least: 0 });
  }
  // What is stored was validated by this tool's input before it was frozen, and its output is what execute gave.
  const typed = (input: JsonObject): Input => input as Input;
  const { reconcile } = definition as { reconcile?: (input: Input, context: ToolContext) => Promise<LookUp<Output>> };
  return {
    name,
    description: definition.description,
    // Narrower than what the runtime reads from it: any JSON object.
    input: definition.input as unknown as z.ZodType<JsonObject>,
    effect,
    timeoutMs,
    retries,
    firstDelayMs,
    policy: (input, requester) => definition.approval?.(typed(input), { requester }) ?? null,
    execute: (input, context) => definition.execute(typed(input), context),
    reconcile: async (input, context) => (await reconcile?.(typed(input), context)) ?? { answer: "unknown" },
    externalRef: (output) => definition.externalRef?.(output as Output) ?? null,
  };
}

function propertiesOf(effect: Effect): EffectProperties {
  if (effect === "read") return { kind: "read" };
  const offers = effect === "unsafe" ? {} : effect;
  return {
    kind: "effect",
    keyValidForMs: offers.key?.validForMs ?? null,
    lookUpSettlesWithinMs:
      offers.lookUp === undefined ? null : (offers.lookUp.settlesWithinMs ?? DEFAULT_SETTLES_WITHIN_MS),
    equalCallsAreDistinct: offers.equalCallsAreDistinct ?? false,
  };
}
