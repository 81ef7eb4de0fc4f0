import { expect, test } from "vitest";
import {
  claimRuns,
  decideAsOperator,
  findRetentionDue,
  findUnclaimed,
  findWedged,
  heartbeatTask,
  issueTaskToken,
  loadRun,
  newId,
  registerAgent,
  registerTask,
  removeRuns,
  reportTask,
  requestCancel,
  requestPause,
  type Store,
  startByToken,
  startTask,
  type TaskReport,
} from "../src/index.ts";
import { findTask, listTasks } from "../src/read/index.ts";
import { ALICE, aWorker, OPERATOR } from "./a-run.ts";
import { useBench } from "./a-store.ts";
import { aStartedTask, aTask, DONE, HEARTBEAT_MS, hashOf, start, TASK, TERMS } from "./a-task.ts";

const bench = useBench();

const FAILED: TaskReport = { kind: "fail", reason: "no disk", retryable: false };
const MAY_BE_TRIED: TaskReport = { ...FAILED, retryable: true };
const GIVEN_BACK: TaskReport = { kind: "release", reason: "not mine" };
const STOPPED: TaskReport = { kind: "stopped", reason: null };

async function runOf(runId: string) {
  const loaded = await loadRun(bench.store, runId);
  if (loaded === null) throw new Error("the run is gone");
  return loaded.run;
}

function refusalsOf(runId: string) {
  return bench.sql("select event, rule, status, actor_id from holdpoint.refusals where run_id = $1 order by at, id", [
    runId,
  ]);
}

function starting(runId: string, options: { startKey?: string; startedBy?: string; token?: string } = {}) {
  const { startKey = null, startedBy = "ci-bot", token = newId() } = options;
  return (store: Store) =>
    startTask(store, { runId, startedBy, executor: startedBy, tokenHash: hashOf(token), startKey });
}

test("a task waits for somebody outside: no worker of ours is woken for it, and none gets it", async () => {
  const run = await aTask(bench.store);
  expect(run).toMatchObject({ isTask: true, state: { status: "queued" } });
  expect((await findUnclaimed(bench.store, -60_000, 100)).map(({ runId }) => runId)).not.toContain(run.id);
  const workerId = await aWorker(bench.store);
  const claim = { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true };
  expect(await claimRuns(bench.store, claim)).toEqual([]);
  expect((await runOf(run.id)).version).toBe(1);
});

test("a name and version is a task or work of ours, and does not become the other", async () => {
  const agent = { name: "either", version: "1" };
  await registerAgent(bench.store, { ...agent, tools: [] });
  expect(await registerTask(bench.store, agent, TERMS)).toBe(false);
  await registerTask(bench.store, TASK, TERMS);
  await expect(registerAgent(bench.store, { ...TASK, tools: [] })).rejects.toThrow(
    "ci-build@1 is registered already as a task",
  );
});

test("whoever starts a task owns its run under a new epoch, with a lease and a grace of the task's", async () => {
  const { run, runId } = await aStartedTask(bench.store);
  expect(run).toMatchObject({
    version: 2,
    epoch: 1,
    state: { status: "running", waitDeadline: null, queuedSince: null },
  });
  const [worker] = await bench.sql(
    `select kind, host, lease_ms, grace_ms, gone_at, extract(epoch from lease_until - started_at) * 1000 as lease
     from holdpoint.workers where id = $1`,
    [run.state.owner],
  );
  expect(worker).toMatchObject({
    kind: "task",
    host: "runner 7",
    lease_ms: HEARTBEAT_MS,
    grace_ms: 30_000,
    gone_at: null,
  });
  expect(Number(worker?.lease)).toBe(HEARTBEAT_MS);
  const [claimed] = await bench.sql("select * from holdpoint.transitions where run_id = $1 and event = 'Claimed'", [
    runId,
  ]);
  expect(claimed).toMatchObject({
    epoch: 1,
    actor_kind: "worker",
    actor_id: run.state.owner,
    reason: "started by ci-bot",
  });
});

test("only the hash of a token is stored", async () => {
  const { id } = await aTask(bench.store);
  await start(bench.store, id, "a-token-in-clear");
  for (const table of ["tasks", "transitions", "workers", "runs"]) {
    const rows = await bench.sql(`select to_jsonb(t)::text as row from holdpoint.${table} t`);
    expect(rows.some(({ row }) => row.includes("a-token-in-clear"))).toBe(false);
  }
});

test("of two starts at once one gets the task, and the other is told so", async () => {
  const { id } = await aTask(bench.store);
  const [first, second] = await bench.inOrder(id, starting(id), starting(id, { startedBy: "other-bot" }));
  expect(first).toMatchObject({ result: "started", repeated: false });
  expect(second).toMatchObject({ result: "refused", rule: "task_taken" });
  expect((await runOf(id)).epoch).toBe(1);
  expect(await refusalsOf(id)).toMatchObject([{ event: "Claimed", rule: "task_taken", actor_id: "other-bot" }]);
});

test("a start whose answer was lost took effect once", async () => {
  const { id } = await aTask(bench.store);
  expect(await bench.answerLost(id, starting(id))).toMatchObject({ result: "started", repeated: false });
  expect(await runOf(id)).toMatchObject({ version: 2, epoch: 1 });
});

test("the same start again under its key is the same start, with the token that it brings", async () => {
  const { id } = await aTask(bench.store);
  const startKey = hashOf("key-1");
  await starting(id, { startKey, token: "first" })(bench.store);
  const again = await starting(id, { startKey, token: "second" })(bench.store);
  expect(again).toMatchObject({ result: "started", repeated: true, run: { version: 2, epoch: 1 } });
  expect(await heartbeatTask(bench.store, { runId: id, tokenHash: hashOf("first"), progress: null })).toEqual({
    result: "unknown_token",
  });
  expect(await heartbeatTask(bench.store, { runId: id, tokenHash: hashOf("second"), progress: null })).toMatchObject({
    result: "renewed",
  });
  expect(await starting(id, { startKey, startedBy: "somebody-else" })(bench.store)).toMatchObject({
    rule: "task_taken",
  });
});

test("a heartbeat renews the executor's lease, takes its progress, and makes no history", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const before = await runOf(runId);
  const progress = { percent: 40, text: "compiled" };
  const beat = await heartbeatTask(bench.store, { runId, tokenHash, progress });
  expect(beat).toMatchObject({ result: "renewed", stop: false, pause: false, status: "running" });
  await heartbeatTask(bench.store, { runId, tokenHash, progress: null });
  const after = await runOf(runId);
  expect(after.version).toBe(before.version);
  expect(after.progressDueAtMs).toBeGreaterThanOrEqual(before.progressDueAtMs ?? 0);
  const view = await findTask(bench.store, runId);
  expect(view?.last).toMatchObject({ executor: "runner 7", inHands: true, silent: false, progress });
});

test("an executor that shows no progress is not wedged: it lives by its heartbeat", async () => {
  const { runId } = await aStartedTask(bench.store);
  await bench.sql("update holdpoint.runs set progress_due_at = holdpoint.clock() - interval '1 hour' where id = $1", [
    runId,
  ]);
  expect((await findWedged(bench.store, 100)).map(({ run }) => run.id)).not.toContain(runId);
});

test("completing a task ends its run with the outcome and the result, and its executor goes", async () => {
  const { run, runId, tokenHash } = await aStartedTask(bench.store);
  const result = { tests: 214, artifact: "build-77" };
  const ended = await reportTask(bench.store, { runId, tokenHash, report: DONE, result });
  expect(ended).toMatchObject({
    result: "accepted",
    run: { result, state: { status: "completed", outcome: { kind: "succeeded" } } },
  });
  const [worker] = await bench.sql("select gone_reason from holdpoint.workers where id = $1", [run.state.owner]);
  expect(worker).toEqual({ gone_reason: "retired" });
});

test("a result over 32 KB is an artifact, and the run says which", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const result = { log: "line\n".repeat(9_000) };
  await reportTask(bench.store, { runId, tokenHash, report: DONE, result });
  const kept = String((await runOf(runId)).result);
  expect(Buffer.byteLength(kept)).toBeLessThan(25_000);
  const [, sha256] = /the whole is artifact ([0-9a-f]{64})/.exec(kept) ?? [];
  const [artifact] = await bench.sql("select content from holdpoint.artifacts where sha256 = $1", [sha256]);
  expect(JSON.parse(artifact?.content)).toEqual(result);
});

test("a blocked task is completed as blocked, with step and reason", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const outcome = { kind: "blocked", step: "deploy", reason: "missing permission" } as const;
  await reportTask(bench.store, { runId, tokenHash, report: { kind: "complete", outcome } });
  expect((await runOf(runId)).state).toMatchObject({ status: "completed", outcome });
});

test("the same word said again gets the same answer and changes nothing; another one is refused and kept", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const said = { runId, tokenHash, report: DONE, result: { build: 77 } };
  await reportTask(bench.store, said);
  const { version } = await runOf(runId);
  expect(await reportTask(bench.store, said)).toMatchObject({ result: "repeated", run: { version } });
  expect(await reportTask(bench.store, { ...said, result: { build: 78 } })).toMatchObject({
    result: "refused",
    rule: "run_ended",
  });
  expect(await runOf(runId)).toMatchObject({ version, result: { build: 77 } });
  const view = await findTask(bench.store, runId);
  expect(view?.late).toMatchObject([{ report: DONE, result: { build: 78 }, status: "completed" }]);
});

test("a completion whose answer was lost took effect once, and its repetition says so", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const said = { runId, tokenHash, report: DONE, result: 1 };
  expect(await bench.answerLost(runId, (store) => reportTask(store, said))).toMatchObject({ result: "accepted" });
  expect(await reportTask(bench.store, said)).toMatchObject({ result: "repeated" });
  expect(await refusalsOf(runId)).toEqual([]);
});

test("of two completions at once one counts, and the other is answered alike where it says the same", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const said = (store: Store) => reportTask(store, { runId, tokenHash, report: DONE });
  const [first, second] = await bench.inOrder(runId, said, said);
  expect([first.result, second.result]).toEqual(["accepted", "repeated"]);
});

test("a completion that comes before a request to stop wins, and one that comes after ends it as cancelled", async () => {
  const early = await aStartedTask(bench.store);
  const done = (task: typeof early) => (store: Store) => reportTask(store, { ...task, report: DONE });
  const stop = (runId: string) => (store: Store) => requestCancel(store, { runId, actor: ALICE, reason: null });
  const [completed, refused] = await bench.inOrder(early.runId, done(early), stop(early.runId));
  expect(completed).toMatchObject({ run: { state: { status: "completed" } } });
  expect(refused).toMatchObject({ result: "refused", rule: "run_ended" });

  const late = await aStartedTask(bench.store);
  const [asked, ended] = await bench.inOrder(late.runId, stop(late.runId), done(late));
  expect(asked).toMatchObject({ run: { state: { status: "cancelling" } } });
  // What it had achieved is kept as evidence.
  expect(ended).toMatchObject({ run: { state: { status: "cancelled", outcome: { kind: "succeeded" } } } });
});

test("an executor is told to stop at its next heartbeat, and the run is cancelled once it says that it has", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  await requestCancel(bench.store, { runId, actor: ALICE, reason: "changed my mind" });
  expect(await runOf(runId)).toMatchObject({ state: { status: "cancelling" } });
  expect(await heartbeatTask(bench.store, { runId, tokenHash, progress: null })).toMatchObject({
    result: "renewed",
    stop: true,
    status: "cancelling",
  });
  expect(await reportTask(bench.store, { runId, tokenHash, report: STOPPED })).toMatchObject({
    run: { state: { status: "cancelled" } },
  });
});

test("nobody has stopped what was not asked to stop", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  expect(await reportTask(bench.store, { runId, tokenHash, report: STOPPED })).toMatchObject({
    result: "refused",
    rule: "stop_not_asked",
  });
  expect((await runOf(runId)).state.status).toBe("running");
});

test("a task that nobody has started is cancelled at once", async () => {
  const { id } = await aTask(bench.store);
  await requestCancel(bench.store, { runId: id, actor: ALICE, reason: null });
  expect((await runOf(id)).state.status).toBe("cancelled");
  expect(await starting(id)(bench.store)).toMatchObject({ result: "refused", rule: "run_ended" });
});

test("a failure is held for an operator, whose retry lets somebody else start it; the token of before is stale", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  const held = await reportTask(bench.store, { runId, tokenHash, report: FAILED });
  expect(held).toMatchObject({ run: { state: { status: "waiting_operator", waitingFor: { reason: "task_failed" } } } });
  const beat = { runId, tokenHash, progress: null };
  expect(await heartbeatTask(bench.store, beat)).toMatchObject({ result: "refused", rule: "not_owned" });
  await decideAsOperator(bench.store, {
    runId,
    choice: "retry",
    actor: OPERATOR,
    reason: "disk is there",
    attemptIds: [],
  });
  const second = await start(bench.store, runId);
  expect(second.run.epoch).toBe(2);
  expect(await heartbeatTask(bench.store, beat)).toMatchObject({ result: "refused", rule: "task_token_stale" });
  expect(await reportTask(bench.store, { runId, tokenHash, report: DONE, result: 1 })).toMatchObject({
    rule: "task_token_stale",
  });
  expect((await runOf(runId)).state).toMatchObject({ status: "running", owner: second.run.state.owner });
  const [row] = await bench.sql("select late_evidence from holdpoint.tasks where run_id = $1 and epoch = 1", [runId]);
  expect(row?.late_evidence).toEqual({ report: DONE, result: 1, status: "running" });
});

test("an executor that goes on after it was refused is recorded once an hour", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  await reportTask(bench.store, { runId, tokenHash, report: GIVEN_BACK });
  for (let beat = 0; beat < 3; beat += 1) await heartbeatTask(bench.store, { runId, tokenHash, progress: null });
  expect(await refusalsOf(runId)).toMatchObject([{ event: "Recovered", rule: "not_owned", status: "queued" }]);
});

test("a failure that may be tried again is, as often as the task says; then an operator is asked", async () => {
  const { id } = await aTask(bench.store, { retries: 1 });
  const fail = async () => reportTask(bench.store, { ...(await start(bench.store, id)), report: MAY_BE_TRIED });
  expect(await fail()).toMatchObject({ run: { state: { status: "queued" } } });
  expect(await fail()).toMatchObject({ run: { state: { status: "waiting_operator" } } });
  // An operator's word counts anew.
  await decideAsOperator(bench.store, { runId: id, choice: "retry", actor: OPERATOR, reason: "again", attemptIds: [] });
  expect(await fail()).toMatchObject({ run: { state: { status: "queued" } } });
});

test("a failure ends the run as failed where the task says so", async () => {
  const task = await aStartedTask(bench.store, { onFailure: "end" });
  expect(await reportTask(bench.store, { ...task, report: FAILED })).toMatchObject({
    run: { state: { status: "failed", outcome: null, endReason: "no disk" } },
  });
});

test("a task that is given back waits for somebody else", async () => {
  const task = await aStartedTask(bench.store);
  const given = { ...task, report: GIVEN_BACK };
  expect(await reportTask(bench.store, given)).toMatchObject({ run: { state: { status: "queued", owner: null } } });
  expect(await reportTask(bench.store, given)).toMatchObject({ result: "repeated" });
  expect((await start(bench.store, task.runId)).run.epoch).toBe(2);
  expect(await reportTask(bench.store, given)).toMatchObject({
    result: "repeated",
    run: { epoch: 2, state: { status: "running" } },
  });
});

test("a pause is told at the heartbeat, and a task that is given back then stays paused", async () => {
  const task = await aStartedTask(bench.store);
  await requestPause(bench.store, { runId: task.runId, actor: OPERATOR });
  expect(await heartbeatTask(bench.store, { ...task, progress: null })).toMatchObject({
    result: "renewed",
    pause: true,
  });
  await reportTask(bench.store, { ...task, report: GIVEN_BACK });
  expect((await runOf(task.runId)).state.status).toBe("paused");
  expect(await starting(task.runId)(bench.store)).toMatchObject({ result: "refused", rule: "task_not_queued" });
});

test("a token that is given out in advance starts its task, and no other", async () => {
  const { id } = await aTask(bench.store);
  const other = await aTask(bench.store);
  const tokenHash = hashOf("in-advance");
  expect(await issueTaskToken(bench.store, { runId: id, tokenHash, issuedBy: "olga" })).toEqual({
    result: "issued",
    started: false,
  });
  const token = { runId: id, tokenHash, executor: "a desk" };
  expect(await heartbeatTask(bench.store, { ...token, progress: null })).toMatchObject({ rule: "task_not_started" });
  expect(await startByToken(bench.store, { ...token, runId: other.id })).toEqual({ result: "unknown_token" });
  expect(await startByToken(bench.store, token)).toMatchObject({
    result: "started",
    repeated: false,
    run: { epoch: 1 },
  });
  expect(await startByToken(bench.store, token)).toMatchObject({
    result: "started",
    repeated: true,
    run: { epoch: 1 },
  });
  expect(await heartbeatTask(bench.store, { ...token, progress: null })).toMatchObject({ result: "renewed" });
  const view = await findTask(bench.store, id);
  expect(view?.last).toMatchObject({ executor: "a desk", startedBy: "olga" });
  await reportTask(bench.store, { ...token, report: GIVEN_BACK });
  await start(bench.store, id);
  expect(await startByToken(bench.store, token)).toMatchObject({ result: "refused", rule: "task_token_stale" });
});

test("a token issued for a task in hands takes the place of its executor's, and ends with the run", async () => {
  const task = await aStartedTask(bench.store);
  const fresh = { runId: task.runId, tokenHash: hashOf("fresh") };
  expect(await issueTaskToken(bench.store, { ...fresh, issuedBy: "olga" })).toEqual({
    result: "issued",
    started: true,
  });
  expect(await heartbeatTask(bench.store, { ...task, progress: null })).toEqual({ result: "unknown_token" });
  expect(await reportTask(bench.store, { ...fresh, report: DONE })).toMatchObject({
    run: { state: { status: "completed" } },
  });
  expect(await issueTaskToken(bench.store, { ...fresh, issuedBy: "olga" })).toEqual({
    result: "run_ended",
    status: "completed",
  });
});

test("tasks are listed by name and status, the newest first, with what they are given", async () => {
  const agent = { name: "listed", version: "2" };
  await registerTask(bench.store, agent, TERMS);
  const first = await aTask(bench.store);
  await bench.sql("update holdpoint.runs set agent_name = 'listed', agent_version = '2' where id = $1", [first.id]);
  const page = await listTasks(bench.store, { agentName: "listed", statuses: ["queued"] }, { limit: 10, after: null });
  expect(page.items).toMatchObject([{ runId: first.id, agent, goal: "build main", last: null, terms: TERMS }]);
  const none = { agentName: "listed", statuses: ["running"] as const };
  expect((await listTasks(bench.store, none, { limit: 10, after: null })).items).toEqual([]);
  const all = await listTasks(bench.store, { agentName: TASK.name }, { limit: 2, after: null });
  expect(all.items.map(({ runId }) => runId)).toEqual(
    all.items
      .map(({ runId }) => runId)
      .toSorted()
      .toReversed(),
  );
  const next = await listTasks(bench.store, { agentName: TASK.name }, { limit: 2, after: all.next });
  expect(next.items[0]?.runId).not.toBe(all.items[0]?.runId);
});

test("what is known of a task's executors goes with its run", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  await reportTask(bench.store, { runId, tokenHash, report: DONE });
  await bench.sql(
    "update holdpoint.runs set ended_at = ended_at - interval '40 days', created_at = created_at - interval '40 days' where id = $1",
    [runId],
  );
  const due = (await findRetentionDue(bench.store, 100)).filter((unit) => unit.runId === runId);
  expect(await removeRuns(bench.store, due)).toMatchObject({ removed: [{ runId }], errors: [] });
  expect(await bench.sql("select from holdpoint.tasks where run_id = $1", [runId])).toEqual([]);
  expect(await heartbeatTask(bench.store, { runId, tokenHash, progress: null })).toEqual({ result: "not_found" });
});
