import { advance } from "@holdpoint/core";
import { expect, test } from "vitest";
import {
  commitSteps,
  decideAsOperator,
  type LateEvidence,
  type LoadedRun,
  type Move,
  newId,
  recordLateEvidence,
  requestCancel,
  type Store,
  submitRun,
  transitionOne,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aStart, aWorker, claim, OPERATOR } from "./a-run.ts";
import { anOpenEffect, anUnknownAtOperator, anUnknownRun, aResult, lose, moved, ownerOf, reload } from "./a-status.ts";
import { deadlocksOf, useBench } from "./a-store.ts";

const bench = useBench();

type Unknown = Awaited<ReturnType<typeof anUnknownRun>>;

/** The first worker comes back: its call had acted. */
function evidence({ run, worker, call, attemptId }: Unknown): LateEvidence {
  return {
    runId: run.id,
    attemptId,
    workerId: worker.id,
    body: aResult(call, { refund: "re_1" }),
    settle: { outcome: "happened", externalRef: "re_1" },
  };
}

/** The second worker has looked the attempt up: nothing had happened. */
function lookUpSays(claimed: LoadedRun, { call, attemptId }: Unknown): Move {
  const body = { kind: "did_not_happen", callId: call.id, attempt: 1 } as const;
  return {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "EffectSettled", by: "owner", wasOpen: true }],
    writes: {
      steps: [body],
      settles: [{ attemptId, outcome: "did_not_happen", settledBy: "worker" }],
      checkpoint: advance(claimed.run.checkpoint, { seq: claimed.run.stepSeq + 1, body }, claimed.calls),
    },
  };
}

async function attempt(attemptId: string) {
  const [row] = await bench.sql(
    "select outcome, settled_by, external_ref, late_evidence from holdpoint.attempts where id = $1",
    [attemptId],
  );
  return row;
}

test("evidence about an open attempt settles it, and its run starts anew", async () => {
  const unknown = await anUnknownRun(bench.store);
  expect(await recordLateEvidence(bench.store, evidence(unknown))).toBe("settled");
  const { run, steps } = await reload(bench.store, unknown.run.id);
  expect(run).toMatchObject({ externalRef: null, state: { status: "queued", openAttempts: 0, lookUpsEndAt: null } });
  expect(steps.at(-1)?.body).toMatchObject({ kind: "tool_result", output: { refund: "re_1" } });
  expect(await attempt(unknown.attemptId)).toMatchObject({
    outcome: "happened",
    external_ref: "re_1",
    late_evidence: null,
  });
});

test("evidence commits while a look-up's step waits: the step takes nothing, and attempt and steps agree", async () => {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  const [late, looked] = await bench.inOrder(
    unknown.run.id,
    (store) => recordLateEvidence(store, evidence(unknown)),
    (store) => transitionOne(store, lookUpSays(claimed, unknown)),
  );
  expect(late).toBe("settled");
  expect(looked).toMatchObject({ result: "conflict", current: { state: { status: "queued", owner: null } } });
  const { steps } = await reload(bench.store, unknown.run.id);
  expect(steps.map(({ body }) => body.kind)).toEqual(["model_reply", "intent", "tool_result"]);
  expect(await attempt(unknown.attemptId)).toMatchObject({ outcome: "happened" });
});

test("a look-up's step commits while evidence waits: the evidence becomes a finding and moves nothing", async () => {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  const [looked, late] = await bench.inOrder(
    unknown.run.id,
    (store) => transitionOne(store, lookUpSays(claimed, unknown)),
    (store) => recordLateEvidence(store, evidence(unknown)),
  );
  expect(looked).toMatchObject({ result: "accepted", run: { state: { status: "running" } } });
  expect(late).toBe("finding");
  const { run, steps } = await reload(bench.store, unknown.run.id);
  expect(run.state).toMatchObject({ status: "running", owner: ownerOf(claimed).id, openAttempts: 0 });
  expect(steps.map(({ body }) => body.kind)).toEqual(["model_reply", "intent", "did_not_happen", "finding"]);
  // The owner has not seen it yet: nothing that it starts on what it knows is taken.
  const known = { ...claimed, run: { ...claimed.run, stepSeq: claimed.run.stepSeq + 1 } };
  const [next] = await commitSteps(bench.store, [aCommit(known, { start: aStart(unknown.call, 2) })]);
  expect(next).toEqual({ result: "reload" });
  expect(await attempt(unknown.attemptId)).toMatchObject({
    outcome: "did_not_happen",
    late_evidence: { outcome: "happened", externalRef: "re_1", errorClass: null, errorCode: null },
  });
});

test("a repeat under the same key commits while evidence about the first try waits: a finding", async () => {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  const start = { ...aStart(unknown.call, 2), supersedes: unknown.attemptId };
  const [[repeated], late] = await bench.inOrder(
    unknown.run.id,
    (store) => commitSteps(store, [aCommit(claimed, { start, progress: false })]),
    (store) => recordLateEvidence(store, evidence(unknown)),
  );
  expect(repeated).toMatchObject({ result: "taken", started: true, status: "outcome_unknown" });
  expect(late).toBe("finding");
  const { run, openAttempts } = await reload(bench.store, unknown.run.id);
  expect(openAttempts).toMatchObject([{ id: start.attemptId, number: 2 }]);
  expect(run.state).toMatchObject({ status: "outcome_unknown", openAttempts: 1 });
  expect(await attempt(unknown.attemptId)).toMatchObject({
    outcome: "superseded",
    late_evidence: { outcome: "happened" },
  });
});

test("evidence commits while a repeat waits: nothing is started", async () => {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  const start = { ...aStart(unknown.call, 2), supersedes: unknown.attemptId };
  const [late, [repeated]] = await bench.inOrder(
    unknown.run.id,
    (store) => recordLateEvidence(store, evidence(unknown)),
    (store) => commitSteps(store, [aCommit(claimed, { start, progress: false })]),
  );
  expect(late).toBe("settled");
  expect(repeated).toEqual({ result: "replaced" });
  expect((await reload(bench.store, unknown.run.id)).openAttempts).toEqual([]);
});

/** A run that is being stopped while its second worker looks the first one's attempt up. */
async function aStoppedLookUp() {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  await requestCancel(bench.store, { runId: unknown.run.id, actor: ALICE, reason: null });
  return { unknown, claimed };
}

const lookUpsStep =
  ({ unknown, claimed }: Awaited<ReturnType<typeof aStoppedLookUp>>) =>
  (store: Store) =>
    commitSteps(store, [
      aCommit(claimed, {
        steps: [{ kind: "did_not_happen", callId: unknown.call.id, attempt: 1 }],
        settles: [{ attemptId: unknown.attemptId, outcome: "did_not_happen", settledBy: "worker" }],
      }),
    ]);

test("evidence commits while the owner's own step waits: the owner is told to load again, not that its step was taken", async () => {
  const stopped = await aStoppedLookUp();
  const [late, [looked]] = await bench.inOrder(
    stopped.unknown.run.id,
    (store) => recordLateEvidence(store, evidence(stopped.unknown)),
    lookUpsStep(stopped),
  );
  expect(late).toBe("settled");
  expect(looked).toEqual({ result: "reload" });
  const { run, steps } = await reload(bench.store, stopped.unknown.run.id);
  expect(steps.at(-1)?.body).toMatchObject({ kind: "tool_result", output: { refund: "re_1" } });
  expect(run.state).toMatchObject({ status: "cancelling", owner: ownerOf(stopped.claimed).id, openAttempts: 0 });
});

test("the owner's own step commits while evidence waits: a finding", async () => {
  const stopped = await aStoppedLookUp();
  const [[looked], late] = await bench.inOrder(stopped.unknown.run.id, lookUpsStep(stopped), (store) =>
    recordLateEvidence(store, evidence(stopped.unknown)),
  );
  expect(looked).toMatchObject({ result: "taken", status: "cancelling" });
  expect(late).toBe("finding");
  expect(await attempt(stopped.unknown.attemptId)).toMatchObject({
    outcome: "did_not_happen",
    late_evidence: { outcome: "happened" },
  });
});

test("evidence and steps of several runs in opposite orders never deadlock", async () => {
  const unknowns = await Promise.all(Array.from({ length: 4 }, () => anUnknownRun(bench.store)));
  const workerId = await aWorker(bench.store);
  const claimed: LoadedRun[] = [];
  for (const { run } of unknowns) claimed.push(await claim(bench.store, run.id, workerId));
  const repeats = claimed.map((each, n) => {
    const { call, attemptId } = unknowns[n] ?? { call: aCall(), attemptId: newId() };
    return aCommit(each, { start: { ...aStart(call, 2), supersedes: attemptId }, progress: false });
  });
  const deadlocks = await deadlocksOf(bench, (store) =>
    Promise.all([
      ...unknowns.toReversed().map((unknown) => recordLateEvidence(store, evidence(unknown))),
      commitSteps(store, repeats),
    ]),
  );
  expect(deadlocks).toBe(0);
  for (const { attemptId } of unknowns) {
    const row = await attempt(attemptId);
    expect([row?.outcome, row?.late_evidence?.outcome]).toContain("happened");
  }
});

test("evidence for a run that waits for an operator because of it lets the run go on", async () => {
  const unknown = await anUnknownAtOperator(bench.store);
  expect(unknown.run.state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "outcome_unknown" } });
  expect(await recordLateEvidence(bench.store, evidence(unknown))).toBe("settled");
  expect((await reload(bench.store, unknown.run.id)).run.state).toMatchObject({ status: "queued", openAttempts: 0 });
});

test("evidence after the end is kept as a finding, and the run does not move", async () => {
  const unknown = await anUnknownAtOperator(bench.store);
  await decideAsOperator(bench.store, {
    runId: unknown.run.id,
    choice: "terminate",
    actor: OPERATOR,
    reason: "given up",
    attemptIds: [unknown.attemptId],
  });
  const ended = (await reload(bench.store, unknown.run.id)).run;
  expect(ended.state.status).toBe("cancelled");
  expect(await recordLateEvidence(bench.store, evidence(unknown))).toBe("finding");
  expect((await reload(bench.store, unknown.run.id)).run.state).toEqual(ended.state);
  expect(await attempt(unknown.attemptId)).toMatchObject({
    outcome: "not_established",
    settled_by: "person:olga",
    late_evidence: { outcome: "happened" },
  });
  const { sessionId, agent, id: retryOf } = ended;
  const again = await submitRun(bench.store, { sessionId, agent, goal: null, actor: ALICE, retryOf });
  if (again.result !== "submitted") throw new Error(again.result);
  const { lineEffects } = await claim(bench.store, again.run.id, await aWorker(bench.store));
  expect(lineEffects).toContainEqual(expect.objectContaining({ callId: unknown.call.id, result: "succeeded" }));
});

test("the same evidence twice keeps the first", async () => {
  const unknown = await anUnknownRun(bench.store);
  await recordLateEvidence(bench.store, evidence(unknown));
  const again = { ...evidence(unknown), settle: { outcome: "failed", errorCode: "E1" } as const };
  expect(await recordLateEvidence(bench.store, again)).toBe("finding");
  const third = { ...evidence(unknown), settle: { outcome: "failed", errorCode: "E2" } as const };
  expect(await recordLateEvidence(bench.store, third)).toBe("finding");
  expect(await attempt(unknown.attemptId)).toMatchObject({ outcome: "happened", late_evidence: { errorCode: "E1" } });
});

test("evidence ends a run that was being stopped and has no owner", async () => {
  const { claimed, call, attemptId } = await anOpenEffect(bench.store);
  const worker = ownerOf(claimed);
  await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: null });
  const stopped = await reload(bench.store, claimed.run.id);
  const run = await moved(bench.store, {
    run: stopped.run,
    actor: { kind: "sweeper", id: "s" },
    events: [{ type: "OwnerGone", reason: "lease_expired" }],
  });
  expect(run.state).toMatchObject({ status: "cancelling", owner: null, openAttempts: 1 });
  expect(await recordLateEvidence(bench.store, evidence({ run, worker, call, attemptId }))).toBe("settled");
  expect((await reload(bench.store, run.id)).run.state).toMatchObject({ status: "cancelled", openAttempts: 0 });
});

test("evidence about a run or an attempt that is not there is not found", async () => {
  const unknown = await anUnknownRun(bench.store);
  expect(await recordLateEvidence(bench.store, { ...evidence(unknown), runId: newId() })).toBe("not_found");
  expect(await recordLateEvidence(bench.store, { ...evidence(unknown), attemptId: newId() })).toBe("not_found");
  expect((await reload(bench.store, unknown.run.id)).run).toEqual(unknown.run);
});

test("an end with an open attempt is refused, whoever asks for it", async () => {
  const { claimed } = await anOpenEffect(bench.store);
  const blind = { ...claimed.run, state: { ...claimed.run.state, openAttempts: 0 } };
  const end = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
  await expect(
    transitionOne(bench.store, { run: blind, actor: ownerOf(claimed), events: [end] }),
  ).rejects.toMatchObject({
    constraint: "no_end_with_open_work",
  });
  const seen = await moved(bench.store, { run: claimed.run, actor: ownerOf(claimed), events: [end] });
  expect(seen.state).toMatchObject({ status: "outcome_unknown", endedAt: null });
  expect(
    (await lose(bench.store, (await claim(bench.store, seen.id, await aWorker(bench.store))).run)).state.status,
  ).toBe("outcome_unknown");
});

test("an owner that settles an attempt and goes on has its time for the next progress anew", async () => {
  const unknown = await anUnknownRun(bench.store);
  const claimed = await claim(bench.store, unknown.run.id, await aWorker(bench.store));
  const move = lookUpSays(claimed, unknown);
  const progressMs = 900_000;
  const settled = await moved(bench.store, { ...move, writes: { ...move.writes, progressMs } });
  expect(settled.state.status).toBe("running");
  expect((settled.progressDueAtMs ?? 0) - (claimed.run.progressDueAtMs ?? 0)).toBeGreaterThan(progressMs / 2);
});
