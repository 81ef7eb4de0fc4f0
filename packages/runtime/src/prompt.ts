import {
  type Approval,
  asItRuns,
  type Call,
  canonicalJson,
  type JsonValue,
  type Step,
  type StepBody,
  storable,
  storableText,
} from "@holdpoint/core";
import type { LoadedRun } from "@holdpoint/store";
import type { AssistantModelMessage, ModelMessage, ToolResultPart } from "ai";
import { cutText, toPlain } from "./codec.ts";

const NO_ANSWER =
  "[No answer arrived before the deadline. Do not wait for one: decide with what you know, or say why you cannot.]";
/** Between two replies, and behind one that is not the last word: many providers do not take a reply that stands last. */
const GO_ON = "[Go on.]";
/** In place of nothing: some providers refuse a text without words. */
const EMPTY = "[Empty.]";

/**
 * The conversation that the model is shown: the session's messages up to the submission, then this run's steps. Every
 * call has exactly one result, in model order, directly behind the reply that made it.
 *
 * @throws {RangeError} a call of an earlier turn has no result: providers would refuse the conversation.
 */
export function buildPrompt(
  loaded: Pick<LoadedRun, "messages" | "steps" | "calls"> & Partial<Pick<LoadedRun, "approvals">>,
): ModelMessage[] {
  const before = loaded.messages.map(({ role, text }): ModelMessage => ({ role, content: wordsOf(text) }));
  const results = new Map(
    loaded.steps.flatMap(({ body }) => (body.kind === "tool_result" ? [[body.callId, body] as const] : [])),
  );
  const calls = new Map(loaded.calls.map((call) => [call.id, call]));
  const known = { calls, results, approvals: loaded.approvals ?? [] };
  return [...before, ...withGoOn(loaded.steps.flatMap((step) => messagesOf(step, known)))];
}

/** An operator's retry or late evidence may ask for another reply although nobody has said anything. */
function withGoOn(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  return messages.flatMap((message, index): ModelMessage[] => {
    const next = messages[index + 1];
    const isAlone = message.role === "assistant" && (next === undefined || next.role === "assistant");
    return isAlone ? [message, { role: "user", content: GO_ON }] : [message];
  });
}

type ResultBody = Extract<StepBody, { kind: "tool_result" }>;

interface Known {
  readonly calls: ReadonlyMap<string, Call>;
  readonly results: ReadonlyMap<string, ResultBody>;
  readonly approvals: readonly Approval[];
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
      return [{ role: "user", content: wordsOf(body.text) }];
    case "no_answer":
      return [{ role: "user", content: NO_ANSWER }];
    case "model_failed":
    case "migration":
    case "nodes_started":
    case "intent":
    case "timer_set":
    case "children_started":
    case "call_failed":
    case "did_not_happen":
    case "finding":
    case "tool_result":
    case "effect_pending":
    case "callback":
    case "operator":
      return [];
  }
}

function resultPart(callId: string, { calls, results, approvals }: Known): ToolResultPart {
  const call = calls.get(callId);
  const result = results.get(callId);
  if (call === undefined || result === undefined) {
    throw new RangeError(`Call ${callId} has no result yet; the model must not be asked before it has one`);
  }
  return {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.tool,
    output: outputPart(
      result.result,
      withNote(toPlain(storable(result.output)), editNote(call, { result, approvals })),
    ),
  };
}

/** What a person has made of the model's arguments: the model must not believe, or say, that its own have run. */
function editNote(
  call: Call,
  { result, approvals }: { readonly result: ResultBody; readonly approvals: readonly Approval[] },
): string | null {
  const { args, argsHash } = asItRuns(call, approvals);
  if (argsHash === call.argsHash) return null;
  const now = storableText(cutText(canonicalJson(toPlain(args)), NOTE_LIMIT));
  const what = RAN.has(result.result) ? "It ran with" : "It was not run; it would have run with";
  return `[A reviewer changed the arguments of this call. ${what} ${now}]`;
}

function withNote(output: JsonValue, note: string | null): JsonValue {
  if (note === null) return output;
  return typeof output === "string" ? `${note}\n${output}` : { note, output };
}

const NOTE_LIMIT = 4_000;

/** How a call ended that was sent, or may have been. */
const RAN: ReadonlySet<string> = new Set(["succeeded", "partial", "blocked", "failed", "not_established"]);

/** How a call ended where it brought what it was asked for. */
const DONE: ReadonlySet<string> = new Set(["succeeded", "answered", "answered_from_record"]);

function outputPart(result: string, output: JsonValue): ToolResultPart["output"] {
  const done = DONE.has(result);
  if (typeof output === "string") {
    return done ? { type: "text", value: wordsOf(output) } : { type: "error-json", value: { result, message: output } };
  }
  // The SDK's JSON is mutable by type only.
  const value = (SAID.has(result) ? { result, output } : output) as Extract<
    ToolResultPart["output"],
    { type: "json" }
  >["value"];
  return { type: done ? "json" : "error-json", value };
}

/** How a call ended where its output alone would not tell. */
const SAID: ReadonlySet<string> = new Set(["partial", "blocked"]);

function wordsOf(text: string): string {
  return text.trim() === "" ? EMPTY : storableText(text);
}
