import type { LanguageModelV4ToolCall } from "@ai-sdk/provider";
import { storableText } from "@holdpoint/core";
import type { ModelMessage } from "ai";
import { cutText } from "./codec.ts";
import type { Agent } from "./define-agent.ts";
import { growing } from "./growing.ts";
import { parseArguments } from "./parse-arguments.ts";

/** A call as the model asked for it; whether its arguments fit its tool has not been looked at. */
export interface RequestedCall {
  /** Unlike the id of any other call in the conversation. */
  readonly toolCallId: string;
  readonly tool: string;
  readonly input: unknown;
  /** What is wrong with it already as text, said to the model: it is never executed. */
  readonly problem: string | null;
}

/** How much of refused arguments is kept aside. */
const ASIDE_LIMIT = 2_000;
const NAME_LIMIT = 64;
const ID_LIMIT = 200;

/**
 * The boundary at which calls come in: takes what the model asks for, in its order. Arguments are read from the model's
 * own text, since the SDK's parser rounds numbers and drops keys. In the message, which is sent to the provider again
 * with every request, refused arguments are `{}`; their text is kept aside, in metadata of this product that no provider
 * reads.
 */
export function readCalls(
  { tools }: Pick<Agent, "tools">,
  messages: readonly ModelMessage[],
): {
  /** To be given each call of the reply, as it comes in; gives what of it goes into the message. */
  readonly take: (part: LanguageModelV4ToolCall) => LanguageModelV4ToolCall;
  /** Those that were taken so far. */
  readonly calls: readonly RequestedCall[];
} {
  const calls: RequestedCall[] = [];
  const freshId = uniqueIds(messages);
  const read = (part: LanguageModelV4ToolCall): LanguageModelV4ToolCall => {
    const { args, problem } = parseCall(tools, part);
    const call = { toolCallId: freshId(part.toolCallId), tool: nameOf(part.toolName), input: args ?? {}, problem };
    calls.push(call);
    const { toolCallId, tool: toolName } = call;
    if (args !== null) return { ...part, toolCallId, toolName };
    const aside = { refusedArguments: cutText(part.input, ASIDE_LIMIT) };
    return {
      ...part,
      toolCallId,
      toolName,
      input: "{}",
      providerMetadata: { ...part.providerMetadata, holdpoint: aside },
    };
  };
  return { take: (part) => (isOurs(part) ? read(part) : part), calls };
}

/** What the provider executes itself is answered by it as well. */
function isOurs(part: LanguageModelV4ToolCall): boolean {
  return part.providerExecuted !== true;
}

function parseCall(tools: Agent["tools"], { toolName, input }: LanguageModelV4ToolCall) {
  if (tools.has(toolName)) return parseArguments(input);
  const problem = `There is no tool ${cutText(toolName, NAME_LIMIT)}.`;
  return { args: parseArguments(input).args, problem };
}

/** A name that a provider takes back: a model may make one up that no tool could have. */
function nameOf(toolName: string): string {
  return toolName.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, NAME_LIMIT) || "_";
}

/** Models repeat call ids, within one reply and over many; a result must never reach the wrong call. */
function uniqueIds(messages: readonly ModelMessage[]): (id: string) => string {
  const before = idsIn(messages);
  const seen = new Set<string>();
  return (id) => {
    const stored = storableText(cutText(id, ID_LIMIT)) || "call";
    let fresh = stored;
    for (let n = 2; before.has(fresh) || seen.has(fresh); n += 1) fresh = `${stored}_${n}`;
    seen.add(fresh);
    return fresh;
  };
}

/** The ids of all calls of a conversation. */
const idsIn = growing(
  () => new Set<string>(),
  (ids, messages, place) => {
    const message = messages[place];
    if (message?.role !== "assistant" || typeof message.content === "string") return;
    for (const part of message.content) if (part.type === "tool-call") ids.add(part.toolCallId);
  },
);
