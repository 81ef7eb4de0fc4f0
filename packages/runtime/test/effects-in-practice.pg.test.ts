// Whole stories of effects before a provider that keeps its own books: what has happened outside is counted there.

import { decideApproval, recordCallback, requestCancel } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Agent } from "../src/index.ts";
import { aProvider, aRefundTool, askRefund, type Fault, type Provider, startMortal } from "./a-provider.ts";
import { aDesk, ask, aTool, NEEDS_MANAGER } from "./desk.ts";
import { ALICE, type Fleet, MANAGER, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
const KEY = { key: { validForMs: DAY_MS } } as const;
const LOOK_UP = { lookUp: { settlesWithinMs: 60_000 } } as const;

const soon = (what: string) => ({ deadlineMs: 20_000, what });
const attempts = (runId: string) => fleet.rows("attempts", runId, "number");
const statusesOf = async (runId: string) =>
  (await fleet.rows("transitions", runId, "seq")).map(({ to_status: status }) => status);

/** Lets a worker take the run up, and waits until it has given it back. */
async function takeUp(runId: string): Promise<void> {
  const { run } = await fleet.load(runId);
  await fleet.wake(run);
  const isBack = async () => {
    const now = await fleet.load(runId);
    return now.run.version > run.version + 1 && now.run.state.owner === null;
  };
  await waitFor(isBack, soon("a worker to have given the run back"));
}

/** Submits a run and waits until its provider keeps a request, or a question, waiting for its answer. */
async function untilWaiting(provider: Provider, begin: () => Promise<unknown>): Promise<() => void> {
  const reached = Promise.withResolvers<void>();
  const { promise, resolve } = Promise.withResolvers<void>();
  provider.answersAfter = promise;
  provider.onWaiting = reached.resolve;
  await begin();
  await reached.promise;
  return () => {
    provider.answersAfter = null;
    resolve();
  };
}

/** What every story comes to: each request carried the one key that was stored before, and money moved so often. */
function expectMoved(provider: Provider, times: number): void {
  expect(provider.refunds).toHaveLength(times);
  expect(provider.unannounced).toEqual([]);
  expect(new Set(provider.requests.map(({ operationId }) => operationId)).size).toBe(times);
}

describe("a part of a charge whose refund is cut off before its answer", () => {
  test.each([
    ["a key for a week", { key: { validForMs: WEEK_MS } }],
    ["a look-up", LOOK_UP],
    ["a key and a look-up", { ...KEY, ...LOOK_UP }],
  ])("is paid back once with %s, whoever dies or tries again: worker, second worker, operator", async (_, effect) => {
    const provider = aProvider(fleet, { remembersForMs: WEEK_MS });
    provider.faults = ["cut_after"];
    const refund = aRefundTool(provider, { effect });
    const agent = aDesk([{ calls: [askRefund("o-34", "3000")] }, { text: "paid" }], [], { tools: [refund] });
    const first = await startMortal(fleet, agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "outcome_unknown");
    // Its worker asks, or repeats, and nobody answers.
    provider.isAway = true;
    await takeUp(id);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
    // It tries again and is killed before it hears the answer.
    provider.isAway = false;
    const answer = await untilWaiting(provider, async () => fleet.wake((await fleet.load(id)).run));
    await first.kill(id);
    answer();
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
    // Nobody finds out within the time for that, and a person is asked.
    await moveClock(fleet.url, 2 * HOUR_MS);
    await fleet.sweep();
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("outcome_unknown");
    await fleet.start(agent);
    await fleet.wake(await fleet.order(id, { choice: "retry" }));
    await fleet.untilStatus(id, "completed");
    expectMoved(provider, 1);
    expect(new Set(provider.requests.map(({ body }) => body)).size).toBe(1);
    expect(await statusesOf(id)).not.toContain("failed");
    expect((await attempts(id)).map(({ outcome }) => outcome)).not.toContain("failed");
    expect(story(await fleet.load(id)).filter((step) => step === "refund succeeded")).toHaveLength(1);
    expect(agent.model.asked).toHaveLength(2);
  });
});

describe("a run that is recovered three days after its refund was sent", () => {
  /** Sent on Monday by a worker that never hears the answer; the clock is Thursday's. */
  async function untilThursday(provider: Provider, effect: Parameters<typeof aRefundTool>[1]["effect"]) {
    const refund = aRefundTool(provider, { effect });
    const agent = aDesk([{ calls: [askRefund("o-35", "3000")] }, { text: "told" }], [], { tools: [refund] });
    const monday = await startMortal(fleet, agent);
    let id = "";
    const isCut = provider.faults.length > 0;
    const begin = async () => {
      ({ id } = await fleet.submit(agent));
    };
    const answer = isCut ? null : await untilWaiting(provider, begin);
    if (isCut) {
      await begin();
      await fleet.untilStatus(id, "outcome_unknown");
    }
    await moveClock(fleet.url, 3 * DAY_MS - HOUR_MS);
    await monday.kill(id);
    answer?.();
    await fleet.start(agent);
    await fleet.wake((await fleet.load(id)).run);
    return id;
  }

  test("asks, and repeats nothing under a key that its provider has forgotten", async () => {
    const provider = aProvider(fleet);
    const id = await untilThursday(provider, { ...KEY, ...LOOK_UP });
    await fleet.untilStatus(id, "completed");
    expect(provider.requests).toHaveLength(1);
    expectMoved(provider, 1);
    expect(await attempts(id)).toMatchObject([{ outcome: "happened", external_ref: provider.refunds[0]?.ref }]);
  });

  test("goes to a person where nobody can be asked, and sends nothing", async () => {
    const provider = aProvider(fleet);
    const id = await untilThursday(provider, KEY);
    const held = await fleet.untilStatus(id, "waiting_operator");
    expect(held.state).toMatchObject({ openAttempts: 1, waitingFor: { reason: "outcome_unknown" } });
    expect((await fleet.rows("transitions", id, "seq")).at(-1)).toMatchObject({ reason: "key_expired" });
    // Not by an operator's order either.
    await fleet.wake(await fleet.order(id, { choice: "retry" }));
    await fleet.untilStatus(id, "waiting_operator");
    expect(provider.requests).toHaveLength(1);
    const [open] = (await fleet.load(id)).openAttempts;
    const result = { refund: provider.refunds[0]?.ref ?? "" };
    await fleet.order(id, { choice: "mark_done", attemptIds: [open?.id ?? ""], result, externalRef: result.refund });
    await fleet.untilStatus(id, "completed");
    expectMoved(provider, 1);
  });

  test("sends it once where the look-up knows that it never arrived", async () => {
    const provider = aProvider(fleet);
    provider.faults = ["cut_before"];
    const id = await untilThursday(provider, { ...KEY, ...LOOK_UP });
    await fleet.untilStatus(id, "completed");
    expect(provider.requests).toHaveLength(1);
    expectMoved(provider, 1);
    expect(await attempts(id)).toMatchObject([{ outcome: "did_not_happen" }, { outcome: "succeeded" }]);
  });
});

describe("a model that asks for the same refund again after a crash", () => {
  /** Approved, sent, and its worker killed before the answer; the provider can be asked again later. */
  async function untilCrashed(provider: Provider, agent: Agent) {
    const first = await startMortal(fleet, agent);
    const { id } = await fleet.submit(agent);
    await fleet.untilStatus(id, "waiting_approval");
    const answer = await untilWaiting(provider, () => fleet.decide(id, "approve"));
    provider.isAway = true;
    await first.kill(id);
    answer();
    await fleet.start(agent);
    return id;
  }

  const twice = [
    { calls: [askRefund("o-37", "3000", "call_A")] },
    { calls: [askRefund("o-37", "3000", "call_B")] },
    { text: "paid" },
  ];

  test("is not asked before the first is settled, and gets the answer of that", async () => {
    const provider = aProvider(fleet);
    const refund = aRefundTool(provider, { effect: { ...KEY, ...LOOK_UP }, rules: NEEDS_MANAGER });
    const agent = aDesk(twice, [], { tools: [refund] });
    const id = await untilCrashed(provider, agent);
    await takeUp(id);
    await takeUp(id);
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
    expect(agent.model.asked).toHaveLength(1);
    provider.isAway = false;
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
    expectMoved(provider, 1);
    expect(story(await fleet.load(id))).toEqual([
      "model_reply",
      "intent refund 1",
      "refund succeeded",
      "model_reply",
      "refund answered_from_record",
      "model_reply",
    ]);
    expect(await fleet.rows("approvals", id)).toMatchObject([{ state: "spent" }]);
  });

  test.each(["reject", "approve"] as const)(
    "needs an approval of its own where equal calls are different operations, and shows the first: %s",
    async (decision) => {
      const provider = aProvider(fleet);
      const effect = { ...KEY, ...LOOK_UP, equalCallsAreDistinct: true };
      const agent = aDesk(twice, [], { tools: [aRefundTool(provider, { effect, rules: NEEDS_MANAGER })] });
      const id = await untilCrashed(provider, agent);
      provider.isAway = false;
      await fleet.wake((await fleet.load(id)).run);
      await fleet.untilStatus(id, "waiting_approval");
      expectMoved(provider, 1);
      const [first, second] = await fleet.rows("approvals", id, "hold_seq");
      expect(second).toMatchObject({
        state: "pending",
        args_hash: first?.args_hash,
        request: { evidence: [{ tool: "refund", result: "succeeded", excerpt: expect.stringContaining("re_1") }] },
      });
      // The approval of the first says nothing about the second.
      const again = {
        approvalId: String(first?.id),
        decision: "approve",
        argsHash: String(first?.args_hash),
        note: "as told",
        actor: MANAGER,
      } as const;
      expect((await decideApproval(fleet.store, again)).result).toBe("repeated");
      expect((await fleet.load(id)).run.state.status).toBe("waiting_approval");
      await fleet.decide(id, decision);
      await fleet.untilStatus(id, "completed");
      expectMoved(provider, decision === "approve" ? 2 : 1);
    },
  );

  test("has a person decide where nobody ever found out about the first", async () => {
    const provider = aProvider(fleet);
    const refund = aRefundTool(provider, { effect: LOOK_UP, rules: NEEDS_MANAGER });
    const agent = aDesk(twice, [], { tools: [refund] });
    const id = await untilCrashed(provider, agent);
    await moveClock(fleet.url, 2 * HOUR_MS);
    await fleet.sweep();
    await fleet.untilStatus(id, "waiting_operator");
    const [open] = (await fleet.load(id)).openAttempts;
    await fleet.order(id, { choice: "not_established", attemptIds: [open?.id ?? ""] });
    const isAsked = async () => (await fleet.load(id)).run.state.waitingFor?.reason === "equal_effect_unknown" || null;
    await waitFor(isAsked, soon("a person to be asked"));
    expect(await fleet.rows("approvals", id)).toHaveLength(1);
    await fleet.order(id, { choice: "skip" });
    await fleet.untilStatus(id, "completed");
    expectMoved(provider, 1);
  });
});

describe("a stop while a refund is under way", () => {
  const script = [{ calls: [askRefund("o-38", "3000"), askRefund("o-38", "1000")] }, { text: "paid" }];

  test("by a person: it stays cancelling until the refund is known, and that it was paid is kept", async () => {
    const provider = aProvider(fleet);
    const agent = aDesk(script, [], { tools: [aRefundTool(provider, { effect: KEY })] });
    await fleet.start(agent, { renewMs: 100 });
    let id = "";
    const answer = await untilWaiting(provider, async () => {
      ({ id } = await fleet.submit(agent));
    });
    const asked = await requestCancel(fleet.store, { runId: id, actor: ALICE, reason: "changed my mind" });
    expect(asked).toMatchObject({ run: { state: { status: "cancelling", openAttempts: 1 } } });
    answer();
    const ended = await fleet.untilStatus(id, "cancelled");
    expect(ended.state).toMatchObject({ openAttempts: 0, outcome: null, endReason: "changed my mind" });
    expect(await attempts(id)).toMatchObject([{ outcome: "succeeded", external_ref: provider.refunds[0]?.ref }]);
    expect(story(await fleet.load(id))).toEqual(["model_reply", "intent refund 1", "refund succeeded"]);
    expect(agent.model.asked).toHaveLength(1);
    expectMoved(provider, 1);
    expect(await statusesOf(id)).toEqual(["queued", "running", "cancelling", "cancelled"]);
  });

  test("by nobody: a worker that dies cannot call its run cancelled, which is lost, found again and goes on", async () => {
    const provider = aProvider(fleet);
    const agent = aDesk(script, [], { tools: [aRefundTool(provider, { effect: { ...KEY, ...LOOK_UP } })] });
    const first = await startMortal(fleet, agent);
    let id = "";
    const answer = await untilWaiting(provider, async () => {
      ({ id } = await fleet.submit(agent));
    });
    const { owner } = (await fleet.load(id)).run.state;
    const dying = { kind: "worker", id: owner ?? "" } as const;
    const asked = await requestCancel(fleet.store, { runId: id, actor: dying, reason: "SIGTERM" });
    expect(asked).toMatchObject({ result: "refused", run: { state: { status: "running" } } });
    await first.kill(id);
    answer();
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "outcome_unknown", cancelRequestedAt: null });
    await fleet.start(agent);
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
    const statuses = await statusesOf(id);
    expect(statuses).toContain("lost");
    expect(statuses).not.toContain("cancelled");
    expect(await fleet.rows("refusals", id)).toMatchObject([{ actor_id: owner }]);
    expectMoved(provider, 2);
  });
});

describe("a refund that its provider accepts on one day and pays two days later", () => {
  test("ends its run once and tells the customer once, whichever reports come, how often, and in what order", async () => {
    const provider = aProvider(fleet);
    let isPaid = false;
    const refund = aRefundTool(provider, {
      effect: KEY,
      output: (ref) => ({ refund: ref, status: "pending" }),
      settlement: {
        isPending: (output) => (output as { status: string }).status === "pending",
        poll: async (_input, { output }) => {
          const { refund: ref } = output as { refund: string };
          return isPaid ? { answer: "settled", output: { refund: ref, status: "paid" } } : { answer: "still_pending" };
        },
        withinMs: WEEK_MS,
      },
    });
    const mail = aTool("mail", { effect: { key: { validForMs: WEEK_MS } } });
    const agent = aDesk([{ calls: [askRefund("o-46", "3000")] }, { calls: [ask("mail")] }, { text: "told" }], [], {
      tools: [refund, mail.tool],
    });
    await fleet.start(agent);
    let id = "";
    const answer = await untilWaiting(provider, async () => {
      ({ id } = await fleet.submit(agent));
    });
    const ref = provider.refunds[0]?.ref ?? "";
    const operationId = provider.refunds[0]?.operationId ?? "";
    const report = (eventId: string, effect: Parameters<typeof recordCallback>[1]["effect"]) =>
      recordCallback(fleet.store, { source: refund.service, eventId: `${ref}_${eventId}`, status: "settled", effect });
    // It is faster than the answer that it is about: the report of an effect that is still under way.
    await report("early", { operationId });
    answer();
    await fleet.untilStatus(id, "waiting_dependency");
    expect(mail.executed).toEqual([]);
    expect(await statusesOf(id)).not.toContain("completed");
    await moveClock(fleet.url, 2 * DAY_MS);
    isPaid = true;
    const results = await Promise.all([1, 2, 3].map(() => report("paid", { externalRef: ref })));
    expect(results.map(({ result }) => result).toSorted()).toEqual(["accepted", "repeated", "repeated"]);
    await fleet.wake((await fleet.load(id)).run);
    await fleet.untilStatus(id, "completed");
    // One that was sent before the others, and comes after them all.
    const ended = (await fleet.load(id)).run;
    await report("created", { externalRef: ref });
    expect((await fleet.load(id)).run.state).toEqual(ended.state);
    expect(mail.executed).toHaveLength(1);
    expect((await statusesOf(id)).filter((status) => status === "completed")).toHaveLength(1);
    expectMoved(provider, 1);
  });
});

describe("whatever befalls the requests of a refund, in whatever order", () => {
  const EFFECTS = [KEY, LOOK_UP, { ...KEY, ...LOOK_UP }, "unsafe"] as const;
  const fault = fc.constantFrom<Fault[]>("cut_before", "cut_after", "cut_after", "throttled", "unavailable", "refused");

  /** Lets time pass and workers work until the run has ended, or only a person can move it. */
  async function untilAtRest(runId: string): Promise<string> {
    for (let round = 1; round < 20; round += 1) {
      const isGiven = async () => {
        const { state } = (await fleet.load(runId)).run;
        return (state.owner === null && state.status !== "queued") || null;
      };
      await waitFor(isGiven, soon("the run to be given back"));
      const { run } = await fleet.load(runId);
      const { status } = run.state;
      if (status === "completed" || status === "waiting_operator") return status;
      await moveClock(fleet.url, round * 600_000);
      await fleet.sweep();
      if (status === "outcome_unknown") await fleet.wake((await fleet.load(runId)).run);
      const isMoved = async () => (await fleet.load(runId)).run.version > run.version || null;
      await waitFor(isMoved, soon(`the ${status} run to move`));
    }
    throw new Error("the run does not come to rest");
  }

  async function expectTruth(provider: Provider, { id, status }: { id: string; status: string }): Promise<void> {
    expect(provider.unannounced).toEqual([]);
    expect(provider.refunds.length).toBeLessThanOrEqual(1);
    expect(new Set(provider.requests.map(({ operationId }) => operationId)).size).toBeLessThanOrEqual(1);
    const { steps, openAttempts } = await fleet.load(id);
    const results = steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body.result] : []));
    const moved = provider.refunds.length;
    if (status === "completed") {
      expect([results, moved, openAttempts]).toEqual(moved === 1 ? [["succeeded"], 1, []] : [["failed"], 0, []]);
    } else {
      // Where money has moved, the person is told that nobody knows, not that it failed.
      expect([results, moved]).toEqual([[], openAttempts.length === 0 ? 0 : moved]);
    }
  }

  test("one key is used, money moves at most once, and the record says what is true, or a person is asked", {
    timeout: 240_000,
  }, async () => {
    const property = fc.asyncProperty(
      fc.constantFrom(...EFFECTS),
      fc.array(fault, { maxLength: 4 }),
      async (effect, faults) => {
        await moveClock(fleet.url, 0);
        const provider = aProvider(fleet);
        provider.faults = [...faults];
        const refund = aRefundTool(provider, { effect });
        const agent = aDesk([{ calls: [askRefund("o-1", "3000")] }, { text: "told" }], [], { tools: [refund] });
        const worker = await fleet.start(agent);
        const { id } = await fleet.submit(agent);
        const isTaken = async () => (await fleet.load(id)).run.version > 1 || null;
        await waitFor(isTaken, soon("the run to be taken up"));
        const status = await untilAtRest(id);
        await worker.drain(1_000);
        await expectTruth(provider, { id, status });
      },
    );
    await fc.assert(property, { numRuns: Math.min(15, fc.readConfigureGlobal()?.numRuns ?? 15) });
  });
});
