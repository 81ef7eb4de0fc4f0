import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Call, JsonObject, JsonValue, ResultKind, Step, StepBody } from "@holdpoint/core";
import { scriptedModel } from "@holdpoint/testkit";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callModel } from "../src/call-model.ts";
import { checkConversation } from "../src/check-conversation.ts";
import { type Model, resolveModel } from "../src/index.ts";
import { storeOutput } from "../src/output.ts";
import { buildPrompt } from "../src/prompt.ts";
import { chunk, DONE, type ModelServer, openModelServer, stream } from "./model-server.ts";
import { aCall, anAgent, steps } from "./parts.ts";
import { strictly } from "./strict-provider.ts";

let server: ModelServer;

beforeAll(async () => {
  server = await openModelServer();
  server.answer = strictly(stream(chunk({ content: "fine" }), chunk({}, "stop"), DONE));
});
afterAll(() => server[Symbol.asyncDispose]());

const NEVER = new AbortController().signal;
const MESSAGES = [{ seq: 1, role: "user", text: "Refund 4411" }] as const;

interface Wanted {
  readonly text: string;
  /** What the model writes as arguments, under which id, and how the call ends. */
  readonly calls: readonly {
    readonly id: string;
    readonly tool: string;
    readonly input: string;
    readonly result: ResultKind;
    readonly output: unknown;
  }[];
  /** What comes after the turn. */
  readonly after: readonly StepBody[];
}

/** What a reload makes of a step. */
function reloaded<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** Lets a run grow turn by turn, each reply read from a model as it would be, and each result stored as it would be. */
async function grow(turns: readonly Wanted[], each: (run: Run) => Promise<void>): Promise<void> {
  let run: Run = { messages: MESSAGES, steps: [], calls: [] };
  for (const [index, wanted] of turns.entries()) {
    const calls = wanted.calls.map(({ id, tool, input }) => ({ id, tool, input }));
    const text = wanted.text.trim() === "" && calls.length === 0 ? "nothing" : wanted.text;
    const prompt = buildPrompt(run);
    const said = prompt.filter(({ role }) => role === "assistant").length;
    const model = scriptedModel([...Array.from({ length: said }, () => new Error("past")), { text, calls }]);
    const answer = await callModel(anAgent({ model }), prompt, NEVER);
    if (answer.kind !== "reply") throw new Error(JSON.stringify(answer));
    run = grown(run, { turn: index + 1, wanted, answer });
    await each(run);
  }
}

interface Run {
  readonly messages: typeof MESSAGES;
  readonly steps: readonly Step[];
  readonly calls: readonly Call[];
}

function grown(
  run: Run,
  {
    turn,
    wanted,
    answer,
  }: { turn: number; wanted: Wanted; answer: Extract<Awaited<ReturnType<typeof callModel>>, { kind: "reply" }> },
): Run {
  const calls = answer.calls.map(({ toolCallId, tool }, ordinal) =>
    aCall({ id: `${turn}-${ordinal}`, turn, ordinal, toolCallId, tool }),
  );
  const { message, text, usage } = answer;
  const bodies: StepBody[] = [
    { kind: "model_reply", turn, message, text, callIds: calls.map(({ id }) => id), outcome: null, usage },
    ...wanted.calls.flatMap(({ result, output }, ordinal): StepBody[] => [
      { kind: "intent", callId: `${turn}-${ordinal}`, attempt: 1 },
      { kind: "tool_result", callId: `${turn}-${ordinal}`, result, output: storeOutput(output).output },
    ]),
    ...wanted.after,
  ];
  return {
    ...run,
    steps: reloaded(steps(...run.steps.map(({ body }) => body), ...bodies)),
    calls: [...run.calls, ...calls],
  };
}

const hostileText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("", "caf\u0000e", "half \ud83d", "\udc00", "{}", '{"$date":"x"}'),
);
const aWantedCall = fc.record({
  id: fc.constantFrom("call_1", "call_1", "call_2", "call_1_2", "\u0000", "\ud800"),
  tool: fc.constantFrom("find_order", "find order", "no_such", "Ünïcode"),
  input: fc.constantFrom(
    '{"order":"1"}',
    '{"order":"1',
    "null",
    "[1]",
    "",
    '{"n":9007199254740993}',
    '{"a":1,"a":2}',
    '{"a":"\\ud800\\u0000"}',
  ),
  result: fc.constantFrom<ResultKind[]>(
    "succeeded",
    "failed",
    "invalid",
    "denied",
    "rejected",
    "expired",
    "skipped",
    "answered",
    "not_established",
    "answered_from_record",
  ),
  output: fc.oneof(hostileText, hostileText, fc.anything({ withBigInt: true, withDate: true, withMap: true })),
});
const after = fc.array(
  fc.oneof(
    hostileText.map((text): StepBody => ({ kind: "message", from: "alice", text })),
    fc.constantFrom<StepBody[]>(
      { kind: "no_answer" },
      { kind: "operator", choice: "retry", callId: null },
      { kind: "model_failed", errorClass: "transient", code: "http_500", retryInMs: 1 },
    ),
  ),
  { maxLength: 2 },
);
const aTurn = fc.record({ text: hostileText, calls: fc.array(aWantedCall, { maxLength: 4 }), after });

describe("the conversation of a run", () => {
  test("is one that the strictest provider takes, whatever models, tools and people have said", {
    timeout: 120_000,
  }, async () => {
    const env = { HOLDPOINT_MODEL_BASE_URL: server.baseUrl, HOLDPOINT_MODEL_API_KEY: "k" };
    const agent = anAgent({ model: resolveModel("compatible/m", env) });
    const runs = Math.min(60, fc.readConfigureGlobal()?.numRuns ?? 60);
    await fc.assert(
      fc.asyncProperty(fc.array(aTurn, { minLength: 1, maxLength: 4 }), async (turns) => {
        let before = JSON.stringify(buildPrompt({ messages: MESSAGES, steps: [], calls: [] }));
        await grow(turns, async (run) => {
          const prompt = buildPrompt(run);
          checkConversation(prompt);
          // What was said once is said again: only something new comes behind it.
          expect(JSON.stringify(prompt).startsWith(before.slice(0, -1))).toBe(true);
          before = JSON.stringify(prompt);
          expect(await callModel(agent, prompt, NEVER)).toMatchObject({ kind: "reply", text: "fine" });
        });
      }),
      { numRuns: runs },
    );
  });

  test("is not accepted with a fault in it: the provider of this test sees what others would", async () => {
    const body = (messages: object[]) =>
      fetch(`${server.baseUrl}/chat/completions`, { method: "POST", body: JSON.stringify({ messages }) });
    const called = (args = "{}") => ({
      role: "assistant",
      tool_calls: [{ id: "a", function: { name: "f", arguments: args } }],
    });
    const result = { role: "tool", tool_call_id: "a", content: "x" };
    const user = { role: "user", content: "x" };
    expect((await body([user, called(), result])).status).toBe(200);
    for (const faulty of [
      [user, called()],
      [user, result],
      [called(), user, result],
      [called(), result, result],
      [called("null"), result],
      [called(), result, called(), result],
    ]) {
      expect((await body(faulty)).status).toBe(400);
    }
  });
});

const SIGNATURE = "Er\u00e9ACkYIBxgCKkA+/=".repeat(40);
const SIGNED: Record<string, JsonObject> = {
  anthropic: { signature: SIGNATURE, redactedData: "b64==" },
  google: { thoughtSignature: "sig-2", nested: { z: 1, a: [null, true, 0.1, "\u2028"] } },
};

/** A model that reasons, speaks and calls, each with signed metadata, and records what it is shown. */
function signingModel(asked: LanguageModelV4CallOptions[]): Model {
  const base = scriptedModel([]);
  const finish = { unified: "tool-calls", raw: "tool_use" } as const;
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const parts: readonly LanguageModelV4StreamPart[] = [
    { type: "stream-start", warnings: [] },
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "I think." },
    { type: "reasoning-end", id: "r", providerMetadata: SIGNED },
    { type: "text-start", id: "t", providerMetadata: SIGNED },
    { type: "text-delta", id: "t", delta: "Looking." },
    { type: "text-end", id: "t", providerMetadata: SIGNED },
    { type: "tool-call", toolCallId: "c1", toolName: "find_order", input: '{"order":"1"}', providerMetadata: SIGNED },
    { type: "tool-call", toolCallId: "c1", toolName: "find_order", input: '{"order":', providerMetadata: SIGNED },
    { type: "finish", finishReason: finish, usage },
  ];
  return {
    ...base,
    doStream: async (options: LanguageModelV4CallOptions) => {
      asked.push(options);
      return { stream: ReadableStream.from(parts) as ReadableStream<LanguageModelV4StreamPart> };
    },
  };
}

test("a provider gets its metadata back byte for byte, in each part where it was", async () => {
  const asked: LanguageModelV4CallOptions[] = [];
  const agent = anAgent({ model: signingModel(asked) });
  const first = await callModel(agent, buildPrompt({ messages: MESSAGES, steps: [], calls: [] }), NEVER);
  if (first.kind !== "reply") throw new Error(JSON.stringify(first));
  const wanted = {
    text: "",
    calls: [1, 2].map(() => ({ id: "", tool: "", input: "", result: "succeeded" as const, output: "x" })),
    after: [],
  };
  const run = grown({ messages: MESSAGES, steps: [], calls: [] }, { turn: 1, wanted, answer: first });
  await callModel(agent, buildPrompt(run), NEVER);
  const reply = asked[1]?.prompt.find(({ role }) => role === "assistant");
  const parts = reply?.role === "assistant" ? reply.content : [];
  expect(parts.map(({ type }) => type)).toEqual(["reasoning", "text", "tool-call", "tool-call"]);
  for (const { providerOptions } of parts) {
    const { holdpoint: _own, ...theirs } = providerOptions ?? {};
    expect(JSON.stringify(theirs)).toBe(JSON.stringify(SIGNED));
  }
  const kept = parts.at(-1)?.providerOptions?.holdpoint as JsonValue;
  expect(kept).toEqual({ refusedArguments: '{"order":' });
});
