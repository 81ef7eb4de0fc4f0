import { randomBytes } from "node:crypto";
import { newId, recordLateEvidence, transitionOne } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Behaviour, type Recorded, UNKNOWN } from "./desk.ts";
import { type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const DAY_MS = 86_400_000;
const LOOK_UP = { lookUp: { settlesWithinMs: 60_000 } } as const;

/** A run whose only call is the tool's, and a worker for it. */
async function begin(tool: Recorded): Promise<string> {
  const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [tool]);
  await fleet.start(agent);
  return (await fleet.submit(agent)).id;
}

/** Waits for the run to be looked up next, and lets a worker do it. */
async function lookUp(runId: string, tool: Recorded): Promise<void> {
  const before = tool.lookedUp;
  await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
  const isDone = async () => tool.lookedUp > before && (await fleet.load(runId)).run.state.owner === null;
  await waitFor(isDone, { deadlineMs: 20_000, what: "the look-up" });
}

/** Lets it be tried so often, and gives how long it is left alone after that, in milliseconds. */
async function waitAfter(runId: string, { tries, tool }: { tries: number; tool: Recorded }): Promise<number> {
  for (let times = 1; ; times += 1) {
    const isBack = async () => tool.executed.length === times && (await fleet.load(runId)).run.state.owner === null;
    await waitFor(isBack, { deadlineMs: 20_000, what: `try ${times} to be given back` });
    const { run, nowMs } = await fleet.load(runId);
    const next = run.state.nextReconcileAt;
    if (times === tries) return next !== null && "at" in next ? next.at - nowMs : 0;
    await fleet.wake(run);
  }
}

const attempts = (runId: string) => fleet.rows("attempts", runId, "number");

describe("an effect whose outcome is unknown", () => {
  test("time-out: it happened, says the look-up, and the model is told", async () => {
    const hang: Behaviour = (_times, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const pay = aTool("pay", {
      effect: LOOK_UP,
      behave: hang,
      timeoutMs: 1_500,
      lookUp: async () => ({ answer: "happened", output: { refund: "re_1" } }),
    });
    const runId = await begin(pay);
    const unknown = await fleet.untilStatus(runId, "outcome_unknown");
    expect(unknown).toMatchObject({ state: { openAttempts: 1, owner: null }, externalRef: pay.executed[0] });
    await fleet.wake(unknown);
    await fleet.untilStatus(runId, "completed");
    expect(pay.executed).toHaveLength(1);
    expect(await attempts(runId)).toMatchObject([
      { number: 1, outcome: "happened", settled_by: expect.stringMatching(/^look_up:/) },
    ]);
    expect(story(await fleet.load(runId))).toEqual(["model_reply", "intent pay 1", "pay succeeded", "model_reply"]);
  });

  test.each([
    ["of a length that no index takes", randomBytes(6_000).toString("base64")],
    ["that is no text", 4411 as unknown as string],
  ])("a name %s does not keep what happened from being stored", async (_what, name) => {
    const pay = aTool("pay", { effect: LOOK_UP, externalRef: () => name });
    const runId = await begin(pay);
    const { state } = await fleet.untilStatus(runId, "completed", "waiting_operator");
    expect(state.status).toBe("completed");
    const ref = typeof name === "number" ? "4411" : pay.executed[0];
    expect(await attempts(runId)).toMatchObject([{ outcome: "succeeded", external_ref: ref }]);
  });

  test("did_not_happen counts only after deadline and settle time; then it is done again", async () => {
    const pay = aTool("pay", {
      effect: LOOK_UP,
      behave: async (times, context, input) => (times === 1 ? UNKNOWN(times, context, input) : "paid"),
      lookUp: async () => ({ answer: "did_not_happen" }),
    });
    const runId = await begin(pay);
    await lookUp(runId, pay);
    expect((await fleet.load(runId)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
    expect(pay.executed).toHaveLength(1);
    await moveClock(fleet.url, 71_000);
    await fleet.wake((await fleet.load(runId)).run);
    await fleet.untilStatus(runId, "completed");
    expect(story(await fleet.load(runId))).toEqual([
      "model_reply",
      "intent pay 1",
      "did_not_happen pay 1",
      "intent pay 2",
      "pay succeeded",
      "model_reply",
    ]);
    expect(new Set(pay.executed).size).toBe(1);
  });

  test("that never happens is not made without end: its tries are counted, and a person is asked", async () => {
    const pay = aTool("pay", { effect: LOOK_UP, behave: UNKNOWN, lookUp: async () => ({ answer: "did_not_happen" }) });
    const runId = await begin(pay);
    for (let ms = 71_000; pay.executed.length < 3; ms += 71_000) {
      const { state } = await fleet.untilStatus(runId, "outcome_unknown", "waiting_operator");
      if (state.status === "waiting_operator") break;
      await moveClock(fleet.url, ms);
      await lookUp(runId, pay);
    }
    expect(await fleet.untilStatus(runId, "waiting_operator")).toMatchObject({
      state: { waitingFor: { reason: "call_failed" }, openAttempts: 0 },
    });
    expect(pay.executed).toHaveLength(2);
    // An operator's retry grants them anew.
    await fleet.order(runId, { choice: "retry" });
    await fleet.untilStatus(runId, "outcome_unknown");
    expect(pay.executed).toHaveLength(3);
  });

  test("unknown stays unknown: looked up again and again, then a person marks it done", async () => {
    const pay = aTool("pay", { effect: LOOK_UP, behave: UNKNOWN });
    const runId = await begin(pay);
    await lookUp(runId, pay);
    await lookUp(runId, pay);
    const { run, openAttempts } = await fleet.load(runId);
    expect(openAttempts).toMatchObject([{ lookUps: 2 }]);
    expect(run.state.waitDeadline).not.toBeNull();
    const [attempt] = openAttempts;
    const result = { refund: "re_9" };
    await fleet.order(runId, { choice: "mark_done", attemptIds: [attempt?.id ?? ""], result, externalRef: "re_9" });
    await fleet.untilStatus(runId, "completed");
    expect(await attempts(runId)).toMatchObject([
      { outcome: "happened", settled_by: "person:otto", external_ref: "re_9" },
    ]);
    expect(pay.executed).toHaveLength(1);
  });

  test("with a key alone it is repeated under the same operation id; the first attempt is superseded", async () => {
    const pay = aTool("pay", {
      effect: { key: { validForMs: DAY_MS } },
      behave: async (times, context, input) => (times === 1 ? UNKNOWN(times, context, input) : "paid"),
    });
    const runId = await begin(pay);
    await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
    await fleet.untilStatus(runId, "completed");
    expect(pay.executed).toHaveLength(2);
    expect(new Set(pay.executed).size).toBe(1);
    expect(await attempts(runId)).toMatchObject([
      { number: 1, outcome: "superseded" },
      { number: 2, outcome: "succeeded" },
    ]);
  });

  test("a repeat that fails for the moment leaves it open, and its key's age counts from the first try", async () => {
    const busy: Behaviour = async (times, context, input) => {
      if (times === 1) return UNKNOWN(times, context, input);
      throw new ToolError("busy", { errorClass: "throttled", code: "busy" });
    };
    const pay = aTool("pay", { effect: { key: { validForMs: DAY_MS } }, behave: busy });
    const runId = await begin(pay);
    await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
    const isRepeated = async () => pay.executed.length === 2 && (await fleet.load(runId)).run.state.owner === null;
    await waitFor(isRepeated, { deadlineMs: 20_000, what: "the repeat" });
    expect((await fleet.load(runId)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
    await moveClock(fleet.url, DAY_MS + 1_000);
    await fleet.wake((await fleet.load(runId)).run);
    const held = await fleet.untilStatus(runId, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("outcome_unknown");
    expect(pay.executed).toHaveLength(2);
    expect((await fleet.rows("transitions", runId, "seq")).at(-1)).toMatchObject({ reason: "key_expired" });
    const [open] = (await fleet.load(runId)).openAttempts;
    await fleet.order(runId, { choice: "not_established", attemptIds: [open?.id ?? ""] });
    await fleet.untilStatus(runId, "completed");
  });

  test("with a key and a look-up it is looked up first, and repeated without waiting", async () => {
    const pay = aTool("pay", {
      effect: { key: { validForMs: DAY_MS }, lookUp: {} },
      behave: async (times, context, input) => (times === 1 ? UNKNOWN(times, context, input) : "paid"),
      lookUp: async () => ({ answer: "did_not_happen" }),
    });
    const runId = await begin(pay);
    await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
    await fleet.untilStatus(runId, "completed");
    expect([pay.lookedUp, pay.executed.length, new Set(pay.executed).size]).toEqual([1, 2, 1]);
  });

  test("an unsafe one goes to a person at once, and is never done again", async () => {
    const pay = aTool("pay", { effect: "unsafe", behave: UNKNOWN });
    const runId = await begin(pay);
    const held = await fleet.untilStatus(runId, "waiting_operator");
    expect(held.state).toMatchObject({ openAttempts: 1, waitingFor: { reason: "outcome_unknown" } });
    const [open] = (await fleet.load(runId)).openAttempts;
    await fleet.order(runId, { choice: "not_established", attemptIds: [open?.id ?? ""] });
    await fleet.untilStatus(runId, "completed");
    expect(story(await fleet.load(runId))).toEqual([
      "model_reply",
      "intent pay 1",
      "pay not_established",
      "model_reply",
    ]);
    expect(pay.executed).toHaveLength(1);
  });

  test("an agent that has lost the tool: a person is asked, rather than every worker failing in turn", async () => {
    const pay = aTool("pay", { effect: LOOK_UP, behave: UNKNOWN });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const first = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    const unknown = await fleet.untilStatus(id, "outcome_unknown");
    await first.drain(1_000);
    await fleet.start({ ...agent, tools: new Map() });
    await fleet.wake(unknown);
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state).toMatchObject({ openAttempts: 1, waitingFor: { reason: "outcome_unknown" } });
    const [open] = (await fleet.load(id)).openAttempts;
    await fleet.order(id, { choice: "terminate", attemptIds: [open?.id ?? ""] });
    expect((await fleet.load(id)).run.state.status).toBe("cancelled");
  });
});

describe("a repeat under the same key", () => {
  const KEY = { key: { validForMs: DAY_MS } } as const;
  const refused = new ToolError("the credential was rotated", { errorClass: "refused", code: "unauthorized" });

  test("that is turned down says nothing of the attempt that it repeats: a person is asked, and nothing is sent anew", async () => {
    const pay = aTool("pay", {
      effect: KEY,
      behave: async (times, context, input) => {
        if (times === 1) return UNKNOWN(times, context, input);
        throw refused;
      },
    });
    const runId = await begin(pay);
    await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
    const held = await fleet.untilStatus(runId, "waiting_operator");
    expect(held.state).toMatchObject({ openAttempts: 1, waitingFor: { reason: "outcome_unknown" } });
    expect(await attempts(runId)).toMatchObject([
      { number: 1, outcome: "superseded" },
      { number: 2, outcome: null, error_class: "refused", error_code: "unauthorized" },
    ]);
    // Even an operator's retry looks only; there is nothing to look with, so the person is asked again.
    await fleet.wake(await fleet.order(runId, { choice: "retry" }));
    await fleet.untilStatus(runId, "waiting_operator");
    expect(pay.executed).toHaveLength(2);
    expect(story(await fleet.load(runId))).toEqual(["model_reply", "intent pay 1", "intent pay 2"]);
  });

  test("that is turned down is settled by the look-up, where there is one", async () => {
    const pay = aTool("pay", {
      effect: { ...KEY, ...LOOK_UP },
      behave: async (times, context, input) => {
        if (times === 1) return UNKNOWN(times, context, input);
        throw refused;
      },
      lookUp: async (times) =>
        times === 1 ? { answer: "did_not_happen" } : { answer: "happened", output: { refund: "re_1" } },
    });
    const runId = await begin(pay);
    await lookUp(runId, pay);
    await fleet.wake((await fleet.load(runId)).run);
    await fleet.untilStatus(runId, "completed");
    expect(pay.executed).toHaveLength(2);
    expect(story(await fleet.load(runId))).toContain("pay succeeded");
  });

  test("that is throttled is made again when the other side allows it, not every second", async () => {
    const throttled = new ToolError("slow down", { errorClass: "throttled", code: "http_429", retryAfterMs: 600_000 });
    const pay = aTool("pay", {
      effect: KEY,
      behave: async (times, context, input) => {
        if (times === 1) return UNKNOWN(times, context, input);
        throw throttled;
      },
    });
    const runId = await begin(pay);
    await fleet.wake(await fleet.untilStatus(runId, "outcome_unknown"));
    const isBack = async () => pay.executed.length === 2 && (await fleet.load(runId)).run.state.owner === null;
    await waitFor(isBack, { deadlineMs: 20_000, what: "the repeat to be given back" });
    const { run, nowMs } = await fleet.load(runId);
    expect(run.state.status).toBe("outcome_unknown");
    const next = run.state.nextReconcileAt;
    expect(next !== null && "at" in next ? next.at - nowMs : 0).toBeGreaterThan(500_000);
  });

  test("that brings nothing either is made ever more rarely", async () => {
    const pay = aTool("pay", { effect: KEY, behave: UNKNOWN });
    const runId = await begin(pay);
    expect(await waitAfter(runId, { tries: 4, tool: pay })).toBeGreaterThan(4_000);
  });

  test("is looked up, and made, ever more rarely where the look-up never finds it", async () => {
    const effect = { ...KEY, ...LOOK_UP };
    const pay = aTool("pay", { effect, behave: UNKNOWN, lookUp: async () => ({ answer: "did_not_happen" }) });
    const runId = await begin(pay);
    expect(await waitAfter(runId, { tries: 4, tool: pay })).toBeGreaterThan(4_000);
  });

  test("is not made while the run is paused: it may act for the first time", async () => {
    const pay = aTool("pay", { effect: KEY, behave: UNKNOWN });
    const runId = await begin(pay);
    const unknown = await fleet.untilStatus(runId, "outcome_unknown");
    await fleet.store.pool.query("update holdpoint.runs set pause_requested_at = holdpoint.clock() where id = $1", [
      runId,
    ]);
    await fleet.wake(unknown);
    await fleet.untilStatus(runId, "waiting_operator");
    expect(pay.executed).toHaveLength(1);
  });

  test("is not made when the provider may have forgotten the key before it arrives", async () => {
    const pay = aTool("pay", { effect: { key: { validForMs: 9_000 } }, behave: UNKNOWN, timeoutMs: 10_000 });
    const runId = await begin(pay);
    await fleet.untilStatus(runId, "waiting_operator");
    expect(pay.executed).toHaveLength(1);
  });
});

test("late evidence that it happened, after the look-up said no, keeps the call from being made again", async () => {
  const pay = aTool("pay", {
    effect: LOOK_UP,
    behave: UNKNOWN,
    lookUp: async () => ({ answer: "did_not_happen" }),
  });
  const runId = await begin(pay);
  await lookUp(runId, pay);
  await moveClock(fleet.url, 71_000);
  const { run, calls, openAttempts } = await fleet.load(runId);
  // The look-up's no counts now; it is settled by hand here, so that the evidence comes before the next attempt.
  const [attempt] = openAttempts;
  const attemptId = attempt?.id ?? "";
  const worker = { kind: "worker", id: newId() } as const;
  const settled = await transitionOne(fleet.store, {
    run,
    events: [{ type: "EffectSettled", by: "late_evidence", wasOpen: true }],
    actor: worker,
    writes: {
      steps: [{ kind: "did_not_happen", callId: calls[0]?.id ?? "", attempt: 1 }],
      settles: [{ attemptId, outcome: "did_not_happen", settledBy: "look_up" }],
      checkpoint: { ...run.checkpoint, stepSeq: run.stepSeq + 1 },
    },
  });
  if (settled.result !== "accepted") throw new Error(settled.result);
  const late = {
    runId,
    attemptId,
    workerId: worker.id,
    body: { kind: "tool_result", callId: calls[0]?.id ?? "", result: "succeeded", output: { refund: "re_7" } },
    settle: { outcome: "succeeded", externalRef: "re_7" },
  } as const;
  expect(await recordLateEvidence(fleet.store, late)).toBe("finding");
  await fleet.wake((await fleet.load(runId)).run);
  await fleet.untilStatus(runId, "completed");
  expect(pay.executed).toHaveLength(1);
  const { steps } = await fleet.load(runId);
  expect(steps.map(({ body }) => body)).toContainEqual(
    expect.objectContaining({ kind: "tool_result", result: "answered_from_record", output: { refund: "re_7" } }),
  );
});
