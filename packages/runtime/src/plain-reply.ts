import type { LanguageModelV4Content, LanguageModelV4GenerateResult, SharedV4ProviderMetadata } from "@ai-sdk/provider";
import type { JsonObject } from "@holdpoint/core";
import type { RequestedCall } from "./read-calls.ts";

/** What a model has replied, as it is judged. */
export interface ModelReply {
  /** As it goes into later requests; null where it says nothing. */
  readonly message: JsonObject | null;
  readonly text: string;
  readonly finishReason: string;
  readonly rawFinishReason: string | undefined;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

type Whole = LanguageModelV4GenerateResult;

/**
 * A reply of nothing but text, reasoning and calls of our tools, which nearly all are. Null for any other: the SDK has
 * more to do with it, or warnings to say.
 *
 * @param calls  The calls in it, in its order, as they were read.
 */
export function plainReply(whole: Whole, calls: readonly RequestedCall[]): ModelReply | null {
  const { content, finishReason, usage, warnings } = whole;
  if (warnings.length > 0) return null;
  const said: JsonObject[] = [];
  let text = "";
  let read = 0;
  for (const part of content) {
    if (part.type === "tool-call") read += 1;
    const plain = plainPart(part, calls[read - 1]);
    if (plain === null) return null;
    if (part.type === "text") text += part.text;
    if (!isEmpty(part)) said.push(plain);
  }
  return {
    message: said.length === 0 ? null : { role: "assistant", content: said },
    text,
    finishReason: finishReason.unified,
    rawFinishReason: finishReason.raw,
    inputTokens: usage.inputTokens.total,
    outputTokens: usage.outputTokens.total,
  };
}

function plainPart(part: LanguageModelV4Content, call: RequestedCall | undefined): JsonObject | null {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: part.text, ...optionsOf(part.providerMetadata) };
    case "tool-call": {
      const { type, toolCallId, toolName, providerMetadata } = part;
      if (part.providerExecuted === true || call?.toolCallId !== toolCallId) return null;
      // Arguments were read from JSON.
      const input = call.input as JsonObject;
      return { type, toolCallId, toolName, input, ...optionsOf(providerMetadata) };
    }
    default:
      return null;
  }
}

function isEmpty(part: LanguageModelV4Content): boolean {
  return part.type === "text" && part.text === "" && part.providerMetadata === undefined;
}

/** Through JSON, as all that is kept: what a provider gives is its own. */
function optionsOf(metadata: SharedV4ProviderMetadata | undefined): JsonObject {
  return metadata === undefined ? {} : { providerOptions: JSON.parse(JSON.stringify(metadata)) as JsonObject };
}
