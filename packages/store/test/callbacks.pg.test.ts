import { type Call, operatorHold, type StepBody } from "@holdpoint/core";
import { moveClock } from "@holdpoint/testkit";
import { describe, expect, test } from "vitest";
import {
  type CallbackResult,
  decideAsOperator,
  findRetentionDue,
  findTombstones,
  type ProviderCallback,
  recordCallback,
  removeRuns,
  requestCancel,
  requestPause,
  resumeRun,
  submitRun,
} from "../src/index.ts";
import { ALICE, aCall, aReply, aWorker, claim, OPERATOR } from "./a-run.ts";
import { anOpenEffect, moved, ownerOf, reload, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

let names = 0;

/** A refund that its provider has accepted, under a name of its own. */
async function anAcceptedEffect(): Promise<{ call: Call; ref: string; claimed: Awaited<ReturnType<typeof reload>> }> {
  names += 1;
  const ref = `re_${names}`;
  const { claimed, call, attemptId } = await anOpenEffect(
    bench.store,
    aCall({
      service: "pay",
      effect: {
        kind: "effect",
        keyValidForMs: null,
        lookUpSettlesWithinMs: null,
        equalCallsAreDistinct: false,
        settlement: { everyMs: 60_000, withinMs: 86_400_000 },
      },
    }),
  );
  const pending: StepBody = { kind: "effect_pending", callId: call.id, output: { status: "pending" } };
  const settles = [{ attemptId, outcome: "succeeded", settledBy: "worker", externalRef: ref }] as const;
  return { call, ref, claimed: await took(bench.store, claimed, { steps: [pending], settles }) };
}

/** The same, whose run waits for how it settles. */
async function aPendingEffect() {
  const { claimed, call, ref } = await anAcceptedEffect();
  const run = await moved(bench.store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [
      {
        type: "Held",
        hold: {
          kind: "dependency",
          waitingFor: { kind: "callback", principal: "payments", subject: call.id, reason: "settlement_pending" },
          deadline: { inMs: 60_000 },
          onDeadline: "continue",
        },
      },
    ],
  });
  return { run, call, ref };
}

/** A refund that has settled, and its run has ended. */
async function anEndedEffect() {
  const { claimed, call, ref } = await anAcceptedEffect();
  const result = { kind: "tool_result", callId: call.id, result: "succeeded", output: "done" } as const;
  const reply: StepBody = {
    ...(aReply([], 2) as Extract<StepBody, { kind: "model_reply" }>),
    text: "It is on its way",
  };
  const done = await took(bench.store, claimed, { steps: [result, reply] });
  const ended = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
  const run = await moved(bench.store, { run: done.run, actor: ownerOf(done), events: [ended] });
  return { run, call, ref };
}

function callback(ref: string, patch: Partial<ProviderCallback> = {}): ProviderCallback {
  names += 1;
  return { source: "pay", eventId: `evt_${names}`, status: "settled", effect: { externalRef: ref }, ...patch };
}

const record = (given: ProviderCallback) => recordCallback(bench.store, given);
const stored = (callId: string) =>
  bench.sql("select source, status from holdpoint.callbacks where call_id = $1", [callId]);
const lineOf = (line: string) =>
  bench.sql<{ id: string; status: string }>("select id, status from holdpoint.runs where line = $1 order by id", [
    line,
  ]);

function runOf(result: CallbackResult) {
  if (!("run" in result)) throw new Error(`no run: ${result.result}`);
  return result.run;
}

describe("recordCallback, an effect that its run waits for", () => {
  test.each(["pending", "settled", "failed"] as const)("wakes the run, whose tool asks: %s", async (status) => {
    const { run, call, ref } = await aPendingEffect();
    const result = await record(callback(ref, { status }));
    expect(result).toMatchObject({ result: "accepted", run: { id: run.id, state: { status: "queued" } } });
    const { unread, steps } = await reload(bench.store, run.id);
    const failed = status === "failed" ? { failed: true } : {};
    expect(unread.map(({ body }) => body)).toEqual([{ kind: "callback", callId: call.id, ...failed }]);
    // What it says is not the outcome.
    expect(steps.map(({ body }) => body.kind)).not.toContain("tool_result");
    expect(await stored(call.id)).toEqual([{ source: "pay", status }]);
  });

  test("finds it by the id of its operation as well", async () => {
    const { run, call } = await aPendingEffect();
    const result = await record(callback("", { effect: { operationId: call.operationId } }));
    expect(runOf(result)).toMatchObject({ id: run.id, state: { status: "queued" } });
  });

  test("counts once, however often and however much at once it is delivered", async () => {
    const { run, call, ref } = await aPendingEffect();
    const event = callback(ref);
    const results = await Promise.all(Array.from({ length: 8 }, () => record(event)));
    expect(results.map(({ result }) => result).sort()).toEqual(["accepted", ...Array(7).fill("repeated")]);
    expect(await record(event)).toEqual({ result: "repeated" });
    expect(await stored(call.id)).toHaveLength(1);
    expect((await reload(bench.store, run.id)).unread).toHaveLength(1);
  });

  test("is another's to report: a source speaks for the calls of its own service alone", async () => {
    const { run, call, ref } = await aPendingEffect();
    const foreign = { source: "other", status: "failed" } as const;
    expect(await record(callback(ref, foreign))).toEqual({ result: "not_found" });
    const effect = { operationId: call.operationId };
    expect(await record(callback("", { ...foreign, effect }))).toEqual({ result: "not_found" });
    expect(await stored(call.id)).toEqual([]);
    expect((await reload(bench.store, run.id)).run).toEqual(run);
  });

  test("is found among those of other services that have the same name", async () => {
    const { run, ref } = await aPendingEffect();
    const other = await aPendingEffect();
    await bench.sql("update holdpoint.attempts set external_ref = $1 where run_id = $2", [ref, other.run.id]);
    await bench.sql("update holdpoint.calls set service = 'other' where run_id = $1", [other.run.id]);
    expect(runOf(await record(callback(ref))).id).toBe(run.id);
    expect(runOf(await record(callback(ref, { source: "other" }))).id).toBe(other.run.id);
  });

  test("lets a paused run wait until it is resumed, and go on then", async () => {
    const { run, ref } = await aPendingEffect();
    await requestPause(bench.store, { runId: run.id, actor: OPERATOR });
    expect(runOf(await record(callback(ref))).state.status).toBe("paused");
    const resumed = await resumeRun(bench.store, { runId: run.id, actor: OPERATOR });
    expect(resumed).toMatchObject({ run: { state: { status: "queued" } } });
  });

  test("moves no run that does something else, or waits for somebody else", async () => {
    const { claimed, call, ref } = await anAcceptedEffect();
    expect(runOf(await record(callback(ref))).state.status).toBe("running");
    const hold = operatorHold("blocked", call.id);
    const held = await moved(bench.store, {
      run: (await reload(bench.store, claimed.run.id)).run,
      actor: ownerOf(claimed),
      events: [{ type: "Held", hold }],
    });
    expect(runOf(await record(callback(ref)))).toMatchObject({ id: held.id, state: { status: "waiting_operator" } });
    expect((await reload(bench.store, held.id)).unread).toHaveLength(2);
  });

  test("of something that was never sent is for the sender to repeat, and leaves nothing", async () => {
    const event = callback("re_unknown");
    expect(await record(event)).toEqual({ result: "not_found" });
    expect(await record(callback("", { effect: { operationId: "op_unknown" } }))).toEqual({ result: "not_found" });
    expect(await bench.sql("select from holdpoint.callbacks where event_id = $1", [event.eventId])).toEqual([]);
  });

  test("that it has failed, before its run knows what it came to, has to come again; that it settled is kept", async () => {
    const { claimed, call, attemptId } = await anOpenEffect(bench.store, aCall({ service: "pay" }));
    const effect = { operationId: call.operationId };
    const failed = callback("", { effect, status: "failed" });
    expect(await record(failed)).toEqual({ result: "not_found" });
    expect((await record(callback("", { effect }))).result).toBe("accepted");
    expect((await reload(bench.store, claimed.run.id)).unread).toHaveLength(1);
    const body = { kind: "tool_result", callId: call.id, result: "succeeded", output: "done" } as const;
    const settles = [{ attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
    await took(bench.store, claimed, { steps: [body], settles });
    // Sent again, it is told: the model has been given another answer.
    expect((await record(failed)).result).toBe("accepted");
    expect((await reload(bench.store, claimed.run.id)).unread.map(({ body: { kind } }) => kind)).toEqual([
      "callback",
      "callback",
      "message",
    ]);
  });

  test("goes to the effect that waits, where another one has the same name", async () => {
    const waiting = await aPendingEffect();
    const other = await anEndedEffect();
    await bench.sql("update holdpoint.attempts set external_ref = $1 where run_id = $2", [waiting.ref, other.run.id]);
    expect(runOf(await record(callback(waiting.ref))).id).toBe(waiting.run.id);
  });
});

describe("recordCallback, an effect whose run has ended", () => {
  test.each(["pending", "settled"] as const)("is stored, and tells nobody anything: %s", async (status) => {
    const { run, call, ref } = await anEndedEffect();
    const event = callback(ref, { status });
    expect(await record(event)).toMatchObject({ result: "accepted", run: { id: run.id, version: run.version } });
    expect(await record(event)).toEqual({ result: "repeated" });
    expect(await stored(call.id)).toEqual([{ source: "pay", status }]);
    expect(await lineOf(run.line)).toHaveLength(1);
  });

  test("that has failed since opens a run that waits for an operator, and says what was reported of what", async () => {
    const { run, call, ref } = await anEndedEffect();
    const event = callback(ref, { status: "failed" });
    const result = await record(event);
    expect(result).toMatchObject({
      result: "followed_up",
      run: {
        retryOf: run.id,
        line: run.line,
        sessionId: run.sessionId,
        agent: run.agent,
        requester: "alice",
        submittedBy: "pay",
        holdSeq: 1,
        state: {
          status: "waiting_operator",
          waitingFor: { kind: "operator", reason: "late_settlement", subject: null },
          onDeadline: "escalate",
        },
      },
    });
    const { goal, state } = runOf(result);
    expect(goal).toMatch(new RegExp(`^pay reports that send_refund \\(${ref}\\).*has failed`));
    expect(goal).toContain(run.goal);
    expect(state.waitDeadline).not.toBeNull();
    // What has ended stays as it was.
    expect((await reload(bench.store, run.id)).run).toEqual(run);
    expect(await record(event)).toEqual({ result: "repeated" });
    expect(await stored(call.id)).toHaveLength(1);
  });

  test("is told once, however many events say so and however many at once", async () => {
    const { run, call, ref } = await anEndedEffect();
    const events = Array.from({ length: 6 }, () => callback(ref, { status: "failed" }));
    const results = await Promise.all(events.map(record));
    expect(results.map(({ result }) => result).sort()).toEqual([...Array(5).fill("accepted"), "followed_up"]);
    expect(await stored(call.id)).toHaveLength(6);
    expect(await lineOf(run.line)).toHaveLength(2);
    // Nor again when the follow-up has been dealt with.
    const [followUp] = (await lineOf(run.line)).slice(1);
    const decision = { choice: "abort", actor: OPERATOR, reason: "done by hand", attemptIds: [] } as const;
    const decided = await decideAsOperator(bench.store, { runId: followUp?.id ?? "", ...decision });
    expect(decided).toMatchObject({ run: { state: { status: "cancelled" } } });
    expect((await record(callback(ref, { status: "failed" }))).result).toBe("accepted");
    expect(await lineOf(run.line)).toHaveLength(2);
  });

  test("that was pending when its run was cancelled is told as well", async () => {
    const { run, ref } = await aPendingEffect();
    await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null });
    expect((await record(callback(ref, { status: "failed" }))).result).toBe("followed_up");
  });

  test("is nothing new where it had failed before, or never happened", async () => {
    const { claimed, call, ref } = await anAcceptedEffect();
    const failed = { kind: "tool_result", callId: call.id, result: "failed", output: "failed" } as const;
    const done = await took(bench.store, claimed, { steps: [failed] });
    const ended = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
    await moved(bench.store, { run: done.run, actor: ownerOf(done), events: [ended] });
    expect((await record(callback(ref, { status: "failed" }))).result).toBe("accepted");
    expect(await lineOf(done.run.line)).toHaveLength(1);
  });

  test("is told to the run that does it again, which is live", async () => {
    const { run, call, ref } = await anEndedEffect();
    const { sessionId, agent } = run;
    const again = await submitRun(bench.store, { sessionId, agent, goal: null, actor: ALICE, retryOf: run.id });
    if (again.result !== "submitted") throw new Error(again.result);
    const result = await record(callback(ref, { status: "failed" }));
    expect(result).toMatchObject({ result: "accepted", run: { id: again.run.id, state: { status: "queued" } } });
    const { unread, lineEffects } = await reload(bench.store, again.run.id);
    expect(unread.map(({ body }) => body)).toEqual([
      { kind: "message", from: "pay", text: expect.stringContaining(`(${ref})`) },
    ]);
    expect(lineEffects).toMatchObject([{ callId: call.id, result: "not_established" }]);
    expect((await record(callback(ref, { status: "failed" }))).result).toBe("accepted");
    expect((await reload(bench.store, again.run.id)).unread).toHaveLength(1);
    expect(await lineOf(run.line)).toHaveLength(2);
  });

  test("that has failed since counts as not established for whoever does it again", async () => {
    const { run, ref } = await anEndedEffect();
    const followUp = runOf(await record(callback(ref, { status: "failed" })));
    const order = { choice: "retry", actor: OPERATOR, reason: "again", attemptIds: [] } as const;
    await decideAsOperator(bench.store, { runId: followUp.id, ...order });
    const claimed = await claim(bench.store, followUp.id, await aWorker(bench.store));
    expect(claimed.lineEffects).toMatchObject([{ tool: "send_refund", result: "not_established" }]);
    expect(claimed.unread).toMatchObject([{ body: { kind: "message", from: "pay" } }]);
    expect(claimed.messages.map(({ text }) => text)).toEqual(["refund order 4411"]);
    expect((await reload(bench.store, run.id)).run.state.status).toBe("completed");
  });

  test("that was never settled counts so as well", async () => {
    const { run, call } = await aPendingEffect();
    await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null });
    const { sessionId, agent } = run;
    const again = await submitRun(bench.store, { sessionId, agent, goal: null, actor: ALICE, retryOf: run.id });
    const { lineEffects } = await reload(bench.store, again.result === "submitted" ? again.run.id : "");
    expect(lineEffects).toMatchObject([{ callId: call.id, result: "not_established", output: { status: "pending" } }]);
  });
});

describe("recordCallback, an effect of a live run that has its result", () => {
  test("and has failed since is told to the run, once", async () => {
    const { claimed, call, ref } = await anAcceptedEffect();
    const result = { kind: "tool_result", callId: call.id, result: "succeeded", output: "done" } as const;
    const done = await took(bench.store, claimed, { steps: [result] });
    await record(callback(ref, { status: "failed" }));
    await record(callback(ref, { status: "failed" }));
    const reported = { kind: "callback", callId: call.id, failed: true };
    expect((await reload(bench.store, done.run.id)).unread.map(({ body }) => body)).toEqual([
      reported,
      { kind: "message", from: "pay", text: expect.stringContaining("has failed") },
      reported,
    ]);
  });

  test("commits while its run ends: the end is seen, and a person told", async () => {
    const { claimed, call, ref } = await anAcceptedEffect();
    const result = { kind: "tool_result", callId: call.id, result: "succeeded", output: "done" } as const;
    const done = await took(bench.store, claimed, { steps: [result] });
    const ended = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
    const [, reported] = await bench.inOrder(
      done.run.id,
      (store) => moved(store, { run: done.run, actor: ownerOf(done), events: [ended] }),
      (store) => recordCallback(store, callback(ref, { status: "failed" })),
    );
    expect(reported).toMatchObject({ result: "followed_up", run: { retryOf: done.run.id } });
  });
});

test("a callback whose answer was lost is stored, and known when it is sent again", async () => {
  const { run, call, ref } = await aPendingEffect();
  const event = callback(ref);
  const result = await bench.answerLost(run.id, (store) => recordCallback(store, event));
  expect(["accepted", "repeated"]).toContain(result.result);
  expect(await record(event)).toEqual({ result: "repeated" });
  expect(await stored(call.id)).toHaveLength(1);
});

test("a failure that is reported once the run is past its retention stands on its tombstone, once", async () => {
  const { run, ref } = await anEndedEffect();
  await moveClock(bench.url, 31 * 86_400_000);
  try {
    const { removed } = await removeRuns(bench.store, await findRetentionDue(bench.store, 100));
    expect(removed.flatMap(({ runIds }) => runIds)).toContain(run.id);
    expect(await record(callback(ref, { source: "somebody-else", status: "failed" }))).toEqual({ result: "not_found" });
    const quiet = { result: "buried", runId: run.id, isNews: false };
    expect(await record(callback(ref, { status: "settled" }))).toEqual(quiet);
    expect(await findTombstones(bench.store, { externalRef: ref })).toMatchObject([{ effects: [{ failedAt: null }] }]);
    const reports = await Promise.all([1, 2].map(() => record(callback(ref, { status: "failed" }))));
    expect(reports).toHaveLength(2);
    expect(reports).toEqual(expect.arrayContaining([quiet, { ...quiet, isNews: true }]));
    const [tombstone] = await findTombstones(bench.store, { externalRef: ref });
    expect(tombstone?.effects).toMatchObject([{ outcome: "succeeded", failedAt: expect.any(String) }]);
  } finally {
    await moveClock(bench.url, 0);
  }
});
