import { type Agent, ToolError } from "@holdpoint/runtime";
import { jsonSchema, type ModelMessage, streamText, type ToolResultPart, type ToolSet, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { formatMoney } from "../src/money.ts";
import type { SeedOrder } from "../src/orders/seed-data.ts";
import { SendRefundInput } from "../src/tool-inputs.ts";
import { SendRefundOutput } from "../src/tool-outputs.ts";
import { approvalOf, contextOf, openTestDesk, stored, type TestDesk, toolOf } from "./desk-harness.ts";

let desk: TestDesk;
beforeAll(async () => {
  desk = await openTestDesk();
});
afterAll(() => desk[Symbol.asyncDispose]().then());

type Results = Parameters<Agent["complete"]>[1];
type Result = Results[number];

interface Story {
  readonly texts: readonly string[];
  /** What those who are asked say to a request, or the amount that they make of it; without it, asking fails the test. */
  readonly people?: "approve" | "reject" | "silence" | { readonly amountMinor: string };
  /** How the provider ends a refund that it has accepted as pending. */
  readonly settles?: "succeeded" | "failed";
}

/** Plays a conversation to its outcome, with the real tools; the model is asked through the SDK, as a worker asks it. */
async function play({ texts, ...rest }: Story) {
  const messages: ModelMessage[] = [];
  const results: Result[] = [];
  const said: string[] = [];
  for (const text of texts) {
    messages.push({ role: "user", content: text });
    for (let turn = 1; ; turn += 1) {
      if (turn > 10) throw new Error("ten turns without a word");
      const { reply, calls } = await ask(messages);
      for (const { toolCallId, toolName, input } of calls) {
        const result = await act(toolName, input, { operationId: `op_${crypto.randomUUID()}`, ...rest });
        results.push(result);
        messages.push({ role: "tool", content: [showResult(toolCallId, result)] });
      }
      if (calls.length > 0) continue;
      said.push(reply);
      break;
    }
    const outcome = desk.agent.complete(said.at(-1) ?? "", results);
    if (outcome !== null) return { outcome, said, called: results.map((result) => `${result.tool} ${result.result}`) };
  }
  return { outcome: null, said, called: results.map((result) => `${result.tool} ${result.result}`) };
}

async function ask(messages: ModelMessage[]) {
  const { model, instructions, tools } = desk.agent;
  const described = [...tools.values()].map(({ name, description, input }): [string, ToolSet[string]] => {
    // zod's JSON schema and the SDK's differ in name only.
    const schema = z.toJSONSchema(input, { io: "input" }) as Parameters<typeof jsonSchema>[0];
    return [name, tool({ description, inputSchema: jsonSchema(schema) })];
  });
  const result = streamText({ model, instructions, messages, tools: Object.fromEntries(described), maxRetries: 0 });
  const [calls, reply, response] = await Promise.all([result.toolCalls, result.text, result.response]);
  messages.push(...response.messages);
  return { reply, calls };
}

async function act(
  name: string,
  input: unknown,
  { operationId, people, settles }: { readonly operationId: string } & Omit<Story, "texts">,
): Promise<Result> {
  const called = toolOf(desk.agent, name);
  const parsed = called.input.safeParse(input);
  if (!parsed.success) return { tool: name, result: "invalid", output: z.prettifyError(parsed.error) };
  const frozen = stored(parsed.data);
  const approval = approvalOf(called, frozen);
  if (approval !== null && people === undefined) throw new Error(`${name} asked for an approval`);
  if (approval !== null && people === "reject") return { tool: name, result: "rejected", output: "NOT EXECUTED." };
  if (approval !== null && people === "silence") return { tool: name, result: "expired", output: "NOT EXECUTED." };
  const args =
    approval !== null && typeof people === "object"
      ? SendRefundInput.parse({ ...frozen, amount_minor: people.amountMinor })
      : frozen;
  try {
    const output = await called.execute(args, contextOf(operationId));
    if (!called.isPending(output) || settles === undefined) return { tool: name, result: "succeeded", output };
    await desk.sandbox.post("/sandbox/settle", { refund: SendRefundOutput.parse(output).refund_id, status: settles });
    const settled = await called.settle(args, { ...contextOf(operationId), output: stored(output) });
    if (settled.answer === "settled") return { tool: name, result: "succeeded", output: settled.output };
    return { tool: name, result: "failed", output: { result: "failed", ...settled } };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { tool: name, result: "failed", output: { result: "failed", code: error.code, message: error.message } };
  }
}

/** As the runtime shows results to a model. */
function showResult(toolCallId: string, { tool: toolName, result, output }: Result): ToolResultPart {
  const value = typeof output === "string" ? { result, message: output } : output;
  const type = result === "succeeded" ? "json" : "error-json";
  // The SDK's JSON is mutable by type only.
  return { type: "tool-result", toolCallId, toolName, output: { type, value } as ToolResultPart["output"] };
}

const request = ({ id, customer }: SeedOrder) =>
  `Hello, please refund order ${id}, it arrived broken. I ordered with ${customer.email}.`;
const ledgerOf = ({ paymentIntent }: SeedOrder) => desk.sandbox.get(`/sandbox/ledger?payment_intent=${paymentIntent}`);

describe("the clerk at work", () => {
  test("refunds a small order without anybody and tells the customer", async () => {
    const order = desk.take("below_limit");
    const { outcome, called } = await play({ texts: [request(order)] });
    expect(outcome).toEqual({ kind: "succeeded" });
    expect(called).toEqual(
      ["find_order", "quote_refund", "send_refund", "notify_customer"].map((name) => `${name} succeeded`),
    );
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: order.totalMinor }] });
    const { rows } = await desk.pool.query(
      "select email, template from refund_desk.notifications where order_id = $1",
      [order.id],
    );
    expect(rows).toEqual([{ email: order.customer.email, template: "refund_sent" }]);
  });

  test("refunds a large order once it was approved", async () => {
    const order = desk.take("above_limit");
    const { outcome, said } = await play({ texts: [request(order)], people: "approve" });
    expect(outcome).toEqual({ kind: "succeeded" });
    expect(said.at(-1)).toContain("has been paid out");
    expect(said.at(-1)).not.toContain("in place of");
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: order.totalMinor }] });
  });

  test("tells the customer the amount that was paid when an approver has changed it", async () => {
    const order = desk.take("above_limit");
    const { outcome, said } = await play({ texts: [request(order)], people: { amountMinor: "9950" } });
    expect(outcome).toEqual({ kind: "succeeded" });
    const currency = order.currency.toUpperCase();
    const asked = formatMoney(String(order.totalMinor), order.currency);
    expect(said.at(-1)).toMatch(new RegExp(`Your refund of ${currency} 99\\.50 .* paid out .* in place of ${asked}`));
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: 9_950 }] });
    const { rows } = await desk.pool.query("select body from refund_desk.notifications where order_id = $1", [
      order.id,
    ]);
    expect(rows).toEqual([{ body: expect.stringContaining(`refunded ${currency} 99.50`) }]);
  });

  test.each([
    ["reject", "rejected", /was not approved\. It was not paid out/],
    ["silence", "expired", /was not approved in time/],
  ] as const)("pays nothing when those who are asked answer with %s, and says so", async (people, reason, words) => {
    const order = desk.take("above_limit");
    const { outcome, said } = await play({ texts: [request(order)], people });
    expect(outcome).toEqual({ kind: "blocked", step: "send_refund", reason });
    expect(said.at(-1)).toMatch(words);
    expect(await ledgerOf(order)).toMatchObject({ rows: [] });
  });

  test("asks for what is missing, takes a corrected number, and refunds the rest of an order", async () => {
    const order = desk.take("partly_refunded");
    const texts = ["I want my money back", "order 99999", order.customer.email, order.id.replace("ord_", "")];
    const { outcome, said } = await play({ texts });
    expect(said).toEqual([
      expect.stringMatching(/order number.*e-mail/),
      expect.stringMatching(/e-mail address/),
      expect.stringMatching(/cannot find an order ord_99999/),
      expect.stringContaining("has been paid out"),
    ]);
    expect(outcome).toEqual({ kind: "succeeded" });
    expect(await ledgerOf(order)).toMatchObject({ rows: [{ amount: order.totalMinor - order.refundedMinor }] });
  });

  test.each([
    ["too_late", "too_late"],
    ["fully_refunded", "already_refunded"],
    ["not_delivered", "not_delivered"],
  ] as const)("explains why an order that is %s is not refunded", async (kind, reason) => {
    const { outcome, called } = await play({ texts: [request(desk.take(kind))] });
    expect(outcome).toEqual({ kind: "blocked", step: "quote_refund", reason });
    expect(called).toHaveLength(2);
  });

  test("does not refund another customer's order", async () => {
    const { id } = desk.take("below_limit");
    const { outcome } = await play({ texts: [`Refund ${id} please, I am somebody.else@example.com`] });
    expect(outcome).toEqual({ kind: "blocked", step: "find_order", reason: "not_yours" });
  });

  test("says that a pending refund is paid out once it is, and not before", async () => {
    const order = desk.take("below_limit");
    await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
    const { outcome, said } = await play({ texts: [request(order)], settles: "succeeded" });
    expect(outcome).toEqual({ kind: "succeeded" });
    expect(said).toEqual([expect.stringContaining("has been paid out")]);
  });

  test("does not tell the customer that a pending refund was paid which failed in the end", async () => {
    const order = desk.take("below_limit");
    await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
    const { outcome, said, called } = await play({ texts: [request(order)], settles: "failed" });
    expect(outcome).toEqual({ kind: "blocked", step: "send_refund", reason: "refund_failed" });
    expect(said).toEqual([expect.stringMatching(/could not be paid out .* colleague/)]);
    expect(called).not.toContainEqual(expect.stringContaining("notify_customer"));
    expect(await ledgerOf(order)).toMatchObject({ rows: [] });
  });

  test("calls a pending refund pending where somebody has told it so, to the customer as well", async () => {
    const order = desk.take("below_limit");
    await desk.sandbox.post("/sandbox/pending", { payment_intent: order.paymentIntent });
    const { outcome, said } = await play({ texts: [request(order)] });
    expect(outcome).toEqual({ kind: "partial", reason: "refund_pending" });
    expect(said.at(-1)).toContain("on its way");
  });

  test("says that it could not refund what the provider refuses", async () => {
    const order = desk.take("below_limit");
    const elsewhere = { paymentIntent: order.paymentIntent, amountMinor: "1", reason: "duplicate" } as const;
    await desk.sandbox.payments.sendRefund({ ...elsewhere, operationId: "op_elsewhere" }, contextOf("op_elsewhere"));
    const { outcome, said } = await play({ texts: [request(order)] });
    expect(outcome).toEqual({ kind: "blocked", step: "send_refund", reason: "amount_too_large" });
    expect(said.at(-1)).toMatch(/could not refund .* colleague/);
  });
});

describe("createRefundAgent", () => {
  test("gives real models the policy's own figures, and ends a run that is blocked", () => {
    expect(desk.agent).toMatchObject({ name: "refund-desk", version: "1", onBlocked: "end" });
    expect(desk.agent.instructions).toMatch(/30 days.*EUR 100\.00.*manager.*EUR 400\.00.*two people of finance/s);
    for (const name of desk.agent.tools.keys()) expect(desk.agent.instructions).toContain(name);
  });
});
