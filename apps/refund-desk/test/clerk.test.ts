import type {
  JSONValue,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolResultOutput,
} from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createClerk } from "../src/clerk/clerk.ts";
import { completeRefund } from "../src/complete-refund.ts";
import { FindOrderInput, NotifyCustomerInput, QuoteRefundInput, SendRefundInput } from "../src/tool-inputs.ts";
import type { ToolResult } from "../src/tool-result.ts";

const INPUTS = {
  find_order: FindOrderInput,
  quote_refund: QuoteRefundInput,
  send_refund: SendRefundInput,
  notify_customer: NotifyCustomerInput,
};
type ToolName = keyof typeof INPUTS;
type Scripted = { readonly ok: true; readonly value: JSONValue } | { readonly ok: false; readonly code: string };
type Script = Partial<Record<ToolName, readonly Scripted[]>>;

const done = (value: JSONValue): Scripted => ({ ok: true, value });
const failed = (code: string): Scripted => ({ ok: false, code });

const FOUND = {
  found: true,
  order_id: "ord_4411",
  customer_name: "Mara Lindqvist",
  email: "mara@example.com",
  currency: "eur",
  total_minor: "18900",
  ordered_at: "2026-02-01T00:00:00.000Z",
  delivered_at: "2026-02-03T00:00:00.000Z",
  items: [],
};
const QUOTE = {
  refundable: true,
  order_id: "ord_4411",
  payment_intent: "pi_seed4411",
  amount_minor: "18900",
  order_total_minor: "18900",
  currency: "eur",
  needs_manager: true,
  why: "within the window",
};
const SENT = { order_id: "ord_4411", refund_id: "re_1", status: "succeeded", amount_minor: "18900", currency: "eur" };
const NOTIFIED = { order_id: "ord_4411", notified: true };
const ALL_WELL: Script = {
  find_order: [done(FOUND)],
  quote_refund: [done(QUOTE)],
  send_refund: [done(SENT)],
  notify_customer: [done(NOTIFIED)],
};
const ASK = "Hello, I want a refund for order 4411, the lamp is broken. I am Mara@Example.com.";

const tools: NonNullable<LanguageModelV4CallOptions["tools"]> = Object.entries(INPUTS).map(([name, schema]) => ({
  type: "function",
  name,
  // zod's JSON schema is one of draft 2020-12; the SDK's type is of draft 7.
  inputSchema: z.toJSONSchema(schema) as Extract<
    NonNullable<LanguageModelV4CallOptions["tools"]>[number],
    { type: "function" }
  >["inputSchema"],
}));

interface Talk {
  readonly prompt: LanguageModelV4Message[];
  readonly calls: { readonly id: string; readonly tool: string; readonly input: unknown }[];
  readonly results: ToolResult[];
  readonly say: (text: string) => Promise<string>;
}

/** A conversation that goes on until the clerk says something; tool results come from the script, in order. */
function startTalk(script: Script): Talk {
  const left = new Map(Object.entries(script).map(([tool, results]) => [tool, [...results]]));
  const prompt: LanguageModelV4Message[] = [{ role: "system", content: "Follow the refund policy." }];
  const calls: Talk["calls"] = [];
  const results: ToolResult[] = [];

  const answer = ({ toolCallId, toolName, input }: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>): void => {
    const parsed: unknown = JSON.parse(input);
    calls.push({ id: toolCallId, tool: toolName, input: parsed });
    const schema = Object.entries(INPUTS).find(([name]) => name === toolName)?.[1];
    const valid = schema?.safeParse(parsed).success ?? false;
    const next = valid ? left.get(toolName)?.shift() : failed("invalid");
    if (next === undefined) throw new Error(`the script has no more results of ${toolName}`);
    const kinds = ["invalid", "rejected"];
    results.push(
      next.ok
        ? { tool: toolName, result: "succeeded", output: next.value }
        : kinds.includes(next.code)
          ? { tool: toolName, result: next.code, output: "NOT EXECUTED." }
          : { tool: toolName, result: "failed", output: { code: next.code } },
    );
    const output: LanguageModelV4ToolResultOutput = next.ok
      ? { type: "json", value: next.value }
      : { type: "error-json", value: { code: next.code } };
    prompt.push(
      { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input: parsed }] },
      { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] },
    );
  };

  const say = async (text: string): Promise<string> => {
    prompt.push({ role: "user", content: [{ type: "text", text }] });
    for (let turn = 0; turn < 12; turn += 1) {
      const parts = await streamed({ prompt, tools });
      const call = parts.find((part) => part.type === "tool-call");
      if (call === undefined) {
        const reply = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
        prompt.push({ role: "assistant", content: [{ type: "text", text: reply }] });
        return reply;
      }
      answer(call);
    }
    throw new Error("the clerk called tools 12 times without a word");
  };
  return { prompt, calls, results, say };
}

/** The same conversation with another result of this tool. */
function withResultOf(
  tool: ToolName,
  prompt: readonly LanguageModelV4Message[],
  output: LanguageModelV4ToolResultOutput,
): LanguageModelV4Message[] {
  return prompt.map((message): LanguageModelV4Message => {
    if (message.role !== "tool") return message;
    const content = message.content.map((part) =>
      part.type === "tool-result" && part.toolName === tool ? { ...part, output } : part,
    );
    return { ...message, content };
  });
}

async function textOf(prompt: LanguageModelV4Message[]): Promise<string> {
  const parts = await streamed({ prompt, tools });
  return parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
}

async function streamed(options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await createClerk().doStream(options);
  return Array.fromAsync(stream);
}

describe("the clerk", () => {
  test("looks up, quotes, sends, notifies and closes, each once and in this order", async () => {
    const talk = startTalk(ALL_WELL);
    const reply = await talk.say(ASK);
    expect(talk.calls.map(({ tool, input }) => [tool, input])).toEqual([
      ["find_order", { order_id: "ord_4411", email: "mara@example.com" }],
      ["quote_refund", { order_id: "ord_4411", reason: ASK }],
      [
        "send_refund",
        {
          order_id: "ord_4411",
          payment_intent: "pi_seed4411",
          amount_minor: "18900",
          order_total_minor: "18900",
          currency: "eur",
          reason: "requested_by_customer",
        },
      ],
      ["notify_customer", expect.objectContaining({ template: "refund_sent", email: "mara@example.com" })],
    ]);
    expect(reply).toContain("EUR 189.00");
    expect(completeRefund(reply, talk.results)).toEqual({ kind: "succeeded" });
  });

  test("asks for the order, then for the address, and takes a bare number as the answer", async () => {
    const talk = startTalk(ALL_WELL);
    expect(await talk.say("I'd like my money back")).toMatch(/order number.*e-mail/);
    expect(completeRefund("a question", talk.results)).toBeNull();
    expect(await talk.say("4411")).toMatch(/e-mail address/);
    expect(talk.calls).toEqual([]);
    await talk.say("mara@example.com");
    expect(talk.calls).toHaveLength(4);
  });

  test("asks again when there is no such order and takes the corrected number", async () => {
    const none = { found: false, order_id: "ord_4412", reason: "no_such_order", why: "none" };
    const talk = startTalk({ ...ALL_WELL, find_order: [done(none), done(FOUND)] });
    const question = await talk.say("refund order 4412, mara@example.com");
    expect(completeRefund(question, talk.results)).toBeNull();
    await talk.say("sorry, ord_4411");
    expect(talk.calls.filter(({ tool }) => tool === "find_order")).toHaveLength(2);
    expect(talk.calls).toHaveLength(5);
  });

  test("asks for a correction when the number cannot be one", async () => {
    const talk = startTalk(ALL_WELL);
    const question = await talk.say("refund order 12 please, mara@example.com");
    expect(question).toContain("ord_12");
    expect(completeRefund(question, talk.results)).toBeNull();
    const reply = await talk.say("order 4411");
    expect(completeRefund(reply, talk.results)).toEqual({ kind: "succeeded" });
  });

  test("tries the plain reason once when its words were not accepted, then hands over", async () => {
    const invalid = failed("invalid");
    const corrected = startTalk({ ...ALL_WELL, quote_refund: [invalid, done(QUOTE)] });
    await corrected.say(ASK);
    expect(corrected.calls.filter(({ tool }) => tool === "quote_refund").map(({ input }) => input)).toEqual([
      { order_id: "ord_4411", reason: ASK },
      { order_id: "ord_4411", reason: "requested by the customer" },
    ]);
    const hopeless = startTalk({ ...ALL_WELL, quote_refund: [invalid, invalid] });
    expect(await hopeless.say(ASK)).toContain("colleague");
    expect(hopeless.calls).toHaveLength(3);
  });

  test.each(["too_late", "already_refunded", "not_delivered"])("explains %s and sends nothing", async (reason) => {
    const quote = { refundable: false, order_id: "ord_4411", reason, why: "The reason in words." };
    const talk = startTalk({ ...ALL_WELL, quote_refund: [done(quote)] });
    const reply = await talk.say(ASK);
    expect(reply).toContain("The reason in words.");
    expect(talk.calls.map(({ tool }) => tool)).toEqual(["find_order", "quote_refund"]);
    expect(completeRefund(reply, talk.results)).toEqual({
      kind: "blocked",
      step: "quote_refund",
      reason,
    });
  });

  test("does not refund the order of another customer", async () => {
    const talk = startTalk({
      find_order: [done({ found: false, order_id: "ord_4411", reason: "not_yours", why: "no" })],
    });
    const reply = await talk.say(ASK);
    expect(completeRefund(reply, talk.results)).toMatchObject({ kind: "blocked", reason: "not_yours" });
  });

  test("tells the customer that it was not approved, and never asks again", async () => {
    const talk = startTalk({ ...ALL_WELL, send_refund: [failed("rejected")] });
    const reply = await talk.say(ASK);
    expect(reply).toMatch(/was not approved/);
    expect(completeRefund(reply, talk.results)).toMatchObject({
      kind: "blocked",
      step: "send_refund",
      reason: "rejected",
    });
    expect(await talk.say("Please try again!")).toBe(reply);
    expect(talk.calls.filter(({ tool }) => tool === "send_refund")).toHaveLength(1);
  });

  test("speaks of the amount that was paid when a reviewer has changed the arguments", async () => {
    const note = `[A reviewer changed the arguments of this call. It ran with {"amount_minor":"16900"}]`;
    const talk = startTalk({
      ...ALL_WELL,
      send_refund: [done({ note, output: { ...SENT, amount_minor: "16900" } })],
    });
    const reply = await talk.say(ASK);
    expect(reply).toMatch(/refund of EUR 169\.00 .* paid out .* in place of EUR 189\.00/);
    expect(talk.calls.at(-1)?.input).toMatchObject({
      template: "refund_sent",
      text: expect.stringMatching(/refunded EUR 169\.00 .* in place of EUR 189\.00/),
    });
  });

  test("understands why a call with changed arguments failed", async () => {
    const note = "[A reviewer changed the arguments of this call. It ran with {}]";
    const talk = startTalk({ ...ALL_WELL, send_refund: [failed("rejected")] });
    await talk.say(ASK);
    const output = { note, output: { result: "failed", code: "refund_failed", message: "No." } };
    const told = withResultOf("send_refund", talk.prompt, { type: "error-json", value: output });
    expect(await textOf(told)).toMatch(/could not be paid out .* colleague/);
  });

  test("says that the money is paid out although the message failed", async () => {
    const talk = startTalk({ ...ALL_WELL, notify_customer: [failed("mail_down")] });
    const reply = await talk.say(ASK);
    expect(reply).toMatch(/has been paid out.*could not send/);
    expect(completeRefund(reply, talk.results)).toMatchObject({ kind: "partial", reason: "customer_not_notified" });
  });

  test("does not call a pending refund paid", async () => {
    const talk = startTalk({ ...ALL_WELL, send_refund: [done({ ...SENT, status: "pending" })] });
    const reply = await talk.say(ASK);
    expect(reply).toMatch(/accepted and is on its way/);
    expect(talk.calls.at(-1)?.input).toMatchObject({ template: "refund_pending" });
    expect(completeRefund(reply, talk.results)).toMatchObject({ kind: "partial", reason: "refund_pending" });
  });

  test("gives every call of a conversation its own id, the same each time", async () => {
    const [one, two] = [startTalk(ALL_WELL), startTalk(ALL_WELL)];
    await one.say(ASK);
    await two.say(ASK);
    const ids = one.calls.map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(two.calls.map(({ id }) => id)).toEqual(ids);
  });

  test("knows a past call although its arguments come back with their keys in another order", async () => {
    const talk = startTalk({ ...ALL_WELL, quote_refund: [failed("invalid"), done(QUOTE)] });
    await talk.say(ASK);
    const turned = talk.prompt.map((message): LanguageModelV4Message => {
      if (message.role !== "assistant") return message;
      const content = message.content.map((part) =>
        part.type === "tool-call"
          ? { ...part, input: Object.fromEntries(Object.entries(z.looseObject({}).parse(part.input)).reverse()) }
          : part,
      );
      return { ...message, content };
    });
    const parts = await streamed({ prompt: turned, tools });
    expect(parts.filter((part) => part.type === "tool-call")).toEqual([]);
  });

  test("streams the same that it generates, with usage", async () => {
    const prompt: LanguageModelV4Message[] = [{ role: "user", content: [{ type: "text", text: ASK }] }];
    const parts = await streamed({ prompt, tools });
    const generated = await createClerk().doGenerate({ prompt, tools });
    expect(parts.map(({ type }) => type)).toEqual([
      "stream-start",
      "response-metadata",
      "tool-input-start",
      "tool-input-delta",
      "tool-input-end",
      "tool-call",
      "finish",
    ]);
    expect(parts).toContainEqual(generated.content[0]);
    expect(parts.at(-1)).toEqual({
      type: "finish",
      usage: generated.usage,
      finishReason: { unified: "tool-calls", raw: "call" },
    });
    expect(generated.usage.inputTokens.total).toBeGreaterThan(0);
  });

  test("ends a stream with the reason of its abort, and starts none after it", async () => {
    const stop = new AbortController();
    const prompt: LanguageModelV4Message[] = [{ role: "user", content: [{ type: "text", text: "hello" }] }];
    const { stream } = await createClerk().doStream({ prompt, tools, abortSignal: stop.signal });
    const reader = stream.getReader();
    expect(await reader.read()).toMatchObject({ value: { type: "stream-start" } });
    stop.abort(new Error("stopped"));
    await expect(reader.read()).rejects.toThrow("stopped");
    const late = createClerk().doStream({ prompt, tools, abortSignal: stop.signal });
    await expect(late).rejects.toThrow("stopped");
  });

  test("says so when it lacks a tool", async () => {
    const prompt: LanguageModelV4Message[] = [{ role: "user", content: [{ type: "text", text: ASK }] }];
    const parts = await streamed({ prompt, tools: [] });
    expect(parts.map(({ type }) => type)).not.toContain("tool-call");
  });
});

describe("the clerk's reading of errors", () => {
  test.each([
    ["NOT EXECUTED. The approval request was rejected (no reason was given).", /was not approved\. It was not paid/],
    ["NOT EXECUTED. Nobody decided on the approval request before its deadline.", /not approved in time/],
    ["NOT EXECUTED. An equal call was made before and nobody knows its outcome.", /cannot tell yet/],
    ["The payment service is down.", /could not refund .* colleague/],
  ])("understands %s", async (sentence, expected) => {
    const talk = startTalk({ ...ALL_WELL, send_refund: [failed("rejected")] });
    await talk.say(ASK);
    const told = withResultOf("send_refund", talk.prompt, { type: "error-text", value: sentence });
    expect(await textOf(told)).toMatch(expected);
  });
});

describe("completeRefund", () => {
  const result = (tool: string, output: unknown, kind = "succeeded"): ToolResult => ({ tool, result: kind, output });
  const refused = { refundable: false, order_id: "ord_4411", reason: "too_late", why: "late" };

  test("lets money that moved decide, whatever was looked up after it", () => {
    const results = [result("send_refund", SENT, "answered_from_record"), result("quote_refund", refused)];
    expect(completeRefund("done", results)).toEqual({ kind: "partial", reason: "customer_not_notified" });
    expect(completeRefund("", [...results, result("notify_customer", NOTIFIED)])).toEqual({ kind: "succeeded" });
  });

  test("takes a person's answer for the tool's own where it says what was paid, and else for a part of the work", () => {
    const told = (output: unknown) => completeRefund("done", [result("send_refund", output, "answered")]);
    expect(told(SENT)).toEqual({ kind: "partial", reason: "customer_not_notified" });
    expect(told("paid by hand")).toEqual({ kind: "partial", reason: "refund_unreadable" });
    const all = [result("send_refund", SENT, "answered"), result("notify_customer", NOTIFIED)];
    expect(completeRefund("done", all)).toEqual({ kind: "succeeded" });
  });

  test("is not finished by a quote alone, nor by silence after a refusal", () => {
    expect(completeRefund("Shall I?", [result("quote_refund", QUOTE)])).toBeNull();
    expect(completeRefund("  ", [result("quote_refund", refused)])).toBeNull();
  });

  test.each(["denied", "rejected", "expired", "skipped", "not_established"])(
    "is blocked by a call that was %s",
    (kind) => {
      const blocked = completeRefund("I could not.", [result("send_refund", "NOT EXECUTED.", kind)]);
      expect(blocked).toEqual({ kind: "blocked", step: "send_refund", reason: kind });
    },
  );
});
