import { moveClock } from "@holdpoint/testkit";
import { afterEach, expect, test } from "vitest";
import {
  commitSteps,
  decideAsOperator,
  findOverdue,
  newId,
  type OperatorDecision,
  type Run,
  recordFact,
  requestCancel,
  requestPause,
  resumeRun,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aRun, aStart, aWorker, claim, OPERATOR } from "./a-run.ts";
import {
  accepted,
  aHeldRun,
  anOpenEffect,
  anUnknownAtOperator,
  anUnknownRun,
  aPlannedRun,
  MINUTE_MS,
  operatorHold,
  QUESTION,
  RUNS,
  released,
  reload,
} from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

afterEach(() => moveClock(bench.url, 0));

function decide(run: Run, choice: OperatorDecision["choice"], rest: Partial<OperatorDecision> = {}) {
  return decideAsOperator(bench.store, {
    runId: run.id,
    choice,
    actor: OPERATOR,
    reason: "seen",
    attemptIds: [],
    ...rest,
  });
}

function refusals(runId: string) {
  return bench.sql(
    "select rule, event, status, actor_kind, actor_id from holdpoint.refusals where run_id = $1 order by at",
    [runId],
  );
}

async function attempts(runId: string) {
  return bench.sql(
    "select outcome, settled_by, external_ref from holdpoint.attempts where run_id = $1 order by number",
    [runId],
  );
}

// --- Facts ---

test("an answer counts for the hold that asked, once", async () => {
  const run = await aHeldRun(bench.store, QUESTION);
  const answer = {
    runId: run.id,
    kind: "answer",
    text: "order 4411",
    actor: ALICE,
    holdSeq: run.holdSeq ?? 0,
  } as const;
  const answers = await bench.inOrder(
    run.id,
    (store) => recordFact(store, answer),
    (store) => recordFact(store, answer),
  );
  expect(answers).toMatchObject([
    { result: "accepted", run: { state: { status: "queued" } } },
    { result: "refused", rule: "hold_is_over" },
  ]);
  expect(await refusals(run.id)).toMatchObject([{ rule: "hold_is_over", event: "FactArrived", actor_id: "alice" }]);
});

test("an answer that comes before the hold is stored is kept for it", async () => {
  const run = await aRun(bench.store);
  expect(await recordFact(bench.store, { runId: run.id, kind: "answer", text: "4411", actor: ALICE })).toMatchObject({
    result: "accepted",
    run: { version: 2, state: { status: "queued" } },
  });
  expect((await reload(bench.store, run.id)).unread).toMatchObject([{ body: { text: "4411" } }]);
});

test("an answer to a hold counts while the run is paused, and after it was resumed", async () => {
  const during = await aHeldRun(bench.store, QUESTION);
  const after = await aHeldRun(bench.store, QUESTION);
  for (const { id } of [during, after]) await requestPause(bench.store, { runId: id, actor: OPERATOR });
  const answer = ({ id, holdSeq }: Run) =>
    recordFact(bench.store, { runId: id, kind: "answer", text: "4411", actor: ALICE, holdSeq: holdSeq ?? 0 });
  expect(await answer(during)).toMatchObject({
    result: "accepted",
    run: { state: { status: "paused", resumeTo: { to: "queued" } } },
  });
  const resumed = accepted(await resumeRun(bench.store, { runId: after.id, actor: OPERATOR }));
  expect(resumed.state.status).toBe("waiting_input");
  expect(await answer(after)).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
});

test("a message after the end is refused and recorded", async () => {
  const run = await RUNS.completed(bench.store);
  expect(await recordFact(bench.store, { runId: run.id, kind: "message", text: "wait", actor: ALICE })).toMatchObject({
    result: "refused",
    rule: "run_ended",
  });
  expect(await refusals(run.id)).toEqual([
    { rule: "run_ended", event: "FactArrived", status: "completed", actor_kind: "requester", actor_id: "alice" },
  ]);
  expect(await bench.sql("select text from holdpoint.messages where session_id = $1", [run.sessionId])).toHaveLength(1);
});

test("a fact with text that Postgres cannot hold is stored without it", async () => {
  const run = await aRun(bench.store);
  await recordFact(bench.store, { runId: run.id, kind: "message", text: "caf\u0000e \udc00", actor: ALICE });
  expect((await reload(bench.store, run.id)).unread).toMatchObject([{ body: { text: "caf\ufffde \ufffd" } }]);
});

test("what is asked of a run that is not there is not found", async () => {
  const runId = newId();
  expect(await requestCancel(bench.store, { runId, actor: ALICE, reason: null })).toEqual({ result: "not_found" });
  expect(await requestPause(bench.store, { runId, actor: OPERATOR })).toEqual({ result: "not_found" });
  expect(await recordFact(bench.store, { runId, kind: "message", text: "hello", actor: ALICE })).toEqual({
    result: "not_found",
  });
});

// --- Cancel and pause ---

test("a reason with text that Postgres cannot hold does not keep a run from being stopped", async () => {
  const run = await aRun(bench.store);
  expect(await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: "no\u0000" })).toMatchObject({
    result: "accepted",
    run: { state: { status: "cancelled", endReason: "no\ufffd" } },
  });
});

test("a stop is asked for once: the second request changes nothing", async () => {
  const run = await RUNS.cancelling(bench.store);
  expect(await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: "again" })).toMatchObject({
    result: "ignored",
  });
  expect((await reload(bench.store, run.id)).run).toEqual(run);
});

test("a cancel by somebody who may not is refused", async () => {
  const run = await aRun(bench.store);
  const actor = { kind: "approver", id: "mona" } as const;
  expect(await requestCancel(bench.store, { runId: run.id, actor, reason: null })).toMatchObject({
    rule: "not_yours_to_raise",
  });
});

test("a pause of a running run is a mark that refuses starts, and is taken back", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  await requestPause(bench.store, { runId: claimed.run.id, actor: OPERATOR });
  const start = aStart(call);
  expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
    { result: "taken", started: false, pauseRequested: true },
  ]);
  await resumeRun(bench.store, { runId: claimed.run.id, actor: OPERATOR });
  expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
    { result: "taken", started: true },
  ]);
});

test("a resumed run has the time back that its pause took", async () => {
  const run = await aHeldRun(bench.store, QUESTION);
  await requestPause(bench.store, { runId: run.id, actor: OPERATOR });
  await moveClock(bench.url, 60 * MINUTE_MS);
  expect((await findOverdue(bench.store, 100)).map((due) => due.run.id)).not.toContain(run.id);
  const resumed = accepted(await resumeRun(bench.store, { runId: run.id, actor: OPERATOR }));
  expect(resumed.state).toMatchObject({ status: "waiting_input", pausedAt: null, resumeTo: null });
  const { waitDeadline } = resumed.state;
  const leftMs = waitDeadline !== null && "at" in waitDeadline ? waitDeadline.at - resumed.updatedAtMs : 0;
  expect(leftMs).toBeGreaterThan(MINUTE_MS - 10_000);
  expect(leftMs).toBeLessThanOrEqual(MINUTE_MS);
});

test("what is not paused is not resumed", async () => {
  const run = await aRun(bench.store);
  expect(await resumeRun(bench.store, { runId: run.id, actor: OPERATOR })).toMatchObject({
    result: "refused",
    rule: "not_paused",
  });
});

// --- What an operator decides ---

test("a retry of a failed call is an order that the loop reads, and clears the suspicion", async () => {
  const callId = newId();
  const run = await aHeldRun(bench.store, operatorHold("call_failed", callId));
  expect(await decide(run, "retry")).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued", takeovers: 0, lostAt: null } },
  });
  const { unread } = await reload(bench.store, run.id);
  expect(unread).toMatchObject([{ body: { kind: "operator", choice: "retry", callId } }]);
  const [last] = await bench.sql(
    "select event, reason, actor_id from holdpoint.transitions where run_id = $1 order by seq desc limit 1",
    [run.id],
  );
  expect(last).toEqual({ event: "OperatorDecided", reason: "retry: seen", actor_id: "olga" });
});

test("a retry of a quarantined run is no order: the loop just goes on", async () => {
  const run = await aHeldRun(bench.store, operatorHold("quarantined"));
  expect(await decide(run, "retry")).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
  expect((await reload(bench.store, run.id)).unread).toEqual([]);
});

test("a skip is an order about the call that is waited for", async () => {
  const callId = newId();
  const run = await aHeldRun(bench.store, operatorHold("call_failed", callId));
  expect(await decide(run, "skip")).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
  expect((await reload(bench.store, run.id)).unread).toMatchObject([
    { body: { kind: "operator", choice: "skip", callId } },
  ]);
});

test("a skip where there is nothing to skip is refused", async () => {
  const run = await aHeldRun(bench.store, operatorHold("limit_turns"));
  expect(await decide(run, "skip")).toMatchObject({ result: "refused", rule: "nothing_to_skip" });
});

test("an abort ends the run as cancelled, aborted", async () => {
  const run = await aHeldRun(bench.store, operatorHold("call_failed", newId()));
  expect(await decide(run, "abort")).toMatchObject({
    result: "accepted",
    run: { state: { status: "cancelled", endReason: "aborted", openAttempts: 0 } },
  });
  expect((await reload(bench.store, run.id)).unread).toEqual([]);
});

test("mark_done settles the attempt with what the operator found, as a step that the model reads", async () => {
  const { run, attemptId, call } = await anUnknownAtOperator(bench.store);
  const answer = await decide(run, "mark_done", {
    attemptIds: [attemptId],
    result: { refund: "re_1" },
    externalRef: "re_1",
  });
  expect(answer).toMatchObject({
    result: "accepted",
    run: { externalRef: null, state: { status: "queued", openAttempts: 0, lookUpsOver: false } },
  });
  const { steps } = await reload(bench.store, run.id);
  expect(steps.at(-1)?.body).toEqual({
    kind: "tool_result",
    callId: call.id,
    result: "succeeded",
    output: { refund: "re_1" },
  });
  expect(await attempts(run.id)).toEqual([{ outcome: "happened", settled_by: "person:olga", external_ref: "re_1" }]);
});

test("not_established settles the attempt, and the model is told that nobody knows", async () => {
  const { run, attemptId } = await anUnknownRun(bench.store);
  expect(await decide(run, "not_established", { attemptIds: [attemptId] })).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued" } },
  });
  const { steps } = await reload(bench.store, run.id);
  expect(steps.at(-1)?.body).toMatchObject({
    kind: "tool_result",
    result: "not_established",
    output: expect.stringContaining("NOT ESTABLISHED"),
  });
  expect(await attempts(run.id)).toMatchObject([{ outcome: "not_established", settled_by: "person:olga" }]);
});

test.each(["mark_done", "not_established"] as const)(
  "%s without the attempt by name, or with another's, is refused",
  async (choice) => {
    const { run } = await anUnknownAtOperator(bench.store);
    expect(await decide(run, choice)).toMatchObject({ result: "refused", rule: "attempt_not_named" });
    expect(await decide(run, choice, { attemptIds: [newId()] })).toMatchObject({
      result: "refused",
      rule: "attempt_not_named",
    });
    expect((await reload(bench.store, run.id)).run).toEqual(run);
  },
);

test("mark_done while nothing is open is refused", async () => {
  const run = await aHeldRun(bench.store, QUESTION);
  expect(await decide(run, "mark_done")).toMatchObject({ result: "refused", rule: "effect_not_open" });
});

test("a retry with an open attempt looks it up again, and never calls", async () => {
  const { run } = await anUnknownAtOperator(bench.store);
  expect(await decide(run, "retry")).toMatchObject({
    result: "accepted",
    run: { state: { status: "outcome_unknown", openAttempts: 1, lookUpsOver: false } },
  });
  expect((await reload(bench.store, run.id)).unread).toEqual([]);
});

test("terminate ends a run with an open attempt only if it names it", async () => {
  const { claimed, attemptId } = await anOpenEffect(bench.store);
  const kept = accepted(await decide(claimed.run, "terminate"));
  expect(kept.state).toMatchObject({ status: "cancelling", owner: null, openAttempts: 1, endReason: "terminated" });
  expect(await decide(kept, "terminate", { attemptIds: [attemptId] })).toMatchObject({
    result: "accepted",
    run: { state: { status: "cancelled", openAttempts: 0, endReason: "terminated" } },
  });
  expect(await attempts(kept.id)).toMatchObject([{ outcome: "not_established", settled_by: "person:olga" }]);
});

test("a worker whose run was terminated commits nothing more", async () => {
  const claimed = await aPlannedRun(bench.store, []);
  await decide(claimed.run, "terminate");
  expect(await commitSteps(bench.store, [aCommit(claimed, { steps: [{ kind: "no_answer" }] })])).toEqual([
    { result: "replaced" },
  ]);
});

test("retry_now does not wait for the time of the retry", async () => {
  const run = await released(bench.store, 60 * MINUTE_MS);
  expect(await decide(run, "retry_now")).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued", retryAt: null } },
  });
});

test.each([
  ["queued", "terminate", "choice_not_offered"],
  ["running", "retry", "choice_not_offered"],
  ["waiting_input", "abort", "choice_not_offered"],
  ["lost", "mark_done", "effect_unsettled"],
  ["completed", "terminate", "run_ended"],
  ["cancelled", "retry", "run_ended"],
] as const)("on a %s run %s is refused by the rule %s, and recorded", async (status, choice, rule) => {
  const run = await RUNS[status](bench.store);
  expect(await decide(run, choice)).toMatchObject({ result: "refused", rule, event: "OperatorDecided" });
  expect(await refusals(run.id)).toMatchObject([{ rule, status, actor_kind: "operator" }]);
  expect((await reload(bench.store, run.id)).run).toEqual(run);
});

test("two operators at once: the second decides on what the first has left", async () => {
  const run = await aHeldRun(bench.store, operatorHold("call_failed", newId()));
  const by = (choice: "abort" | "retry") => (store: typeof bench.store) =>
    decideAsOperator(store, { runId: run.id, choice, actor: OPERATOR, reason: "seen", attemptIds: [] });
  const answers = await bench.inOrder(run.id, by("abort"), by("retry"));
  expect(answers).toMatchObject([{ result: "accepted" }, { result: "refused", rule: "run_ended" }]);
});

test("a claim after a stop is only for a look-up", async () => {
  const { run } = await anUnknownRun(bench.store);
  await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null });
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  expect(claimed.run.state).toMatchObject({ status: "cancelling", openAttempts: 1 });
  const start = aStart(aCall());
  expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
    { result: "taken", started: false },
  ]);
});

test("a retry of a call of which a child has vanished is an order that the loop reads: nothing else starts it anew", async () => {
  const run = await aHeldRun(bench.store, operatorHold("backing_missing", "call-1"));
  expect(await decide(run, "retry")).toMatchObject({ result: "accepted" });
  const { unread } = await reload(bench.store, run.id);
  expect(unread.map(({ body }) => body)).toEqual([{ kind: "operator", choice: "retry", callId: "call-1" }]);
});
