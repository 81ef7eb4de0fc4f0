import { createTestDatabase } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { decideApproval, findViolations, newId, openStore, type Run, type Store } from "../src/index.ts";
import { aCall, grantAll, MANAGER } from "./a-run.ts";
import { aGatedCall, anAskingRun, aPlannedRun, aResult, aSpendingRun, endBy, ended, took } from "./a-status.ts";

/** A run whose released effect is under way. */
const spending = async (store: Store): Promise<Run> => (await aSpendingRun(store)).run;

/** A run whose released effect has been made, and that has ended. */
async function completed(store: Store): Promise<Run> {
  const { call, start, claimed } = await aSpendingRun(store);
  const settles = [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
  return endBy(store, await took(store, claimed, { steps: [aResult(call)], settles }));
}

/** A run that has completed after a read, which has no row of its own. */
async function looked(store: Store): Promise<Run> {
  const call = aCall({ effect: { kind: "read" } });
  return endBy(store, await took(store, await aPlannedRun(store, [call]), { steps: [aResult(call)] }));
}

/** A run with a request that somebody has approved and others still have to. */
async function halfApproved(store: Store): Promise<Run> {
  const { run, request } = await anAskingRun(store, { calls: [aGatedCall()], request: { terms: { quorum: 2 } } });
  const { id: approvalId, argsHash } = request;
  await decideApproval(store, { approvalId, decision: "approve", argsHash, note: null, actor: MANAGER });
  return run;
}

const expired = "state = 'expired', closed_at = now(), closed_reason = 'reject'";

/** Changes that break a rule, each on a run that keeps them all. */
const BROKEN: readonly (readonly [string, (store: Store) => Promise<Run>, string])[] = [
  [
    "ended_with_open_attempt",
    completed,
    "update holdpoint.attempts set ended_at = null, outcome = null where run_id = $1",
  ],
  [
    "attempts_open_at_once",
    spending,
    `insert into holdpoint.attempts (tenant_id, run_id, id, call_id, number, worker, epoch, started_at, deadline_at)
     select tenant_id, run_id, '${newId()}', call_id, 2, worker, epoch, started_at, deadline_at
     from holdpoint.attempts where run_id = $1`,
  ],
  [
    "calls_share_a_place",
    spending,
    `insert into holdpoint.calls select (jsonb_populate_record(c, '{"id": "${newId()}"}')).*
     from holdpoint.calls c where c.run_id = $1`,
  ],
  [
    "calls_share_a_place",
    looked,
    `insert into holdpoint.calls select (jsonb_populate_record(null::holdpoint.calls, to_jsonb(c) || '{"id": "${newId()}"}')).*
     from holdpoint.all_calls c where c.run_id = $1`,
  ],
  ["asked_for_no_call", spending, "delete from holdpoint.calls where run_id = $1"],
  ["asked_for_no_call", looked, "update holdpoint.steps set calls = null where run_id = $1"],
  ["asked_for_no_call", looked, "update holdpoint.steps set calls = '[null]' where run_id = $1 and calls is not null"],
  ["attempt_without_call", spending, "delete from holdpoint.calls where run_id = $1"],
  ["attempt_without_approval", spending, "update holdpoint.approvals set args_hash = 'other' where run_id = $1"],
  [
    "attempt_without_approval",
    spending,
    `update holdpoint.approvals set ${expired}, spent_at = null where run_id = $1`,
  ],
  ["ran_what_nobody_has_seen", spending, "update holdpoint.attempts set args_hash = 'other' where run_id = $1"],
  [
    "approval_spent_by_another_call",
    completed,
    `with other as (
       insert into holdpoint.calls select (jsonb_populate_record(c, '{"id": "${newId()}", "ordinal": 1}')).*
       from holdpoint.calls c where c.run_id = $1 returning id)
     update holdpoint.attempts set call_id = (select id from other) where run_id = $1`,
  ],
  ["late_without_evidence", spending, "update holdpoint.attempts set late_at = now() where run_id = $1"],
  ["late_without_evidence", spending, "update holdpoint.attempts set late_evidence = '{}' where run_id = $1"],
  [
    "result_twice",
    completed,
    `insert into holdpoint.steps select (jsonb_populate_record(s, '{"seq": 9}')).*
     from holdpoint.steps s where s.run_id = $1 and s.kind = 'tool_result'`,
  ],
  [
    "result_before_its_call",
    completed,
    "update holdpoint.steps set seq = 9 where run_id = $1 and kind = 'model_reply'",
  ],
  [
    "replied_over_an_unanswered_call",
    spending,
    `insert into holdpoint.steps select (jsonb_populate_record(s, '{"seq": 9}')).*
     from holdpoint.steps s where s.run_id = $1 and s.kind = 'model_reply'`,
  ],
  [
    "completed_with_unanswered_call",
    completed,
    "update holdpoint.steps set kind = 'finding' where run_id = $1 and kind = 'tool_result'",
  ],
  [
    "completed_with_unanswered_call",
    looked,
    "update holdpoint.steps set kind = 'finding' where run_id = $1 and kind = 'tool_result'",
  ],
  [
    "pending_effect_never_settles",
    completed,
    "update holdpoint.steps set kind = 'effect_pending' where run_id = $1 and kind = 'tool_result'",
  ],
  ["approved_by_too_few", completed, "delete from holdpoint.decisions where run_id = $1"],
  [
    "approved_by_too_few",
    spending,
    "update holdpoint.approvals set quorum = 2, given = 2, terms = terms || '{\"quorum\": 2}' where run_id = $1",
  ],
  ["approvals_given_differ", halfApproved, "update holdpoint.approvals set given = 0 where run_id = $1"],
  [
    "approved_by_somebody_excluded",
    halfApproved,
    "update holdpoint.approvals set excluded = array['mona'] where run_id = $1",
  ],
  ["closed_without_saying_why", halfApproved, "update holdpoint.approvals set state = 'withdrawn' where run_id = $1"],
  ["edited_in_place_of_nothing", halfApproved, "update holdpoint.approvals set edited_by = 'mona' where run_id = $1"],
  [
    "waits_past_an_approvals_deadline",
    halfApproved,
    "update holdpoint.approvals set deadline = deadline - interval '1 min' where run_id = $1",
  ],
  ["pending_approval_without_wait", completed, "update holdpoint.approvals set state = 'pending' where run_id = $1"],
  ["history_without_run", halfApproved, "delete from holdpoint.runs where id = $1"],
];

test.each(BROKEN)("%s is found", async (rule, make, change) => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  await grantAll(store);
  const run = await make(store);
  expect(await findViolations(store)).toEqual([]);
  await store.pool.query("alter table holdpoint.attempts drop constraint ended_says_how");
  await store.pool.query(change, [run.id]);
  expect(await findViolations(store)).toContainEqual({ rule, runId: run.id });
});

test("an effect that its tool lets settle later, and that is neither open nor answered, breaks nothing", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  await grantAll(store);
  const settlement = { everyMs: 1_000, withinMs: 60_000 };
  const effect = { kind: "effect", keyValidForMs: 1, lookUpSettlesWithinMs: 1, equalCallsAreDistinct: false } as const;
  const { call, start, claimed } = await aSpendingRun(store, aGatedCall({ effect: { ...effect, settlement } }));
  await took(store, claimed, {
    steps: [{ kind: "effect_pending", callId: call.id, output: { refund: "re_1" } }],
    settles: [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker" }],
  });
  await ended(store, "failed");
  expect(await findViolations(store)).toEqual([]);
});
