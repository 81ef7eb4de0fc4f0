import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { canonicalJson } from "../canonical-json.ts";
import { readConversation } from "./conversation.ts";
import { type Decision, decide } from "./decide.ts";
import { explainHandOver } from "./wording.ts";

const MODEL_ID = "clerk-1";
const CHARACTERS_PER_TOKEN = 4;

interface Reply {
  readonly decision: Decision;
  /** Unique within a conversation, and the same for the same one. */
  readonly callId: string;
  readonly usage: LanguageModelV4Usage;
  readonly finishReason: LanguageModelV4FinishReason;
}

/** What a clerk may be asked to do in another way. */
export interface ClerkOptions {
  /** What is done next in a conversation; by default what the refund policy says. */
  readonly decide?: typeof decide;
  /** How long each turn takes, in milliseconds; 0 by default. */
  readonly thinkMs?: number;
}

/**
 * The clerk: a language model without a network, a key or chance. It follows the refund policy on what the conversation
 * says and calls one tool at a time.
 */
export function createClerk({ decide: next = decide, thinkMs = 0 }: ClerkOptions = {}): LanguageModelV4 {
  const think = (signal: AbortSignal | undefined) => pause(thinkMs, undefined, signal === undefined ? {} : { signal });
  return {
    specificationVersion: "v4",
    provider: "refund-desk",
    modelId: MODEL_ID,
    supportedUrls: {},
    doGenerate: async (options) => {
      options.abortSignal?.throwIfAborted();
      await think(options.abortSignal);
      const { decision, callId, usage, finishReason } = reply(options, next);
      return {
        content: [
          "say" in decision
            ? { type: "text", text: decision.say }
            : {
                type: "tool-call",
                toolCallId: callId,
                toolName: decision.call.tool,
                input: JSON.stringify(decision.call.input),
              },
        ],
        finishReason,
        usage,
        response: { modelId: MODEL_ID },
        warnings: [],
      };
    },
    doStream: async (options) => {
      options.abortSignal?.throwIfAborted();
      await think(options.abortSignal);
      return { stream: streamParts(listParts(reply(options, next)), options.abortSignal) };
    },
  };
}

function reply({ prompt, tools }: LanguageModelV4CallOptions, next: typeof decide): Reply {
  const decision = withinTools(next(readConversation(prompt)), tools);
  const text = "say" in decision ? decision.say : JSON.stringify(decision.call.input);
  return {
    decision,
    callId: callIdOf(prompt),
    usage: countUsage(prompt, text),
    finishReason: "say" in decision ? { unified: "stop", raw: "say" } : { unified: "tool-calls", raw: "call" },
  };
}

/** Without the tool it would need, the clerk says so instead of naming a tool that is not there. */
function withinTools(decision: Decision, tools: LanguageModelV4CallOptions["tools"]): Decision {
  if ("say" in decision || tools?.some((tool) => tool.name === decision.call.tool)) return decision;
  return { say: explainHandOver(decision.call.input.order_id ?? "", `no_tool_${decision.call.tool}`) };
}

/** A conversation only grows, so a hash of all of it never comes twice in it. */
function callIdOf(prompt: LanguageModelV4Prompt): string {
  const said = prompt.map(({ role, content }) => ({ role, content }));
  return `call_${createHash("sha256").update(canonicalJson(said)).digest("hex").slice(0, 24)}`;
}

function countUsage(prompt: LanguageModelV4Prompt, text: string): LanguageModelV4Usage {
  const input = Math.ceil(JSON.stringify(prompt.map(({ content }) => content)).length / CHARACTERS_PER_TOKEN);
  const output = Math.ceil(text.length / CHARACTERS_PER_TOKEN);
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
}

function listParts({ decision, callId, usage, finishReason }: Reply): readonly LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", modelId: MODEL_ID },
    ...("say" in decision ? textParts(decision.say) : callParts(callId, decision.call)),
    { type: "finish", usage, finishReason },
  ];
}

function textParts(text: string): readonly LanguageModelV4StreamPart[] {
  const id = "text-1";
  const deltas = text.match(/\S+\s*/g) ?? [];
  return [
    { type: "text-start", id },
    ...deltas.map((delta): LanguageModelV4StreamPart => ({ type: "text-delta", id, delta })),
    { type: "text-end", id },
  ];
}

function callParts(
  id: string,
  { tool: toolName, input }: Extract<Decision, { call: unknown }>["call"],
): readonly LanguageModelV4StreamPart[] {
  const json = JSON.stringify(input);
  return [
    { type: "tool-input-start", id, toolName },
    { type: "tool-input-delta", id, delta: json },
    { type: "tool-input-end", id },
    { type: "tool-call", toolCallId: id, toolName, input: json },
  ];
}

/** Gives one part at a time as it is asked for; an abort ends the stream with the signal's reason. */
function streamParts(
  parts: readonly LanguageModelV4StreamPart[],
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  const left = parts.values();
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      pull: (controller) => {
        if (signal?.aborted) return controller.error(signal.reason);
        const next = left.next();
        if (next.done === true) return controller.close();
        controller.enqueue(next.value);
      },
    },
    { highWaterMark: 0 },
  );
}
