import { recordCallback, requestCancel } from "@holdpoint/store";
import { moveClock, type ScriptedTurn, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Settled, ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Recorded, UNKNOWN } from "./desk.ts";
import { ALICE, type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const MINUTE_MS = 60_000;
const KEY = { key: { validForMs: 86_400_000 } } as const;
const PENDING = { status: "pending" };

let refs = 0;

/** A refund that its provider accepts; what has become of it is asked, and answered as the test says. */
function aRefund(poll: (times: number) => Promise<Settled<{ status: string }>>) {
  refs += 1;
  const ref = `re_${refs}`;
  const refund: Recorded & { readonly ref: string; polled: number } = {
    ref,
    polled: 0,
    ...aTool("refund", {
      effect: KEY,
      behave: async () => PENDING,
      externalRef: () => ref,
      settlement: {
        isPending: (output) => (output as typeof PENDING).status === "pending",
        poll: async (_input, { output }) => {
          expect(output).toEqual(PENDING);
          refund.polled += 1;
          return poll(refund.polled);
        },
        withinMs: 60 * MINUTE_MS,
      },
    }),
  };
  // A model that hears of the failure wants to do it again.
  const goOn: ScriptedTurn = ({ prompt }) =>
    JSON.stringify(prompt).includes("has failed") ? { calls: [ask("refund")] } : { text: "told" };
  const agent = aDesk([{ calls: [ask("refund")] }, goOn], [refund]);
  return { refund, agent };
}

/** A run that waits for how its refund settles. */
async function untilAccepted({ agent }: ReturnType<typeof aRefund>) {
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  return fleet.untilStatus(id, "waiting_dependency");
}

const settled = async () => ({ answer: "settled", output: { status: "succeeded" } }) as const;
const pending = async () => ({ answer: "still_pending" }) as const;

async function passTo(ms: number): Promise<void> {
  await moveClock(fleet.url, ms);
  await fleet.sweep();
}

describe("an effect that its provider accepts and settles later", () => {
  test("has happened when it is accepted: nothing is open, and the run waits for it with no worker", async () => {
    const desk = aRefund(settled);
    const run = await untilAccepted(desk);
    expect(run).toMatchObject({
      currentStep: "refund",
      state: {
        owner: null,
        openAttempts: 0,
        waitingFor: { kind: "callback", principal: desk.refund.tool.service, reason: "settlement_pending" },
        onDeadline: "continue",
      },
    });
    expect(await fleet.rows("attempts", run.id)).toMatchObject([
      { outcome: "succeeded", external_ref: desk.refund.ref },
    ]);
    // It has only just been accepted: nobody asks yet.
    expect(desk.refund.polled).toBe(0);
    expect(story(await fleet.load(run.id))).toEqual(["model_reply", "intent refund 1", "effect_pending"]);
    expect(desk.agent.model.asked).toHaveLength(1);
  });

  test("is asked about when the time has come, and the model is told what it came to", async () => {
    const { refund, agent } = aRefund(settled);
    const { id } = await untilAccepted({ refund, agent });
    await passTo(50_000);
    expect(refund.polled).toBe(0);
    await passTo(MINUTE_MS + 1_000);
    await fleet.untilStatus(id, "completed");
    expect(refund).toMatchObject({ polled: 1 });
    expect(refund.executed).toHaveLength(1);
    const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    expect(tool?.content).toMatchObject([{ output: { type: "json", value: { status: "succeeded" } } }]);
  });

  test("that fails later: the run goes on with what really happened", async () => {
    const { refund, agent } = aRefund(async () => ({
      answer: "failed",
      code: "insufficient_funds",
      message: "The account is closed.",
    }));
    const { id } = await untilAccepted({ refund, agent });
    await passTo(MINUTE_MS + 1_000);
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toContain("refund failed");
    const tool = agent.model.asked.at(-1)?.prompt.find(({ role }) => role === "tool");
    const value = { result: "failed", code: "insufficient_funds", message: "The account is closed." };
    expect(tool?.content).toMatchObject([{ output: { type: "error-json", value } }]);
  });

  test("is asked about again and again, ever more rarely, and a poll that fails says nothing", async () => {
    const { refund, agent } = aRefund(async (times) => {
      if (times === 2) throw new Error("broken");
      return times < 4 ? pending() : settled();
    });
    const { id } = await untilAccepted({ refund, agent });
    const waits: number[] = [];
    for (let round = 1, ms = 0; round <= 3; round += 1) {
      const { run, nowMs } = await fleet.load(id);
      const { waitDeadline } = run.state;
      const inMs = waitDeadline !== null && "at" in waitDeadline ? waitDeadline.at - nowMs : 0;
      waits.push(inMs);
      ms += inMs + 1_000;
      await passTo(ms);
      const isHeld = async () =>
        refund.polled === round && (await fleet.load(id)).run.state.status === "waiting_dependency";
      await waitFor(isHeld, { deadlineMs: 20_000, what: `poll ${round}` });
    }
    expect(waits[0]).toBeLessThanOrEqual(MINUTE_MS);
    await passTo(20 * MINUTE_MS);
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual([
      "model_reply",
      "intent refund 1",
      "effect_pending",
      "refund succeeded",
      "model_reply",
    ]);
  });

  test("that does not settle in its time is shown to an operator, who can pass over it", async () => {
    const { refund, agent } = aRefund(pending);
    const { id } = await untilAccepted({ refund, agent });
    await passTo(61 * MINUTE_MS);
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("settlement_overdue");
    await fleet.order(id, { choice: "skip" });
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toContain("refund not_established");
    expect(refund.executed).toHaveLength(1);
  });

  test("is not said to be done by an answer that no poll may give", async () => {
    const { refund, agent } = aRefund(async () => ({ answer: "paid", output: {} }) as unknown as Settled<never>);
    const { id } = await untilAccepted({ refund, agent });
    await passTo(2 * MINUTE_MS);
    const isPolled = async () => refund.polled === 1 && (await fleet.load(id)).run.state.owner === null;
    await waitFor(isPolled, { deadlineMs: 20_000, what: "the poll" });
    expect((await fleet.load(id)).run.state.status).toBe("waiting_dependency");
    expect(story(await fleet.load(id))).not.toContain("refund succeeded");
  });

  test("is not asked about earlier than its provider allows", async () => {
    const { refund, agent } = aRefund(async (times) => {
      if (times > 1) return settled();
      throw new ToolError("slow down", { errorClass: "throttled", code: "http_429", retryAfterMs: 30 * MINUTE_MS });
    });
    const { id } = await untilAccepted({ refund, agent });
    await passTo(MINUTE_MS + 1_000);
    const isPolled = async () =>
      refund.polled === 1 && (await fleet.load(id)).run.state.status === "waiting_dependency";
    await waitFor(isPolled, { deadlineMs: 20_000, what: "the first poll" });
    await passTo(30 * MINUTE_MS);
    expect(refund.polled).toBe(1);
    await passTo(32 * MINUTE_MS);
    await fleet.untilStatus(id, "completed");
    expect(refund.polled).toBe(2);
  });

  test("is found by its look-up as accepted: the same", async () => {
    const pay = aTool("pay", {
      effect: { lookUp: {} },
      behave: UNKNOWN,
      lookUp: async () => ({ answer: "happened", output: PENDING }),
      settlement: { isPending: () => true, poll: settled },
    });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "told" }], [pay]);
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.wake(await fleet.untilStatus(id, "outcome_unknown"));
    await fleet.untilStatus(id, "waiting_dependency");
    expect(await fleet.rows("attempts", id)).toMatchObject([{ outcome: "happened" }]);
    await passTo(MINUTE_MS + 1_000);
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual([
      "model_reply",
      "intent pay 1",
      "effect_pending",
      "pay succeeded",
      "model_reply",
    ]);
  });

  test("whose output cannot be judged is not said to be done", async () => {
    const { refund, agent } = aRefund(settled);
    const judge = () => {
      throw new TypeError("a bug");
    };
    const tool = {
      ...refund.tool,
      isPending: aTool("x", { effect: KEY, settlement: { isPending: judge, poll: pending } }).tool.isPending,
    };
    const { id } = await untilAccepted({ refund, agent: { ...agent, tools: new Map([["refund", tool]]) } });
    expect(story(await fleet.load(id))).toContain("effect_pending");
  });
});

describe("a callback about an effect that was accepted", () => {
  const callback = (
    { ref: externalRef, tool }: ReturnType<typeof aRefund>["refund"],
    status: "settled" | "failed" = "settled",
  ) =>
    recordCallback(fleet.store, {
      source: tool.service,
      eventId: `evt_${externalRef}_${status}`,
      status,
      effect: { externalRef },
    });

  test("makes the tool ask at once; delivered three times, the run goes on once", async () => {
    const { refund, agent } = aRefund(settled);
    const { id } = await untilAccepted({ refund, agent });
    const results = await Promise.all([callback(refund), callback(refund), callback(refund)]);
    expect(results.map(({ result }) => result).sort()).toEqual(["accepted", "repeated", "repeated"]);
    await fleet.wake(await fleet.untilStatus(id, "queued"));
    await fleet.untilStatus(id, "completed");
    expect(refund.polled).toBe(1);
    expect(story(await fleet.load(id))).toEqual([
      "model_reply",
      "intent refund 1",
      "effect_pending",
      "refund succeeded",
      "callback",
      "model_reply",
    ]);
  });

  test("is not believed: what counts is what the tool finds", async () => {
    const { refund, agent } = aRefund(pending);
    const { id } = await untilAccepted({ refund, agent });
    await callback(refund);
    await fleet.wake(await fleet.untilStatus(id, "queued"));
    const isPolled = async () =>
      refund.polled === 1 && (await fleet.load(id)).run.state.status === "waiting_dependency";
    await waitFor(isPolled, { deadlineMs: 20_000, what: "the poll" });
    expect(story(await fleet.load(id))).not.toContain("refund succeeded");
  });

  test("that it has failed, after its run has ended, opens one for a person; the first is not touched", async () => {
    const { refund, agent } = aRefund(settled);
    const { id } = await untilAccepted({ refund, agent });
    await passTo(MINUTE_MS + 1_000);
    const ended = await fleet.untilStatus(id, "completed");
    const result = await callback(refund, "failed");
    expect(result).toMatchObject({ result: "followed_up", run: { retryOf: id } });
    expect((await fleet.load(id)).run).toEqual(ended);
    const followUp = "run" in result ? result.run.id : "";
    // An operator lets the agent go on with it: it reads what was reported, and does not refund again unasked.
    const { model } = agent;
    expect(model.asked).toHaveLength(2);
    await fleet.order(followUp, { choice: "retry" });
    const held = await fleet.untilStatus(followUp, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("equal_effect_unknown");
    expect(JSON.stringify(model.asked.at(-1)?.prompt)).toContain(`(${refund.ref})`);
    expect(refund.executed).toHaveLength(1);
  });

  test("that comes while its run is cancelled and it is pending is told to a person", async () => {
    const { refund, agent } = aRefund(pending);
    const { id } = await untilAccepted({ refund, agent });
    await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: null });
    expect((await fleet.load(id)).run.state.status).toBe("cancelled");
    expect(await callback(refund, "failed")).toMatchObject({ result: "followed_up" });
    expect(refund.polled).toBe(0);
  });
});
