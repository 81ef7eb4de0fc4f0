import {
  claimRuns,
  decideApproval,
  loadRun,
  loseAndRecover,
  markExited,
  newId,
  recordFact,
  registerWorker,
  requestCancel,
  requestPause,
  resumeRun,
  submitRun,
} from "@holdpoint/store";
import { listCalls } from "@holdpoint/store/read";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Behaviour, NEEDS_MANAGER, UNKNOWN } from "./desk.ts";
import { ALICE, type Fleet, MAX, OPERATOR, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const soon = (what: string) => ({ deadlineMs: 20_000, what });
const SWEEPER = { kind: "sweeper", id: "s1" } as const;
const QUICK = { renewMs: 100 };

/** A behaviour that tells when it was reached, and goes on when it is let. */
function gate(output: string, { ignoresSignal = true } = {}) {
  const reached = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  const behave: Behaviour = async (_times, { signal }) => {
    reached.resolve();
    if (!ignoresSignal) signal.addEventListener("abort", () => open.reject(signal.reason), { once: true });
    await open.promise;
    return output;
  };
  return { behave, reached: reached.promise, open: open.resolve };
}

async function cancel(runId: string): Promise<void> {
  expect((await requestCancel(fleet.store, { runId, actor: ALICE, reason: "changed my mind" })).result).toBe(
    "accepted",
  );
}

const lastTransition = async (runId: string) => (await fleet.rows("transitions", runId, "seq")).at(-1);

/** What a sweep does with the runs of a worker that is gone. */
async function takeAway(runId: string): Promise<void> {
  const { run } = await fleet.load(runId);
  await markExited(fleet.store, run.state.owner ?? "");
  await loseAndRecover(fleet.store, [{ run, reason: "lease_expired" }], SWEEPER);
}

describe("a cancel", () => {
  test("during a read: it is aborted, and nothing of it is kept", async () => {
    const { behave, reached } = gate("", { ignoresSignal: false });
    const find = aTool("find", { effect: "read", behave });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    await reached;
    await cancel(id);
    const ended = await fleet.untilStatus(id, "cancelled");
    expect(ended.state.endReason).toBe("changed my mind");
    expect(story(await fleet.load(id))).toEqual(["model_reply"]);
    expect(await fleet.rows("attempts", id)).toEqual([]);
  });

  test("during an effect: it is left to end, its result is kept, then the run has stopped (a tool result after cancel)", async () => {
    const { behave, reached, open } = gate("paid");
    const pay = aTool("pay", { effect: { key: { validForMs: 60_000 } }, behave });
    const agent = aDesk([{ calls: [ask("pay"), ask("pay", "2")] }, { text: "done" }], [pay]);
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    await reached;
    await cancel(id);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "cancelling", openAttempts: 1 });
    open();
    await fleet.untilStatus(id, "cancelled");
    const loaded = await fleet.load(id);
    expect(story(loaded)).toEqual(["model_reply", "intent pay 1", "pay succeeded"]);
    expect(loaded.run.state.outcome).toBeNull();
    expect(pay.executed).toHaveLength(1);
    expect(agent.model.asked).toHaveLength(1);
    expect(await fleet.rows("attempts", id)).toMatchObject([{ outcome: "succeeded" }]);
  });

  test("an effect that stays unknown keeps the run in cancelling until a look-up has found it", async () => {
    const pay = aTool("pay", {
      effect: { key: { validForMs: 60_000 }, lookUp: { settlesWithinMs: 0 } },
      behave: UNKNOWN,
      timeoutMs: 1_000,
      lookUp: async (times) => (times < 2 ? { answer: "unknown" } : { answer: "did_not_happen" }),
    });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "outcome_unknown");
    await cancel(id);
    const step = async () => {
      const { run } = await fleet.load(id);
      if (run.state.status === "cancelling" && run.state.owner === null) await fleet.wake(run);
      return run.state.status === "cancelled";
    };
    await waitFor(step, soon("the run to have stopped"));
    // A key would allow a repeat, which a run that is to stop must not make.
    expect(pay.executed).toHaveLength(1);
    expect(await fleet.rows("attempts", id)).toMatchObject([{ outcome: "did_not_happen" }]);
  });

  test("with a key alone nothing can be asked: the run waits for on-call, and is not claimed again and again", async () => {
    const pay = aTool("pay", { effect: { key: { validForMs: 60_000 } }, behave: UNKNOWN });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "outcome_unknown");
    await cancel(id);
    await fleet.wake((await fleet.load(id)).run);
    const isLeft = async () => {
      const { state } = (await fleet.load(id)).run;
      return state.status === "cancelling" && state.lookUpsOver && state.owner === null;
    };
    await waitFor(isLeft, soon("the run to be left to on-call"));
    expect((await fleet.load(id)).run.state.nextReconcileAt).toBeNull();
    expect(await lastTransition(id)).toMatchObject({ reason: "may_not_start" });
    expect(pay.executed).toHaveLength(1);
    const [open] = (await fleet.load(id)).openAttempts;
    await fleet.order(id, { choice: "not_established", attemptIds: [open?.id ?? ""] });
    await fleet.untilStatus(id, "cancelled");
  });

  test("a pause lets the effect end, starts nothing more, and the run goes on where it was", async () => {
    const { behave, reached, open } = gate("paid");
    const pay = aTool("pay", { effect: "unsafe", behave });
    const agent = aDesk(
      [{ calls: [ask("pay"), ask("find")] }, { text: "done" }],
      [pay, aTool("find", { effect: "read" })],
    );
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    await reached;
    await requestPause(fleet.store, { runId: id, actor: OPERATOR });
    open();
    await fleet.untilStatus(id, "paused");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "intent pay 1", "pay succeeded"]);
    await resumeRun(fleet.store, { runId: id, actor: OPERATOR });
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
    expect(pay.executed).toHaveLength(1);
  });
});

describe("a retry as a new run", () => {
  test("answers an equal effect from its record, and does a different one", async () => {
    const pay = aTool("pay", { effect: "unsafe" });
    const find = aTool("find", {
      effect: "read",
      behave: async () => {
        throw new TypeError("no index");
      },
    });
    const script = [{ calls: [ask("pay")] }, { calls: [ask("find")] }, { text: "done" }];
    const agent = aDesk(script, [pay, find]);
    await fleet.start(agent, QUICK);
    const first = await fleet.submit(agent);
    await fleet.untilStatus(first.id, "waiting_operator");
    await fleet.order(first.id, { choice: "abort" });
    const again = aDesk([{ calls: [ask("pay"), ask("pay", "other")] }, { text: "done" }], [pay]);
    await fleet.start(again, QUICK);
    const retry = { sessionId: first.sessionId, agent: again, goal: null, actor: ALICE, retryOf: first.id };
    const submitted = await submitRun(fleet.store, retry);
    if (submitted.result !== "submitted") throw new Error(submitted.result);
    await fleet.wake(submitted.run);
    await fleet.untilStatus(submitted.run.id, "completed");
    expect(story(await fleet.load(submitted.run.id))).toEqual([
      "model_reply",
      "pay answered_from_record",
      "intent pay 1",
      "pay succeeded",
      "model_reply",
    ]);
    expect(pay.executed).toHaveLength(2);
  });
});

describe("a drain", () => {
  test("gives runs back without an attempt, aborts reads when its time is over, and another worker goes on", async () => {
    const { behave, reached } = gate("found", { ignoresSignal: false });
    const find = aTool("find", {
      effect: "read",
      behave: (times, ...rest) => (times === 1 ? behave(times, ...rest) : Promise.resolve("found")),
    });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    const first = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await reached;
    await first.drain(50);
    await fleet.start(agent);
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.state.takeovers).toBe(0);
    const { items } = await listCalls(fleet.store, id, { limit: 1, after: null });
    expect(items[0]?.attempts).toMatchObject([{ number: 1, outcome: "succeeded" }]);
    const events = (await fleet.rows("transitions", id, "seq")).map(({ event }) => event);
    expect(events).toEqual(["Submitted", "Claimed", "Released", "Claimed", "Ended"]);
    const { rows } = await fleet.store.pool.query("select gone_reason from holdpoint.workers where id = $1", [
      first.id,
    ]);
    expect(rows).toEqual([{ gone_reason: "retired" }]);
  });

  test("lets an effect end, stores its result, and goes no further", async () => {
    const { behave, reached, open } = gate("paid");
    const pay = aTool("pay", { effect: "unsafe", behave });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const worker = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await reached;
    const drained = worker.drain(1);
    open();
    await drained;
    expect(story(await fleet.load(id))).toEqual(["model_reply", "intent pay 1", "pay succeeded"]);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "queued", openAttempts: 0 });
    await fleet.start(agent);
    await fleet.untilStatus(id, "completed");
    expect(pay.executed).toHaveLength(1);
  });

  test.each([
    ["throttled", "waiting_dependency"],
    ["transient", "retrying"],
  ] as const)("does not shorten a wait that the other side asked for: %s", async (errorClass, status) => {
    const failed = Promise.withResolvers<void>();
    const slow = async () => {
      failed.resolve();
      throw new ToolError("later", { errorClass, code: "busy", retryAfterMs: 60_000 });
    };
    const find = aTool("find", { effect: "read", behave: slow });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    const worker = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await failed.promise;
    await worker.drain(1_000);
    expect((await fleet.load(id)).run.state.status).toBe(status);
  });
});

describe("races", () => {
  test("two workers take over at once: one of them does", async () => {
    const find = aTool("find", { effect: "read" });
    const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
    const workers = [await fleet.start(agent), await fleet.start(agent)];
    const { id: runId } = await fleet.submitQuietly(agent);
    const dead = newId();
    await registerWorker(fleet.store, { id: dead, host: "h", pid: 1, agents: [agent], slots: 1, leaseMs: 60_000 });
    const claim = { runIds: [runId], workerId: dead, progressMs: 60_000, mayTakeSuspect: true };
    expect(await claimRuns(fleet.store, claim)).toHaveLength(1);
    await takeAway(runId);
    const { run } = await fleet.load(runId);
    // The same wake-up under three ids: each worker gets one, and one of them a second.
    await Promise.all(
      [0, 1, 2].map((sweep) => fleet.publisher.publish([{ agent, runId: run.id, version: run.version }], { sweep })),
    );
    await fleet.untilStatus(run.id, "completed");
    const transitions = await fleet.rows("transitions", run.id, "seq");
    expect(transitions.map(({ event }) => event)).toEqual([
      "Submitted",
      "Claimed",
      "OwnerGone",
      "Recovered",
      "Claimed",
      "Ended",
    ]);
    expect(find.executed).toHaveLength(1);
    expect(workers.map(({ id }) => id)).toContain(transitions.at(-1)?.actor_id);
  });

  test("a fact between read and hold: the owner's hold is refused, and the run goes on with the fact", async () => {
    const agent = aDesk(
      [
        async () => {
          const run = await running;
          await recordFact(fleet.store, { runId: run.id, kind: "answer", text: "order 4411", actor: ALICE });
          return { text: "? Which order" };
        },
        { text: "done" },
      ],
      [],
    );
    await fleet.start(agent);
    const running = fleet.submit(agent);
    const { id } = await running;
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "message", "model_reply"]);
    const events = (await fleet.rows("transitions", id, "seq")).map(({ event }) => event);
    expect(events).toEqual(["Submitted", "Claimed", "FactArrived", "Ended"]);
  });

  test("a stale worker wakes after takeover: its late result settles the attempt and moves nothing else", async () => {
    const { behave, reached, open } = gate("paid by the old one");
    const pay = aTool("pay", { effect: { lookUp: {} }, behave });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const stale = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await reached;
    await takeAway(id);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1, owner: null });
    open();
    const queued = await fleet.untilStatus(id, "queued");
    expect(await lastTransition(id)).toMatchObject({
      event: "EffectSettled",
      reason: "late evidence",
      actor_id: stale.id,
    });
    expect(await fleet.rows("attempts", id)).toMatchObject([{ outcome: "succeeded", settled_by: `late:${stale.id}` }]);
    expect(agent.model.asked).toHaveLength(1);
    await stale.drain(1);
    await fleet.start(agent);
    await fleet.wake(queued);
    await fleet.untilStatus(id, "completed");
    expect(pay.executed).toHaveLength(1);
    expect(pay.lookedUp).toBe(0);
  });

  test("a stale worker wakes after takeover and settlement: what it brings is a finding, and changes nothing", async () => {
    const { behave, reached, open } = gate("paid after all");
    const pay = aTool("pay", { effect: "unsafe", behave });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const stale = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await reached;
    await takeAway(id);
    const [attempt] = (await fleet.load(id)).openAttempts;
    await fleet.order(id, { choice: "terminate", attemptIds: [attempt?.id ?? ""] });
    const ended = await fleet.untilStatus(id, "cancelled");
    open();
    const isReported = async () => (await fleet.rows("attempts", id))[0]?.late_at !== null;
    await waitFor(isReported, soon("the finding"));
    expect(await fleet.rows("attempts", id)).toMatchObject([
      { outcome: "not_established", late_evidence: { outcome: "succeeded" } },
    ]);
    const after = await fleet.load(id);
    expect(after.run.state).toEqual(ended.state);
    expect(story(after)).toEqual(["model_reply", "intent pay 1", "pay not_established", "finding"]);
    expect(await lastTransition(id)).toMatchObject({
      event: "EffectSettled",
      from_status: "cancelled",
      to_status: "cancelled",
    });
    await stale.drain(1);
  });

  test("an old approval after the end is refused and recorded", async () => {
    const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER });
    const find = aTool("find", { effect: "read" });
    const quote = aTool("quote", { effect: "read" });
    const script = [{ calls: [ask("find")] }, { calls: [ask("quote")] }, { calls: [ask("pay")] }, { text: "done" }];
    const agent = aDesk(script, [pay, find, quote]);
    await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "waiting_approval");
    await fleet.decide(id, "approve");
    await fleet.untilStatus(id, "completed");
    expect([find, quote, pay].map(({ executed }) => executed.length)).toEqual([1, 1, 1]);
    const [approval] = (await fleet.load(id)).approvals;
    const late = {
      approvalId: approval?.id ?? "",
      decision: "reject",
      argsHash: approval?.argsHash ?? "",
      note: null,
      actor: MAX,
    } as const;
    const before = await loadRun(fleet.store, id);
    expect(await decideApproval(fleet.store, late)).toMatchObject({ result: "refused", rule: "already_decided" });
    expect(await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: null })).toMatchObject({
      result: "refused",
      rule: "run_ended",
    });
    expect((await fleet.rows("refusals", id, "at")).map(({ rule, actor_id }) => [rule, actor_id])).toEqual([
      ["already_decided", "max"],
      ["run_ended", "alice"],
    ]);
    expect((await loadRun(fleet.store, id))?.run).toEqual(before?.run);
    expect(pay.executed).toHaveLength(1);
  });
});
