import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { scriptedModel } from "@holdpoint/testkit";
import type { ModelMessage } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callModel, type ModelAnswer } from "../src/call-model.ts";
import { type AgentDefinition, resolveModel } from "../src/index.ts";
import { boundedDelay } from "../src/tool-error.ts";
import {
  chunk,
  DONE,
  type ModelServer,
  openModelServer,
  refuse,
  stream,
  toolCall,
  USAGE_CHUNK,
} from "./model-server.ts";
import { anAgent } from "./parts.ts";

let server: ModelServer;

beforeAll(async () => {
  server = await openModelServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const NEVER = new AbortController().signal;
const QUESTION: ModelMessage[] = [{ role: "user", content: "Where is 4411?" }];

function ask(
  overrides: Partial<AgentDefinition> = {},
  stop = NEVER,
  messages: ModelMessage[] = QUESTION,
): Promise<ModelAnswer> {
  const env = { HOLDPOINT_MODEL_BASE_URL: server.baseUrl, HOLDPOINT_MODEL_API_KEY: "k" };
  return callModel(anAgent({ model: resolveModel("compatible/m", env), ...overrides }), messages, stop);
}

function failed(errorClass: string, code: string, retryAfterMs: number | null = null) {
  return { kind: "failed", errorClass, code, retryAfterMs };
}

const SENT = "Wed, 21 Oct 2026 07:28:00 GMT";
const IN_90_S = "Wed, 21 Oct 2026 07:29:30 GMT";

describe("callModel with a server of OpenAI's protocol", () => {
  test("streams a reply, with its usage", async () => {
    server.answer = stream(
      chunk({ content: "On " }),
      chunk({ content: "its way" }),
      chunk({}, "stop"),
      USAGE_CHUNK,
      DONE,
    );
    const answer = await ask();
    expect(answer).toMatchObject({
      kind: "reply",
      text: "On its way",
      calls: [],
      usage: { inputTokens: 12, outputTokens: 7 },
      message: { role: "assistant", content: [{ type: "text", text: "On its way" }] },
    });
    const [request] = server.asked;
    expect(request).toMatchObject({ stream: true, tools: [{ function: { name: "find_order" } }] });
    expect(request?.messages).toMatchObject([{ role: "system", content: "You help." }, { role: "user" }]);
  });

  test("puts calls together from their pieces, in model order", async () => {
    server.answer = stream(
      chunk({ tool_calls: [toolCall(0, "find_order", '{"ord')] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: 'er":"1"}' } }] }),
      chunk({ tool_calls: [toolCall(1, "find_order", '{"order":"2"}')] }),
      chunk({}, "tool_calls"),
      DONE,
    );
    expect(await ask()).toMatchObject({
      calls: [
        { toolCallId: "call_0", input: { order: "1" }, problem: null },
        { toolCallId: "call_1", input: { order: "2" }, problem: null },
      ],
    });
  });

  test("keeps bad calls in their places, says what is wrong, and tells the model nothing itself", async () => {
    server.answer = stream(
      chunk({ tool_calls: [toolCall(0, "find_order", '{"order":"1')] }),
      chunk({ tool_calls: [toolCall(1, "no_such", "{}")] }),
      chunk({ tool_calls: [toolCall(2, "find_order", "null")] }),
      chunk({}, "tool_calls"),
      DONE,
    );
    const answer = await ask();
    expect(answer).toMatchObject({
      kind: "reply",
      calls: [
        { tool: "find_order", problem: expect.stringContaining("The arguments are not valid JSON."), input: {} },
        { tool: "no_such", problem: "There is no tool no_such.", input: {} },
        { tool: "find_order", problem: "The arguments must be a JSON object, not null.", input: {} },
      ],
    });
    // Nothing of it could poison the next request; what the model wrote is kept beside it.
    const parts = answer.kind === "reply" ? answer.message.content : [];
    expect(parts).toMatchObject([
      { toolName: "find_order", input: {}, providerOptions: { holdpoint: { refusedArguments: '{"order":"1' } } },
      { toolName: "no_such", input: {} },
      { toolName: "find_order", input: {}, providerOptions: { holdpoint: { refusedArguments: "null" } } },
    ]);
  });

  test.each([
    ["digits that reading would lose", '{"order":9007199254740993}', "would lose digits"],
    ["a key twice", '{"order":"1","order":"2"}', 'the key "order" twice'],
    ["a prototype", '{"__proto__":{"approved":true}}', "not allowed"],
    ["a list", "[1]", "must be a JSON object"],
    ["more depth than anybody can read", `{"order":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, "nested deeper"],
  ])("refuses arguments with %s, and takes the call beside it", async (_what, args, problem) => {
    server.answer = stream(
      chunk({ tool_calls: [toolCall(0, "find_order", args), toolCall(1, "find_order", '{"order":"2"}')] }),
      chunk({}, "tool_calls"),
      DONE,
    );
    expect(await ask()).toMatchObject({
      calls: [
        { input: {}, problem: expect.stringContaining(problem) },
        { input: { order: "2" }, problem: null },
      ],
    });
  });

  test("does not take a made-up name for the tool that it resembles, and makes it one that can be sent back", async () => {
    server.answer = stream(
      chunk({ tool_calls: [toolCall(0, "find order", '{"order":"1"}'), toolCall(1, "x".repeat(500), "{}")] }),
      chunk({}, "tool_calls"),
      DONE,
    );
    expect(await ask()).toMatchObject({
      calls: [
        { tool: "find_order", problem: "There is no tool find order." },
        { tool: "x".repeat(64), problem: `There is no tool ${"x".repeat(64)}.` },
      ],
      message: { content: [{ toolName: "find_order", input: { order: "1" } }, { toolName: "x".repeat(64) }] },
    });
  });

  test("makes text safe that neither Postgres nor another provider would take", async () => {
    server.answer = stream(
      chunk({ content: "caf\u0000e \ud83d" }),
      chunk({ tool_calls: [toolCall(0, "find_order", '{"order":"\\u0000\\ud83d"}', "id\u0000")] }),
      chunk({}, "tool_calls"),
      DONE,
    );
    const answer = await ask();
    expect(answer).toMatchObject({ text: "caf\ufffde \ufffd", calls: [{ toolCallId: "id\ufffd" }] });
    expect(answer).toMatchObject({
      message: {
        content: [{ text: "caf\ufffde \ufffd" }, { toolCallId: "id\ufffd", input: { order: "\ufffd\ufffd" } }],
      },
    });
  });

  test("does not read a reply without end", async () => {
    server.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const more = () => {
        while (!response.closed && response.write(chunk({ content: "x".repeat(500_000) })));
      };
      response.on("drain", more);
      more();
    };
    expect(await ask()).toEqual(failed("caller", "reply_too_long"));
  });

  test("sends nothing that providers would refuse", async () => {
    const before = server.asked.length;
    const call = { type: "tool-call" as const, toolCallId: "a", toolName: "find_order", input: {} };
    const dangling: ModelMessage[] = [...QUESTION, { role: "assistant", content: [call] }];
    await expect(ask({}, NEVER, dangling)).rejects.toThrow(/call a has no result in its place/);
    expect(server.asked.length).toBe(before);
  });

  test.each([
    ["429 with retry-after", 429, { "retry-after": "7" }, failed("throttled", "http_429", 7_000)],
    ["429 without", 429, {}, failed("throttled", "http_429")],
    ["429 with a date", 429, { date: SENT, "retry-after": IN_90_S }, failed("throttled", "http_429", 90_000)],
    ["429 with a date that is over", 429, { date: IN_90_S, "retry-after": SENT }, failed("throttled", "http_429")],
    ["429 with half a date", 429, { date: SENT, "retry-after": "21 Oct 2026" }, failed("throttled", "http_429")],
    ["503 with a date", 503, { date: SENT, "retry-after": IN_90_S }, failed("transient", "http_503", 90_000)],
    [
      "429 for years",
      429,
      { "retry-after": "99999999" },
      failed("throttled", "http_429", boundedDelay(99_999_999_000)),
    ],
    ["413", 413, {}, failed("caller", "prompt_too_long")],
    ["529", 529, {}, failed("throttled", "http_529")],
    ["500", 500, {}, failed("transient", "http_500")],
    ["503 with retry-after", 503, { "retry-after": "2" }, failed("transient", "http_503", 2_000)],
    ["408", 408, {}, failed("transient", "http_408")],
    ["400", 400, {}, failed("caller", "http_400")],
    ["401", 401, {}, failed("caller", "http_401")],
  ])(
    "classes %s by status and headers, after one request",
    async (_what, status, headers: Record<string, string>, answer) => {
      const before = server.asked.length;
      server.answer = refuse(status, headers);
      expect(await ask()).toEqual(answer);
      expect(server.asked.length).toBe(before + 1);
    },
  );

  test.each([400, 413, 429, 500])(
    "never takes a prompt that is too long for a passing failure: status %i",
    async (status) => {
      server.answer = refuse(status, {}, "context_length_exceeded");
      expect(await ask()).toEqual(failed("caller", "prompt_too_long"));
    },
  );

  test("knows a prompt that is too long within a stream, and does not guess from words", async () => {
    const event = (code: string) => `data: ${JSON.stringify({ error: { message: "prompt is too long", code } })}\n\n`;
    server.answer = stream(event("context_length_exceeded"), DONE);
    expect(await ask()).toEqual(failed("caller", "prompt_too_long"));
    server.answer = stream(event("x"), DONE);
    expect(await ask()).toMatchObject({ errorClass: "transient" });
  });

  test("takes a date without a Date of the reply for nothing: no clock here may judge it", async () => {
    server.answer = (_request, response) => {
      response.sendDate = false;
      response.writeHead(429, { "retry-after": IN_90_S }).end("{}");
    };
    expect(await ask()).toEqual(failed("throttled", "http_429"));
  });

  test("takes a connection that is reset for a passing failure", async () => {
    server.answer = (request) => request.socket.resetAndDestroy();
    expect(await ask()).toMatchObject({ kind: "failed", errorClass: "transient" });
  });

  test("does not take half a reply for one: reset in its middle", async () => {
    server.answer = (request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ content: "Refunded" }), () => request.socket.resetAndDestroy());
    };
    expect(await ask()).toEqual(failed("transient", "reply_cut_off"));
  });

  test("does not take half a reply for one: ended without a reason", async () => {
    server.answer = stream(chunk({ content: "Refunded" }));
    expect(await ask()).toMatchObject({ kind: "failed", errorClass: "transient" });
  });

  test("does not take silence for a reply", async () => {
    server.answer = stream(chunk({ content: " " }), chunk({}, "stop"), DONE);
    expect(await ask()).toEqual(failed("transient", "empty_reply"));
  });

  test("takes an error inside the stream for a passing failure", async () => {
    server.answer = stream(
      chunk({ content: "Ref" }),
      `data: ${JSON.stringify({ error: { message: "overloaded" } })}\n\n`,
      DONE,
    );
    expect(await ask()).toMatchObject({ kind: "failed", errorClass: "transient" });
  });

  test.each([
    ["length", failed("caller", "reply_too_long")],
    ["content_filter", failed("refused", "content_filter")],
  ])("does not go on after finish reason %s", async (finish, answer) => {
    server.answer = stream(chunk({ content: "Too" }), chunk({}, finish), DONE);
    expect(await ask()).toEqual(answer);
  });

  test("gives up at its timeout", async () => {
    server.answer = () => undefined;
    expect(await ask({ modelTimeoutMs: 60 })).toEqual(failed("transient", "model_timeout"));
    server.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ content: "thinking" }));
    };
    expect(await ask({ modelTimeoutMs: 60 })).toEqual(failed("transient", "model_timeout"));
  });

  test("ends at a stop and keeps nothing, also of a failure", async () => {
    const stop = new AbortController();
    server.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ content: "thinking" }));
      setImmediate(() => stop.abort());
    };
    expect(await ask({}, stop.signal)).toEqual({ kind: "aborted" });
    expect(await ask({}, stop.signal)).toEqual({ kind: "aborted" });
  });
});

describe("callModel with a scripted model", () => {
  test("gives what the script says", async () => {
    const model = scriptedModel([{ text: "Looking", calls: [{ tool: "find_order", input: { order: "1" } }] }]);
    expect(await ask({ model })).toMatchObject({ kind: "reply", text: "Looking", calls: [{ input: { order: "1" } }] });
  });

  test("gives calls that share an id different ones, in the message as well", async () => {
    const calls = ["same", "same", "same_2"].map((id, index) => ({
      tool: "find_order",
      input: { order: `${index}` },
      id,
    }));
    const answer = await ask({ model: scriptedModel([{ calls }]) });
    const ids = answer.kind === "reply" ? answer.calls.map(({ toolCallId }) => toolCallId) : [];
    expect(ids).toEqual(["same", "same_2", "same_2_2"]);
    expect(answer).toMatchObject({ message: { content: ids.map((toolCallId) => ({ toolCallId })) } });
  });

  test("gives a call an id that no call of the conversation has", async () => {
    const call = { type: "tool-call" as const, toolCallId: "call_1", toolName: "find_order", input: {} };
    const { toolCallId, toolName } = call;
    const output = { type: "text" as const, value: "x" };
    const earlier: ModelMessage[] = [
      ...QUESTION,
      { role: "assistant", content: [call] },
      { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] },
    ];
    const model = scriptedModel([new Error("asked already"), { calls: [{ tool: "find_order", input: {} }] }]);
    expect(await ask({ model }, NEVER, earlier)).toMatchObject({ calls: [{ toolCallId: "call_1_2" }] });
  });

  test.each([
    ["no reason", { unified: "other", raw: undefined }],
    ["an error", { unified: "error", raw: "engine" }],
  ] as const)("takes a stream that ends with %s for cut off", async (_what, finishReason) => {
    const model = scriptedModel([{ text: "Refunded" }]);
    const cut = {
      ...model,
      doStream: async (options: Parameters<typeof model.doStream>[0]) => {
        const { stream: whole } = await model.doStream(options);
        const change = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
          transform: (part, controller) =>
            controller.enqueue(part.type === "finish" ? { ...part, finishReason } : part),
        });
        return { stream: whole.pipeThrough(change) };
      },
    };
    expect(await ask({ model: cut })).toEqual(failed("transient", "reply_cut_off"));
  });

  test("classes what the model throws", async () => {
    expect(await ask({ model: scriptedModel([new Error("boom")]) })).toEqual(failed("transient", "model_unreachable"));
  });
});
