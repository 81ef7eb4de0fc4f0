import { tracingChannel } from "node:diagnostics_channel";
import type { JsonObject, JsonValue, Usage } from "@holdpoint/core";
import { storable } from "@holdpoint/core";
import {
  AI_SDK_TELEMETRY_TRACING_CHANNEL,
  type AssistantModelMessage,
  generateText,
  jsonSchema,
  type ModelMessage,
  type ToolSet,
  tool,
} from "ai";
import { z } from "zod";
import { checkConversation } from "./check-conversation.ts";
import { UnreadReply, withoutStandIns } from "./collect-reply.ts";
import { openDeadline } from "./deadline.ts";
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

/**
 * Asks the model for one step, streamed; tools are never executed here. Failures are classed by status and headers.
 *
 * @throws {ConversationError} the conversation is one that providers refuse; nothing was sent.
 */
export async function callModel(agent: Agent, messages: ModelMessage[], stop: AbortSignal): Promise<ModelAnswer> {
  checkConversation(messages);
  const { model, calls } = readCalls(agent, messages);
  const tools = toolsOf(agent);
  const deadline = openDeadline(agent.modelTimeoutMs, stop);
  const asked = generateText({
    model,
    instructions: agent.instructions,
    messages,
    tools,
    maxRetries: 0,
    abortSignal: deadline.signal,
    telemetry: { isEnabled: isWatched() },
  });
  try {
    const reply = await deadline.race(asked);
    return reply === null ? unanswered(stop) : judgeReply(reply, calls);
  } catch (error) {
    if (deadline.signal.aborted) return unanswered(stop);
    return error instanceof UnreadReply ? error.failure : judgeFailure(error);
  } finally {
    deadline.end();
  }
}

const SPANS = tracingChannel(AI_SDK_TELEMETRY_TRACING_CHANNEL);

/** Whether anybody takes the SDK's telemetry: it costs about a third of what the SDK does for a request, also where nobody does. */
function isWatched(): boolean {
  return SPANS.hasSubscribers || (globalThis.AI_SDK_TELEMETRY_INTEGRATIONS ?? []).length > 0;
}

/** Nobody waits any longer: the run stops, or the time is up. */
function unanswered(stop: AbortSignal): ModelAnswer {
  return stop.aborted ? { kind: "aborted" } : TIMED_OUT;
}

function judgeReply(reply: Awaited<ReturnType<typeof generateText>>, calls: readonly RequestedCall[]): ModelAnswer {
  const { text, usage, response } = reply;
  const end = judgeFinish(reply);
  if (end !== null) return end;
  const message = response.messages.find((each): each is AssistantModelMessage => each.role === "assistant");
  const isEmpty = calls.length === 0 && text.trim() === "";
  if (message === undefined || isEmpty) return failed("transient", "empty_reply");
  return {
    kind: "reply",
    message: storedMessage(withoutStandIns(message)),
    text: storable(text),
    calls,
    usage: { inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 },
  };
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

/** What the SDK is told of an agent's tools, by the map that they are in: made once, not for every request. */
const TOOL_SETS = new WeakMap<Agent["tools"], ToolSet>();

function toolsOf({ tools }: Agent): ToolSet {
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

/** Through JSON, so that what is kept is what can be stored, and the next request is the same after a reload. */
function storedMessage(message: AssistantModelMessage): JsonObject {
  return storable(JSON.parse(JSON.stringify(message)) as Record<string, JsonValue>);
}
