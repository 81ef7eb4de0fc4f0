import { setTimeout as sleep } from "node:timers/promises";
import { requestCancel, requestPause, resumeRun } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Behaviour } from "./desk.ts";
import { brokenConnection, faultyStore } from "./faulty-store.ts";
import { ALICE, type Fleet, OPERATOR, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const LOOK_UP = { lookUp: { settlesWithinMs: 60_000 } } as const;
const QUICK = { renewMs: 100 };
const soon = (what: string) => ({ deadlineMs: 20_000, what });

/** A tool that ignores its signal, and ends when the test says so. */
function deaf() {
  const reached = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  const behave: Behaviour = async (times) => {
    if (times > 1) return "paid again";
    reached.resolve();
    return end.promise;
  };
  return { behave, reached: reached.promise, ends: end.resolve, fails: end.reject };
}

/** A run whose only call outlives its deadline. */
async function outlived(settings: Partial<Parameters<typeof aTool>[1]> = {}) {
  const tool = deaf();
  const pay = aTool("pay", { effect: LOOK_UP, behave: tool.behave, timeoutMs: 300, ...settings });
  const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
  const worker = await fleet.start(agent, QUICK);
  const { id } = await fleet.submit(agent);
  await tool.reached;
  return { ...tool, pay, agent, worker, id };
}

const attempts = (runId: string) => fleet.rows("attempts", runId, "number");

describe("a tool that outlives its deadline", () => {
  test("and comes back: what it brings settles its attempt, and the run goes on with it", async () => {
    const { id, ends, pay } = await outlived();
    await fleet.untilStatus(id, "outcome_unknown");
    ends("paid");
    await fleet.wake(await fleet.untilStatus(id, "queued"));
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toEqual(["model_reply", "intent pay 1", "pay succeeded", "model_reply"]);
    expect(await attempts(id)).toMatchObject([{ outcome: "succeeded", settled_by: expect.stringMatching(/^late:/) }]);
    expect([pay.executed.length, pay.lookedUp]).toEqual([1, 0]);
  });

  test("and says that nothing happened: that is known, and it is tried once more", async () => {
    const { id, fails, pay } = await outlived();
    await fleet.untilStatus(id, "outcome_unknown");
    fails(new ToolError("busy", { errorClass: "transient", code: "busy" }));
    await fleet.wake(await fleet.untilStatus(id, "queued"));
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toContain("call_failed pay 1");
    expect(pay.executed).toHaveLength(2);
  });

  test("and knows nothing itself: it stays to be looked up", async () => {
    const { id, fails, worker } = await outlived();
    await fleet.untilStatus(id, "outcome_unknown");
    fails(new Error("cut"));
    await worker.drain(5_000);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
  });

  test("and comes back after a person had closed it as not established: a finding, which moves nothing", async () => {
    const { id, ends, worker } = await outlived({ effect: "unsafe" });
    await fleet.untilStatus(id, "waiting_operator");
    const [open] = (await fleet.load(id)).openAttempts;
    await fleet.order(id, { choice: "not_established", attemptIds: [open?.id ?? ""] });
    const ended = await fleet.untilStatus(id, "completed");
    ends("paid");
    await worker.drain(5_000);
    expect(await attempts(id)).toMatchObject([
      { outcome: "not_established", late_evidence: { outcome: "succeeded" }, late_at: expect.any(Date) },
    ]);
    const { run } = await fleet.load(id);
    expect(run.state).toEqual(ended.state);
  });

  test("is waited for at the end of its process, within the drain time, and its result stored", async () => {
    const { id, ends, worker } = await outlived();
    await fleet.untilStatus(id, "outcome_unknown");
    const drained = worker.drain(20_000);
    // A tool that takes another second.
    await sleep(1_000);
    ends("paid");
    await drained;
    expect(await attempts(id)).toMatchObject([{ outcome: "succeeded" }]);
  });

  test("keeps no process beyond the drain time", async () => {
    const { id, worker } = await outlived();
    await fleet.untilStatus(id, "outcome_unknown");
    await worker.drain(50);
    expect((await fleet.load(id)).openAttempts).toHaveLength(1);
  });

  test("is reported although the database is away when it comes back", async () => {
    const tool = deaf();
    let away = 0;
    const store = faultyStore(fleet.store, async ({ verb, send }) => {
      if (verb === "load_run" && away > 0) {
        away -= 1;
        throw brokenConnection();
      }
      return send();
    });
    const pay = aTool("pay", { effect: LOOK_UP, behave: tool.behave, timeoutMs: 300 });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent, { store });
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "outcome_unknown");
    away = 2;
    tool.ends("paid");
    await fleet.untilStatus(id, "queued");
    expect(away).toBe(0);
    expect(await attempts(id)).toMatchObject([{ outcome: "succeeded" }]);
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
  });

  test("of a repeat says nothing of the attempt before it by failing", async () => {
    const tool = deaf();
    const pay = aTool("pay", {
      effect: { key: { validForMs: 86_400_000 } },
      timeoutMs: 300,
      behave: async (times, context, input) => {
        if (times === 1) throw new Error("cut");
        return tool.behave(1, context, input);
      },
    });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    const worker = await fleet.start(agent);
    const { id } = await fleet.submit(agent);
    await fleet.wake(await fleet.untilStatus(id, "outcome_unknown"));
    await tool.reached;
    const isBack = async () => (await fleet.load(id)).run.state.owner === null;
    await waitFor(isBack, soon("the repeat to be given up"));
    tool.fails(new ToolError("no", { errorClass: "refused", code: "no" }));
    await worker.drain(5_000);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
  });
});

describe("an effect under way when its run is cancelled", () => {
  const cancel = (runId: string) => requestCancel(fleet.store, { runId, actor: ALICE, reason: null });

  /** An effect that ends early when its signal says so. */
  async function underWay(abortable: boolean) {
    const reached = Promise.withResolvers<AbortSignal>();
    const end = Promise.withResolvers<string>();
    const pay = aTool("pay", {
      effect: LOOK_UP,
      abortable,
      behave: async (_times, { signal }) => {
        signal.addEventListener("abort", () => end.reject(signal.reason), { once: true });
        reached.resolve(signal);
        return end.promise;
      },
      lookUp: async () => ({ answer: "happened", output: "paid" }),
    });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent, QUICK);
    const { id } = await fleet.submit(agent);
    return { pay, id, signal: await reached.promise, ends: end.resolve };
  }

  test("is broken off where its tool is abortable; whether it acted is looked up, and the run has stopped then", async () => {
    const { pay, id, signal } = await underWay(true);
    await cancel(id);
    await waitFor(() => signal.aborted, soon("the effect to be broken off"));
    const isStopped = async () => {
      const { run } = await fleet.load(id);
      if (run.state.owner === null && run.state.status === "cancelling") await fleet.wake(run);
      return run.state.status === "cancelled";
    };
    await waitFor(isStopped, soon("the run to have stopped"));
    expect(pay.lookedUp).toBe(1);
    expect(await attempts(id)).toMatchObject([{ outcome: "happened" }]);
  });

  test("is left to end otherwise", async () => {
    const { id, signal, ends } = await underWay(false);
    await cancel(id);
    const isTold = async () => (await fleet.load(id)).run.state.status === "cancelling";
    await waitFor(isTold, soon("the run to be stopping"));
    ends("paid");
    await fleet.untilStatus(id, "cancelled");
    expect(signal.aborted).toBe(false);
    expect(story(await fleet.load(id))).toContain("pay succeeded");
  });

  test("is not broken off by a pause, abortable or not", async () => {
    const { id, signal, ends } = await underWay(true);
    await requestPause(fleet.store, { runId: id, actor: OPERATOR });
    const lease = async () => {
      const { rows } = await fleet.store.pool.query(
        "select w.lease_until from holdpoint.workers w join holdpoint.runs r on r.owner = w.id where r.id = $1",
        [id],
      );
      return String(rows[0]?.lease_until?.getTime());
    };
    // Two renewals: the second is sent after the first has told of the pause.
    for (let seen = 0, before = await lease(); seen < 3; ) {
      const now = await lease();
      if (now !== before) seen += 1;
      before = now;
    }
    expect(signal.aborted).toBe(false);
    ends("paid");
    await fleet.untilStatus(id, "paused");
    await resumeRun(fleet.store, { runId: id, actor: OPERATOR });
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
    expect(story(await fleet.load(id))).toContain("pay succeeded");
  });
});
