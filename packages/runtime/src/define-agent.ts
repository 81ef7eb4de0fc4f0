import type { AgentRef, JsonValue, Limits, Outcome, ResultKind } from "@holdpoint/core";
import type { LanguageModel } from "ai";
import type { Tool } from "./define-tool.ts";
import { LONGEST_TIMEOUT_MS, MOST_RETRIES, wholeNumbers } from "./whole-numbers.ts";

/** A tool's result, as the completion condition sees it. */
export interface CompletedCall {
  readonly tool: string;
  readonly result: ResultKind;
  readonly output: JsonValue;
}

/** A model of the AI SDK. Not a bare name, which the SDK would send to a gateway: `resolveModel` takes names. */
export type Model = Exclude<LanguageModel, string>;

export interface AgentDefinition {
  readonly name: string;
  /** Runs stay with the version that they were submitted to. */
  readonly version: string;
  readonly model: Model;
  readonly instructions: string;
  readonly tools: readonly Tool[];
  /**
   * Says what a reply without tool calls means: the outcome of the run, or null, and then it is a question to the
   * requester. A model that stops asking for tools has not thereby completed.
   */
  readonly complete: (reply: string, results: readonly CompletedCall[]) => Outcome | null;
  /** What a `blocked` outcome leads to: an operator is asked (the default), or the run ends. */
  readonly onBlocked?: "operator" | "end";
  readonly limits?: Partial<Limits>;
  /** Limit of one model request, in milliseconds; 120 s by default. */
  readonly modelTimeoutMs?: number;
  /** Tries after a failed model request, before a person is asked; 2 by default. */
  readonly modelRetries?: number;
}

export interface Agent extends AgentRef {
  readonly model: Model;
  readonly instructions: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly complete: AgentDefinition["complete"];
  readonly onBlocked: "operator" | "end";
  readonly limits: Limits;
  readonly modelTimeoutMs: number;
  readonly modelRetries: number;
}

const DEFAULT_LIMITS: Limits = { turns: 50, tokens: 1_000_000 };
const DEFAULT_MODEL_TIMEOUT_MS = 120_000;
const NAME = /^[a-z][a-z0-9-]{0,63}$/;
const VERSION = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

/**
 * Defines an agent.
 *
 * @throws {TypeError} the name, the version or a limit is not usable, or two tools have one name.
 */
export function defineAgent(definition: AgentDefinition): Agent {
  const { name, version, tools } = definition;
  if (!NAME.test(name)) throw new TypeError(`Agent name "${name}": use a-z, 0-9 and -, at most 64, letter first`);
  if (!VERSION.test(version))
    throw new TypeError(`Agent ${name}: version "${version}" may have letters, digits, . _ -`);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size < tools.length) throw new TypeError(`Agent ${name}: two of its tools have one name`);
  const limits = { ...DEFAULT_LIMITS, ...definition.limits };
  const { modelTimeoutMs = DEFAULT_MODEL_TIMEOUT_MS, modelRetries = 2 } = definition;
  const check = wholeNumbers(`Agent ${name}`);
  check("limits.turns", limits.turns, { least: 1 });
  check("limits.tokens", limits.tokens, { least: 1 });
  check("modelTimeoutMs", modelTimeoutMs, { least: 1, most: LONGEST_TIMEOUT_MS });
  check("modelRetries", modelRetries, { least: 0, most: MOST_RETRIES });
  return {
    name,
    version,
    model: definition.model,
    instructions: definition.instructions,
    tools: byName,
    complete: definition.complete,
    onBlocked: definition.onBlocked ?? "operator",
    limits,
    modelTimeoutMs,
    modelRetries,
  };
}
