import type { ErrorClass, JsonObject, Usage } from "@holdpoint/core";
import { APICallError, type AssistantModelMessage, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { z } from "zod";
import type { Agent } from "./define-agent.ts";
import type { Tool } from "./define-tool.ts";

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
  | { readonly kind: "failed"; readonly errorClass: ErrorClass; readonly code: string; readonly retryAfterMs: number | null }
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
  const calls: RequestedCall[] = [];
  let finish = "";
  try {
    for await (const part of result.fullStream) {
      if (part.type === "error") return failure(part.error, stop);
      if (part.type === "abort") return stop.aborted ? { kind: "aborted" } : failed("transient", "model_timeout");
      if (part.type === "tool-call") calls.push(requestedCall(part));
      if (part.type === "finish-step") finish = part.finishReason;
    }
    if (finish === "length") return failed("caller", "reply_too_long");
    if (finish === "content-filter") return failed("refused", "content_filter");
    const [{ messages: said }, text, usage] = await Promise.all([result.response, result.text, result.usage]);
    const message = said.find((each): each is AssistantModelMessage => each.role === "assistant");
    if (message === undefined) return failed("transient", "empty_reply");
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
  return value !== undefined && /^\d{1,8}$/.test(value) ? Number(value) * 1_000 : null;
}
