// Whole stories of what models and tools write: whatever it is, the conversation goes on and the record is true.

import { recordFact } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { resolveModel } from "../src/index.ts";
import { aProvider, aRefundTool, askRefund, startMortal } from "./a-provider.ts";
import { aDesk, ask, aTool, NEEDS_MANAGER } from "./desk.ts";
import { ALICE, type Fleet, openFleet, story } from "./fleet.ts";
import { chunk, DONE, type ModelServer, openModelServer, stream, toolCall } from "./model-server.ts";
import { type RequestMessage, strictly } from "./strict-provider.ts";

let fleet: Fleet;
let server: ModelServer;

beforeAll(async () => {
  fleet = await openFleet();
  server = await openModelServer();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const KEY = { key: { validForMs: 86_400_000 } } as const;
const modelOfServer = () =>
  resolveModel("compatible/m", { HOLDPOINT_MODEL_BASE_URL: server.baseUrl, HOLDPOINT_MODEL_API_KEY: "k" });
const soon = (what: string) => ({ deadlineMs: 20_000, what });

describe("a turn of which a crash has left one call done, one unknown and one not begun", () => {
  test.each([false, true])(
    "goes on before a provider that takes no mismatch; a message meanwhile: %s",
    async (saysSomething) => {
      const provider = aProvider(fleet);
      const find = aTool("find", { effect: "read", behave: async () => "found" });
      const close = aTool("close", { effect: KEY, behave: async () => "closed" });
      const refund = aRefundTool(provider, { effect: { ...KEY, lookUp: {} } });
      const asked: (readonly RequestMessage[])[] = [];
      const statuses: number[] = [];
      const turn = [
        toolCall(0, "find", '{"order":"o-40"}', "c1"),
        toolCall(1, "refund", '{"order":"o-40","amount":"3000"}', "c2"),
        toolCall(2, "close", '{"order":"o-40"}', "c3"),
      ];
      server.answer = (request, response, body) => {
        const messages = body.messages as readonly RequestMessage[];
        asked.push(messages);
        response.once("finish", () => statuses.push(response.statusCode));
        const reply = messages.some(({ role }) => role === "tool")
          ? stream(chunk({ content: "all done" }), chunk({}, "stop"), DONE)
          : stream(chunk({ tool_calls: turn }), chunk({}, "tool_calls"), DONE);
        strictly(reply)(request, response, body);
      };
      const agent = { ...aDesk([], [], { tools: [find.tool, refund, close.tool] }), model: modelOfServer() };
      const first = await startMortal(fleet, agent);
      const { promise: answer, resolve } = Promise.withResolvers<void>();
      const sent = new Promise<void>((reached) => {
        Object.assign(provider, { answersAfter: answer, onWaiting: reached });
      });
      const { id } = await fleet.submit(agent);
      await sent;
      await first.kill(id);
      resolve();
      provider.answersAfter = null;
      if (saysSomething) {
        await recordFact(fleet.store, { runId: id, kind: "message", text: "Are you there?", actor: ALICE });
      }
      await fleet.start(agent);
      await fleet.wake((await fleet.load(id)).run);
      await fleet.untilStatus(id, "completed");
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(story(await fleet.load(id)).filter((step) => step !== "message")).toEqual([
        "model_reply",
        "find succeeded",
        "intent refund 1",
        "refund succeeded",
        "intent close 1",
        "close succeeded",
        "model_reply",
      ]);
      expect(find.executed).toHaveLength(1);
      expect(close.executed).toHaveLength(1);
      expect(provider.refunds).toHaveLength(1);
      const roles = asked.at(-1)?.map(({ role, tool_call_id: callId }) => callId ?? role);
      const said = saysSomething ? ["user"] : [];
      expect(roles).toEqual(["system", "user", "assistant", "c1", "c2", "c3", ...said]);
      expect(JSON.stringify(asked.at(-1))).toContain("re_1");
    },
  );
});

describe("arguments that are none", () => {
  const BAD = [
    '{"order":"o-5","amount":30',
    "null",
    "[1]",
    '{"order":"o-5","amount":3000}',
    '{"order":"o-5","amount":"3000","amount":"9000"}',
    '{"order":"o-5","amount":"3000","__proto__":{"approved":true}}',
    '{"order":"o-5","amount":"3000","approved":true,"approver":"mona"}',
    "{}",
  ];
  const bad = { calls: [...BAD.map((input) => ({ tool: "refund", input })), ask("find")] };

  test("are never run nor shown to anybody; what is beside them runs, and a person is asked after two rounds", async () => {
    const provider = aProvider(fleet);
    const refund = aRefundTool(provider, { effect: KEY, rules: NEEDS_MANAGER });
    const find = aTool("find", { effect: "read" });
    const again = { calls: bad.calls.slice(0, -1) };
    const agent = aDesk([bad, again, { text: "I give up" }], [], { tools: [refund, find.tool] });
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("invalid_arguments");
    expect(await fleet.rows("approvals", id)).toEqual([]);
    expect(provider.requests).toEqual([]);
    expect(find.executed).toHaveLength(1);
    const { steps } = await fleet.load(id);
    const invalid = steps.flatMap(({ body }) =>
      body.kind === "tool_result" && body.result === "invalid" ? [JSON.stringify(body)] : [],
    );
    expect(invalid).toHaveLength(2 * BAD.length);
    for (const each of invalid) expect(Buffer.byteLength(each)).toBeLessThan(1_200);
    // What the model is shown of its own words is JSON that any provider reads.
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "completed");
    const prompt = agent.model.asked.at(-1)?.prompt ?? [];
    const shown = prompt.flatMap(({ role, content }) => (role === "assistant" ? content : []));
    const inputs = shown.flatMap((part) => (part.type === "tool-call" ? [part.input] : []));
    expect(inputs).toHaveLength(2 * BAD.length + 1);
    for (const input of inputs) expect(input).toBeTypeOf("object");
    expect(provider.refunds).toEqual([]);
  });
});

describe("a refund whose receipt has 24 MB", () => {
  const RECEIPT = "4411,3000;".repeat(2_400_000);
  let receipts = 0;
  const LARGEST_PROMPT = 64_000;

  function aDeskWithReceipts(provider: ReturnType<typeof aProvider>) {
    receipts += 1;
    const receipt = `${receipts};${RECEIPT}`;
    const refund = aRefundTool(provider, { effect: KEY, output: (refunded) => ({ refund: refunded, receipt }) });
    const find = aTool("find", { effect: "read" });
    const turns = [1, 2, 3].map((order) => ({ calls: [ask("find", String(order))] }));
    return aDesk([{ calls: [askRefund("o-43", "3000")] }, ...turns, { text: "done" }], [], {
      tools: [refund, find.tool],
    });
  }

  async function expectBounded(id: string, agent: ReturnType<typeof aDesk>): Promise<string> {
    expect(await fleet.rows("attempts", id, "number")).toContainEqual(
      expect.objectContaining({ outcome: "succeeded", external_ref: "re_1" }),
    );
    expect(agent.model.asked).toHaveLength(5);
    for (const { prompt } of agent.model.asked) expect(JSON.stringify(prompt).length).toBeLessThan(LARGEST_PROMPT);
    const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    return JSON.stringify(tool?.content);
  }

  test("is shown to the model in part, with its size, in every turn that follows", { timeout: 60_000 }, async () => {
    const provider = aProvider(fleet);
    const agent = aDeskWithReceipts(provider);
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "completed");
    expect(await expectBounded(id, agent)).toMatch(/\d{2}[ .,_]?\d{3}[ .,_]?\d{3}|MB/);
    expect(provider.refunds).toHaveLength(1);
    expect(await kept()).toBe(1);
  });

  test("has its outcome stored although the database does not take the receipt", { timeout: 60_000 }, async () => {
    const provider = aProvider(fleet);
    const agent = aDeskWithReceipts(provider);
    const before = await kept();
    await withoutArtifacts(async () => {
      await fleet.start(agent);
      const { id } = await fleet.submit(agent);
      await fleet.untilStatus(id, "completed");
      await expectBounded(id, agent);
    });
    expect(await kept()).toBe(before);
    expect(provider.refunds).toHaveLength(1);
  });

  /** How many outputs are kept beside the history. */
  async function kept(): Promise<number> {
    const { rows } = await fleet.store.pool.query("select count(*)::int as kept from holdpoint.artifacts");
    return rows[0].kept;
  }

  /** As long as this lasts, Postgres refuses every row of `artifacts`. */
  async function withoutArtifacts(act: () => Promise<void>): Promise<void> {
    const { pool } = fleet.store;
    await pool.query("alter table holdpoint.artifacts add constraint full_disk check (false) not valid");
    try {
      await act();
    } finally {
      await pool.query("alter table holdpoint.artifacts drop constraint full_disk");
    }
  }
});

test("a prompt that is too long for its model is not sent again unchanged: a person is asked", async () => {
  const agent = { ...aDesk([], []), model: modelOfServer() };
  let asked = 0;
  server.answer = (_request, response) => {
    asked += 1;
    response.writeHead(413, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "too long", code: "context_length_exceeded" } }));
  };
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  const held = await fleet.untilStatus(id, "waiting_operator");
  expect(held.state.waitingFor?.reason).toBe("model_failed");
  expect(asked).toBe(1);
  const isQuiet = async () => (await fleet.load(id)).run.state.owner === null || null;
  await waitFor(isQuiet, soon("the run to rest"));
});
