import { commitSteps, findViolations, markExited, retireWorker } from "@holdpoint/store";
import { findRun } from "@holdpoint/store/read";
import { describe, expect, test } from "vitest";
import { problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, ask, callForRefund, claim, startRefund, stored } from "./stage-run.ts";

const api = useTestApi();
const olga = () => api.as("olga-token");

async function aSentRefund() {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  const attemptId = await startRefund(api.store, run.id, { ...owner, callId });
  const shown = (await olga().showRun({ runId: run.id })).owner?.workerId ?? "";
  return { runId: run.id, ...owner, callId, attemptId, shown };
}

/** A run that is worked on and has sent nothing. */
async function aReadingRun() {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  return { runId: run.id, ...owner, shown: (await olga().showRun({ runId: run.id })).owner?.workerId ?? "" };
}

const historyOf = async (runId: string) => {
  const { rows } = await api.store.pool.query<{ event: string; actor_kind: string; actor_id: string; reason: string }>(
    "select event, actor_kind, actor_id, reason from holdpoint.transitions where run_id = $1 order by seq",
    [stored(runId)],
  );
  return rows;
};

describe("plan-restart", () => {
  test("says of each run what is open, with its class, and what becomes of it; and changes nothing", async () => {
    const sent = await aSentRefund();
    const before = await historyOf(sent.runId);
    const { workers } = await olga().planRestart({ worker: sent.shown });
    expect(workers).toMatchObject([
      {
        workerId: sent.shown,
        silent: false,
        runs: [
          {
            runId: sent.runId,
            status: "running",
            becomes: "outcome_unknown",
            currentStep: "send_refund",
            effects: [
              {
                tool: "send_refund",
                number: 1,
                effectClass: "key",
                settledBy: "the other side may not know its key any more: an operator is asked",
              },
            ],
          },
        ],
      },
    ]);
    expect(workers[0]?.drained).toMatch(/calls under way are waited for, the last until /);
    expect(workers[0]?.killed).toMatch(/of its runs become: 1 outcome unknown$/);
    expect(await historyOf(sent.runId)).toEqual(before);
  });

  test("of a host is of all its workers that have not gone", async () => {
    const [one, other] = [await aReadingRun(), await aReadingRun()];
    const { host } = await olga().showWorker({ workerId: one.shown });
    await markExited(api.store, other.workerId);
    const { workers } = await olga().planRestart({ worker: host });
    const ids = workers.map(({ workerId }) => workerId);
    expect(ids).toContain(one.shown);
    expect(ids).not.toContain(other.shown);
    const mine = workers.find(({ workerId }) => workerId === one.shown);
    expect(mine?.runs).toMatchObject([{ runId: one.runId, becomes: "queued", effects: [] }]);
  });

  test("of nobody who is known is not found", async () => {
    expect(await problemOf(olga().planRestart({ worker: "no-such-host" }))).toMatchObject({ code: "not_found" });
    expect(await problemOf(api.as("alice-token").planRestart({ worker: "h" }))).toMatchObject({ code: "forbidden" });
  });

  test("foretells what happens: the run becomes just that", async () => {
    const sent = await aSentRefund();
    const [worker] = (await olga().planRestart({ worker: sent.shown })).workers;
    const { status } = await olga().takeOverRun({ runId: sent.runId, apply: true, reason: "checked" });
    expect(status).toBe(worker?.runs[0]?.becomes);
  });
});

describe("takeover", () => {
  test("only says what it would do unless it is told to do it", async () => {
    const run = await aReadingRun();
    const before = await historyOf(run.runId);
    expect(await olga().takeOverRun({ runId: run.runId })).toMatchObject({
      applied: false,
      workerId: run.shown,
      status: "running",
      forecast: { becomes: "queued", effects: [] },
    });
    expect(await historyOf(run.runId)).toEqual(before);
  });

  test("takes the run by the operator's name and reason, and another may claim it", async () => {
    const run = await aReadingRun();
    const taken = await olga().takeOverRun({ runId: run.runId, apply: true, reason: "it hangs" });
    expect(taken).toMatchObject({ applied: true, workerId: run.shown, status: "queued" });
    expect((await historyOf(run.runId)).slice(-2)).toEqual([
      { event: "OwnerGone", actor_kind: "operator", actor_id: "olga", reason: "taken_over: it hangs" },
      { event: "Recovered", actor_kind: "operator", actor_id: "olga", reason: "taken_over: it hangs" },
    ]);
    const next = await claim(api.store, run.runId);
    expect(next.epoch).toBe(run.epoch + 1);
  });

  test("never lets an effect be made twice: what was sent is looked up, and the old worker begins nothing more", async () => {
    const sent = await aSentRefund();
    const taken = await olga().takeOverRun({ runId: sent.runId, apply: true, reason: "it hangs" });
    expect(taken).toMatchObject({ applied: true, status: "outcome_unknown" });
    const view = await findRun(api.store, stored(sent.runId));
    expect(view?.run.state).toMatchObject({ openAttempts: 1, owner: null, lostReason: "taken_over" });
    const { checkpoint, stepSeq } = view?.run ?? { checkpoint: null, stepSeq: 0 };
    if (checkpoint === null) throw new Error("the run is gone");
    // What the old worker commits now is refused whole: no intent of its is stored, so nothing may be sent.
    const late = {
      runId: stored(sent.runId),
      workerId: sent.workerId,
      epoch: sent.epoch,
      stepSeq,
      steps: [],
      start: {
        body: { kind: "intent", callId: sent.callId, attempt: 2 },
        attemptId: sent.attemptId,
        deadlineMs: 1_000,
        externalRef: "op_2",
        argsHash: "h",
        approvalId: null,
        policyRevision: sent.policyRevision,
        supersedes: null,
      },
      checkpoint,
      currentStep: "send_refund",
      progressMs: 1_000,
      progress: true,
    } as const;
    expect(await commitSteps(api.store, [late])).toEqual([{ result: "replaced" }]);
    const { rows } = await api.store.pool.query("select number from holdpoint.attempts where run_id = $1", [
      stored(sent.runId),
    ]);
    expect(rows).toHaveLength(1);
    expect(await findViolations(api.store)).toEqual([]);
  });

  test("of a run that nobody has is refused, and recorded where it was to be done", async () => {
    const run = await aRun(api);
    await ask(api.store, run.id, await claim(api.store, run.id));
    expect(await problemOf(olga().takeOverRun({ runId: run.id }))).toMatchObject({
      rule: "nobody_owns_it",
      status: 409,
    });
    const refused = await problemOf(olga().takeOverRun({ runId: run.id, apply: true, reason: "why" }));
    expect(refused).toMatchObject({ rule: "nobody_owns_it" });
    const { items } = await olga().showTimeline({ runId: run.id });
    expect(items.filter(({ kind }) => kind === "refusal")).toMatchObject([
      { rule: "nobody_owns_it", event: "OwnerGone" },
    ]);
  });

  test("needs a reason to be done, and an operator", async () => {
    const run = await aReadingRun();
    expect(await problemOf(olga().takeOverRun({ runId: run.runId, apply: true }))).toMatchObject({
      status: 400,
      message: expect.stringContaining("body.reason"),
    });
    expect(await problemOf(api.as("alice-token").takeOverRun({ runId: run.runId }))).toMatchObject({ status: 403 });
  });

  test("of two operators at once one takes it, and the other is told that nobody has it", async () => {
    const run = await aReadingRun();
    const order = { runId: run.runId, apply: true, reason: "hangs" };
    const both = await Promise.allSettled([olga().takeOverRun(order), olga().takeOverRun(order)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await historyOf(run.runId)).filter(({ event }) => event === "OwnerGone")).toHaveLength(1);
  });
});

describe("drain", () => {
  test("is a request on the worker's row, kept with who asked first, and can be made stricter", async () => {
    const run = await aReadingRun();
    const asked = await olga().drainWorker({ workerId: run.shown });
    expect(asked).toMatchObject({
      id: run.shown,
      drainRequestedBy: "olga",
      stayDown: false,
      ownedRuns: 1,
      goneAt: null,
    });
    const again = await olga().drainWorker({ workerId: run.shown, stayDown: true });
    expect(again).toMatchObject({ drainRequestedAt: asked.drainRequestedAt, stayDown: true });
    expect(await olga().drainWorker({ workerId: run.shown })).toMatchObject({ stayDown: true });
    const explained = await olga().explainRun({ runId: run.runId });
    expect(explained.runs[0]?.owner?.drainRequestedAt).toBe(asked.drainRequestedAt);
    expect((await olga().listWorkers()).items.find(({ id }) => id === run.shown)).toMatchObject({ stayDown: true });
  });

  test("of a worker that is gone, or is none, is refused", async () => {
    const run = await aReadingRun();
    await retireWorker(api.store, run.workerId);
    expect(await problemOf(olga().drainWorker({ workerId: run.shown }))).toMatchObject({
      rule: "worker_gone",
      status: 409,
    });
    const nobody = run.shown.replace(/.{4}$/, "0000");
    expect(await problemOf(olga().drainWorker({ workerId: nobody }))).toMatchObject({ code: "not_found" });
    expect(await problemOf(olga().showWorker({ workerId: nobody }))).toMatchObject({ code: "not_found" });
    expect(await problemOf(olga().drainWorker({ workerId: "wrk_1" }))).toMatchObject({ status: 400 });
  });
});
