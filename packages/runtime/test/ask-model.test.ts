import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { scriptedModel } from "@holdpoint/testkit";
import type { AssistantModelMessage, ModelMessage, ToolResultPart } from "ai";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callModel } from "../src/call-model.ts";
import type { Model } from "../src/define-agent.ts";
import { plainPrompt } from "../src/plain-prompt.ts";
import { anAgent } from "./parts.ts";

const NEVER = new AbortController().signal;
const QUESTION: ModelMessage = { role: "user", content: "Where is 4411?" };

beforeAll(() => {
  // Otherwise the SDK prints the warnings of providers.
  globalThis.AI_SDK_LOG_WARNINGS = false;
});
afterAll(() => {
  globalThis.AI_SDK_LOG_WARNINGS = undefined;
});

type Part = LanguageModelV4StreamPart;

/** A model that streams these parts, and with what it was asked. */
function streaming(parts: readonly Part[]) {
  const asked: Omit<LanguageModelV4CallOptions, "abortSignal">[] = [];
  const model: Model = {
    ...scriptedModel([]),
    doStream: async (given: LanguageModelV4CallOptions) => {
      const { abortSignal: _signal, ...options } = given;
      asked.push(options);
      return { stream: ReadableStream.from(parts) as ReadableStream<Part> };
    },
  };
  return { model, asked };
}

async function ask(messages: readonly ModelMessage[], parts: readonly Part[]) {
  const { model, asked } = streaming(parts);
  const answer = await callModel(anAgent({ model }), [...messages], NEVER);
  return { asked, answer };
}

/** The same through the SDK alone, as where somebody takes its telemetry. */
async function askWatched(messages: readonly ModelMessage[], parts: readonly Part[]) {
  globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = [{}];
  try {
    return await ask(messages, parts);
  } finally {
    globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
  }
}

const metadata = fc.option(
  fc.constantFrom({ provider: { signature: "abc" } }, { provider: { nothing: undefined } as never }),
  { nil: undefined },
);
const words = fc.constantFrom("", " ", "On its way", "caf\u0000e", "\ud800");
const callInput = fc.constantFrom(
  '{"order":"1"}',
  '{"order":"1',
  "",
  "null",
  '{"a":1,"a":2}',
  '{"a":"\\u0000"}',
  '{"n":1e400}',
);

const written = (type: "text" | "reasoning") =>
  fc.tuple(words, words, metadata, metadata).map(([one, two, begins, ends]): readonly Part[] => [
    { type: `${type}-start`, id: "1", ...(begins && { providerMetadata: begins }) },
    { type: `${type}-delta`, id: "1", delta: one },
    { type: `${type}-delta`, id: "1", delta: two },
    { type: `${type}-end`, id: "1", ...(ends && { providerMetadata: ends }) },
  ]);
const ourCall = fc
  .record({
    toolCallId: fc.constantFrom("call_1", "call_2", "old_1", ""),
    toolName: fc.constantFrom("find_order", "find order", "constructor"),
    input: callInput,
    dynamic: fc.constantFrom(undefined, undefined, true),
    providerMetadata: metadata,
  })
  .map((call) => [JSON.parse(JSON.stringify({ type: "tool-call", ...call }))] as readonly Part[]);
const rare = fc.constantFrom<(readonly Part[])[]>(
  [{ type: "source", sourceType: "url", id: "u1", url: "https://example.com" }],
  [{ type: "file", mediaType: "text/plain", data: { type: "data", data: "aGk=" } }],
  [{ type: "custom", kind: "provider.note" }],
  [
    { type: "tool-call", toolCallId: "p1", toolName: "search", input: "{}", providerExecuted: true, dynamic: true },
    { type: "tool-result", toolCallId: "p1", toolName: "search", result: { hits: 1 } },
  ],
  [{ type: "stream-start", warnings: [{ type: "other", message: "slow today" }] }],
);
const usage = {
  inputTokens: { total: undefined, noCache: 12, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 7, text: 7, reasoning: 0 },
};
const anEnd = fc.constantFrom("stop", "tool-calls", "length", "content-filter", "error", "other").chain((unified) =>
  fc.constantFrom(undefined, unified).map(
    (raw): Part => ({
      type: "finish",
      finishReason: { unified: unified as "stop", raw },
      usage,
    }),
  ),
);
const aReply = fc
  .tuple(
    fc.array(
      fc.oneof(
        { weight: 3, arbitrary: written("text") },
        { weight: 2, arbitrary: written("reasoning") },
        { weight: 5, arbitrary: ourCall },
        { weight: 1, arbitrary: rare },
      ),
      { maxLength: 5 },
    ),
    anEnd,
  )
  .map(([parts, end]) => [...parts.flat(), end]);

type SaidPart = Exclude<AssistantModelMessage["content"], string>[number];
type Output = ToolResultPart["output"];

const options = metadata.map((given) => (given === undefined ? {} : { providerOptions: given }));
const saidPart = fc.oneof(
  fc.tuple(words, options).map(([text, more]): SaidPart => ({ type: "text", text, ...more })),
  fc.tuple(words, options).map(([text, more]): SaidPart => ({ type: "reasoning", text, ...more })),
  options.map(
    (more): SaidPart => ({
      type: "tool-call",
      toolCallId: "p1",
      toolName: "search",
      input: {},
      providerExecuted: true,
      ...more,
    }),
  ),
  fc.constantFrom<SaidPart[]>(
    { type: "file", data: "aGk=", mediaType: "text/plain" },
    { type: "custom", kind: "provider.note" },
    {
      type: "tool-result",
      toolCallId: "p1",
      toolName: "search",
      output: { type: "content", value: [{ type: "file-data", data: "aGk=", mediaType: "text/plain" }] },
    },
    { type: "tool-result", toolCallId: "p1", toolName: "search", output: { type: "json", value: { hits: 1 } } },
  ),
);
const anOutput = fc.constantFrom<Output[]>(
  { type: "text", value: "found" },
  { type: "json", value: { order: "4411" } },
  { type: "error-json", value: { result: "failed", message: "away" } },
);
/** What was said before: replies, each with the results of its calls, and what the requester said to it. */
const aTurn = fc
  .tuple(fc.array(saidPart, { maxLength: 3 }), fc.array(fc.tuple(anOutput, options), { maxLength: 2 }), words)
  .map(([said, results, next]) => ({ said, results, next }));
const aConversation = fc.array(aTurn, { maxLength: 3 }).map((turns): readonly ModelMessage[] => [
  QUESTION,
  ...turns.flatMap(({ said, results, next }, turn): ModelMessage[] => {
    const calls = results.map(([output, more], index) => ({ id: `old_${turn}_${index}`, output, more }));
    const name = { toolName: "find_order" };
    const content: SaidPart[] = [
      ...said,
      ...calls.map(({ id, more }) => ({ type: "tool-call" as const, toolCallId: id, ...name, input: {}, ...more })),
    ];
    const answered = calls.map(({ id, output, more }) => ({
      type: "tool-result" as const,
      toolCallId: id,
      ...name,
      output,
      ...more,
    }));
    const tool: ModelMessage[] = answered.length === 0 ? [] : [{ role: "tool", content: answered }];
    return [{ role: "assistant", content }, ...tool, { role: "user", content: next }];
  }),
]);

describe("a request of a turn, and its reply", () => {
  test("are what the SDK makes of them, whatever is in them", { timeout: 120_000 }, async () => {
    let plain = 0;
    await fc.assert(
      fc.asyncProperty(aConversation, aReply, async (messages, reply) => {
        plain += plainPrompt("", messages) === null ? 0 : 1;
        const watched = await askWatched(messages, reply);
        expect(await ask(messages, reply)).toEqual(watched);
        expect(watched.asked).toHaveLength(1);
      }),
      { numRuns: 600 },
    );
    // Both ways were gone.
    expect(plain).toBeGreaterThan(100);
    expect(plain).toBeLessThan(600);
  });

  test("are warned of what the provider has to say about them", async () => {
    const heard: unknown[] = [];
    globalThis.AI_SDK_LOG_WARNINGS = ({ warnings }) => void heard.push(...warnings);
    const warning = { type: "other", message: "slow today" } as const;
    const said: readonly Part[] = [
      { type: "stream-start", warnings: [warning] },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "hi" },
      { type: "text-end", id: "1" },
      { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
    ];
    const { answer } = await ask([QUESTION], said);
    globalThis.AI_SDK_LOG_WARNINGS = false;
    expect(answer).toMatchObject({ kind: "reply", text: "hi" });
    expect(heard).toEqual([warning]);
  });

  test("reach a model of an older protocol as well", async () => {
    const asked: unknown[] = [];
    const model = {
      ...scriptedModel([]),
      specificationVersion: "v3",
      doStream: async (options: unknown) => {
        asked.push(options);
        const parts = [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "hi" },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
        ];
        return { stream: ReadableStream.from(parts) };
      },
    } as unknown as Model;
    const answer = await callModel(anAgent({ model }), [QUESTION], NEVER);
    expect(answer).toMatchObject({ kind: "reply", text: "hi", usage: { inputTokens: 0, outputTokens: 7 } });
    expect(asked).toHaveLength(1);
  });
});
