import type { AgentRef, EffectProperties, JsonObject, JsonValue, PolicyRule, Presentation } from "@holdpoint/core";
import type { z } from "zod";
import { decode, type Storable } from "./codec.ts";
import { presentationOf, rulesOf, type ToolPresentation, type ToolRule } from "./tool-rules.ts";
import { LONGEST_TIMEOUT_MS, MOST_RETRIES, wholeNumbers } from "./whole-numbers.ts";

/** What a tool is given besides its input. */
export interface ToolContext {
  /** The same for every attempt of one call: send it as the idempotency key, and where a look-up can find it. */
  readonly operationId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Aborted at the call's deadline; for reads and abortable tools also when the run stops or the worker loses its lease. */
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

/** What has become of an effect that was accepted as pending. */
export type Settled<Output> =
  | { readonly answer: "still_pending" }
  | { readonly answer: "settled"; readonly output: Output }
  /** It did not come about after all; `message` is told to the model. */
  | { readonly answer: "failed"; readonly code: string; readonly message: string };

/** How an effect is followed that the other side accepts now and settles later. */
export interface SettlementDefinition<Input, Output> {
  /** Whether this output says that it is only accepted. */
  readonly isPending: (output: Output) => boolean;
  readonly poll: (
    input: Input,
    context: ToolContext & { readonly output: Output },
  ) => Promise<Settled<NoInfer<Output>>>;
  /** The shortest time between two polls; 60 s by default. */
  readonly everyMs?: number;
  /** After this long a person is asked; 14 days by default. */
  readonly withinMs?: number;
}

/** What a tool's arguments are: an object of values that can be stored. */
export type StorableObject = { readonly [key: string]: Storable };

/** What a call has achieved that did not fail: its output may say that it was only a part, or nothing. */
export type ToolOutcome = "succeeded" | "partial" | "blocked";

interface ToolBase<Input extends StorableObject, Output extends Storable> {
  readonly name: string;
  readonly description: string;
  /**
   * Validates, and gives what is frozen: money and large numbers as strings, or Dates, bigints and bytes. Before a call is
   * made, it has to read what was frozen as the same again: a transform goes both ways (`z.codec`), or changes nothing
   * the second time.
   */
  readonly input: z.ZodType<Input>;
  /** Judged on the frozen arguments when the model makes the call, and anew where a person edits them. */
  readonly rules?: readonly ToolRule[];
  readonly presentation?: ToolPresentation;
  /** The service behind it, by name; tools of one service share its limiter. By default the tool has its own. */
  readonly service?: string;
  /** The call's deadline, in milliseconds; 30 s by default. */
  readonly timeoutMs?: number;
  /**
   * An effect may be broken off when its run is cancelled; whether it has acted is then looked up. By default it is left
   * to end within its deadline.
   */
  readonly abortable?: boolean;
  /** What failed tries may cost before a person is asked. */
  readonly retry?: {
    /** Tries after the first that failed for certain; 1 by default. */
    readonly retries?: number;
    readonly firstDelayMs?: number;
    /** How long in a row it may be throttled, or wait for its service, which costs no tries; two days by default. */
    readonly throttledForMs?: number;
  };
  /** Does it. What it gives is stored, and may hold Dates, bigints and bytes; the other functions' types come from here. */
  readonly execute: (input: Input, context: ToolContext) => Promise<Output>;
  /** For an effect that the other side may settle later. Before `execute`, its functions' parameters need their types. */
  readonly settlement?: SettlementDefinition<Input, Output>;
  /**
   * What an output says was achieved; by default all of it. `blocked`: it ran and achieved nothing, for want of a permission
   * or of something else that somebody has to see to. The model is told, and nobody counts it as a success.
   */
  readonly outcome?: (output: Output) => ToolOutcome;
  /** The other side's name for what was done, taken from the output. */
  readonly externalRef?: (output: Output) => string;
}

/** A tool with a look-up must say how; one without cannot. */
type Reconcile<Input, Output, E extends Effect> = E extends { readonly lookUp: object }
  ? { readonly reconcile: (input: Input, context: ToolContext) => Promise<LookUp<Output>> }
  : { readonly reconcile?: never };

/** What `defineTool` takes. */
export type ToolDefinition<Input extends StorableObject, Output extends Storable, E extends Effect> = ToolBase<
  Input,
  Output
> & { readonly effect: E } & Reconcile<Input, Output, E>;

/** A tool as the runtime uses it: arguments and earlier outputs come in as they are stored, what it gives goes out as it is. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<StorableObject>;
  readonly effect: EffectProperties;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly firstDelayMs: number;
  readonly throttledForMs: number;
  readonly service: string;
  readonly abortable: boolean;
  readonly rules: readonly PolicyRule[];
  readonly presentation: Presentation;
  isPending(output: Storable): boolean;
  settle(args: JsonObject, context: ToolContext & { readonly output: JsonValue }): Promise<Settled<Storable>>;
  execute(args: JsonObject, context: ToolContext): Promise<Storable>;
  reconcile(args: JsonObject, context: ToolContext): Promise<LookUp<Storable>>;
  externalRef(output: Storable): string | null;
  outcome(output: Storable): ToolOutcome;
  /** The runs that a call starts; null for a tool that starts none. */
  readonly childRuns: ((args: JsonObject) => readonly ChildRunRequest[]) | null;
  /** When the timer of a call goes off; null for a tool that is none. */
  readonly due: ((args: JsonObject) => Date | number) | null;
}

/** A run to be started, as it is stored. */
export interface ChildRunRequest {
  readonly agent: AgentRef;
  readonly goal: string;
  readonly input: JsonValue;
}

const DAY_MS = 86_400_000;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_SETTLES_WITHIN_MS = 60_000;
const DEFAULT_FIRST_DELAY_MS = 1_000;
/** More than a day: providers that count by the day send callers away until the next one, who then have one more try. */
export const DEFAULT_THROTTLED_FOR_MS = 2 * DAY_MS;
const DEFAULT_POLL_MS = 60_000;
const DEFAULT_SETTLED_WITHIN_MS = 14 * DAY_MS;
const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/**
 * Defines a tool. A wrong input type, and an effect with a look-up but without `reconcile`, do not compile.
 *
 * @throws {TypeError} the name is not one that every provider takes, or a number is out of range.
 */
export function defineTool<Input extends StorableObject, Output extends Storable, const E extends Effect>(
  definition: ToolDefinition<Input, Output, E>,
): Tool {
  const { name, timeoutMs = DEFAULT_TIMEOUT_MS, retry = {} } = definition;
  checkName(name);
  const { retries = 1, firstDelayMs = DEFAULT_FIRST_DELAY_MS, throttledForMs = DEFAULT_THROTTLED_FOR_MS } = retry;
  const check = wholeNumbers(`Tool ${name}`);
  check("timeoutMs", timeoutMs, { least: 1, most: LONGEST_TIMEOUT_MS });
  check("retry.retries", retries, { least: 0, most: MOST_RETRIES });
  check("retry.firstDelayMs", firstDelayMs, { least: 0, most: LONGEST_TIMEOUT_MS });
  check("retry.throttledForMs", throttledForMs, { least: 0 });
  const effect = propertiesOf(definition);
  if (effect.kind === "effect") {
    check("key.validForMs", effect.keyValidForMs ?? 1, { least: 1 });
    check("lookUp.settlesWithinMs", effect.lookUpSettlesWithinMs ?? 0, { least: 0 });
    check("settlement.everyMs", effect.settlement?.everyMs ?? 1, { least: 1 });
    check("settlement.withinMs", effect.settlement?.withinMs ?? 1, { least: 1 });
  }
  // What is stored was validated by this tool's input before it was frozen, and its output is what execute gave.
  const typed = (args: JsonObject): Input => decode(args) as Input;
  const { reconcile } = definition as { reconcile?: (input: Input, context: ToolContext) => Promise<LookUp<Output>> };
  return {
    name,
    description: definition.description,
    // Narrower than what the runtime reads from it: any object that can be stored.
    input: definition.input as unknown as z.ZodType<StorableObject>,
    effect,
    timeoutMs,
    retries,
    firstDelayMs,
    throttledForMs,
    service: definition.service ?? `tool:${name}`,
    abortable: definition.abortable ?? false,
    rules: rulesOf(name, definition.rules ?? []),
    presentation: presentationOf(definition.presentation),
    isPending: (output) => isPending(definition.settlement, output as Output),
    settle: async (args, { output, ...context }) =>
      (await definition.settlement?.poll(typed(args), { ...context, output: decode(output) as Output })) ?? {
        answer: "still_pending",
      },
    execute: (args, context) => definition.execute(typed(args), context),
    reconcile: async (args, context) => (await reconcile?.(typed(args), context)) ?? { answer: "unknown" },
    externalRef: (output) => externalRefOf(definition.externalRef, output as Output),
    outcome: (output) => outcomeOf(definition.outcome, output as Output),
    childRuns: null,
    due: null,
  };
}

/** @throws {TypeError} the name is not one that every provider takes. */
export function checkName(name: string): void {
  if (!NAME.test(name))
    throw new TypeError(`Tool name "${name}": use letters, digits, _ and -, at most 64, letter first`);
}

/** What a tool needs whose calls nobody executes: they start runs, or let time pass. */
type CallTool<Input extends StorableObject> = Pick<Tool, "name" | "description" | "effect" | "rules" | "presentation"> &
  Partial<Pick<Tool, "childRuns" | "due">> & { readonly input: z.ZodType<Input> };

/** A tool without anything to execute. */
export function asCallTool<Input extends StorableObject>({ input, ...tool }: CallTool<Input>): Tool {
  const never = (): never => {
    throw new RangeError(`Tool ${tool.name} has nothing to execute`);
  };
  return {
    childRuns: null,
    due: null,
    ...tool,
    // Narrower than what the runtime reads from it: any object that can be stored.
    input: input as unknown as z.ZodType<StorableObject>,
    timeoutMs: DEFAULT_TIMEOUT_MS,
    retries: 0,
    firstDelayMs: DEFAULT_FIRST_DELAY_MS,
    throttledForMs: DEFAULT_THROTTLED_FOR_MS,
    service: `tool:${tool.name}`,
    abortable: false,
    isPending: never,
    settle: never,
    execute: never,
    reconcile: never,
    externalRef: never,
    outcome: never,
  };
}

/** An output that cannot be judged counts as pending: the poll says what has become of it, and nothing is claimed before. */
function isPending<Output>(
  settlement: { isPending: (output: Output) => boolean } | undefined,
  output: Output,
): boolean {
  try {
    return settlement?.isPending(output) ?? false;
  } catch {
    return true;
  }
}

/** What happened has happened: an outcome that cannot be judged is none that anybody may take for the whole. */
function outcomeOf<Output>(read: ((output: Output) => ToolOutcome) | undefined, output: Output): ToolOutcome {
  try {
    const outcome: unknown = read?.(output) ?? "succeeded";
    return outcome === "succeeded" || outcome === "blocked" ? outcome : "partial";
  } catch {
    return "partial";
  }
}

/** A longer name is none: the database could not look an effect up by it, and callbacks name none that is longer. */
const REFERENCE_LIMIT = 500;

/** What happened has happened, whether its name can be read from the output or not. */
function externalRefOf<Output>(read: ((output: Output) => string) | undefined, output: Output): string | null {
  try {
    const ref: unknown = read?.(output) ?? null;
    const name = typeof ref === "number" || typeof ref === "bigint" ? String(ref) : ref;
    return typeof name === "string" && name !== "" && name.length <= REFERENCE_LIMIT ? name : null;
  } catch {
    return null;
  }
}

function propertiesOf({
  name,
  effect,
  settlement,
}: {
  readonly name: string;
  readonly effect: Effect;
  readonly settlement?: { readonly everyMs?: number; readonly withinMs?: number };
}): EffectProperties {
  if (effect === "read") {
    if (settlement !== undefined) throw new TypeError(`Tool ${name}: a read has nothing that settles later`);
    return { kind: "read" };
  }
  const offers = effect === "unsafe" ? {} : effect;
  const { everyMs = DEFAULT_POLL_MS, withinMs = DEFAULT_SETTLED_WITHIN_MS } = settlement ?? {};
  return {
    kind: "effect",
    keyValidForMs: offers.key?.validForMs ?? null,
    lookUpSettlesWithinMs:
      offers.lookUp === undefined ? null : (offers.lookUp.settlesWithinMs ?? DEFAULT_SETTLES_WITHIN_MS),
    equalCallsAreDistinct: offers.equalCallsAreDistinct ?? false,
    settlement: settlement === undefined ? null : { everyMs, withinMs },
  };
}
