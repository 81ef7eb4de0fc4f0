import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { scriptedModel } from "@holdpoint/testkit";
import { type ModelMessage, registerTelemetry, streamText } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import { callModel } from "../src/call-model.ts";
import type { Model } from "../src/define-agent.ts";
import { anAgent } from "./parts.ts";

type Part = LanguageModelV4StreamPart;

const NEVER = new AbortController().signal;
const QUESTION: ModelMessage[] = [{ role: "user", content: "Where is 4411?" }];
const meta = (name: string) => ({ provider: { name } });
const usage = {
  inputTokens: { total: 12, noCache: 12, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 7, text: 7, reasoning: 0 },
};
const END: Part = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage };
const said = (text: string): readonly Part[] => [
  { type: "text-start", id: "said" },
  { type: "text-delta", id: "said", delta: text },
  { type: "text-end", id: "said" },
];

/** A model that streams these parts, and what became of its stream. */
function streaming(parts: readonly Part[], { closes = true } = {}) {
  const seen: { cancelled: unknown } = { cancelled: null };
  const model: Model = {
    ...scriptedModel([]),
    doStream: async () => ({
      stream: new ReadableStream<Part>({
        start: (controller) => {
          for (const part of parts) controller.enqueue(part);
          if (closes) controller.close();
        },
        cancel: (reason) => {
          seen.cancelled = reason ?? "without a reason";
        },
      }),
    }),
  };
  return { model, seen };
}

function ask(parts: readonly Part[]) {
  return callModel(anAgent({ model: streaming(parts).model, tools: [] }), QUESTION, NEVER);
}

/** What the SDK's own stream makes of the same parts. */
async function streamed(parts: readonly Part[]) {
  const { model } = streaming(parts);
  const result = streamText({ model, messages: QUESTION, maxRetries: 0, onError: () => undefined });
  const [response, text, total] = await Promise.all([result.response, result.text, result.usage]);
  const message = response.messages.find(({ role }) => role === "assistant");
  const { inputTokens, outputTokens } = total;
  return { message: JSON.parse(JSON.stringify(message)), text, usage: { inputTokens, outputTokens } };
}

const searched: readonly Part[] = [
  {
    type: "tool-call",
    toolCallId: "s1",
    toolName: "search",
    input: '{"q":"4411"}',
    providerExecuted: true,
    dynamic: true,
    providerMetadata: meta("search"),
  },
  { type: "tool-result", toolCallId: "s1", toolName: "search", result: { hits: 1 }, providerMetadata: meta("found") },
];

describe("a collected reply is what the SDK makes of the same stream", () => {
  test.each<readonly [string, readonly Part[]]>([
    ["text in pieces", [...said("On its way"), ...said(""), ...said(" to you")]],
    [
      "two texts that are written at once, each with its latest metadata",
      [
        { type: "text-start", id: "a", providerMetadata: meta("a0") },
        { type: "text-start", id: "b" },
        { type: "text-delta", id: "b", delta: "B1 " },
        { type: "text-delta", id: "a", delta: "A1 ", providerMetadata: meta("a1") },
        { type: "text-delta", id: "b", delta: "B2" },
        { type: "text-end", id: "a" },
        { type: "text-end", id: "b", providerMetadata: meta("b1") },
      ],
    ],
    [
      "a text that goes on under the id of one that has not ended",
      [
        { type: "text-start", id: "a" },
        { type: "text-delta", id: "a", delta: "one" },
        ...[..."two"].flatMap((letter): Part[] => [{ type: "text-delta", id: "a", delta: letter }]),
        { type: "text-start", id: "a" },
        { type: "text-delta", id: "a", delta: "three" },
        { type: "text-end", id: "a" },
      ],
    ],
    [
      "a text that says nothing, and stands for its metadata",
      [{ type: "text-start", id: "a", providerMetadata: meta("a") }, ...said("x")],
    ],
    [
      "reasoning with its signature",
      [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "Look at the order" },
        { type: "reasoning-delta", id: "r", delta: "", providerMetadata: meta("signature") },
        { type: "reasoning-end", id: "r" },
        { type: "reasoning-start", id: "redacted", providerMetadata: meta("redacted") },
        { type: "reasoning-end", id: "redacted" },
        ...said("Done"),
      ],
    ],
    [
      "files, sources and what only one provider knows",
      [
        { type: "file", mediaType: "text/plain", data: { type: "data", data: "aGk=" }, providerMetadata: meta("file") },
        { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } },
        { type: "source", sourceType: "url", id: "u1", url: "https://example.com" },
        { type: "custom", kind: "provider.note", providerMetadata: meta("custom") },
        ...said("See there"),
      ],
    ],
    ["what the provider has executed itself", [...searched, ...said("Found")]],
    [
      "what the provider could not execute",
      [
        searched[0] as Part,
        { type: "tool-result", toolCallId: "s1", toolName: "search", result: "away", isError: true },
        ...said("Not found"),
      ],
    ],
    [
      "the result of a call of an earlier turn",
      [
        {
          type: "tool-result",
          toolCallId: "old",
          toolName: "run_code",
          result: { out: 4 },
          providerMetadata: meta("r"),
        },
        ...said("Four"),
        { type: "tool-result", toolCallId: "old", toolName: "run_code", result: "no", isError: true },
      ],
    ],
    [
      "what stands between: pieces of arguments, pings and raw events",
      [
        { type: "stream-start", warnings: [] },
        { type: "response-metadata", id: "resp_1", modelId: "m" },
        { type: "raw", rawValue: { x: 1 } },
        { type: "tool-input-start", id: "s1", toolName: "search" },
        { type: "tool-input-delta", id: "s1", delta: '{"q":"4411"}' },
        { type: "tool-input-end", id: "s1" },
        ...searched,
        { type: "ping" },
        ...said("Found"),
      ],
    ],
  ])("%s", async (_what, parts) => {
    const whole = [...parts, { ...END, providerMetadata: meta("end") }];
    const { kind, ...answer } = await ask(whole);
    expect(kind).toBe("reply");
    expect(answer).toEqual({ ...(await streamed(whole)), calls: [] });
  });
});

describe("a stream that is no reply", () => {
  const unreachable = { kind: "failed", errorClass: "transient", code: "model_unreachable", retryAfterMs: null };

  test.each<readonly [string, readonly Part[], object]>([
    ["without anything in it", [], unreachable],
    ["that ends without a reason", said("Ref"), { ...unreachable, code: "reply_cut_off" }],
    ["with text that has not begun", [{ type: "text-delta", id: "x", delta: "x" }, END], unreachable],
    ["with reasoning that has not begun", [{ type: "reasoning-end", id: "x" }, END], unreachable],
    ["with an error that is no object", [{ type: "error", error: "away" }, ...said("x"), END], unreachable],
    [
      "with an error that names its code within the reply that failed",
      [{ type: "error", error: { response: { error: { code: "context_length_exceeded", message: "long" } } } }, END],
      { ...unreachable, errorClass: "caller", code: "prompt_too_long" },
    ],
  ])("%s", async (_what, parts, failure) => {
    expect(await ask(parts)).toEqual(failure);
  });

  test("is not read on: at an error, and beyond what anybody reads", async () => {
    const failing = streaming([{ type: "error", error: new Error("away") }], { closes: false });
    expect(await callModel(anAgent({ model: failing.model }), QUESTION, NEVER)).toEqual(unreachable);
    expect(failing.seen.cancelled).not.toBeNull();
    const endless = streaming(said("x".repeat(5_000_000)), { closes: false });
    expect(await callModel(anAgent({ model: endless.model }), QUESTION, NEVER)).toMatchObject({
      code: "reply_too_long",
    });
    expect(endless.seen.cancelled).not.toBeNull();
  });

  test("is let go of at a stop and at the timeout, whatever the provider does about its signal", async () => {
    const open = streaming(said("thinking"), { closes: false });
    const agent = anAgent({ model: open.model, modelTimeoutMs: 20 });
    expect(await callModel(agent, QUESTION, NEVER)).toMatchObject({ code: "model_timeout" });
    expect(open.seen.cancelled).toMatchObject({ name: "TimeoutError" });
    const stop = new AbortController();
    const stuck = anAgent({ model: { ...scriptedModel([]), doStream: () => new Promise<never>(() => undefined) } });
    const answer = callModel(stuck, QUESTION, stop.signal);
    stop.abort();
    expect(await answer).toEqual({ kind: "aborted" });
  });

  test("that comes after the stop is not left open", async () => {
    const stop = new AbortController();
    const late = streaming([], { closes: false });
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const model: Model = {
      ...scriptedModel([]),
      doStream: async () => {
        begun.resolve();
        await go.promise;
        return (late.model as ReturnType<typeof scriptedModel>).doStream({ prompt: [] });
      },
    };
    const answer = callModel(anAgent({ model }), QUESTION, stop.signal);
    await begun.promise;
    stop.abort("stopped");
    expect(await answer).toEqual({ kind: "aborted" });
    go.resolve();
    await expect.poll(() => late.seen.cancelled).not.toBeNull();
  });
});

describe("what is made once, and what is not made at all", () => {
  afterEach(() => {
    globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
  });

  test("a tool's schema is turned into JSON once, however often its agent is asked", async () => {
    const model = scriptedModel([{ text: "done" }]);
    const agent = anAgent({ model });
    await callModel(agent, QUESTION, NEVER);
    await callModel({ ...agent, instructions: "With what is known of the requester." }, QUESTION, NEVER);
    const [first, second] = model.asked.map(({ tools }) => tools?.[0]);
    expect(first).toMatchObject({ inputSchema: { properties: { order: { type: "string" } } } });
    expect(Reflect.get(Object(second), "inputSchema")).toBe(Reflect.get(Object(first), "inputSchema"));
  });

  test("who has registered for the SDK's telemetry hears of each request", async () => {
    const heard: string[] = [];
    const onStart = ({ callId }: { readonly callId: string }) => void heard.push(callId);
    const agent = anAgent({ model: streaming([...said("x"), END]).model });
    await callModel(agent, QUESTION, NEVER);
    registerTelemetry({ onStart });
    await callModel(agent, QUESTION, NEVER);
    expect(heard).toHaveLength(1);
  });
});
