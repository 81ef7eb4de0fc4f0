import { listServices } from "@holdpoint/store";
import { listCalls } from "@holdpoint/store/read";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { APICallError } from "ai";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Behaviour, NEEDS_MANAGER } from "./desk.ts";
import { type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const PAY = { key: { validForMs: 60_000 } };

function failing(
  errorClass: "transient" | "throttled" | "refused" | "caller",
  times: number,
  retryAfterMs?: number,
): Behaviour {
  return async (execution) => {
    if (execution > times) return "at last";
    throw new ToolError("The card is closed.", {
      errorClass,
      code: "card_closed",
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  };
}

function httpError(statusCode: number, headers: Record<string, string> = {}): APICallError {
  return new APICallError({
    message: "no",
    url: "http://model",
    requestBodyValues: {},
    statusCode,
    responseHeaders: headers,
  });
}

describe("calls that fail", () => {
  test("a read is tried once more, then an operator is asked: retry, skip and abort do what they say", async () => {
    const find = aTool("find", { effect: "read", behave: failing("transient", 2) });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    const held = await fleet.untilStatus(run.id, "waiting_operator");
    expect(held.state.waitingFor).toMatchObject({ reason: "call_failed" });
    expect(find.executed).toHaveLength(2);
    await fleet.order(run.id, { choice: "retry" });
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual([
      "model_reply",
      "call_failed find 1",
      "call_failed find 2",
      "operator retry",
      "find succeeded",
      "model_reply",
    ]);
    expect(new Set(find.executed).size).toBe(1);
    const { items } = await listCalls(fleet.store, run.id, { limit: 1, after: null });
    expect(items[0]?.attempts).toMatchObject([
      { number: 1, outcome: "failed", errorCode: "card_closed" },
      { number: 2, outcome: "failed" },
      { number: 3, outcome: "succeeded" },
    ]);
  });

  test("a skipped call is told to the model; an aborted run is cancelled", async () => {
    const find = aTool("find", { effect: "read", behave: failing("transient", 99) });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done without" }], [find]);
    await fleet.start(agent);
    const [skipped, aborted] = [await fleet.submit(agent), await fleet.submit(agent)];
    await fleet.untilStatus(skipped.id, "waiting_operator");
    await fleet.order(skipped.id, { choice: "skip" });
    await fleet.untilStatus(skipped.id, "completed");
    expect(story(await fleet.load(skipped.id)).slice(-3)).toEqual(["operator skip", "find skipped", "model_reply"]);
    await fleet.untilStatus(aborted.id, "waiting_operator");
    expect((await fleet.order(aborted.id, { choice: "abort" })).state).toMatchObject({
      status: "cancelled",
      endReason: "aborted",
    });
  });

  test("an effect that failed for certain is tried once more under the same operation id, on the same approval", async () => {
    const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER, behave: failing("transient", 1) });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "waiting_approval");
    await fleet.decide(run.id, "approve");
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual([
      "model_reply",
      "intent pay 1",
      "call_failed pay 1",
      "intent pay 2",
      "pay succeeded",
      "model_reply",
    ]);
    expect(new Set(pay.executed).size).toBe(1);
  });

  test.each(["refused", "caller"] as const)(
    "an effect that was %s is told to the model, and not tried again",
    async (errorClass) => {
      const pay = aTool("pay", { effect: PAY, behave: failing(errorClass, 99) });
      const agent = aDesk([{ calls: [ask("pay")] }, { text: "It was refused" }], [pay]);
      await fleet.start(agent);
      const run = await fleet.submit(agent);
      await fleet.untilStatus(run.id, "completed");
      expect(pay.executed).toHaveLength(1);
      const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
      const value = { result: "failed", code: "card_closed", message: "The card is closed." };
      expect(tool?.content).toMatchObject([{ output: { type: "error-json", value } }]);
    },
  );

  test("a wait that the other side asks for is spent in retrying, with no worker", async () => {
    const pay = aTool("pay", { effect: PAY, behave: failing("transient", 1, 60_000) });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    const retrying = await fleet.untilStatus(run.id, "retrying");
    expect(retrying.state).toMatchObject({ owner: null, openAttempts: 0 });
    await fleet.order(run.id, { choice: "retry_now" });
    await fleet.untilStatus(run.id, "completed");
    expect(pay.executed).toHaveLength(2);
  });

  test("a large output is kept beside the history, and the model sees its beginning", async () => {
    const find = aTool("find", { effect: "read", behave: async () => "4411 ".repeat(20_000) });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "completed");
    const { rows } = await fleet.store.pool.query(
      "select size_bytes, length(content) as length from holdpoint.artifacts",
    );
    expect(rows).toEqual([{ size_bytes: 100_000, length: 100_000 }]);
    expect(JSON.stringify(agent.model.asked.at(-1)?.prompt).length).toBeLessThan(30_000);
  });
});

describe("an outcome whose large output the database refuses", () => {
  test.each([
    ["a read", "read", false],
    ["an effect", PAY, false],
    ["an effect that is found by its look-up", { lookUp: {} }, true],
  ] as const)("is stored without it: %s", async (_what, effect, isLookedUp) => {
    const output = "4411 ".repeat(20_000);
    const pay = aTool("pay", {
      effect,
      behave: async () => {
        if (isLookedUp) throw new Error("cut");
        return output;
      },
      lookUp: async () => ({ answer: "happened", output }),
    });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const sql = (text: string) => fleet.store.pool.query(`alter table holdpoint.artifacts ${text}`);
    await sql("add constraint full_up check (size_bytes < 0) not valid");
    try {
      await fleet.start(agent);
      const run = await fleet.submit(agent);
      if (isLookedUp) await fleet.wake(await fleet.untilStatus(run.id, "outcome_unknown"));
      await fleet.untilStatus(run.id, "completed");
      expect(story(await fleet.load(run.id))).toContain("pay succeeded");
      expect(pay.executed).toHaveLength(1);
      expect(JSON.stringify(agent.model.asked.at(-1)?.prompt)).toContain("the rest was not kept");
    } finally {
      await sql("drop constraint full_up");
    }
  });
});

describe("models that fail", () => {
  test("429: the run waits for its service as long as that asks, and goes on", async () => {
    let first = true;
    const throttle = () => {
      if (!first) return { text: "done" };
      first = false;
      throw httpError(429, { "retry-after": "30" });
    };
    const agent = aDesk([throttle], []);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    const held = await fleet.untilStatus(run.id, "waiting_dependency");
    expect(held.state.waitingFor).toMatchObject({
      kind: "service",
      principal: agent.modelService,
      reason: "throttled",
    });
    await moveClock(fleet.url, 29_000);
    await fleet.sweep();
    expect((await fleet.load(run.id)).run.state.status).toBe("waiting_dependency");
    await moveClock(fleet.url, 31_000);
    await fleet.sweep();
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual(["model_failed http_429", "model_reply"]);
    const isForgotten = async () => (await listServices(fleet.store)).every(({ name }) => name !== agent.modelService);
    await waitFor(isForgotten, { deadlineMs: 10_000, what: "the trouble to be forgotten" });
  });

  test("500 is tried again in the process, then by its backoff; the end of all retries is an operator", async () => {
    let asked = 0;
    const broken = () => {
      asked += 1;
      if (asked < 4) throw httpError(500);
      return { text: "done" };
    };
    const agent = aDesk([broken], [], { modelRetries: 2 });
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "retrying");
    expect(asked).toBe(2);
    await fleet.order(run.id, { choice: "retry_now" });
    const held = await fleet.untilStatus(run.id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("model_failed");
    expect(asked).toBe(3);
    await fleet.order(run.id, { choice: "retry" });
    await fleet.untilStatus(run.id, "completed");
  });

  test("a request that will never be taken is not sent again", async () => {
    const agent = aDesk([httpError(400)], []);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "waiting_operator");
    expect(agent.model.asked).toHaveLength(1);
  });

  test("limits hold the run; a retry grants one more turn", async () => {
    const find = aTool("find", { effect: "read" });
    const again = { calls: [ask("find")] };
    const agent = aDesk([again, again, { text: "done" }], [find], { limits: { turns: 2 } });
    const thirsty = aDesk([again, { text: "done" }], [find], { limits: { tokens: 15 } });
    await fleet.start(agent);
    await fleet.start(thirsty);
    const [turns, tokens] = [await fleet.submit(agent), await fleet.submit(thirsty)];
    expect((await fleet.untilStatus(turns.id, "waiting_operator")).state.waitingFor?.reason).toBe("limit_turns");
    expect((await fleet.untilStatus(tokens.id, "waiting_operator")).state.waitingFor?.reason).toBe("limit_tokens");
    await fleet.order(turns.id, { choice: "retry" });
    await fleet.untilStatus(turns.id, "completed");
  });
});

const withBrokenInput = defineTool({
  name: "find",
  description: "Finds",
  input: z.object({ order: z.string() }).refine(() => {
    throw new TypeError("a bug");
  }),
  effect: "read",
  execute: async () => "found",
});

describe("agent code that throws", () => {
  test.each([
    [
      "its completion condition",
      {
        complete: () => {
          throw new TypeError("a bug");
        },
      },
    ],
    ["the input of its tool", { tools: [withBrokenInput] }],
  ])("%s: an operator is told, and the worker goes on with others", async (_what, overrides) => {
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [aTool("find", { effect: "read" })], overrides);
    const healthy = aDesk([{ text: "done" }], []);
    const worker = await fleet.start(agent, { agents: [agent, healthy], slots: 1 });
    const run = await fleet.submit(agent);
    const held = await fleet.untilStatus(run.id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("agent_error");
    await fleet.untilStatus((await fleet.submit(healthy)).id, "completed");
    expect(worker.isHealthy()).toBe(true);
  });
});
