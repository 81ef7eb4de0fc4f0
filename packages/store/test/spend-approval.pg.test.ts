import { approvalFor, type DenyRule } from "@holdpoint/core";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterEach, expect, test } from "vitest";
import {
  commitSteps,
  decideApproval,
  denyCalls,
  grantRoles,
  liftDenial,
  listDenials,
  newId,
  revokeRole,
  type Store,
} from "../src/index.ts";
import { aDecision, by } from "./a-decision.ts";
import { aCall, aCommit, aStart, aWorker, claim, type PlannedStart } from "./a-run.ts";
import {
  accepted,
  aGatedCall,
  anAskingRun,
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

afterEach(() => moveClock(bench.url, 0));

/** A run whose gated call somebody has approved, claimed again. */
async function anApprovedRun(user = "mona") {
  const asking = await anAskingRun(bench.store, { calls: [aGatedCall()] });
  accepted(await decideApproval(bench.store, aDecision(asking, by({ kind: "approver", id: user }))));
  const claimed = await claim(bench.store, asking.run.id, await aWorker(bench.store));
  return { ...asking, claimed, start: aStart(asking.call, 1, asking.request.id) };
}

type Approved = Awaited<ReturnType<typeof anApprovedRun>>;

const starting =
  ({ claimed }: Pick<Approved, "claimed">, start: PlannedStart) =>
  (store: Store) =>
    commitSteps(store, [aCommit(claimed, { start, progress: false })]);

function aDenial(name = newId()): { rule: DenyRule; reason: string; by: string } {
  const rule = { name, tools: ["send_refund"], when: [], action: "deny", message: "No refunds today." } as const;
  return { rule, reason: "the provider has an incident", by: "olga" };
}

async function spendings(runId: string) {
  return bench.sql("select state, spent_by from holdpoint.approvals where run_id = $1 order by hold_seq", [runId]);
}

const REFUSED = [{ result: "taken", started: false, status: "running" }];

test("a deny rule stored before the intent's statement began refuses the start, and the reload says which", async () => {
  const approved = await anApprovedRun();
  const denial = aDenial();
  expect(await denyCalls(bench.store, denial)).toBe(true);
  expect(await starting(approved, approved.start)(bench.store)).toMatchObject(REFUSED);
  expect(await spendings(approved.run.id)).toEqual([{ state: "approved", spent_by: null }]);
  const again = await reload(bench.store, approved.run.id);
  expect(again.denials).toEqual([denial.rule]);
  expect(approvalFor(approved.call, again)).toBeUndefined();
  expect(await liftDenial(bench.store, { name: denial.rule.name, by: "olga" })).toBe(true);
  const lifted = await reload(bench.store, approved.run.id);
  expect(await starting({ claimed: lifted }, approved.start)(bench.store)).toMatchObject([{ started: true }]);
});

test("a start that brings no approval is refused for a call that needs one, approved or not, and for a repeat of it", async () => {
  const approved = await anApprovedRun();
  const bare = aStart(approved.call);
  expect(await starting(approved, bare)(bench.store)).toMatchObject(REFUSED);
  expect(await spendings(approved.run.id)).toEqual([{ state: "approved", spent_by: null }]);
  const again = await reload(bench.store, approved.run.id);
  expect(again.openAttempts).toEqual([]);
  const begun = await took(bench.store, again, { start: approved.start, progress: false });
  await lose(bench.store, begun.run);
  const claimed = await claim(bench.store, approved.run.id, await aWorker(bench.store));
  const repeat = { ...aStart(approved.call, 2), supersedes: approved.start.attemptId };
  expect(await starting({ claimed }, repeat)(bench.store)).toMatchObject([{ result: "taken", started: false }]);
  const known = { ...repeat, approvalId: approved.request.id };
  expect(await starting({ claimed }, known)(bench.store)).toMatchObject([{ started: true }]);
});

test("a deny rule that is stored while the intent's statement waits for its row does not stop it", async () => {
  const approved = await anApprovedRun();
  const denial = aDenial();
  const answer = await bench.whileHeld(approved.run.id, starting(approved, approved.start), () =>
    denyCalls(bench.store, denial),
  );
  await liftDenial(bench.store, { name: denial.rule.name, by: "olga" });
  expect(answer).toMatchObject([{ started: true }]);
});

test("a deny rule refuses a later attempt of a call whose approval is spent", async () => {
  const approved = await anApprovedRun();
  const begun = await took(bench.store, approved.claimed, { start: approved.start, progress: false });
  const failed = await took(bench.store, begun, {
    steps: [
      {
        kind: "call_failed",
        callId: approved.call.id,
        attempt: 1,
        errorClass: "transient",
        code: "reset",
        retryInMs: 0,
      },
    ],
    settles: [{ attemptId: approved.start.attemptId, outcome: "failed", settledBy: "worker" }],
  });
  const denial = aDenial();
  await denyCalls(bench.store, denial);
  const second = aStart(approved.call, 2, approved.request.id);
  expect(await starting({ claimed: failed }, second)(bench.store)).toMatchObject(REFUSED);
  await liftDenial(bench.store, { name: denial.rule.name, by: "olga" });
});

test("a rule is in force once by its name, and can be put in force again after it was lifted", async () => {
  const denial = aDenial();
  const both = await Promise.all([denyCalls(bench.store, denial), denyCalls(bench.store, denial)]);
  expect(both.toSorted()).toEqual([false, true]);
  expect(await listDenials(bench.store)).toMatchObject([
    { rule: denial.rule, reason: denial.reason, createdBy: "olga" },
  ]);
  expect(await liftDenial(bench.store, { name: denial.rule.name, by: "olga" })).toBe(true);
  expect(await liftDenial(bench.store, { name: denial.rule.name, by: "olga" })).toBe(false);
  expect(await listDenials(bench.store)).toEqual([]);
  expect(await denyCalls(bench.store, denial)).toBe(true);
  await liftDenial(bench.store, { name: denial.rule.name, by: "olga" });
});

test("an approver who loses the role before the spending: the start is refused, and the reload says why", async () => {
  await grantRoles(bench.store, { grants: [{ user: "rita", role: "manager" }], by: "olga" });
  const approved = await anApprovedRun("rita");
  expect(await revokeRole(bench.store, { user: "rita", role: "manager", by: "olga" })).toBe(true);
  expect(await starting(approved, approved.start)(bench.store)).toMatchObject(REFUSED);
  const again = await reload(bench.store, approved.run.id);
  expect(again.approvals).toMatchObject([{ state: "approved", rightsLost: true }]);
  expect(approvalFor(approved.call, again)).toBeUndefined();
});

test("an approver who is named keeps the right whatever roles go", async () => {
  await grantRoles(bench.store, { grants: [{ user: "nora", role: "manager" }], by: "olga" });
  const terms = { approvers: { roles: ["manager"], users: ["nora"] } };
  const asking = await anAskingRun(bench.store, { calls: [aGatedCall()], request: { terms } });
  await decideApproval(bench.store, aDecision(asking, by({ kind: "approver", id: "nora" })));
  await revokeRole(bench.store, { user: "nora", role: "manager", by: "olga" });
  expect((await reload(bench.store, asking.run.id)).approvals).toMatchObject([{ rightsLost: false }]);
});

test("of two who approved, one who loses the role makes the approval void", async () => {
  await grantRoles(bench.store, { grants: [{ user: "rolf", role: "manager" }], by: "olga" });
  const asking = await anAskingRun(bench.store, { calls: [aGatedCall()], request: { terms: { quorum: 2 } } });
  for (const id of ["rolf", "mona"])
    accepted(await decideApproval(bench.store, aDecision(asking, by({ kind: "approver", id }))));
  expect((await reload(bench.store, asking.run.id)).approvals).toMatchObject([{ rightsLost: false }]);
  await revokeRole(bench.store, { user: "rolf", role: "manager", by: "olga" });
  expect((await reload(bench.store, asking.run.id)).approvals).toMatchObject([{ rightsLost: true }]);
});

test("two workers at once cannot spend one approval twice: the one that was replaced starts nothing", async () => {
  const approved = await anApprovedRun();
  const { id } = await lose(bench.store, approved.claimed.run);
  const fresh = await claim(bench.store, id, await aWorker(bench.store));
  const second = aStart(approved.call, 1, approved.request.id);
  const [stale, own] = await Promise.all([
    starting(approved, approved.start)(bench.store),
    starting({ claimed: fresh }, second)(bench.store),
  ]);
  expect([stale, own]).toMatchObject([[{ result: "replaced" }], [{ result: "taken", started: true }]]);
  expect(await spendings(id)).toEqual([{ state: "spent", spent_by: second.attemptId }]);
  expect(await bench.sql("select id from holdpoint.attempts where run_id = $1", [id])).toEqual([
    { id: second.attemptId },
  ]);
});

test("one worker that sends its start twice at once spends once", async () => {
  const approved = await anApprovedRun();
  const [, again] = await bench.inOrder(
    approved.run.id,
    starting(approved, approved.start),
    starting(approved, { ...approved.start, attemptId: newId() }),
  );
  expect(again).toEqual([{ result: "reload" }]);
  expect(await spendings(approved.run.id)).toEqual([{ state: "spent", spent_by: approved.start.attemptId }]);
});

test.each([
  ["the hash", { argsHash: "other" }],
  ["the call", { body: { kind: "intent", callId: newId(), attempt: 1 } } as const],
  ["the request", { approvalId: newId() }],
])("a start that differs in %s from what was approved is refused", async (_, other) => {
  const approved = await anApprovedRun();
  expect(await starting(approved, { ...approved.start, ...other })(bench.store)).toMatchObject(REFUSED);
  expect(await spendings(approved.run.id)).toEqual([{ state: "approved", spent_by: null }]);
});

test("an approval that lapses while the intent waits is not spent", async () => {
  const approved = await anApprovedRun();
  const valid = "select from holdpoint.approvals where id = $1 and valid_until > holdpoint.clock()";
  await bench.sql("update holdpoint.approvals set valid_until = holdpoint.clock() + interval '300 ms' where id = $1", [
    approved.request.id,
  ]);
  const answer = await bench.whileHeld(approved.run.id, starting(approved, approved.start), () =>
    waitFor(async () => (await bench.sql(valid, [approved.request.id])).length === 0, {
      deadlineMs: 5_000,
      what: "the approval to lapse",
    }),
  );
  expect(answer).toMatchObject(REFUSED);
});

test("a later attempt is refused once the approval that it rides on has lapsed", async () => {
  const approved = await anApprovedRun();
  const begun = await took(bench.store, approved.claimed, { start: approved.start, progress: false });
  const settled = await took(bench.store, begun, {
    steps: [{ kind: "did_not_happen", callId: approved.call.id, attempt: 1 }],
    settles: [{ attemptId: approved.start.attemptId, outcome: "did_not_happen", settledBy: "worker" }],
  });
  await moveClock(bench.url, MINUTE_MS + 1);
  const second = aStart(approved.call, 2, approved.request.id);
  expect(await starting({ claimed: settled }, second)(bench.store)).toMatchObject(REFUSED);
});

test("what has lapsed is asked for anew, for the same hash, and the new approval is spent", async () => {
  const approved = await anApprovedRun();
  await moveClock(bench.url, MINUTE_MS + 1);
  const { call, claimed } = approved;
  const request = aRequest(call);
  const deadline = { inMs: MINUTE_MS };
  const waitingFor = { kind: "approvers", principal: "role:manager", subject: call.id, reason: "over_limit" } as const;
  const held = await moved(bench.store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Held", hold: { kind: "approval", waitingFor, deadline, onDeadline: "reject" } }],
    writes: { requests: [request] },
  });
  accepted(await decideApproval(bench.store, aDecision({ run: held, request })));
  const again = await claim(bench.store, held.id, await aWorker(bench.store));
  expect(approvalFor(call, again)).toMatchObject({ id: request.id });
  const start = aStart(call, 1, request.id);
  expect(await starting({ claimed: again }, start)(bench.store)).toMatchObject([{ started: true }]);
  expect(await spendings(held.id)).toEqual([
    { state: "approved", spent_by: null },
    { state: "spent", spent_by: start.attemptId },
  ]);
});

test("a start that needs nobody's approval is not stopped by what has become of other calls' requests", async () => {
  const free = aCall({ ordinal: 1 });
  const asking = await anAskingRun(bench.store, { calls: [aGatedCall(), free], request: [{}, {}] });
  for (const request of asking.requests) {
    await decideApproval(bench.store, aDecision({ run: asking.run, request }, { decision: "reject" }));
  }
  const claimed = await claim(bench.store, asking.run.id, await aWorker(bench.store));
  expect(await starting({ claimed }, aStart(free))(bench.store)).toMatchObject([{ started: true }]);
});
