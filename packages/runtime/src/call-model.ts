import type { JsonObject, Usage } from "@holdpoint/core";
import { storable } from "@holdpoint/core";
import type { ModelMessage } from "ai";
import { askModel, toolsOf } from "./ask-model.ts";
import { checkConversation } from "./check-conversation.ts";
import { UnreadReply } from "./collect-reply.ts";
import { openDeadline } from "./deadline.ts";
import type { Agent } from "./define-agent.ts";
import { CUT_OFF, failed, judgeFailure, type ModelFailure, TIMED_OUT } from "./model-failure.ts";
import type { ModelReply } from "./plain-reply.ts";
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
 * @throws {Error} the schema of a tool cannot be told to a model.
 */
export async function callModel(agent: Agent, messages: ModelMessage[], stop: AbortSignal): Promise<ModelAnswer> {
  checkConversation(messages);
  const { take, calls } = readCalls(agent, messages);
  const request = { agent, tools: toolsOf(agent), messages };
  const deadline = openDeadline(agent.modelTimeoutMs, stop);
  try {
    const reply = await deadline.race(askModel(request, { signal: deadline.signal, take, calls }));
    return reply === null ? unanswered(stop) : judgeReply(reply, calls);
  } catch (error) {
    if (deadline.signal.aborted) return unanswered(stop);
    return error instanceof UnreadReply ? error.failure : judgeFailure(error);
  } finally {
    deadline.end();
  }
}

/** Nobody waits any longer: the run stops, or the time is up. */
function unanswered(stop: AbortSignal): ModelAnswer {
  return stop.aborted ? { kind: "aborted" } : TIMED_OUT;
}

function judgeReply(reply: ModelReply, calls: readonly RequestedCall[]): ModelAnswer {
  const { message, text, inputTokens = 0, outputTokens = 0 } = reply;
  const end = judgeFinish(reply);
  if (end !== null) return end;
  const isEmpty = calls.length === 0 && text.trim() === "";
  if (message === null || isEmpty) return failed("transient", "empty_reply");
  const usage = { inputTokens, outputTokens };
  return { kind: "reply", message: storable(message), text: storable(text), calls, usage };
}

function judgeFinish({ finishReason, rawFinishReason }: ModelReply): ModelAnswer | null {
  if (finishReason === "length") return failed("caller", "reply_too_long");
  if (finishReason === "content-filter") return failed("refused", "content_filter");
  const isCutOff = finishReason === "error" || (finishReason === "other" && rawFinishReason === undefined);
  return isCutOff ? CUT_OFF : null;
}
