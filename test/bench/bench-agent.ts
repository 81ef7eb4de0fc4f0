import type { LanguageModelV4, LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Agent, defineAgent, defineTool } from "@holdpoint/runtime";
import { z } from "zod";
import { BENCH_AGENT } from "./product.ts";
import type { Work } from "./work.ts";

const look = defineTool({
  name: "look",
  description: "Looks one thing up",
  input: z.object({ thing: z.int() }),
  effect: "read",
  execute: async () => ({ ok: true }),
});

/** An agent whose model and tool do nothing but answer, so that what is left is what the product costs. */
export function benchAgent(work: Work): Agent {
  return defineAgent({
    ...BENCH_AGENT,
    model: scriptedModel(repliesOf(work)),
    instructions: "Look things up.",
    tools: [look],
    complete: () => ({ kind: "succeeded" }),
    limits: { turns: work.turns + 1, tokens: Number.MAX_SAFE_INTEGER },
  });
}

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const CLOSING = "All is looked up.";

/** What a reply says and asks for. */
export type Content = LanguageModelV4GenerateResult["content"];

/** Speaks the SDK's protocol. It answers by how many replies the prompt holds, so that any process gets the same. */
export function scriptedModel(contentOf: (turn: number) => Content): LanguageModelV4 {
  const turnOf = (prompt: readonly { readonly role: string }[]) =>
    prompt.filter(({ role }) => role === "assistant").length;
  return {
    specificationVersion: "v4",
    provider: "holdpoint-bench",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async ({ prompt }) => {
      const content = contentOf(turnOf(prompt));
      return { content, finishReason: finishReasonOf(content), usage: USAGE, warnings: [] };
    },
    doStream: async ({ prompt }) => ({ stream: streamOf(contentOf(turnOf(prompt))) }),
  };
}

function repliesOf({ turns, calls }: Work): (turn: number) => Content {
  return (turn) => (turn < turns ? callsOf(turn, calls) : [{ type: "text", text: CLOSING }]);
}

function callsOf(turn: number, calls: number): Content {
  return Array.from({ length: calls }, (_, index) => ({
    type: "tool-call",
    toolCallId: `call_${turn}_${index}`,
    toolName: look.name,
    input: JSON.stringify({ thing: turn * calls + index }),
  }));
}

function finishReasonOf(content: Content) {
  const unified = content.some(({ type }) => type === "tool-call") ? ("tool-calls" as const) : ("stop" as const);
  return { unified, raw: unified };
}

function streamOf(content: Content): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      for (const part of content) for (const each of streamed(part)) controller.enqueue(each);
      controller.enqueue({ type: "finish", finishReason: finishReasonOf(content), usage: USAGE });
      controller.close();
    },
  });
}

function streamed(part: Content[number]): readonly LanguageModelV4StreamPart[] {
  if (part.type === "tool-call") return [part];
  if (part.type !== "text") throw new TypeError(`The script has no ${part.type}`);
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: part.text },
    { type: "text-end", id: "1" },
  ];
}
