// Owns the one request of a turn: what is sent to the model, and its reply as it came.
//
// Nearly every request and reply consists of text, reasoning, calls and their results. Those are put into the providers'
// own form here, since what the SDK's `generateText` does besides costs more than all else about a turn. Whatever is of
// another kind goes through the SDK, and so does each request where somebody takes its telemetry.
// I1: the provider is sent the same, and the reply is the same, on both ways (ask-model.test.ts).

import { tracingChannel } from "node:diagnostics_channel";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4ToolCall,
} from "@ai-sdk/provider";
import type { JsonObject } from "@holdpoint/core";
import {
  AI_SDK_TELEMETRY_TRACING_CHANNEL,
  type AssistantModelMessage,
  generateText,
  jsonSchema,
  type ModelMessage,
  type ToolSet,
  tool,
  wrapLanguageModel,
} from "ai";
import { z } from "zod";
import { collectReply, withoutStandIns } from "./collect-reply.ts";
import type { Agent } from "./define-agent.ts";
import type { Tool } from "./define-tool.ts";
import { plainPrompt } from "./plain-prompt.ts";
import { type ModelReply, plainReply } from "./plain-reply.ts";
import type { RequestedCall } from "./read-calls.ts";

/** How a reply is read. */
export interface Reading {
  readonly signal: AbortSignal;
  /** What becomes of a call on its way in. */
  readonly take: (call: LanguageModelV4ToolCall) => LanguageModelV4ToolCall;
  /** The calls of our tools that were taken, in their order. */
  readonly calls: readonly RequestedCall[];
}

/** What the model is asked with. */
export interface Request {
  readonly agent: Agent;
  readonly tools: ToolSet;
  readonly messages: ModelMessage[];
}

/** Asks the model once; the reply is read to its end. @throws whatever the provider does, and `UnreadReply`. */
export async function askModel(request: Request, reading: Reading): Promise<ModelReply> {
  const { agent, messages } = request;
  // The model as one of the SDK's latest protocol, whichever it speaks.
  const model = wrapLanguageModel({ model: agent.model, middleware: [] });
  const read: Read = async (options) =>
    collectReply(await model.doStream(options), { signal: options.abortSignal, take: reading.take });
  const prompt = isWatched() ? null : plainPrompt(agent.instructions, messages);
  if (prompt === null) return throughSdk(request, reading.signal, read);
  const standing = await standingOptions(request.tools);
  const whole = await read({ ...standing, prompt, abortSignal: reading.signal });
  return plainReply(whole, reading.calls) ?? throughSdk(request, reading.signal, async () => whole);
}

type Read = (options: LanguageModelV4CallOptions) => Promise<LanguageModelV4GenerateResult>;

const SPANS = tracingChannel(AI_SDK_TELEMETRY_TRACING_CHANNEL);

function isWatched(): boolean {
  return SPANS.hasSubscribers || (globalThis.AI_SDK_TELEMETRY_INTEGRATIONS ?? []).length > 0;
}

async function throughSdk(
  { agent, tools, messages }: Request,
  abortSignal: AbortSignal,
  read: Read,
): Promise<ModelReply> {
  const model = wrapLanguageModel({
    model: agent.model,
    // Streamed from the provider, so that limits, a stop and what is between here and there work on it; whole for the SDK.
    middleware: { specificationVersion: "v4", wrapGenerate: ({ params }) => read(params) },
  });
  const { text, usage, response, finishReason, rawFinishReason } = await generateText({
    model,
    instructions: agent.instructions,
    messages,
    tools,
    maxRetries: 0,
    abortSignal,
    telemetry: { isEnabled: isWatched() },
  });
  const message = response.messages.find((each): each is AssistantModelMessage => each.role === "assistant");
  const { inputTokens, outputTokens } = usage;
  const stored = message === undefined ? null : jsonOf(withoutStandIns(message));
  return { message: stored, text, finishReason, rawFinishReason, inputTokens, outputTokens };
}

/** Through JSON, so that what is kept is what can be stored, and the next request is the same after a reload. */
function jsonOf(message: AssistantModelMessage): JsonObject {
  return JSON.parse(JSON.stringify(message)) as JsonObject;
}

type Standing = Omit<LanguageModelV4CallOptions, "prompt" | "abortSignal">;

/** What the SDK sends besides the conversation, by the tools that it was told of. */
const STANDING = new WeakMap<ToolSet, Promise<Standing>>();

/** All of a request that is the same for each: the SDK says it once, to a model that only listens. */
function standingOptions(tools: ToolSet): Promise<Standing> {
  const known = STANDING.get(tools);
  if (known !== undefined) return known;
  const made = overhear(tools);
  STANDING.set(tools, made);
  return made;
}

async function overhear(tools: ToolSet): Promise<Standing> {
  const asked: LanguageModelV4CallOptions[] = [];
  const listener: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "holdpoint",
    modelId: "listener",
    supportedUrls: {},
    doGenerate: async (options) => {
      asked.push(options);
      return { content: [], finishReason: { unified: "stop", raw: "stop" }, usage: NOTHING_USED, warnings: [] };
    },
    doStream: () => Promise.reject(new TypeError("Nothing is streamed here")),
  };
  await generateText({ model: listener, prompt: "Listen.", tools, maxRetries: 0, telemetry: { isEnabled: false } });
  const [{ prompt: _prompt, abortSignal: _signal, ...standing } = { prompt: [] }] = asked;
  return standing;
}

const NOTHING_USED: LanguageModelV4GenerateResult["usage"] = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/** By the map that the tools are in: made once, not for every request. */
const TOOL_SETS = new WeakMap<Agent["tools"], ToolSet>();

/** What the SDK is told of an agent's tools. @throws {Error} the schema of one cannot be told to a model. */
export function toolsOf({ tools }: Pick<Agent, "tools">): ToolSet {
  const known = TOOL_SETS.get(tools);
  if (known !== undefined) return known;
  const made: ToolSet = Object.fromEntries([...tools.values()].map((each) => [each.name, describeTool(each)] as const));
  TOOL_SETS.set(tools, made);
  return made;
}

/** Validation is the runtime's business: the SDK would answer the model itself, out of order. */
function describeTool({ description, input }: Tool): ToolSet[string] {
  // zod's JSON schema and the SDK's differ in name only.
  const schema = z.toJSONSchema(input, { io: "input" }) as Parameters<typeof jsonSchema>[0];
  return tool({ description, inputSchema: jsonSchema(schema) });
}
