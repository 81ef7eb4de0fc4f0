import type { JsonValue } from "@holdpoint/core";
import { type ScriptedTurn, scriptedModel } from "@holdpoint/testkit";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  defineAgent,
  defineTool,
  type Effect,
  type LookUp,
  type SettlementDefinition,
  type Tool,
  type ToolContext,
  type ToolRule,
} from "../src/index.ts";

/** What a test's tool does at its n-th execution, counted from 1. */
export type Behaviour = (attempt: number, context: ToolContext, input: { order: string }) => Promise<JsonValue>;

export interface Recorded {
  readonly tool: Tool;
  /** The operation ids with which it was executed, one each time. */
  readonly executed: string[];
  /** How often it was looked up. */
  lookedUp: number;
}

interface Options {
  readonly effect: Effect;
  readonly behave?: Behaviour;
  readonly lookUp?: (times: number) => Promise<LookUp<JsonValue>>;
  readonly rules?: readonly ToolRule[];
  readonly timeoutMs?: number;
  readonly retries?: number;
  /** By default the tool has one of its own: what happens to it in one test is nothing to another. */
  readonly service?: string;
  readonly abortable?: boolean;
  readonly settlement?: SettlementDefinition<{ order: string }, JsonValue>;
  readonly externalRef?: (output: JsonValue) => string;
}

export const NEEDS_MANAGER: readonly ToolRule[] = [{ name: "over_limit", ask: { roles: ["manager"] } }];

let services = 0;

/** A tool that counts, and behaves as a test says. */
export function aTool(
  name: string,
  { effect, behave = async () => `${name} done`, lookUp, retries = 1, ...options }: Options,
): Recorded {
  const executed: string[] = [];
  services += 1;
  const base = {
    name,
    description: `The ${name} of a test`,
    input: z.object({ order: z.string() }),
    timeoutMs: 10_000,
    service: `service-${services}`,
    ...options,
    retry: { firstDelayMs: 1, retries },
    execute: async (input: { order: string }, context: ToolContext): Promise<JsonValue> => {
      executed.push(context.operationId);
      return behave(executed.length, context, input);
    },
  };
  const recorded: Recorded = {
    executed,
    lookedUp: 0,
    tool:
      typeof effect === "object" && effect.lookUp !== undefined
        ? defineTool({
            ...base,
            effect: { ...effect, lookUp: effect.lookUp },
            reconcile: async () => {
              recorded.lookedUp += 1;
              return lookUp === undefined ? { answer: "unknown" } : lookUp(recorded.lookedUp);
            },
          })
        : defineTool({ ...base, effect: effect === "read" || effect === "unsafe" ? effect : withoutLookUp(effect) }),
  };
  return recorded;
}

function withoutLookUp({ key, equalCallsAreDistinct = false }: Exclude<Effect, string>) {
  return { ...(key === undefined ? {} : { key }), equalCallsAreDistinct };
}

let agents = 0;

/** An agent of its own that plays a script. */
export function aDesk(
  script: readonly ScriptedTurn[],
  tools: readonly Recorded[],
  overrides: Partial<AgentDefinition> = {},
): Agent & { readonly model: ReturnType<typeof scriptedModel> } {
  agents += 1;
  const model = scriptedModel(script);
  const agent = defineAgent({
    name: `desk-${agents}`,
    version: "1",
    model,
    instructions: "You help.",
    modelService: `model-${agents}`,
    tools: tools.map(({ tool }) => tool),
    complete: (text) => (text.startsWith("?") ? null : { kind: "succeeded" }),
    ...overrides,
  });
  return { ...agent, model };
}

/** One call in a script. */
export function ask(tool: string, order = "4411") {
  return { tool, input: { order } };
}

export const UNKNOWN: Behaviour = async () => {
  throw new Error("the connection broke");
};
