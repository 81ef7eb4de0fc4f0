import { EMPTY_CHECKPOINT } from "@holdpoint/core";
import { waitFor } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import {
  commitSteps,
  createSession,
  decideApproval,
  type LoadedRun,
  markExited,
  openStore,
  recordFact,
  requestCancel,
  requestPause,
  type StepCommit,
  transitionOne,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, claim, MANAGER, OPERATOR, SWEEPER } from "./a-run.ts";
import { aClaimedRun, anAskingRun, anOpenEffect, aPlannedRun, aResult, lose, ownerOf, reload } from "./a-status.ts";
import { holdRun, reachesWait, untilIdle, useBench } from "./a-store.ts";

const bench = useBench();

/** Five runs, each with the result of its first call and the start of the second ready to be committed. */
async function fiveReady() {
  const made = [];
  for (let n = 0; n < 5; n += 1) {
    const [first, second] = [aCall({ effect: { kind: "read" } }), aCall({ ordinal: 1 })];
    const claimed = await aPlannedRun(bench.store, [first, second]);
    made.push({ claimed, commit: aCommit(claimed, { steps: [aResult(first)], start: aStart(second) }) });
  }
  const [, , third] = made;
  if (third === undefined) throw new Error("there are five");
  return { runs: made.map(({ claimed }) => claimed), commits: made.map(({ commit }) => commit), third: third.claimed };
}

async function stepKinds(runId: string): Promise<readonly string[]> {
  return (await reload(bench.store, runId)).steps.map(({ body }) => body.kind);
}

test("a cancel that commits while a batch of steps waits: results are taken, starts refused, others unharmed", async () => {
  const { commits, third, runs } = await fiveReady();
  const [cancelled, results] = await bench.inOrder(
    third.run.id,
    (store) => requestCancel(store, { runId: third.run.id, actor: ALICE, reason: null }),
    (store) => commitSteps(store, commits),
  );
  expect(cancelled).toMatchObject({ result: "accepted", run: { state: { status: "cancelling" } } });
  expect(results.map((each) => "result" in each && each.result)).toEqual(Array(5).fill("taken"));
  expect(results.map((each) => "started" in each && each.started)).toEqual([true, true, false, true, true]);
  expect(results[2]).toMatchObject({ status: "cancelling", cancelRequested: true });
  for (const { run } of runs) {
    const started = run.id !== third.run.id;
    expect(await stepKinds(run.id)).toEqual(["model_reply", "tool_result", ...(started ? ["intent"] : [])]);
    expect((await reload(bench.store, run.id)).run.state.openAttempts).toBe(started ? 1 : 0);
  }
});

test("a pause that commits while a start waits refuses the start", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  const [, [result]] = await bench.inOrder(
    claimed.run.id,
    (store) => requestPause(store, { runId: claimed.run.id, actor: OPERATOR }),
    (store) => commitSteps(store, [aCommit(claimed, { start: aStart(call) })]),
  );
  expect(result).toMatchObject({ result: "taken", started: false, pauseRequested: true, status: "running" });
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply"]);
});

test("a run that is lost and claimed anew while a batch of steps waits drops out of it, alone", async () => {
  const { commits, third, runs } = await fiveReady();
  const other = await aWorker(bench.store);
  const results = await bench.whileHeld(
    third.run.id,
    (store) => commitSteps(store, commits),
    // Both changes at once, since the barrier holds the row: the loss with its recovery, and the claim after it.
    async (holder) => {
      await holder.query(
        `update holdpoint.runs set version = version + 3, epoch = epoch + 1, owner = $2, takeovers = 1 where id = $1`,
        [third.run.id, other],
      );
      await holder.query(
        `insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
         select tenant_id, id, version + n - 3, f, t, e, 'sweeper', 's', epoch, holdpoint.clock() from holdpoint.runs,
           (values (1, 'running', 'lost', 'OwnerGone'), (2, 'lost', 'queued', 'Recovered'), (3, 'queued', 'running', 'Claimed')) v(n, f, t, e)
         where id = $1`,
        [third.run.id],
      );
    },
  );
  expect(results.map((each) => "result" in each && each.result)).toEqual([
    "taken",
    "taken",
    "replaced",
    "taken",
    "taken",
  ]);
  for (const { run } of runs) expect(await stepKinds(run.id)).toHaveLength(run.id === third.run.id ? 1 : 3);
});

test("one run twice in a batch is refused as a whole, before anything is sent", async () => {
  const claimed = await aClaimedRun(bench.store);
  const commit = aCommit(claimed, { steps: [aReply([])] });
  await expect(commitSteps(bench.store, [commit, commit])).rejects.toThrow(RangeError);
  expect(await stepKinds(claimed.run.id)).toEqual([]);
});

test("a commit that is sent again after its answer was lost is taken once", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  const commit = aCommit(claimed, { start: aStart(call) });
  const [first] = await commitSteps(bench.store, [commit]);
  const [again] = await commitSteps(bench.store, [commit]);
  expect(first).toMatchObject({ result: "taken", stepSeq: 2, started: true });
  expect(again).toMatchObject({ result: "taken", stepSeq: 2, started: true });
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply", "intent"]);
  expect((await reload(bench.store, claimed.run.id)).openAttempts).toHaveLength(1);
});

test("the same commit twice at once is taken once, and both are told so", async () => {
  const claimed = await aClaimedRun(bench.store);
  const commit = aCommit(claimed, { steps: [aReply([])] });
  const answers = await bench.inOrder(
    claimed.run.id,
    (store) => commitSteps(store, [commit]),
    (store) => commitSteps(store, [commit]),
  );
  expect(answers.flat()).toMatchObject([
    { result: "taken", stepSeq: 1 },
    { result: "taken", stepSeq: 1 },
  ]);
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply"]);
});

test("a commit whose connection is cut while it waits took no effect, and its run says so", async () => {
  const claimed = await aClaimedRun(bench.store);
  const commit = aCommit(claimed, { steps: [aReply([])] });
  await using waiting = await bench.lonely();
  await using held = await holdRun(bench.url, claimed.run.id);
  const late = commitSteps(waiting.store, [commit]);
  await reachesWait(bench.admin, waiting.pid, late);
  await bench.sql("select pg_terminate_backend($1)", [waiting.pid]);
  expect(await late).toEqual([{ result: "reload" }]);
  await held.release();
  expect(await commitSteps(waiting.store, [commit])).toMatchObject([{ result: "taken", stepSeq: 1 }]);
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply"]);
});

test("a commit whose answer was lost is known as taken", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  const commit = aCommit(claimed, { start: aStart(call) });
  const answer = await bench.answerLost(claimed.run.id, (store) => commitSteps(store, [commit]));
  expect(answer).toMatchObject([{ result: "taken", stepSeq: 2, started: true }]);
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply", "intent"]);
});

/** Leaves the statement of a dead client waiting on the server. */
async function deadClientsCommit(commit: StepCommit) {
  const waiting = await bench.lonely();
  const held = await holdRun(bench.url, commit.runId);
  const sent = commitSteps(waiting.store, [commit]);
  await reachesWait(bench.admin, waiting.pid, sent);
  waiting.cut();
  const answer = await sent;
  await waiting[Symbol.asyncDispose]();
  return { answer, held, committed: () => untilIdle(bench.admin, waiting.pid) };
}

test("a dead client's statement that commits afterwards is harmless: the repeat is not a second step", async () => {
  const claimed = await aClaimedRun(bench.store);
  const commit = aCommit(claimed, { steps: [aReply([])] });
  const { answer, held, committed } = await deadClientsCommit(commit);
  expect(answer).toEqual([{ result: "reload" }]);
  await held.release();
  await committed();
  await held[Symbol.asyncDispose]();
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply"]);
  expect(await commitSteps(bench.store, [commit])).toMatchObject([{ result: "taken", stepSeq: 1 }]);
  expect(await stepKinds(claimed.run.id)).toEqual(["model_reply"]);
});

test("a loss that was read before a dead client's intent committed is refused, and the next one finds the open attempt", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  const { held, committed } = await deadClientsCommit(aCommit(claimed, { start: aStart(call) }));
  await markExited(bench.store, ownerOf(claimed).id);
  // Queued behind the dead client's statement; it was reduced from a row with nothing open.
  await using sweeping = await bench.lonely();
  const lost = transitionOne(sweeping.store, {
    run: claimed.run,
    actor: SWEEPER,
    events: [{ type: "OwnerGone", reason: "process_exited" }, { type: "Recovered" }],
  });
  await reachesWait(bench.admin, sweeping.pid, lost);
  await held.release();
  await committed();
  await held[Symbol.asyncDispose]();
  expect(await lost).toMatchObject({ result: "conflict", current: { state: { status: "running", openAttempts: 1 } } });
  const { run } = await reload(bench.store, claimed.run.id);
  expect(await lose(bench.store, run)).toMatchObject({ state: { status: "outcome_unknown", openAttempts: 1 } });
});

test("a dead client's statement that comes after the loss takes no effect", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  const [lost, [result]] = await bench.inOrder(
    claimed.run.id,
    (store) => lose(store, claimed.run),
    (store) => commitSteps(store, [aCommit(claimed, { start: aStart(call) })]),
  );
  expect(lost).toMatchObject({ state: { status: "queued", openAttempts: 0 } });
  expect(result).toEqual({ result: "replaced" });
  expect((await reload(bench.store, claimed.run.id)).openAttempts).toEqual([]);
});

test("two runs of one session in one batch get different message numbers", async () => {
  const { id: sessionId } = await createSession(bench.store, "alice");
  const workerId = await aWorker(bench.store);
  const claimed: LoadedRun[] = [];
  for (let n = 0; n < 2; n += 1)
    claimed.push(await claim(bench.store, (await aRun(bench.store, { sessionId })).id, workerId));
  const say = (text: string) => ({ role: "assistant", author: "refunds", text }) as const;
  const results = await commitSteps(
    bench.store,
    claimed.map((each, n) =>
      aCommit(each, { steps: [aReply([])], messages: [say(`first of ${n}`), say(`second of ${n}`)] }),
    ),
  );
  expect(results).toMatchObject([{ result: "taken" }, { result: "taken" }]);
  const messages = await bench.sql("select seq, text from holdpoint.messages where session_id = $1 order by seq", [
    sessionId,
  ]);
  expect(messages.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(messages.slice(2).map(({ text }) => text)).toEqual(["first of 0", "second of 0", "first of 1", "second of 1"]);
  expect(await bench.sql("select message_seq from holdpoint.sessions where id = $1", [sessionId])).toEqual([
    { message_seq: 6 },
  ]);
});

test("an approval that is withdrawn while the intent waits is not spent, and the result beside it is kept", async () => {
  const [read, refund] = [aCall({ effect: { kind: "read" } }), aCall({ ordinal: 1 })];
  const { run, request } = await anAskingRun(bench.store, { calls: [read, refund] });
  const [, forRefund] = (await reload(bench.store, run.id)).approvals;
  for (const approvalId of [request.id, forRefund?.id ?? ""]) {
    await decideApproval(bench.store, {
      approvalId,
      decision: "approve",
      argsHash: "hash-1",
      note: null,
      actor: MANAGER,
    });
  }
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  const start = aStart(refund, 1, forRefund?.id ?? "");
  const commit = aCommit(claimed, { steps: [aResult(read)], start });
  const [result] = await bench.whileHeld(
    run.id,
    (store) => commitSteps(store, [commit]),
    (holder) =>
      holder.query(
        "update holdpoint.approvals set state = 'withdrawn', closed_at = now(), closed_reason = 'test' where run_id = $1",
        [run.id],
      ),
  );
  expect(result).toMatchObject({ result: "taken", started: false, status: "running" });
  expect(await stepKinds(run.id)).toEqual(["model_reply", "tool_result"]);
});

test("a fact that commits while a step waits does not disturb it", async () => {
  const claimed = await aClaimedRun(bench.store);
  const [said, [result]] = await bench.inOrder(
    claimed.run.id,
    (store) => recordFact(store, { runId: claimed.run.id, kind: "message", text: "and hurry", actor: ALICE }),
    (store) => commitSteps(store, [aCommit(claimed, { steps: [aReply([])] })]),
  );
  expect(said).toMatchObject({ result: "accepted" });
  expect(result).toMatchObject({ result: "taken", stepSeq: 1 });
  expect((await reload(bench.store, claimed.run.id)).unread).toMatchObject([{ body: { text: "and hurry" } }]);
});

test("a step that resets the takeovers keeps them reset under a fact that was read before it", async () => {
  const first = await aClaimedRun(bench.store);
  const claimed = await claim(bench.store, (await lose(bench.store, first.run)).id, await aWorker(bench.store));
  expect(claimed.run.state.takeovers).toBe(1);
  await bench.inOrder(
    claimed.run.id,
    (store) => commitSteps(store, [aCommit(claimed, { steps: [aReply([])] })]),
    (store) => recordFact(store, { runId: claimed.run.id, kind: "message", text: "and hurry", actor: ALICE }),
  );
  expect((await reload(bench.store, claimed.run.id)).run.state.takeovers).toBe(0);
});

test("a step with data that the database refuses fails alone, and the others of its batch are taken", async () => {
  const { commits, third, runs } = await fiveReady();
  const large = { ...EMPTY_CHECKPOINT, lastCompleted: "x".repeat(3_000) };
  const results = await commitSteps(
    bench.store,
    commits.map((commit) => (commit.runId === third.run.id ? { ...commit, checkpoint: large } : commit)),
  );
  expect(results[2]).toMatchObject({ code: "23514", constraint: "checkpoint_is_small" });
  expect(results.filter((each) => "result" in each && each.result === "taken")).toHaveLength(4);
  for (const { run } of runs) expect(await stepKinds(run.id)).toHaveLength(run.id === third.run.id ? 1 : 3);
});

test("a step with a malformed id fails alone", async () => {
  const { commits } = await fiveReady();
  const bad = commits.map((commit, n) =>
    n === 1 && commit.start !== null ? { ...commit, start: { ...commit.start, attemptId: "no-uuid" } } : commit,
  );
  const results = await commitSteps(bench.store, bad);
  expect(results[1]).toMatchObject({ code: "22P02" });
  expect(results.filter((each) => "result" in each && each.result === "taken")).toHaveLength(4);
});

test("NUL and lone surrogates never keep a step from being stored", async () => {
  const call = aCall({ tool: "quote\u0000refund" });
  const claimed = await aClaimedRun(bench.store);
  const bad = "caf\u0000e \ud83d!";
  const [result] = await commitSteps(bench.store, [
    aCommit(claimed, {
      steps: [
        aReply([call]),
        { kind: "tool_result", callId: call.id, result: "succeeded", output: { [bad]: [bad], id: "re_1" } },
      ],
      calls: [call],
      messages: [{ role: "assistant", author: bad, text: bad }],
      artifacts: [{ sha256: "a".repeat(64), sizeBytes: 8, mediaType: "text/plain", content: bad }],
      checkpoint: { ...EMPTY_CHECKPOINT, lastCompleted: bad },
      currentStep: bad,
    }),
  ]);
  expect(result).toMatchObject({ result: "taken", stepSeq: 2 });
  const good = "caf\ufffde \ufffd!";
  const stored = await reload(bench.store, claimed.run.id);
  expect(stored.steps[1]?.body).toMatchObject({ output: { [good]: [good], id: "re_1" } });
  expect(stored.run).toMatchObject({ currentStep: good, checkpoint: { lastCompleted: good } });
});

test("a batch with a row that stays locked waits no longer than a second at a time, and is repeated", async () => {
  const { commits, third } = await fiveReady();
  const store = openStore({ url: bench.url, maxConnections: 1 });
  await using _ = store;
  const { rows } = await store.pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  const pid = rows[0]?.pid ?? 0;
  await using held = await holdRun(bench.url, third.run.id);
  const late = commitSteps(store, commits);
  await reachesWait(bench.admin, pid, late);
  // The driver gives up a connection whose statement failed, so the repeat comes from another process.
  const others = () =>
    bench.sql(
      `select from pg_stat_activity where pid <> $1 and pid <> pg_backend_pid() and datname = current_database()
         and wait_event_type = 'Lock'`,
      [pid],
    );
  await waitFor(async () => (await others()).length > 0, {
    deadlineMs: 10_000,
    what: "the statement to be sent again",
  });
  await held.release();
  expect((await late).map((each) => "result" in each && each.result)).toEqual(Array(5).fill("taken"));
});

test("a stop that is asked for while an effect is open lets its result in", async () => {
  const { claimed, call, attemptId } = await anOpenEffect(bench.store);
  const settles = [{ attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
  const [, [result]] = await bench.inOrder(
    claimed.run.id,
    (store) => requestCancel(store, { runId: claimed.run.id, actor: ALICE, reason: null }),
    (store) => commitSteps(store, [aCommit(claimed, { steps: [aResult(call)], settles })]),
  );
  expect(result).toMatchObject({ result: "taken", status: "cancelling", cancelRequested: true });
  expect((await reload(bench.store, claimed.run.id)).run.state).toMatchObject({
    status: "cancelling",
    openAttempts: 0,
  });
});
