import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterEach, expect, test } from "vitest";
import {
  type ApprovalDecision,
  commitSteps,
  decideApproval,
  findOverdue,
  newId,
  requestCancel,
  requestPause,
  resumeRun,
  type Store,
  transitionOne,
} from "../src/index.ts";
import {
  ALICE,
  aCall,
  aCommit,
  aStart,
  aWorker,
  claim,
  MANAGER,
  OPERATOR,
  OTHER_MANAGER,
  type PlannedStart,
  SWEEPER,
} from "./a-run.ts";
import {
  APPROVAL,
  accepted,
  anAskingRun,
  aPlannedRun,
  aRequest,
  lose,
  MINUTE_MS,
  moved,
  ownerOf,
  reload,
  took,
} from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const HOUR_MS = 60 * MINUTE_MS;

afterEach(() => moveClock(bench.url, 0));

type Asking = Awaited<ReturnType<typeof anAskingRun>>;

function decision({ request }: Asking, overrides: Partial<ApprovalDecision> = {}): ApprovalDecision {
  return {
    approvalId: request.id,
    decision: "approve",
    argsHash: request.argsHash,
    note: null,
    actor: MANAGER,
    ...overrides,
  };
}

const deciding =
  (asking: Asking, overrides: Partial<ApprovalDecision> = {}) =>
  (store: Store) =>
    decideApproval(store, decision(asking, overrides));

function approval(id: string) {
  return bench.sql("select state, decided_by, note, spent_by from holdpoint.approvals where id = $1", [id]);
}

function refusals(runId: string) {
  return bench.sql("select rule, event, actor_id from holdpoint.refusals where run_id = $1 order by at", [runId]);
}

test("the first decision counts and is stored with who, what and why", async () => {
  const asking = await anAskingRun(bench.store);
  const answer = await decideApproval(bench.store, decision(asking, { decision: "reject", note: "too much" }));
  expect(answer).toMatchObject({ result: "accepted", run: { state: { status: "queued", waitingFor: null } } });
  expect(await approval(asking.request.id)).toEqual([
    { state: "rejected", decided_by: "mona", note: "too much", spent_by: null },
  ]);
  const decisions = "select actor_id, decision, args_hash, note from holdpoint.decisions where approval_id = $1";
  expect(await bench.sql(decisions, [asking.request.id])).toEqual([
    { actor_id: "mona", decision: "reject", args_hash: "hash-1", note: "too much" },
  ]);
  const [last] = await bench.sql(
    "select reason from holdpoint.transitions where run_id = $1 order by seq desc limit 1",
    [asking.run.id],
  );
  expect(last).toEqual({ reason: "reject send_refund" });
});

test.each([
  ["approve", "approve"],
  ["approve", "reject"],
  ["reject", "approve"],
  ["reject", "reject"],
] as const)(
  "two approvers at once, %s before %s: the first stands and the second is refused",
  async (first, second) => {
    const asking = await anAskingRun(bench.store);
    const [one, other] = await bench.inOrder(
      asking.run.id,
      deciding(asking, { decision: first }),
      deciding(asking, { decision: second, actor: OTHER_MANAGER }),
    );
    expect(one).toMatchObject({ result: "accepted" });
    expect(other).toMatchObject({ result: "refused", rule: "already_decided" });
    expect(await approval(asking.request.id)).toMatchObject([
      { state: first === "approve" ? "approved" : "rejected", decided_by: "mona" },
    ]);
    expect(await refusals(asking.run.id)).toEqual([{ rule: "already_decided", event: "FactArrived", actor_id: "max" }]);
  },
);

test("the same person twice at once is answered once as the first and once as a repeat", async () => {
  const asking = await anAskingRun(bench.store);
  const answers = await bench.inOrder(asking.run.id, deciding(asking), deciding(asking));
  expect(answers.map(({ result }) => result)).toEqual(["accepted", "repeated"]);
  expect(await bench.sql("select from holdpoint.decisions where approval_id = $1", [asking.request.id])).toHaveLength(
    1,
  );
  expect(await refusals(asking.run.id)).toEqual([]);
});

test("the same person's contrary decision is refused", async () => {
  const asking = await anAskingRun(bench.store);
  await decideApproval(bench.store, decision(asking));
  expect(await decideApproval(bench.store, decision(asking, { decision: "reject" }))).toMatchObject({
    result: "refused",
    rule: "already_decided",
  });
});

test.each([
  ["not_an_approver", { actor: { kind: "approver", id: "carl" } as const }],
  ["own_request", { actor: { kind: "approver", id: "alice" } as const }],
  ["hash_mismatch", { argsHash: "what-was-never-shown" }],
  ["not_yours_to_raise", { actor: { kind: "requester", id: "mona" } as const }],
] as const)("a decision is refused as %s, and recorded", async (rule, overrides) => {
  const asking = await anAskingRun(bench.store);
  expect(await decideApproval(bench.store, decision(asking, overrides))).toMatchObject({ result: "refused", rule });
  expect(await approval(asking.request.id)).toMatchObject([{ state: "pending" }]);
  expect(await refusals(asking.run.id)).toMatchObject([{ rule }]);
  expect((await reload(bench.store, asking.run.id)).run).toEqual(asking.run);
});

test("somebody who is named may decide without the role", async () => {
  const asking = await anAskingRun(bench.store, {
    request: { terms: { approvers: { roles: [], users: ["carl"] } } },
  });
  expect(
    await decideApproval(bench.store, decision(asking, { actor: { kind: "approver", id: "carl" } })),
  ).toMatchObject({ result: "accepted" });
});

test("a decision about an approval that is not there is not found", async () => {
  const asking = await anAskingRun(bench.store);
  expect(await decideApproval(bench.store, decision(asking, { approvalId: newId() }))).toEqual({ result: "not_found" });
});

test("a decision after the deadline is refused by the statement's own clock, whether a sweep has come by or not", async () => {
  const asking = await anAskingRun(bench.store);
  await moveClock(bench.url, MINUTE_MS + 1);
  expect(await decideApproval(bench.store, decision(asking))).toMatchObject({
    result: "refused",
    rule: "deadline_passed",
  });
  expect(await approval(asking.request.id)).toMatchObject([{ state: "pending" }]);
});

test("a decision that was in time when it was read but waited past the deadline is refused", async () => {
  const asking = await anAskingRun(bench.store, { request: { terms: { deadlineMs: 300 } } });
  const late = "select from holdpoint.approvals where id = $1 and deadline < holdpoint.clock()";
  const answer = await bench.whileHeld(asking.run.id, deciding(asking), () =>
    waitFor(async () => (await bench.sql(late, [asking.request.id])).length > 0, {
      deadlineMs: 5_000,
      what: "the approval's deadline to pass",
    }),
  );
  expect(answer).toMatchObject({ result: "refused", rule: "deadline_passed" });
});

test("an expired request is refused as expired after its deadline was swept", async () => {
  const asking = await anAskingRun(bench.store);
  await moveClock(bench.url, MINUTE_MS + 1);
  const [due] = (await findOverdue(bench.store, 10)).filter(({ run }) => run.id === asking.run.id);
  const { id, callId, terms } = asking.request;
  expect(due?.approvals).toEqual([
    { id, callId, terms, level: 0, extended: false, deadlineMs: (asking.run.state.waitDeadline as { at: number }).at },
  ]);
  await moved(bench.store, {
    run: due?.run ?? asking.run,
    actor: SWEEPER,
    events: [{ type: "DeadlinePassed", remaining: null }],
    writes: { approvals: [{ id: asking.request.id, state: "expired" }] },
  });
  expect(await decideApproval(bench.store, decision(asking))).toMatchObject({
    result: "refused",
    rule: "approval_expired",
  });
});

test("an old approval after the end is refused and recorded, and nothing moves", async () => {
  const asking = await anAskingRun(bench.store);
  const ended = accepted(await requestCancel(bench.store, { runId: asking.run.id, actor: ALICE, reason: null }));
  expect(ended.state.status).toBe("cancelled");
  expect(await decideApproval(bench.store, decision(asking))).toMatchObject({
    result: "refused",
    rule: "approval_withdrawn",
  });
  expect(await refusals(asking.run.id)).toEqual([
    { rule: "approval_withdrawn", event: "FactArrived", actor_id: "mona" },
  ]);
  expect((await reload(bench.store, asking.run.id)).run).toEqual(ended);
});

test("a decision while the run is paused is taken, and the run goes on when it is resumed", async () => {
  const asking = await anAskingRun(bench.store);
  await requestPause(bench.store, { runId: asking.run.id, actor: OPERATOR });
  expect(await decideApproval(bench.store, decision(asking))).toMatchObject({
    result: "accepted",
    run: { state: { status: "paused", resumeTo: { to: "queued" } } },
  });
  expect(await resumeRun(bench.store, { runId: asking.run.id, actor: OPERATOR })).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued" } },
  });
});

test("a pause does not use up the time to decide: neither while it lasts nor after it", async () => {
  const during = await anAskingRun(bench.store);
  const after = await anAskingRun(bench.store);
  for (const { run } of [during, after]) await requestPause(bench.store, { runId: run.id, actor: OPERATOR });
  await moveClock(bench.url, HOUR_MS);
  expect(await decideApproval(bench.store, decision(during))).toMatchObject({ result: "accepted" });
  const resumed = accepted(await resumeRun(bench.store, { runId: after.run.id, actor: OPERATOR }));
  expect(resumed.state.status).toBe("waiting_approval");
  expect(await decideApproval(bench.store, decision(after))).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued" } },
  });
});

test("of two requests of one hold the run waits for both, and each is decided by itself", async () => {
  const calls = [aCall(), aCall({ ordinal: 1, argsHash: "hash-2" })];
  const asking = await anAskingRun(bench.store, { calls });
  expect(await decideApproval(bench.store, decision(asking))).toMatchObject({
    run: { state: { status: "waiting_approval" } },
  });
  const second = { approvalId: asking.requests[1]?.id ?? "", argsHash: "hash-2", decision: "reject" } as const;
  expect(await decideApproval(bench.store, decision(asking, second))).toMatchObject({
    run: { state: { status: "queued" } },
  });
});

test("requests of a hold that is not granted, since a stop was asked for, are not made", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: null });
  const { run } = await reload(bench.store, claimed.run.id);
  const held = await moved(bench.store, {
    run,
    actor: ownerOf(claimed),
    events: [{ type: "Held", hold: APPROVAL }],
    writes: { requests: [aRequest(call)] },
  });
  expect(held.state.status).toBe("cancelled");
  expect((await reload(bench.store, run.id)).approvals).toEqual([]);
});

// --- Spending ---

/** A run whose call has been approved, claimed again. */
async function anApprovedRun() {
  const asking = await anAskingRun(bench.store);
  await decideApproval(bench.store, decision(asking));
  const claimed = await claim(bench.store, asking.run.id, await aWorker(bench.store));
  return { ...asking, claimed, start: starting(asking) };
}

function starting({ call, request }: Asking, overrides: Partial<PlannedStart> = {}): PlannedStart {
  return { ...aStart(call, 1, request.id), ...overrides };
}

test("an approval is spent by the intent's own statement", async () => {
  const { claimed, start, request } = await anApprovedRun();
  expect(await commitSteps(bench.store, [aCommit(claimed, { start, progress: false })])).toMatchObject([
    { started: true },
  ]);
  expect(await approval(request.id)).toMatchObject([{ state: "spent", decided_by: "mona", spent_by: start.attemptId }]);
});

test("an approval that has lapsed is not spent", async () => {
  const { claimed, start, request } = await anApprovedRun();
  await moveClock(bench.url, MINUTE_MS + 1);
  expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
    { result: "taken", started: false },
  ]);
  expect(await approval(request.id)).toMatchObject([{ state: "approved", spent_by: null }]);
});

test("an approval is not spent for other arguments than those that were shown", async () => {
  const { claimed, start } = await anApprovedRun();
  const other = { ...start, argsHash: "hash-of-other-arguments" };
  expect(await commitSteps(bench.store, [aCommit(claimed, { start: other })])).toMatchObject([{ started: false }]);
});

test("a rejected, a pending and another run's approval are not spent", async () => {
  const rejected = await anAskingRun(bench.store);
  await decideApproval(bench.store, decision(rejected, { decision: "reject" }));
  const claimed = await claim(bench.store, rejected.run.id, await aWorker(bench.store));
  const pending = await anAskingRun(bench.store);
  const foreign = await anAskingRun(bench.store);
  await decideApproval(bench.store, decision(foreign));
  for (const { request } of [rejected, pending, foreign]) {
    const start = starting(rejected, { approvalId: request.id, argsHash: request.argsHash });
    expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
      { result: "taken", started: false },
    ]);
  }
});

test("a later attempt of the same call spends its approval again", async () => {
  const { claimed, start, request, call } = await anApprovedRun();
  const begun = await took(bench.store, claimed, { start, progress: false });
  const failed = await took(bench.store, begun, {
    steps: [
      { kind: "call_failed", callId: call.id, attempt: 1, errorClass: "transient", code: "ECONNREFUSED", retryInMs: 0 },
    ],
    settles: [{ attemptId: start.attemptId, outcome: "failed", settledBy: "worker" }],
  });
  const second = aStart(call, 2, request.id);
  await took(bench.store, failed, { start: second, progress: false });
  expect(await approval(request.id)).toMatchObject([{ state: "spent", spent_by: second.attemptId }]);
});

test("an equal call does not spend another call's approval", async () => {
  const [first, equal] = [aCall(), aCall({ ordinal: 1, toolCallId: "call_2" })];
  const asking = await anAskingRun(bench.store, { calls: [first, equal] });
  await decideApproval(bench.store, decision(asking));
  await decideApproval(bench.store, decision(asking, { approvalId: asking.requests[1]?.id ?? "", decision: "reject" }));
  const claimed = await claim(bench.store, asking.run.id, await aWorker(bench.store));
  const start = aStart(equal, 1, asking.request.id);
  expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
    { result: "taken", started: false },
  ]);
});

test("an approval outlives the worker that was to spend it, and is spent by the next", async () => {
  const { claimed, start } = await anApprovedRun();
  const next = await claim(bench.store, (await lose(bench.store, claimed.run)).id, await aWorker(bench.store));
  expect(await commitSteps(bench.store, [aCommit(next, { start })])).toMatchObject([{ started: true }]);
});

test("an end withdraws what was approved and not spent", async () => {
  const { claimed, request } = await anApprovedRun();
  await moved(bench.store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Ended", status: "failed", outcome: null, reason: "gave_up" }],
  });
  expect(await approval(request.id)).toMatchObject([{ state: "withdrawn", decided_by: "mona" }]);
});

test("a plain message while an approval is pending decides nothing", async () => {
  const asking = await anAskingRun(bench.store);
  const said = await transitionOne(bench.store, {
    run: asking.run,
    actor: ALICE,
    events: [{ type: "FactArrived", fact: "message", completesHold: false }],
  });
  expect(said).toMatchObject({
    result: "accepted",
    run: { holdSeq: asking.run.holdSeq, state: { status: "waiting_approval" } },
  });
  expect(await approval(asking.request.id)).toMatchObject([{ state: "pending" }]);
});

test("requests are in the order of their holds, whatever the clock of the worker that asked", async () => {
  const { run, request, call } = await anAskingRun(bench.store);
  const newer = "00000000-0000-7000-8000-000000000001";
  await bench.sql(
    "update holdpoint.approvals set state = 'withdrawn', closed_at = now(), closed_reason = 'test' where id = $1",
    [request.id],
  );
  await bench.sql(
    `insert into holdpoint.approvals (tenant_id, id, run_id, call_id, hold_seq, tool, args, args_hash, rule, roles, users,
       excluded, state, requested_at, deadline, on_deadline, valid_for_ms, terms, request, quorum)
     select tenant_id, $2, run_id, call_id, hold_seq + 2, tool, args, args_hash, rule, roles, users, excluded, 'pending',
       requested_at, deadline, on_deadline, valid_for_ms, terms, request, quorum from holdpoint.approvals where id = $1`,
    [request.id, newer],
  );
  const { approvals } = await reload(bench.store, run.id);
  expect(approvals.map(({ id, callId }) => [id, callId])).toEqual([
    [request.id, call.id],
    [newer, call.id],
  ]);
});
