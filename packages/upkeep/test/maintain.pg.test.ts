import { openPublisher, type Publisher } from "@holdpoint/queue";
import { changeRetention, findRetentionDue, type Run, requestCancel, type Store } from "@holdpoint/store";
import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALICE, aRun, aWorker, claim, OPERATOR } from "../../store/test/a-run.ts";
import {
  aClaimedRun,
  accepted,
  aHeldRun,
  anAskingRun,
  endBy,
  ended,
  ownerOf,
  QUESTION,
  released,
} from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { applyMaintenance, planMaintenance } from "../src/index.ts";
import type { Action, SweepContext } from "../src/sweep.ts";

const bench = useBench();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NEVER = new AbortController().signal;

beforeEach(async () => {
  await bench.sql(
    "truncate holdpoint.runs, holdpoint.sessions, holdpoint.messages, holdpoint.tombstones, holdpoint.workers cascade",
  );
  const tables =
    "transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.approvals, holdpoint.verdicts";
  await bench.sql(`truncate holdpoint.${tables}, holdpoint.inbox, holdpoint.refusals cascade`);
});
afterEach(() => moveClock(bench.url, 0));

/** A queue that only counts: what is published waits in it. */
function aQueue(): Publisher & { readonly published: string[]; answers: boolean } {
  const published: string[] = [];
  return {
    published,
    answers: true,
    publish: async (wakeUps) => {
      published.push(...wakeUps.map(({ runId }) => runId));
      return { published: wakeUps.length, failed: 0, error: null };
    },
    async waiting() {
      return this.answers ? published.length : null;
    },
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function aContext(publisher: Publisher, overrides: Partial<SweepContext> = {}): SweepContext {
  return {
    store: bench.store,
    publisher,
    id: "maintenance by olga",
    graceMs: 5_000,
    limit: 100,
    number: 7,
    ...overrides,
  };
}

const kindsOf = (actions: readonly Action[]) => [...new Set(actions.map(({ kind }) => kind))];

/** Something to do for each sweep: what everybody has left lying about for 31 days. */
async function aNeglectedFleet(store: Store) {
  const old = await ended(store, "failed");
  const forsaken = await aClaimedRun(store);
  await bench.sql(
    "update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = 'process_exited' where id = $1",
    [ownerOf(forsaken).id],
  );
  const wedged = await aClaimedRun(store);
  const retrying = await released(store, 1_000);
  const overdue = await aHeldRun(store, QUESTION);
  const asking = await anAskingRun(store, { request: { terms: { remindAfterMs: [1_000], deadlineMs: 60 * DAY_MS } } });
  const stopping = await aStoppingRun(store);
  const unclaimed = await aRun(store);
  await moveClock(bench.url, 31 * DAY_MS);
  return {
    old,
    forsaken: forsaken.run,
    wedged: wedged.run,
    retrying,
    overdue,
    asking: asking.run,
    stopping,
    unclaimed,
  };
}

/** A run that is being stopped and has stopped, which nobody has noticed. */
async function aStoppingRun(store: Store): Promise<Run> {
  const claimed = await aClaimedRun(store);
  const run = accepted(await requestCancel(store, { runId: claimed.run.id, actor: ALICE, reason: null }));
  await bench.sql(
    "update holdpoint.runs set owner = null, wait_deadline = wait_deadline + interval '60 days' where id = $1",
    [run.id],
  );
  return run;
}

describe("maintenance", () => {
  test("lists the same whether it is done or only shown, and finds nothing the second time", async () => {
    const fleet = await aNeglectedFleet(bench.store);
    const queue = aQueue();
    const planned = await planMaintenance(aContext(queue));
    expect(planned).toEqual(await planMaintenance(aContext(queue)));
    expect(planned.applied).toBeNull();
    expect(queue.published).toEqual([]);
    const of = (kind: string) => planned.actions.filter((action) => action.kind === kind).map(({ runId }) => runId);
    expect(of("recover-forsaken")).toEqual([fleet.forsaken.id]);
    expect(of("recover-wedged")).toContain(fleet.wedged.id);
    expect(of("pass-deadlines")).toContain(fleet.overdue.id);
    expect(of("retry-due")).toEqual([fleet.retrying.id]);
    expect(of("remind-approvers")).toEqual([fleet.asking.id]);
    expect(of("settle-cancelling")).toEqual([fleet.stopping.id]);
    expect(of("repeat-wake-ups")).toContain(fleet.unclaimed.id);
    expect(of("remove-expired")).toEqual([fleet.old.id]);

    const done = await applyMaintenance(aContext(queue), NEVER);
    expect(done.actions).toEqual(planned.actions);
    expect(done.applied).toMatchObject({ left: [], failed: [] });
    // The session of the run that was removed is only then empty.
    const emptied = { kind: "remove-leftovers", runId: null, subject: { kind: "session", id: fleet.old.sessionId } };
    expect(done.applied?.followUps).toContainEqual(emptied);

    const again = await applyMaintenance(aContext(queue), NEVER);
    expect(again).toEqual({
      actions: [],
      unreadable: [],
      applied: { followUps: [], followed: 0, left: [], failed: [] },
    });
    const [moved] = await bench.sql(
      "select array_agg(distinct actor_id) as actors from holdpoint.transitions where run_id = $1 and event = 'RetryDue'",
      [fleet.retrying.id],
    );
    expect(moved).toEqual({ actors: ["maintenance by olga"] });
  });

  test("changes nothing while it only looks", async () => {
    await aNeglectedFleet(bench.store);
    const state = () => bench.sql("select id, version, status, kept_until from holdpoint.runs order by id");
    const before = await state();
    await planMaintenance(aContext(aQueue()));
    expect(await state()).toEqual(before);
    expect(await bench.sql("select from holdpoint.tombstones")).toEqual([]);
  });

  test("finds nothing in a fleet that is well", async () => {
    await aHeldRun(bench.store, { ...QUESTION, deadline: { inMs: 7 * DAY_MS } });
    await aClaimedRun(bench.store);
    await ended(bench.store, "completed");
    expect(await planMaintenance(aContext(aQueue()))).toEqual({ actions: [], unreadable: [], applied: null });
  });

  test("goes on to what a limit has kept from being listed", async () => {
    for (let number = 0; number < 7; number += 1) await ended(bench.store, "failed");
    await moveClock(bench.url, 31 * DAY_MS);
    const done = await applyMaintenance(aContext(aQueue(), { limit: 2 }), NEVER);
    expect(done.actions).toHaveLength(2);
    expect(done.applied?.left).toEqual([]);
    expect(await bench.sql("select from holdpoint.runs")).toEqual([]);
    expect(await bench.sql("select from holdpoint.sessions")).toEqual([]);
  });

  test("says what is left where its time is over", async () => {
    const run = await released(bench.store, 1_000);
    await moveClock(bench.url, HOUR_MS);
    const over = AbortSignal.abort();
    const done = await applyMaintenance(aContext(aQueue()), over);
    expect(done.applied?.left).toEqual(done.actions);
    expect(done.actions).toMatchObject([{ kind: "retry-due", runId: run.id }]);
  });

  test("leaves what somebody else is moving, and says so", async () => {
    const run = await released(bench.store, 1_000);
    await moveClock(bench.url, HOUR_MS);
    await using other = await bench.lonely();
    await other.store.pool.query("begin");
    await other.store.pool.query("select from holdpoint.runs where id = $1 for update", [run.id]);
    const done = await applyMaintenance(aContext(aQueue()), NEVER);
    await other.store.pool.query("rollback");
    expect(done.applied?.left).toMatchObject([{ kind: "retry-due", runId: run.id }]);
  });

  test("repeats no wake-up of runs that only wait for workers, and says which queues it could not read", async () => {
    await aRun(bench.store);
    await aRun(bench.store);
    await moveClock(bench.url, 10_000);
    const queue = aQueue();
    queue.published.push("one", "another");
    expect((await planMaintenance(aContext(queue))).actions).toEqual([]);
    queue.published.pop();
    expect(kindsOf((await planMaintenance(aContext(queue))).actions)).toEqual(["repeat-wake-ups"]);
    queue.answers = false;
    expect(await planMaintenance(aContext(queue))).toMatchObject({ actions: [], unreadable: ["queue of refunds@1"] });
  });

  test("repeats them on a real queue once, and finds them there the next time", async () => {
    await aRun(bench.store);
    await moveClock(bench.url, 10_000);
    await using publisher = openPublisher({ kind: "postgres", url: bench.url }, { limitMs: 10_000 });
    const first = await applyMaintenance(aContext(publisher), NEVER);
    expect(first.actions).toHaveLength(1);
    expect(await applyMaintenance(aContext(publisher), NEVER)).toMatchObject({ actions: [], applied: { left: [] } });
  });
});

test("what is kept is not looked at again the same day, and never hides what can go", async () => {
  const kept = await ended(bench.store, "failed");
  await claim(bench.store, (await aRun(bench.store, { sessionId: kept.sessionId })).id, await aWorker(bench.store));
  await bench.sql("update holdpoint.runs set line = $1, retry_of = $1 where id <> $1", [kept.id]);
  await changeRetention(bench.store, { failedDays: 1, by: OPERATOR.id });
  await moveClock(bench.url, 2 * DAY_MS);
  expect(await findRetentionDue(bench.store, 10)).toMatchObject([{ runId: kept.id, keptBy: "live" }]);
  await applyMaintenance(aContext(aQueue()), NEVER);
  expect(await findRetentionDue(bench.store, 10)).toEqual([]);
  await changeRetention(bench.store, { failedDays: 30, by: OPERATOR.id });
});

test("two who apply at once do each thing once", async () => {
  const runs: Run[] = [];
  for (let number = 0; number < 5; number += 1) runs.push(await endBy(bench.store, await aClaimedRun(bench.store)));
  const retrying = await released(bench.store, 1_000);
  await moveClock(bench.url, 31 * DAY_MS);
  await Promise.all([applyMaintenance(aContext(aQueue()), NEVER), applyMaintenance(aContext(aQueue()), NEVER)]);
  const dues = "select from holdpoint.transitions where run_id = $1 and event = 'RetryDue'";
  expect(await bench.sql(dues, [retrying.id])).toHaveLength(1);
  expect(await bench.sql("select from holdpoint.tombstones")).toHaveLength(runs.length);
});
