import {
  type Approval,
  asItRuns,
  type Call,
  canonicalJson,
  type JsonValue,
  type RunHistory,
  recordOf,
  runHistory,
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

/** What a conversation is made of. */
export type Told = Pick<LoadedRun, "messages" | "approvals"> & { readonly history: RunHistory };

/** The conversation of one run, made as it grows: what was said stays as it was said. */
export interface Conversation {
  /**
   * The conversation that the model is shown: the session's messages up to the submission, then this run's steps. Every
   * call has exactly one result, in model order, directly behind the reply that made it.
   *
   * As long as what was told holds, it is the same array, which has grown: whoever works something out of it need not
   * begin anew (`growing`).
   *
   * @param told the run as it is by now: what was told before is in it.
   * @throws {RangeError} a call of an earlier turn has no result: providers would refuse the conversation.
   */
  messages(told: Told): ModelMessage[];
}

/** Begins a conversation; each step is put into words once. */
export function openConversation(): Conversation {
  let begun: Begun | null = null;
  return {
    messages: (told) => {
      const edits = editsIn(told.approvals);
      const { steps } = told.history.known;
      const goesOn: Begun = begun !== null && agrees(begun, told, edits) ? begun : beginning(told, edits);
      const fresh = steps.slice(goesOn.read);
      const messages = fresh.flatMap((step) => messagesOf(step, told));
      for (const message of messages) append(goesOn.said, message);
      for (const callId of fresh.flatMap(callsOf)) goesOn.results.set(callId, recordOf(told.history, callId).result);
      begun = { ...goesOn, read: steps.length };
      return begun.said.at(-1)?.role === "assistant" ? [...begun.said, goOn()] : begun.said;
    },
  };
}

/** How far a conversation has been told. */
interface Begun {
  readonly said: ModelMessage[];
  /** How many steps that are. */
  readonly read: number;
  readonly edits: string;
  /** As they were told. */
  readonly results: Map<string, ResultBody | null>;
}

function beginning({ messages }: Told, edits: string): Begun {
  const said = messages.map(({ role, text }): ModelMessage => ({ role, content: wordsOf(text) }));
  return { said, read: 0, edits, results: new Map() };
}

/** Whether what was told still holds: a person's edit of a call, or a second result, says something else of it. */
function agrees({ edits, read, results }: Begun, { history }: Told, editsNow: string): boolean {
  const isSame = ({ body }: Step) =>
    body.kind !== "tool_result" ||
    !results.has(body.callId) ||
    results.get(body.callId) === recordOf(history, body.callId).result;
  return edits === editsNow && history.known.steps.slice(read).every(isSame);
}

function callsOf({ body }: Step): readonly string[] {
  return body.kind === "model_reply" ? body.callIds : [];
}

/** The conversation of a run that nobody has begun to tell. */
export function buildPrompt(
  loaded: Pick<LoadedRun, "messages" | "steps" | "calls"> & Partial<Pick<LoadedRun, "approvals">>,
): ModelMessage[] {
  const { messages, steps, calls, approvals = [] } = loaded;
  return openConversation().messages({ messages, approvals, history: runHistory(steps, calls) });
}

/** What people have made of the arguments of calls: the last edit of each counts. */
function editsIn(approvals: Told["approvals"]): string {
  const edits = approvals.filter(({ editedBy }) => editedBy !== null);
  return edits.map(({ callId, argsHash }) => `${callId} ${argsHash}`).join("\n");
}

/** An operator's retry or late evidence may ask for another reply although nobody has said anything. */
function append(said: ModelMessage[], message: ModelMessage): void {
  if (message.role === "assistant" && said.at(-1)?.role === "assistant") said.push(goOn());
  said.push(message);
}

function goOn(): ModelMessage {
  return { role: "user", content: GO_ON };
}

type ResultBody = Extract<StepBody, { kind: "tool_result" }>;

function messagesOf({ body }: Step, told: Told): ModelMessage[] {
  switch (body.kind) {
    case "model_reply": {
      // Stored as the provider gave it.
      const reply = body.message as unknown as AssistantModelMessage;
      const content = body.callIds.map((callId) => resultPart(callId, told));
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

function resultPart(callId: string, { history, approvals }: Told): ToolResultPart {
  const call = history.known.callById.get(callId);
  const { result } = recordOf(history, callId);
  if (call === undefined || result === null) {
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
