import {
  AGENT_NAME,
  AGENT_VERSION,
  type AgentRef,
  type Limits,
  type Outcome,
  type Price,
  type ResultKind,
} from "@holdpoint/core";
import type { LanguageModel } from "ai";
import type { WorkflowAgent } from "./bind-workflow.ts";
import type { Storable } from "./codec.ts";
import { DEFAULT_THROTTLED_FOR_MS, type Tool } from "./define-tool.ts";
import { LONGEST_TIMEOUT_MS, MOST_RETRIES, wholeNumbers } from "./whole-numbers.ts";

/** A tool's result, as the completion condition sees it; of an output beyond 32 KB the beginning, as text. */
export interface CompletedCall {
  readonly tool: string;
  readonly result: ResultKind;
  readonly output: Storable;
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
  /** What a run brings home, for whoever started it; by default its last reply. */
  readonly result?: (reply: string, results: readonly CompletedCall[]) => Storable;
  /** What a `blocked` outcome leads to: an operator is asked (the default), or the run ends. */
  readonly onBlocked?: "operator" | "end";
  /** What a run may use before an operator is asked. Costs are limited only where `price` is known. */
  readonly limits?: Partial<Limits>;
  readonly price?: Price;
  /** A run that shows no progress for this long is taken from its worker; by default a minute more than its longest call. */
  readonly idleMs?: number;
  /** Limit of one model request, in milliseconds; 120 s by default. */
  readonly modelTimeoutMs?: number;
  /** Tries after a failed model request, before a person is asked; 1 by default. */
  readonly modelRetries?: number;
  /** How long in a row the model may turn requests away, or be down, which costs no tries; two days by default. */
  readonly modelThrottledForMs?: number;
  /** The service behind the model, whose limiter is shared; by default its provider and name. */
  readonly modelService?: string;
  /** Whether its model is told what people have kept of the requester from other conversations; false by default. */
  readonly memories?: boolean;
}

export interface Agent extends AgentRef {
  readonly kind: "agent";
  readonly model: Model;
  readonly instructions: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly complete: AgentDefinition["complete"];
  readonly result: NonNullable<AgentDefinition["result"]>;
  readonly onBlocked: "operator" | "end";
  readonly limits: Limits;
  readonly price: Price | null;
  /** The time within which a run shows progress, in milliseconds. */
  readonly idleMs: number;
  readonly modelTimeoutMs: number;
  readonly modelRetries: number;
  readonly modelThrottledForMs: number;
  readonly modelService: string;
  readonly memories: boolean;
}

/** What a worker runs. */
export type Runnable = Agent | WorkflowAgent;

/** @throws {RangeError} it has no model: it is a workflow. */
export function modelAgent(agent: Runnable): Agent {
  if (agent.kind !== "agent") throw new RangeError(`Workflow ${agent.name} has no model to ask`);
  return agent;
}

const DEFAULT_LIMITS: Limits = { turns: 50, tokens: 1_000_000, costUsd: null, wallMs: null };
/** What a step may take besides its longest call. */
const IDLE_SLACK_MS = 60_000;
const DEFAULT_MODEL_TIMEOUT_MS = 120_000;

/** Checks under what something is registered. @throws {TypeError} the name or the version is not usable. */
export function checkRef(what: string, { name, version }: AgentRef): void {
  if (!AGENT_NAME.test(name))
    throw new TypeError(`${what} name "${name}": use a-z, 0-9 and -, at most 64, letter first`);
  if (!AGENT_VERSION.test(version))
    throw new TypeError(`${what} ${name}: version "${version}" may have letters, digits, . _ -`);
}

/**
 * Defines an agent.
 *
 * @throws {TypeError} the name, the version or a limit is not usable, or two tools have one name.
 */
export function defineAgent(definition: AgentDefinition): Agent {
  const { name, version, tools } = definition;
  checkRef("Agent", definition);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size < tools.length) throw new TypeError(`Agent ${name}: two of its tools have one name`);
  const limits = { ...DEFAULT_LIMITS, ...definition.limits };
  const {
    modelTimeoutMs = DEFAULT_MODEL_TIMEOUT_MS,
    modelRetries = 1,
    modelThrottledForMs = DEFAULT_THROTTLED_FOR_MS,
  } = definition;
  const longestMs = Math.max(modelTimeoutMs, ...tools.map(({ timeoutMs }) => timeoutMs));
  const { price = null, idleMs = longestMs + IDLE_SLACK_MS, model } = definition;
  const check = wholeNumbers(`Agent ${name}`);
  check("limits.turns", limits.turns, { least: 1 });
  check("limits.tokens", limits.tokens, { least: 1 });
  check("modelTimeoutMs", modelTimeoutMs, { least: 1, most: LONGEST_TIMEOUT_MS });
  check("modelRetries", modelRetries, { least: 0, most: MOST_RETRIES });
  check("modelThrottledForMs", modelThrottledForMs, { least: 0 });
  check("limits.wallMs", limits.wallMs ?? 1, { least: 1 });
  check("idleMs", idleMs, { least: longestMs });
  if (limits.costUsd !== null && price === null) throw new TypeError(`Agent ${name}: limits.costUsd needs a price`);
  if (limits.costUsd !== null && !(limits.costUsd > 0))
    throw new TypeError(`Agent ${name}: limits.costUsd must be above 0`);
  return {
    kind: "agent",
    name,
    version,
    model,
    instructions: definition.instructions,
    tools: byName,
    complete: definition.complete,
    result: definition.result ?? ((reply) => reply),
    onBlocked: definition.onBlocked ?? "operator",
    limits,
    price,
    idleMs,
    modelTimeoutMs,
    modelRetries,
    modelThrottledForMs,
    modelService: definition.modelService ?? `model:${model.provider}/${model.modelId}`,
    memories: definition.memories ?? false,
  };
}
