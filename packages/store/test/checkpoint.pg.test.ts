import { advance, rebuildCheckpoint, type StepBody } from "@holdpoint/core";
import { expect, test } from "vitest";
import { decideAsOperator, type LoadedRun, recordFact, recordLateEvidence } from "../src/index.ts";
import { ALICE, aCall, aReply, aStart, aWorker, claim, OPERATOR } from "./a-run.ts";
import { aClaimedRun, aResult, lose, moved, ownerOf, reload, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

function expectNoDrift({ run, steps, calls }: LoadedRun): void {
  expect(run.checkpoint).toEqual(rebuildCheckpoint(steps, calls));
}

test("the checkpoint of the row is what its steps give, after everything that appends a step", async () => {
  const [first, second, third] = [aCall(), aCall({ ordinal: 1 }), aCall({ ordinal: 2 })];
  let run = await took(bench.store, await aClaimedRun(bench.store), {
    steps: [aReply([first, second, third])],
    calls: [first, second, third],
  });
  expect(run.run.checkpoint).toMatchObject({ stepSeq: 1, turn: 1, openCalls: 3 });
  expectNoDrift(run);

  // A result, with the next call's intent riding along.
  const [one, two, last] = [aStart(first), aStart(second), aStart(third)];
  run = await took(bench.store, run, { start: one, progress: false });
  const settles = [{ attemptId: one.attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
  run = await took(bench.store, run, { steps: [aResult(first)], settles, start: two });
  expect(run.run).toMatchObject({ stepSeq: 4, checkpoint: { stepSeq: 4, openCalls: 2 } });
  expectNoDrift(run);

  // Late evidence, after the loss of the worker that brings it.
  const before = run;
  await lose(bench.store, run.run);
  const evidence = { runId: run.run.id, attemptId: two.attemptId, workerId: ownerOf(before).id };
  await recordLateEvidence(bench.store, { ...evidence, body: aResult(second), settle: { outcome: "succeeded" } });
  run = await reload(bench.store, run.run.id);
  expectNoDrift(run);

  // A fact that is read in.
  await recordFact(bench.store, { runId: run.run.id, kind: "message", text: "and hurry", actor: ALICE });
  run = await claim(bench.store, run.run.id, await aWorker(bench.store));
  const [fact] = run.unread;
  if (fact === undefined) throw new Error("the fact is not there");
  run = await took(bench.store, run, { steps: [fact.body], readFacts: [fact.id] });
  expect(run.unread).toEqual([]);
  expectNoDrift(run);

  // A look-up's answer, by a transition.
  run = await took(bench.store, run, { start: last, progress: false });
  await lose(bench.store, run.run);
  run = await claim(bench.store, run.run.id, await aWorker(bench.store));
  const body: StepBody = { kind: "did_not_happen", callId: third.id, attempt: 1 };
  await moved(bench.store, {
    run: run.run,
    actor: ownerOf(run),
    events: [{ type: "EffectSettled", by: "owner", wasOpen: true }],
    writes: {
      steps: [body],
      settles: [{ attemptId: last.attemptId, outcome: "did_not_happen", settledBy: "worker" }],
      checkpoint: advance(run.run.checkpoint, { seq: run.run.stepSeq + 1, body }, run.calls),
    },
  });
  run = await reload(bench.store, run.run.id);
  expectNoDrift(run);

  // A person's word.
  const again = aStart(third, 2);
  run = await took(bench.store, run, { start: again, progress: false });
  await lose(bench.store, run.run);
  const answer = { runId: run.run.id, actor: OPERATOR, reason: "seen in the ledger", attemptIds: [again.attemptId] };
  expect(await decideAsOperator(bench.store, { ...answer, choice: "mark_done", result: "done" })).toMatchObject({
    result: "accepted",
  });
  run = await reload(bench.store, run.run.id);
  expect(run.run.checkpoint).toMatchObject({ stepSeq: 10, openCalls: 0, lastCompleted: "send_refund (succeeded)" });
  expectNoDrift(run);
});

test("the checkpoint's step number is the row's, whatever the caller says", async () => {
  const claimed = await aClaimedRun(bench.store);
  const checkpoint = { ...claimed.run.checkpoint, stepSeq: 99 };
  const { run } = await took(bench.store, claimed, { steps: [aReply([])], checkpoint });
  expect(run.checkpoint.stepSeq).toBe(1);
});
