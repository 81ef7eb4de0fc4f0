import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from "@ai-sdk/provider";
import type { AssistantModelMessage, ModelMessage, ToolResultPart } from "ai";

/**
 * A conversation as providers take it, where every part of it is of the kinds that nearly all consist of: text,
 * reasoning, calls and their results. Null where another kind is in it, such as a file: the SDK has more to do with it.
 * Made anew for each request: a middleware of the model may add to its messages in place.
 */
export function plainPrompt(instructions: string, messages: readonly ModelMessage[]): LanguageModelV4Prompt | null {
  const prompt: LanguageModelV4Prompt = [{ role: "system", content: instructions }];
  for (const message of messages) {
    const plain = plainMessage(message);
    if (plain === null) return null;
    prompt.push(plain);
  }
  return prompt;
}

function plainMessage({ role, content, providerOptions }: ModelMessage): LanguageModelV4Message | null {
  if (providerOptions !== undefined || role === "system") return null;
  if (role === "user") return typeof content === "string" ? { role, content: [textPart(content)] } : null;
  if (role === "assistant") return plainReply(content);
  const results: LanguageModelV4ToolResultPart[] = [];
  for (const part of content) {
    const plain = part.type === "tool-result" ? plainResult(part) : null;
    if (plain === null) return null;
    results.push(plain);
  }
  return { role, content: results };
}

type Reply = Extract<LanguageModelV4Message, { role: "assistant" }>;
type SaidPart = Exclude<AssistantModelMessage["content"], string>[number];

function plainReply(content: AssistantModelMessage["content"]): Reply | null {
  if (typeof content === "string") return { role: "assistant", content: [textPart(content)] };
  const parts: Reply["content"] = [];
  for (const part of content) {
    if (saysNothing(part)) continue;
    const plain = plainPart(part);
    if (plain === null) return null;
    parts.push(plain);
  }
  return { role: "assistant", content: parts };
}

/** Metadata are something to say: a text may stand only for them. */
function saysNothing(part: SaidPart): boolean {
  return part.type === "text" && part.text === "" && part.providerOptions === undefined;
}

function plainPart(part: SaidPart): Reply["content"][number] | null {
  switch (part.type) {
    case "text":
      return { ...textPart(part.text), ...optionsOf(part) };
    case "reasoning":
      return { type: "reasoning", text: part.text, ...optionsOf(part) };
    case "tool-call": {
      const { type, toolCallId, toolName, input, providerExecuted } = part;
      const executed = providerExecuted === undefined ? {} : { providerExecuted };
      return { type, toolCallId, toolName, input, ...executed, ...optionsOf(part) };
    }
    case "tool-result":
      return plainResult(part);
    default:
      return null;
  }
}

function textPart(text: string) {
  return { type: "text", text } as const;
}

/** Null for content of several parts: those may name files, which some providers are given and others have to fetch. */
function plainResult(part: ToolResultPart): LanguageModelV4ToolResultPart | null {
  const { type, toolCallId, toolName, output } = part;
  return output.type === "content" ? null : { type, toolCallId, toolName, output, ...optionsOf(part) };
}

function optionsOf({ providerOptions }: Pick<ToolResultPart, "providerOptions">) {
  return providerOptions === undefined ? {} : { providerOptions };
}
