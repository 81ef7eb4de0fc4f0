import { createTestDatabase } from "@holdpoint/testkit";
import pg from "pg";
import { expect, test } from "vitest";
import { findViolations, newId, openStore, registerAgent, startNow } from "../src/index.ts";
import { AGENT } from "./a-run.ts";
import { aSchedule } from "./a-schedule.ts";
import { anAskingRun, RUNS } from "./a-status.ts";

type Status = keyof typeof RUNS;

/** A change that breaks the rule on a run of the status; constraints that would refuse it are dropped before. */
const BROKEN: readonly (readonly [string, Status, string])[] = [
  ["owner_is_no_worker", "running", `update holdpoint.runs set owner = '${newId()}' where id = $1`],
  ["running_without_owner", "running", "update holdpoint.runs set owner = null where id = $1"],
  ["open_attempts_differ", "running", "update holdpoint.runs set open_attempts = 1 where id = $1"],
  ["steps_have_a_gap", "cancelling", "delete from holdpoint.steps where run_id = $1 and seq = 1"],
  [
    "checkpoint_is_behind",
    "cancelling",
    `update holdpoint.runs set checkpoint = checkpoint || '{"stepSeq":1}' where id = $1`,
  ],
  ["transitions_have_a_gap", "paused", "delete from holdpoint.transitions where run_id = $1 and seq = 2"],
  ["transitions_have_a_gap", "queued", "update holdpoint.runs set version = 7 where id = $1"],
  [
    "transitions_do_not_join",
    "paused",
    "update holdpoint.transitions set to_status = 'lost' where run_id = $1 and seq = 2",
  ],
  [
    "status_is_not_the_last_transitions",
    "queued",
    "update holdpoint.transitions set to_status = 'lost' where run_id = $1",
  ],
  [
    "pending_approval_without_wait",
    "waiting_approval",
    "update holdpoint.runs set status = 'queued', queued_since = updated_at where id = $1",
  ],
  ["waits_for_no_approval", "waiting_approval", "update holdpoint.approvals set state = 'expired' where run_id = $1"],
  ["waits_without_deadline", "lost", "update holdpoint.runs set wait_deadline = null where id = $1"],
  ["queued_without_since", "queued", "update holdpoint.runs set queued_since = null where id = $1"],
  ["is_task_and_its_agent_is_not", "queued", "update holdpoint.runs set is_task = true where id = $1"],
  ["task_in_hands_of_nobody", "running", "update holdpoint.runs set is_task = true where id = $1"],
  [
    "executor_of_no_task",
    "running",
    "update holdpoint.workers set kind = 'task' where id = (select owner from holdpoint.runs where id = $1)",
  ],
  [
    "moved_after_its_end",
    "completed",
    `insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
     select tenant_id, id, version + 1, status, status, 'CancelRequested', 'requester', 'alice', 1, updated_at
     from holdpoint.runs where id = $1`,
  ],
  [
    "message_without_session",
    "queued",
    `insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
     select tenant_id, gen_random_uuid(), 1, 'user', 'alice', 'hello', id, updated_at from holdpoint.runs where id = $1`,
  ],
  ["history_without_run", "queued", "delete from holdpoint.runs where id = $1"],
];

test.each(BROKEN)("%s is found on a %s run", async (rule, status, change) => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  const run = await RUNS[status](store);
  expect(await findViolations(store)).toEqual([]);
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query("alter table holdpoint.runs drop constraint row_is_complete");
  await admin.query(change, [run.id]);
  await admin.end();
  expect(await findViolations(store)).toContainEqual({ rule, runId: run.id });
});

test("ended_with_unspent_approval is found", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  const { run } = await anAskingRun(store);
  await store.pool.query(
    "update holdpoint.approvals set state = 'approved', given = 1, decided_at = requested_at, decided_by = 'm', valid_until = deadline where run_id = $1",
    [run.id],
  );
  await store.pool.query("update holdpoint.runs set status = 'failed', ended_at = updated_at where id = $1", [run.id]);
  expect(await findViolations(store)).toContainEqual({ rule: "ended_with_unspent_approval", runId: run.id });
});

test("slot_without_its_run is found", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  await registerAgent(store, { ...AGENT, tools: [] });
  await aSchedule(store, { name: "stale", slotAtMs: 0 });
  const started = await startNow(store, { name: "stale", by: "olga" });
  if (started.result !== "started") throw new Error(started.result);
  expect(await findViolations(store)).toEqual([]);
  await store.pool.query("update holdpoint.schedule_slots set session_id = $1", [newId()]);
  expect(await findViolations(store)).toEqual([{ rule: "slot_without_its_run", runId: started.run.id }]);
});
