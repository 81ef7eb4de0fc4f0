import { expect, test } from "vitest";
import { newId } from "../src/index.ts";
import { aWorker } from "./a-run.ts";
import { anOpenEffect, anUnknownRun, RUNS } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

type Status = keyof typeof RUNS;

/** For each status, what its row must not lose, and the constraint that says so. */
const INCOMPLETE: readonly (readonly [Status, string, string])[] = [
  ["queued", "queued_since = null", "queued_is_complete"],
  ["queued", "wait_deadline = null", "queued_is_complete"],
  ["running", "owner = null", "running_is_complete"],
  ["running", "progress_due_at = null", "running_is_complete"],
  ...(["waiting_input", "waiting_approval", "waiting_dependency", "waiting_operator"] as const).flatMap((status) =>
    ["waiting_since", "wait_deadline", "on_deadline", "hold_seq"].map(
      (column) => [status, `${column} = null`, "waiting_is_complete"] as const,
    ),
  ),
  ["waiting_input", "waiting_for = null", "waiting_is_complete"],
  ["waiting_operator", "waiting_for = waiting_for - 'reason'", "operator_hold_says_why"],
  ["retrying", "retry_at = null", "retrying_is_complete"],
  ["outcome_unknown", "next_reconcile_at = null", "unknown_is_complete"],
  ["outcome_unknown", "wait_deadline = null", "unknown_is_complete"],
  ["outcome_unknown", "open_attempts = 0", "unknown_is_complete"],
  ["paused", "paused_at = null", "paused_is_complete"],
  ["paused", "resume_to = null", "paused_is_complete"],
  ["paused", "wait_deadline = null", "paused_is_complete"],
  ["lost", "lost_at = null", "lost_is_complete"],
  ["lost", "lost_reason = null", "lost_is_complete"],
  ["lost", "wait_deadline = null", "lost_is_complete"],
  ["cancelling", "cancel_requested_at = null", "cancelling_is_complete"],
  ["cancelling", "wait_deadline = null", "cancelling_is_complete"],
  ["completed", "ended_at = null", "ended_is_complete"],
  ["failed", "ended_at = null", "ended_is_complete"],
  ["cancelled", "ended_at = null", "ended_is_complete"],
  ["running", "ended_at = holdpoint.clock()", "ended_is_complete"],
  ["completed", "outcome = null", "completed_says_what"],
  ["completed", "open_attempts = 1", "no_end_with_open_work"],
  ["failed", "live_children = 1", "no_end_with_open_work"],
  ["queued", "status = 'asleep'", "status_is_known"],
  ["running", "open_attempts = -1", "counters_are_natural"],
  ["running", "live_children = -1", "counters_are_natural"],
  ["running", "takeovers = -1", "counters_are_natural"],
  ["running", "step_seq = -1", "counters_are_natural"],
  ["running", "checkpoint = jsonb_build_object('note', repeat('x', 2048))", "checkpoint_is_small"],
];

test.each(INCOMPLETE)("a %s run with %s is refused by %s", async (status, change, constraint) => {
  const run = await RUNS[status](bench.store);
  await expect(bench.sql(`update holdpoint.runs set ${change} where id = $1`, [run.id])).rejects.toMatchObject({
    code: "23514",
    constraint,
  });
});

const WITHOUT_OWNER = [
  "queued",
  "waiting_input",
  "waiting_operator",
  "retrying",
  "paused",
  "lost",
  "cancelled",
] as const;

test.each(WITHOUT_OWNER)("a %s run has no owner", async (status) => {
  const run = await RUNS[status](bench.store);
  const owned = bench.sql("update holdpoint.runs set owner = $2 where id = $1", [run.id, await aWorker(bench.store)]);
  await expect(owned).rejects.toMatchObject({ code: "23514", constraint: "owner_only_where_work_is" });
});

test.each(["completed", "failed", "cancelled"])(
  "an end as %s with an open attempt is refused by Postgres itself",
  async (status) => {
    const { claimed } = await anOpenEffect(bench.store);
    const end = bench.sql(
      `update holdpoint.runs set status = $2, ended_at = holdpoint.clock(), owner = null, outcome = '{"kind":"succeeded"}'
     where id = $1`,
      [claimed.run.id, status],
    );
    await expect(end).rejects.toMatchObject({ code: "23514", constraint: "no_end_with_open_work" });
  },
);

test("a second live run of a line is refused", async () => {
  const run = await RUNS.queued(bench.store);
  const copy = bench.sql(
    `insert into holdpoint.runs select (jsonb_populate_record(r, jsonb_build_object('id', $2::uuid))).*
     from holdpoint.runs r where id = $1`,
    [run.id, newId()],
  );
  await expect(copy).rejects.toMatchObject({ code: "23505", constraint: "runs_one_live_per_line" });
});

const APPROVALS: readonly (readonly [string, string])[] = [
  ["state = 'released'", "state_is_known"],
  ["state = 'approved', given = 1, valid_until = holdpoint.clock()", "decided_says_who"],
  ["state = 'rejected', decided_at = holdpoint.clock()", "decided_says_who"],
  ["state = 'answered', decided_at = holdpoint.clock()", "decided_says_who"],
  ["state = 'skipped', decided_by = 'mona'", "decided_says_who"],
  ["state = 'approved', given = 1, decided_at = holdpoint.clock(), decided_by = 'mona'", "approved_lapses"],
  [
    "state = 'approved', decided_at = holdpoint.clock(), decided_by = 'mona', valid_until = holdpoint.clock()",
    "approved_by_enough",
  ],
  [
    "state = 'approved', given = 1, quorum = 2, decided_at = holdpoint.clock(), decided_by = 'mona', valid_until = deadline",
    "approved_by_enough",
  ],
  [
    "state = 'spent', given = 1, decided_at = holdpoint.clock(), decided_by = 'mona', valid_until = holdpoint.clock()",
    "spent_says_by_what",
  ],
];

test.each(APPROVALS)("an approval with %s is refused by %s", async (change, constraint) => {
  const run = await RUNS.waiting_approval(bench.store);
  await expect(bench.sql(`update holdpoint.approvals set ${change} where run_id = $1`, [run.id])).rejects.toMatchObject(
    {
      code: "23514",
      constraint,
    },
  );
});

test("a second pending approval of one call is refused", async () => {
  const run = await RUNS.waiting_approval(bench.store);
  const copy = bench.sql(
    `insert into holdpoint.approvals select (jsonb_populate_record(a, jsonb_build_object('id', $2::uuid))).*
     from holdpoint.approvals a where run_id = $1`,
    [run.id, newId()],
  );
  await expect(copy).rejects.toMatchObject({ code: "23505", constraint: "approvals_one_pending_per_call" });
});

test.each([
  ["ended_at = holdpoint.clock()", "ended_says_how"],
  ["outcome = 'happened'", "ended_says_how"],
  ["outcome = 'perhaps', ended_at = holdpoint.clock()", "outcome_is_known"],
])("an attempt with %s is refused by %s", async (change, constraint) => {
  const { attemptId } = await anUnknownRun(bench.store);
  await expect(bench.sql(`update holdpoint.attempts set ${change} where id = $1`, [attemptId])).rejects.toMatchObject({
    code: "23514",
    constraint,
  });
});

test("a worker that is gone says why", async () => {
  const id = await aWorker(bench.store);
  await expect(
    bench.sql("update holdpoint.workers set gone_at = holdpoint.clock() where id = $1", [id]),
  ).rejects.toMatchObject({
    constraint: "gone_says_why",
  });
});
