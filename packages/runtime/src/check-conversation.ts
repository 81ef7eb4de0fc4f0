import type { AssistantModelMessage, ModelMessage, ToolCallPart } from "ai";
import { growing } from "./growing.ts";

/** A conversation that providers would refuse. Says which message and call, and nothing of what they hold. */
export class ConversationError extends RangeError {
  override readonly name = "ConversationError";
}

/**
 * Checks a conversation before a model is asked with it: each call has exactly one result, the results stand directly
 * behind the reply that made the calls and in its order, no result stands elsewhere, no two calls of a reply share an
 * id, arguments are objects, and what stands last is not a reply.
 *
 * @throws {ConversationError} what is wrong first.
 */
export function checkConversation(messages: readonly ModelMessage[]): void {
  if (messages.length === 0) throw new ConversationError("The conversation is empty");
  checkMessages(messages);
  if (messages.at(-1)?.role === "assistant")
    throw new ConversationError(`Message ${messages.length} is a reply and stands last: there is nothing to answer`);
}

/** A reply and its results are told together: what stands behind a message does not change. */
const checkMessages = growing(
  () => undefined,
  (_, messages, place) => {
    const [before, message, next] = [messages[place - 1], messages[place], messages[place + 1]];
    if (message?.role === "assistant") checkReply(message, next, `Message ${place + 1}`);
    if (message?.role === "tool" && (before?.role !== "assistant" || callsOf(before).length === 0))
      throw new ConversationError(`Message ${place + 1} has results, but no calls stand before it`);
  },
);

function checkReply(reply: AssistantModelMessage, next: ModelMessage | undefined, where: string): void {
  const calls = callsOf(reply);
  const ids = new Set<string>();
  for (const { toolCallId, input } of calls) {
    if (ids.has(toolCallId)) throw new ConversationError(`${where} has two calls with the id ${toolCallId}`);
    ids.add(toolCallId);
    const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
    if (!isObject) throw new ConversationError(`${where}: the arguments of call ${toolCallId} are no object`);
  }
  if (calls.length === 0) return;
  const parts = next?.role === "tool" ? next.content : [];
  for (const [ordinal, call] of calls.entries()) {
    const part = parts[ordinal];
    const isResult = part?.type === "tool-result" && part.toolCallId === call.toolCallId;
    if (!isResult) throw new ConversationError(`${where}: call ${call.toolCallId} has no result in its place`);
    if (part.toolName !== call.toolName)
      throw new ConversationError(`${where}: the result of call ${call.toolCallId} is of another tool`);
  }
  if (parts.length > calls.length)
    throw new ConversationError(`${where} has ${parts.length - calls.length} results too many`);
}

/** The calls of a reply that have to be answered here, in its order. */
function callsOf({ content }: AssistantModelMessage): readonly ToolCallPart[] {
  if (typeof content === "string") return [];
  return content.filter((part): part is ToolCallPart => part.type === "tool-call" && part.providerExecuted !== true);
}
