import type { ErrorClass, JsonObject, Usage } from "@holdpoint/core";
import {
  APICallError,
  type AssistantModelMessage,
  jsonSchema,
  type ModelMessage,
  streamText,
  type TextStreamPart,
  type ToolSet,
  tool,
} from "ai";
import { z } from "zod";
import type { Agent } from "./define-agent.ts";
import type { Tool } from "./define-tool.ts";
import { boundedDelay } from "./tool-error.ts";

/** A call as the model asked for it, before anybody has looked at its arguments. */
export interface RequestedCall {
  readonly toolCallId: string;
  readonly tool: string;
  readonly input: unknown;
  /** What the SDK says is wrong with it: broken JSON, or no tool of that name. */
  readonly problem: string | null;
}

export type ModelAnswer =
  | {
      readonly kind: "reply";
      readonly message: JsonObject;
      readonly text: string;
      readonly calls: readonly RequestedCall[];
      readonly usage: Usage;
    }
  | {
      readonly kind: "failed";
      readonly errorClass: ErrorClass;
      readonly code: string;
      readonly retryAfterMs: number | null;
    }
  /** The run stops or the worker has lost its lease: whatever was said so far is not kept. */
  | { readonly kind: "aborted" };

/** Asks the model for one step, streamed; tools are never executed here. Failures are classed by status and headers. */
export async function callModel(agent: Agent, messages: ModelMessage[], stop: AbortSignal): Promise<ModelAnswer> {
  const timeout = AbortSignal.timeout(agent.modelTimeoutMs);
  const result = streamText({
    model: agent.model,
    instructions: agent.instructions,
    messages,
    tools: toolSet(agent),
    maxRetries: 0,
    abortSignal: AbortSignal.any([stop, timeout]),
    // The SDK's own handler prints the request, payload and all.
    onError: () => undefined,
  });
  try {
    const { calls, end } = await readStream(result.fullStream, stop);
    if (end !== null) return end;
    const [{ messages: said }, text, usage] = await Promise.all([result.response, result.text, result.usage]);
    const message = said.find((each): each is AssistantModelMessage => each.role === "assistant");
    const isEmpty = calls.length === 0 && text.trim() === "";
    if (message === undefined || isEmpty) return failed("transient", "empty_reply");
    return {
      kind: "reply",
      ...uniqueCalls(message, calls),
      text,
      usage: { inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 },
    };
  } catch (error) {
    return failure(error, stop);
  }
}

/** The calls of a stream, and how it failed; null where it came to its end. */
async function readStream(
  stream: AsyncIterable<TextStreamPart<ToolSet>>,
  stop: AbortSignal,
): Promise<{ calls: readonly RequestedCall[]; end: ModelAnswer | null }> {
  const calls: RequestedCall[] = [];
  let finish: ModelAnswer | null = CUT_OFF;
  for await (const part of stream) {
    if (part.type === "error") return { calls, end: failure(part.error, stop) };
    if (part.type === "abort") return { calls, end: stop.aborted ? { kind: "aborted" } : TIMED_OUT };
    if (part.type === "tool-call") calls.push(requestedCall(part));
    if (part.type === "finish-step") finish = judgeFinish(part);
  }
  return { calls, end: finish };
}

/** A stream that ends without a reason was cut off: what it brought so far is no reply. */
const CUT_OFF = failed("transient", "reply_cut_off");
const TIMED_OUT = failed("transient", "model_timeout");

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

function requestedCall(part: {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly invalid?: boolean | undefined;
  readonly error?: unknown;
}): RequestedCall {
  const problem = part.invalid === true ? problemOf(part.error, part.toolName) : null;
  return { toolCallId: part.toolCallId, tool: part.toolName, input: part.input, problem };
}

function problemOf(error: unknown, toolName: string): string {
  const name = error instanceof Error ? error.name : "";
  return name === "AI_NoSuchToolError" ? `There is no tool ${toolName}.` : "The arguments are not valid JSON.";
}

/** Models repeat call ids, also within one reply; a result must never reach the wrong call. */
function uniqueCalls(
  message: AssistantModelMessage,
  calls: readonly RequestedCall[],
): { message: JsonObject; calls: readonly RequestedCall[] } {
  const seen = new Set<string>();
  const fresh = (id: string): string => {
    let name = id;
    for (let n = 2; seen.has(name); n += 1) name = `${id}_${n}`;
    seen.add(name);
    return name;
  };
  const renamed = calls.map((call) => ({ ...call, toolCallId: fresh(call.toolCallId) }));
  let next = 0;
  const content =
    typeof message.content === "string"
      ? message.content
      : message.content.map((part) =>
          part.type === "tool-call" ? { ...part, toolCallId: renamed[next++]?.toolCallId ?? part.toolCallId } : part,
        );
  // Through JSON, so that what is kept is what can be stored.
  return { message: JSON.parse(JSON.stringify({ ...message, content })) as JsonObject, calls: renamed };
}

function failure(error: unknown, stop: AbortSignal): ModelAnswer {
  if (stop.aborted) return { kind: "aborted" };
  if (!APICallError.isInstance(error)) {
    const timedOut = error instanceof Error && error.name === "TimeoutError";
    return failed("transient", timedOut ? "model_timeout" : "model_unreachable");
  }
  const { statusCode, responseHeaders } = error;
  if (statusCode === undefined) return failed("transient", "model_unreachable");
  // It had begun to answer well.
  if (statusCode < 400) return CUT_OFF;
  const code = `http_${statusCode}`;
  if (statusCode === 429 || statusCode === 529) return failed("throttled", code, retryAfterMs(responseHeaders));
  const passing = statusCode >= 500 || statusCode === 408 || statusCode === 409;
  return passing ? failed("transient", code, retryAfterMs(responseHeaders)) : failed("caller", code);
}

function failed(errorClass: ErrorClass, code: string, retryAfterMs: number | null = null): ModelAnswer {
  return { kind: "failed", errorClass, code, retryAfterMs };
}

/** Retry-After in seconds, as providers send it; a date is not read here, since no clock of ours should judge it. */
function retryAfterMs(headers: Record<string, string> | undefined): number | null {
  const value = headers?.["retry-after"];
  return value !== undefined && /^\d{1,8}$/.test(value) ? boundedDelay(Number(value) * 1_000) : null;
}
