import type { Call, JsonValue, ResultKind, Step, StepBody } from "@holdpoint/core";
import type { LoadedRun } from "@holdpoint/store";
import type { AssistantModelMessage, ModelMessage, ToolResultPart } from "ai";

const NO_ANSWER =
  "[No answer arrived before the deadline. Do not wait for one: decide with what you know, or say why you cannot.]";

/**
 * The conversation that the model is shown: the session's messages up to the submission, then this run's steps. Every
 * call has exactly one result, in model order, directly behind the reply that made it.
 *
 * @throws {RangeError} a call of an earlier turn has no result: providers would refuse the conversation.
 */
export function buildPrompt(loaded: Pick<LoadedRun, "messages" | "steps" | "calls">): ModelMessage[] {
  const before = loaded.messages.map(({ role, text }): ModelMessage => ({ role, content: text }));
  const results = new Map(
    loaded.steps.flatMap(({ body }) => (body.kind === "tool_result" ? [[body.callId, body] as const] : [])),
  );
  const calls = new Map(loaded.calls.map((call) => [call.id, call]));
  return [...before, ...loaded.steps.flatMap((step) => messagesOf(step, { calls, results }))];
}

type ResultBody = Extract<StepBody, { kind: "tool_result" }>;

interface Known {
  readonly calls: ReadonlyMap<string, Call>;
  readonly results: ReadonlyMap<string, ResultBody>;
}

function messagesOf({ body }: Step, known: Known): ModelMessage[] {
  switch (body.kind) {
    case "model_reply": {
      // Stored as the provider gave it.
      const reply = body.message as unknown as AssistantModelMessage;
      const content = body.callIds.map((callId) => resultPart(callId, known));
      return content.length === 0 ? [reply] : [reply, { role: "tool", content }];
    }
    case "message":
      return [{ role: "user", content: body.text }];
    case "no_answer":
      return [{ role: "user", content: NO_ANSWER }];
    case "model_failed":
    case "intent":
    case "call_failed":
    case "did_not_happen":
    case "finding":
    case "tool_result":
    case "operator":
      return [];
  }
}

function resultPart(callId: string, { calls, results }: Known): ToolResultPart {
  const call = calls.get(callId);
  const result = results.get(callId);
  if (call === undefined || result === undefined) {
    throw new RangeError(`Call ${callId} has no result yet; the model must not be asked before it has one`);
  }
  return {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.tool,
    output: outputPart(result.result, result.output),
  };
}

function outputPart(result: ResultKind, output: JsonValue): ToolResultPart["output"] {
  const done = result === "succeeded" || result === "answered_from_record";
  if (typeof output === "string") {
    return done ? { type: "text", value: output } : { type: "error-json", value: { result, message: output } };
  }
  // The SDK's JSON is mutable by type only.
  const value = output as Extract<ToolResultPart["output"], { type: "json" }>["value"];
  return { type: done ? "json" : "error-json", value };
}
