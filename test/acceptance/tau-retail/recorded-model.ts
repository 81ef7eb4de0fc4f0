import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { RetailTask } from "./retail-data.ts";

/** The prompt is not one that a correct runtime can have made: the message says what is out of place. */
export class UnexpectedPromptError extends Error {
  readonly code = "UNEXPECTED_PROMPT";

  constructor(message: string) {
    super(message);
    this.name = "UnexpectedPromptError";
  }
}

/** The customer's first message: names the task, so that the model finds its recording from the prompt alone. */
export function openingMessage(task: RetailTask): string {
  return `Task ${task.id}\n\n${task.instruction}`;
}

/** The id of the model's call for the action at `index`. */
export function recordedCallId(task: RetailTask, index: number): string {
  return `call_${task.id}_${index}`;
}

/** What the model says after its last call; contains every string that the task wants the customer to be told. */
export function closingText(task: RetailTask): string {
  return task.outputs.length === 0
    ? "Your request has been dealt with. Is there anything else?"
    : `Your request has been dealt with. What you asked for: ${task.outputs.join("; ")}.`;
}

/**
 * A language model that plays each task's recorded calls, one per turn, and then says the closing text.
 *
 * Its reply is a pure function of the prompt: it remembers nothing, so any process may ask it for any turn. It checks the
 * history it is shown and refuses one in which a result is missing, doubled, or out of order.
 *
 * @throws {UnexpectedPromptError} on a call: unknown task, or a history that is not the recording's.
 */
export function createRecordedModel(tasks: readonly RetailTask[]): LanguageModelV4 {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  return {
    specificationVersion: "v4",
    provider: "recorded",
    modelId: "tau-retail",
    supportedUrls: {},
    async doGenerate({ prompt, abortSignal }: LanguageModelV4CallOptions) {
      abortSignal?.throwIfAborted();
      const turn = nextTurn(byId, prompt);
      const response = { id: turn.id, modelId: "tau-retail" };
      return { content: [turn.content], finishReason: turn.finishReason, usage: turn.usage, response, warnings: [] };
    },
    async doStream({ prompt, abortSignal }: LanguageModelV4CallOptions) {
      abortSignal?.throwIfAborted();
      return { stream: ReadableStream.from(streamParts(nextTurn(byId, prompt))) };
    },
  };
}

type TurnContent = Extract<LanguageModelV4Content, { type: "text" | "tool-call" }>;
type Turn = {
  readonly id: string;
  readonly content: TurnContent;
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage: LanguageModelV4Usage;
};

function nextTurn(tasks: ReadonlyMap<string, RetailTask>, prompt: LanguageModelV4Prompt): Turn {
  const task = taskOf(tasks, prompt);
  const index = countResults(task, prompt);
  const action = task.actions[index];
  const content: TurnContent =
    action === undefined
      ? { type: "text", text: closingText(task) }
      : {
          type: "tool-call",
          toolCallId: recordedCallId(task, index),
          toolName: action.name,
          input: JSON.stringify(action.arguments),
        };
  return {
    id: `reply_${task.id}_${index}`,
    content,
    finishReason:
      action === undefined ? { unified: "stop", raw: "stop" } : { unified: "tool-calls", raw: "tool_calls" },
    usage: usageOf(prompt, content),
  };
}

function taskOf(tasks: ReadonlyMap<string, RetailTask>, prompt: LanguageModelV4Prompt): RetailTask {
  const first = prompt.find((message) => message.role === "user");
  const text = first?.content.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
  const id = /^Task (\S+)/.exec(text)?.[1];
  const task = id === undefined ? undefined : tasks.get(id);
  if (task !== undefined) return task;
  throw new UnexpectedPromptError(
    id === undefined ? "the first user message does not begin with a task's id" : `no task ${id} is recorded`,
  );
}

/** How many of the task's calls have their result: each call is followed by exactly its one result. */
function countResults(task: RetailTask, prompt: LanguageModelV4Prompt): number {
  const seen = prompt.flatMap((message) =>
    message.role === "assistant" || message.role === "tool"
      ? message.content.flatMap((part) =>
          part.type === "tool-call" || part.type === "tool-result" ? [`${part.type} ${part.toolCallId}`] : [],
        )
      : [],
  );
  for (const [position, event] of seen.entries()) {
    const index = Math.floor(position / 2);
    const kind = position % 2 === 0 ? "tool-call" : "tool-result";
    const wanted = `${kind} ${recordedCallId(task, index)}`;
    if (index >= task.actions.length || event !== wanted) {
      throw new UnexpectedPromptError(`task ${task.id}: the history holds "${event}" where "${wanted}" belongs`);
    }
  }
  if (seen.length % 2 === 1) throw new UnexpectedPromptError(`task ${task.id}: "${seen.at(-1)}" has no result`);
  return seen.length / 2;
}

/** Made-up but reproducible: four characters a token. */
function usageOf(prompt: LanguageModelV4Prompt, content: TurnContent): LanguageModelV4Usage {
  const tokensOf = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4);
  const input = tokensOf(prompt);
  const output = tokensOf(content);
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
}

function streamParts({ id, content, finishReason, usage }: Turn): LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", id, modelId: "tau-retail" },
    ...(content.type === "text" ? textParts(id, content.text) : callParts(content)),
    { type: "finish", finishReason, usage },
  ];
}

function textParts(id: string, text: string): LanguageModelV4StreamPart[] {
  const words = text.match(/\S+\s*/g) ?? [];
  return [
    { type: "text-start", id },
    ...words.map((delta) => ({ type: "text-delta" as const, id, delta })),
    { type: "text-end", id },
  ];
}

function callParts(call: Extract<TurnContent, { type: "tool-call" }>): LanguageModelV4StreamPart[] {
  return [
    { type: "tool-input-start", id: call.toolCallId, toolName: call.toolName },
    { type: "tool-input-delta", id: call.toolCallId, delta: call.input },
    { type: "tool-input-end", id: call.toolCallId },
    call,
  ];
}
