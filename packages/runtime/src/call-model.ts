import type { JsonObject, JsonValue, Usage } from "@holdpoint/core";
import { storable } from "@holdpoint/core";
import {
  type AssistantModelMessage,
  jsonSchema,
  type ModelMessage,
  streamText,
  type TextStreamPart,
  type ToolSet,
  tool,
} from "ai";
import { z } from "zod";
import { checkConversation } from "./check-conversation.ts";
import type { Agent } from "./define-agent.ts";
import type { Tool } from "./define-tool.ts";
import { CUT_OFF, failed, judgeFailure, type ModelFailure, TIMED_OUT } from "./model-failure.ts";
import { type RequestedCall, readCalls } from "./read-calls.ts";

export type ModelAnswer =
  | {
      readonly kind: "reply";
      readonly message: JsonObject;
      readonly text: string;
      readonly calls: readonly RequestedCall[];
      readonly usage: Usage;
    }
  | ModelFailure
  /** The run stops or the worker has lost its lease: whatever was said so far is not kept. */
  | { readonly kind: "aborted" };

/** A reply beyond this many characters of text and arguments is not read to its end. */
const REPLY_LIMIT = 4 * 2 ** 20;

/**
 * Asks the model for one step, streamed; tools are never executed here. Failures are classed by status and headers.
 *
 * @throws {ConversationError} the conversation is one that providers refuse; nothing was sent.
 */
export async function callModel(agent: Agent, messages: ModelMessage[], stop: AbortSignal): Promise<ModelAnswer> {
  checkConversation(messages);
  const timeout = AbortSignal.timeout(agent.modelTimeoutMs);
  const { model, calls } = readCalls(agent, messages);
  const result = streamText({
    model,
    instructions: agent.instructions,
    messages,
    tools: toolSet(agent),
    maxRetries: 0,
    abortSignal: AbortSignal.any([stop, timeout]),
    // The SDK's own handler prints the request, payload and all.
    onError: () => undefined,
  });
  try {
    const end = await readStream(result.fullStream, stop);
    if (end !== null) return end;
    const [{ messages: said }, text, usage] = await Promise.all([result.response, result.text, result.usage]);
    const message = said.find((each): each is AssistantModelMessage => each.role === "assistant");
    const isEmpty = calls.length === 0 && text.trim() === "";
    if (message === undefined || isEmpty) return failed("transient", "empty_reply");
    return {
      kind: "reply",
      message: storedMessage(message),
      text: storable(text),
      calls,
      usage: { inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 },
    };
  } catch (error) {
    return failure(error, stop);
  }
}

/** How a stream failed; null where it came to its end. */
async function readStream(
  stream: AsyncIterable<TextStreamPart<ToolSet>>,
  stop: AbortSignal,
): Promise<ModelAnswer | null> {
  let finish: ModelAnswer | null = CUT_OFF;
  let size = 0;
  for await (const part of stream) {
    if (part.type === "error") return failure(part.error, stop);
    if (part.type === "abort") return stop.aborted ? { kind: "aborted" } : TIMED_OUT;
    if (part.type === "finish-step") finish = judgeFinish(part);
    size += sizeOf(part);
    if (size > REPLY_LIMIT) return failed("caller", "reply_too_long");
  }
  return finish;
}

function sizeOf(part: TextStreamPart<ToolSet>): number {
  if (part.type === "tool-input-delta") return part.delta.length;
  return part.type === "text-delta" || part.type === "reasoning-delta" ? part.text.length : 0;
}

function judgeFinish({
  finishReason,
  rawFinishReason,
}: {
  readonly finishReason: string;
  readonly rawFinishReason: string | undefined;
}): ModelAnswer | null {
  if (finishReason === "length") return failed("caller", "reply_too_long");
  if (finishReason === "content-filter") return failed("refused", "content_filter");
  const isCutOff = finishReason === "error" || (finishReason === "other" && rawFinishReason === undefined);
  return isCutOff ? CUT_OFF : null;
}

function toolSet(agent: Agent): ToolSet {
  const entries = [...agent.tools.values()].map((each) => [each.name, describeTool(each)] as const);
  return Object.fromEntries(entries);
}

/** Validation is the runtime's business: the SDK would answer the model itself, out of order. */
function describeTool({ description, input }: Tool): ToolSet[string] {
  // zod's JSON schema and the SDK's differ in name only.
  const schema = z.toJSONSchema(input, { io: "input" }) as Parameters<typeof jsonSchema>[0];
  return tool({ description, inputSchema: jsonSchema(schema) });
}

/** Through JSON, so that what is kept is what can be stored, and the next request is the same after a reload. */
function storedMessage(message: AssistantModelMessage): JsonObject {
  return storable(JSON.parse(JSON.stringify(message)) as Record<string, JsonValue>);
}

function failure(error: unknown, stop: AbortSignal): ModelAnswer {
  return stop.aborted ? { kind: "aborted" } : judgeFailure(error);
}
