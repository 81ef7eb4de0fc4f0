import { denyCalls, liftDenial, recordFact } from "@holdpoint/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDesk, ask, aTool, NEEDS_MANAGER } from "./desk.ts";
import { ALICE, type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const gatedPay = () => aTool("pay", { effect: { key: { validForMs: 60_000 } }, rules: NEEDS_MANAGER });

describe("approvals", () => {
  test("the model is told of a rejection and goes on; nothing was executed", async () => {
    const pay = gatedPay();
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "It was rejected" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "waiting_approval");
    await fleet.decide(run.id, "reject");
    const ended = await fleet.untilStatus(run.id, "completed");
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
    expect(story(await fleet.load(run.id))).toEqual(["model_reply", "pay rejected", "model_reply"]);
    expect(JSON.stringify(agent.model.asked.at(-1)?.prompt)).toContain("rejected (reason given: as told)");
    expect(pay.executed).toEqual([]);
  });

  test("two calls of one turn, the first needs a manager: one hold with all requests, and results in model order", async () => {
    const order: string[] = [];
    const note = (name: string) => async () => {
      order.push(name);
      return name;
    };
    const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER, behave: note("pay") });
    const close = aTool("close", { effect: "unsafe", rules: NEEDS_MANAGER, behave: note("close") });
    const find = aTool("find", { effect: "read", behave: note("find") });
    const agent = aDesk([{ calls: [ask("pay"), ask("find"), ask("close")] }, { text: "done" }], [pay, close, find]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "waiting_approval");
    expect(order).toEqual([]);
    expect((await fleet.load(run.id)).approvals.map(({ state }) => state)).toEqual(["pending", "pending"]);
    await fleet.decide(run.id, "approve", "reject");
    await fleet.untilStatus(run.id, "completed");
    expect(order).toEqual(["pay", "find"]);
    const loaded = await fleet.load(run.id);
    expect(story(loaded)).toEqual([
      "model_reply",
      "intent pay 1",
      "pay succeeded",
      "find succeeded",
      "close rejected",
      "model_reply",
    ]);
    expect(loaded.approvals.map(({ state }) => state)).toEqual(["spent", "rejected"]);
    const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    expect(tool?.content).toMatchObject([{ toolName: "pay" }, { toolName: "find" }, { toolName: "close" }]);
  });

  test("invalid arguments are never held for approval, and are answered in model order", async () => {
    const pay = gatedPay();
    const find = aTool("find", { effect: "read" });
    const script = [
      {
        calls: [{ tool: "pay", input: '{"order":' }, ask("find"), { tool: "pay", input: { order: 1 } }, ask("nothing")],
      },
      { text: "Sorry" },
    ];
    const agent = aDesk(script, [pay, find]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual([
      "model_reply",
      "pay invalid",
      "find succeeded",
      "pay invalid",
      "nothing invalid",
      "model_reply",
    ]);
    const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    expect(tool?.content).toMatchObject([
      { output: { type: "error-json", value: { message: expect.stringContaining("not valid JSON") } } },
      { output: { type: "text" } },
      { output: { type: "error-json", value: { message: expect.stringContaining("do not fit") } } },
      { output: { type: "error-json", value: { message: expect.stringContaining("no tool nothing") } } },
    ]);
    expect(pay.executed).toEqual([]);
  });

  test("arguments that are invalid again and again are shown to a person, whose retry gives another round", async () => {
    const pay = gatedPay();
    const bad = { calls: [{ tool: "pay", input: [1] }] };
    const agent = aDesk([bad, bad, { text: "I gave up" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    const held = await fleet.untilStatus(run.id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("invalid_arguments");
    await fleet.order(run.id, { choice: "retry" });
    await fleet.untilStatus(run.id, "completed");
  });

  test("a denied call is answered with the rule's words", async () => {
    const pay = aTool("pay", { effect: "unsafe", rules: [{ name: "closed", deny: "The desk is closed." }] });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "closed" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual(["model_reply", "pay denied", "model_reply"]);
  });

  test.each([
    ["in the same turn", [{ calls: [ask("first"), ask("find")] }, { text: "none" }]],
    ["in a later turn", [{ calls: [ask("first")] }, { calls: [ask("find")] }, { text: "none" }]],
  ])("a read that is forbidden while its run is under way is not made, %s", async (_, script) => {
    const rule = { name: "no_find", tools: ["find"], when: [], action: "deny", message: "Not now." } as const;
    const forbid = async () => {
      await denyCalls(fleet.store, { rule, reason: "a leak", by: "otto" });
      return "first done";
    };
    const first = aTool("first", { effect: "read", behave: forbid });
    const find = aTool("find", { effect: "read" });
    const agent = aDesk(script, [first, find]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "completed");
    await liftDenial(fleet.store, { name: "no_find", by: "otto" });
    expect(find.executed).toEqual([]);
    expect(story(await fleet.load(run.id))).toContain("find denied");
  });

  test("a message during a hold waits for its end, and the model reads it then", async () => {
    const pay = gatedPay();
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }, { text: "done, and hello" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "waiting_approval");
    await recordFact(fleet.store, { runId: run.id, kind: "message", text: "approve it", actor: ALICE });
    expect((await fleet.load(run.id)).run.state.status).toBe("waiting_approval");
    await fleet.decide(run.id, "approve");
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual([
      "model_reply",
      "intent pay 1",
      "pay succeeded",
      "message",
      "model_reply",
    ]);
    expect(pay.executed).toHaveLength(1);
  });
});

describe("questions and ends", () => {
  test("a question waits for the requester, and another worker goes on with the answer", async () => {
    const agent = aDesk([{ text: "? Which order" }, { text: "done" }], []);
    const first = await fleet.start(agent);
    const run = await fleet.submit(agent);
    const asking = await fleet.untilStatus(run.id, "waiting_input");
    await first.drain(1_000);
    await fleet.start(agent);
    const holdSeq = asking.holdSeq ?? 0;
    const answer = { runId: run.id, kind: "answer", text: "4411", actor: ALICE, holdSeq } as const;
    expect((await recordFact(fleet.store, answer)).result).toBe("accepted");
    expect(await recordFact(fleet.store, answer)).toMatchObject({ result: "refused", rule: "hold_is_over" });
    await fleet.wake((await fleet.load(run.id)).run);
    await fleet.untilStatus(run.id, "completed");
    expect(story(await fleet.load(run.id))).toEqual(["model_reply", "message", "model_reply"]);
    expect(await fleet.rows("refusals", run.id)).toMatchObject([{ rule: "hold_is_over" }]);
  });

  test("a fact that arrives while the owner ends turns the end into another turn", async () => {
    const agent = aDesk(
      [
        async () => {
          const { id } = await running;
          await recordFact(fleet.store, { runId: id, kind: "message", text: "Wait, one more thing", actor: ALICE });
          return { text: "done" };
        },
        { text: "done with both" },
      ],
      [],
    );
    await fleet.start(agent);
    const running = fleet.submit(agent);
    const { id } = await running;
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "message", "model_reply"]);
  });

  test("a blocked outcome is shown to an operator; without one it ends as blocked, never as success", async () => {
    const blocked = () => ({ kind: "blocked", step: "pay", reason: "no_funds" }) as const;
    const asks = aDesk([{ text: "I cannot" }, { text: "I still cannot" }], [], { complete: blocked });
    const ends = aDesk([{ text: "I cannot" }], [], { complete: blocked, onBlocked: "end" });
    await fleet.start(asks);
    await fleet.start(ends);
    const [held, ended] = [await fleet.submit(asks), await fleet.submit(ends)];
    expect((await fleet.untilStatus(held.id, "waiting_operator")).state.waitingFor?.reason).toBe("blocked");
    expect((await fleet.untilStatus(ended.id, "completed")).state.outcome).toEqual(blocked());
    await fleet.order(held.id, { choice: "retry" });
    await fleet.untilStatus(held.id, "waiting_operator");
    expect(story(await fleet.load(held.id))).toEqual(["model_reply", "operator retry", "model_reply"]);
    expect(await fleet.order(held.id, { choice: "abort" })).toMatchObject({
      state: { status: "cancelled", endReason: "aborted" },
    });
  });
});
