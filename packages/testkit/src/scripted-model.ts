import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

/** What a scripted model says in one turn. */
export interface ScriptedReply {
  readonly text?: string;
  readonly calls?: readonly { readonly tool: string; readonly input: unknown; readonly id?: string }[];
}

/** A turn of a script: a reply, an error to throw, or a function of what the model was shown. */
export type ScriptedTurn =
  | ScriptedReply
  | Error
  | ((options: LanguageModelV4CallOptions) => ScriptedReply | Promise<ScriptedReply>);

/** A model that plays a script, and what it was asked with. */
export interface ScriptedModel extends LanguageModelV4 {
  readonly asked: LanguageModelV4CallOptions[];
}

/**
 * A local model that answers from a script: turn n is played when the prompt holds n replies of the assistant, so that
 * any process that resumes a run gets the same reply. Speaks the SDK's real protocol, streamed.
 */
export function scriptedModel(turns: readonly ScriptedTurn[]): ScriptedModel {
  const asked: LanguageModelV4CallOptions[] = [];
  const reply = async (options: LanguageModelV4CallOptions): Promise<ScriptedReply> => {
    asked.push(options);
    options.abortSignal?.throwIfAborted();
    const turn = turns[options.prompt.filter(({ role }) => role === "assistant").length];
    if (turn === undefined) throw new RangeError("The script has no turn for this prompt");
    if (turn instanceof Error) throw turn;
    return typeof turn === "function" ? turn(options) : turn;
  };
  return {
    asked,
    specificationVersion: "v4",
    provider: "holdpoint-testkit",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async (options) => generated(await reply(options)),
    doStream: async (options) => ({ stream: streamOf(parts(await reply(options))) }),
  };
}

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

function finishReason({ calls = [] }: ScriptedReply) {
  const unified = calls.length > 0 ? ("tool-calls" as const) : ("stop" as const);
  return { unified, raw: unified };
}

function toolCalls({ calls = [] }: ScriptedReply) {
  return calls.map(({ tool, input, id }, index) => ({
    type: "tool-call" as const,
    toolCallId: id ?? `call_${index + 1}`,
    toolName: tool,
    input: typeof input === "string" ? input : JSON.stringify(input),
  }));
}

function generated(reply: ScriptedReply): LanguageModelV4GenerateResult {
  const text = reply.text === undefined ? [] : [{ type: "text" as const, text: reply.text }];
  return { content: [...text, ...toolCalls(reply)], finishReason: finishReason(reply), usage: USAGE, warnings: [] };
}

function parts(reply: ScriptedReply): readonly LanguageModelV4StreamPart[] {
  const text: LanguageModelV4StreamPart[] =
    reply.text === undefined
      ? []
      : [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: reply.text },
          { type: "text-end", id: "1" },
        ];
  return [
    { type: "stream-start", warnings: [] },
    ...text,
    ...toolCalls(reply),
    { type: "finish", finishReason: finishReason(reply), usage: USAGE },
  ];
}

function streamOf(items: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}
