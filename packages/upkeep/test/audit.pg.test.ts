import type { Publisher } from "@holdpoint/queue";
import {
  addWebhook,
  claimDeliveries,
  newId,
  recordCallback,
  recordSending,
  reportTask,
  reportTrouble,
  requestCancel,
  revokeRole,
  type Store,
  takeOverRun,
} from "@holdpoint/store";
import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALICE, aCall, aRun, aWorker, claim, grantAll, OPERATOR, SWEEPER } from "../../store/test/a-run.ts";
import {
  aClaimedRun,
  accepted,
  aGatedCall,
  aHeldRun,
  anAskingRun,
  anOpenEffect,
  anUnknownAtOperator,
  anUnknownRun,
  ended,
  moved,
  operatorHold,
  QUESTION,
  RUNS,
} from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { aStartedTask, DONE, start as startTaskAgain } from "../../store/test/a-task.ts";
import { AUDIT_RULES, type AuditFinding, auditFleet, type FindingCode } from "../src/index.ts";

const bench = useBench();
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

beforeEach(() => clear());
afterEach(() => moveClock(bench.url, 0));

/** What a test breaks on purpose is gone before the next, and before the file's own look for violations. */
async function clear(): Promise<void> {
  await moveClock(bench.url, 0);
  await bench.sql("truncate holdpoint.webhooks, holdpoint.deliveries, holdpoint.tombstones");
  await bench.sql("truncate holdpoint.runs, holdpoint.workers, holdpoint.services, holdpoint.role_assignments cascade");
  const tables =
    "transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.approvals, holdpoint.verdicts, holdpoint.tasks";
  await bench.sql(`truncate holdpoint.${tables}, holdpoint.inbox, holdpoint.refusals cascade`);
  await grantAll(bench.store);
}

function queueWith(waiting: number | null): Publisher {
  return {
    publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
    waiting: async () => waiting,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

const audit = (waiting: number | null = 10): Promise<readonly AuditFinding[]> =>
  auditFleet({ store: bench.store, publisher: queueWith(waiting) });

const later = (ms: number) => moveClock(bench.url, ms);

/** Makes one run the child of another. */
function adopt(childId: string, parentId: string): Promise<unknown> {
  return bench.sql(
    "update holdpoint.runs set parent = $2, ancestors = array[$2::uuid], parent_call = $3, parent_ordinal = 0, parent_try = 1 where id = $1",
    [childId, parentId, newId()],
  );
}

/** For each code: what makes it fire, and on what. */
const FIRES: Readonly<
  Record<
    Exclude<FindingCode, "queue_drift" | "queue_unreadable" | "invariants_unreadable">,
    (store: Store) => Promise<{ readonly runId: string | null; readonly subject?: string }>
  >
> = {
  queued_too_long: async (store) => {
    const run = await aRun(store);
    await later(11 * MINUTE_MS);
    return { runId: run.id, subject: "refunds@1" };
  },
  running_without_progress: async (store) => {
    const { run } = await aClaimedRun(store);
    await later(3 * MINUTE_MS);
    return { runId: run.id };
  },
  hold_past_deadline: async (store) => {
    const run = await aHeldRun(store, QUESTION);
    await later(3 * MINUTE_MS);
    return { runId: run.id, subject: "waiting_input" };
  },
  hold_without_assignee: async (store) => {
    const { run, request } = await anAskingRun(store);
    for (const user of ["mona", "max", "mira"]) await revokeRole(store, { user, role: "manager", by: "test" });
    return { runId: run.id, subject: request.id };
  },
  cancel_stuck: async (store) => {
    const { claimed } = await anOpenEffect(store);
    accepted(await requestCancel(store, { runId: claimed.run.id, actor: ALICE, reason: null }));
    await later(16 * MINUTE_MS);
    return { runId: claimed.run.id, subject: "open_effect" };
  },
  lost_unresolved: async (store) => {
    const { run } = await aClaimedRun(store);
    await moved(store, { run, actor: SWEEPER, events: [{ type: "OwnerGone", reason: "wedged" }] });
    await later(2 * MINUTE_MS);
    return { runId: run.id, subject: "wedged" };
  },
  effect_unresolved: async (store) => {
    const { run, attemptId } = await anUnknownAtOperator(store);
    return { runId: run.id, subject: attemptId };
  },
  terminal_with_live_children: async (store) => {
    const parent = await ended(store, "completed");
    const child = await aRun(store);
    await adopt(child.id, parent.id);
    return { runId: parent.id, subject: child.id };
  },
  time_inversion: async (store) => {
    await later(60 * MINUTE_MS);
    const run = await aRun(store);
    await later(0);
    return { runId: run.id, subject: "in the future" };
  },
  derived_older_than_source: async (store) => {
    const { claimed } = await anOpenEffect(store);
    await bench.sql("update holdpoint.runs set checkpoint = jsonb_set(checkpoint, '{stepSeq}', '1') where id = $1", [
      claimed.run.id,
    ]);
    return { runId: claimed.run.id, subject: "checkpoint" };
  },
  removed_effect_failed: async (store) => {
    const [runId, operationId] = [newId(), newId()];
    const buried = { operationId, externalRef: "re_1", tool: "send_refund", service: "pay", outcome: "succeeded" };
    await bench.sql(
      `insert into holdpoint.tombstones (tenant_id, run_id, line, agent_name, agent_version, requester, status, outcome,
         ended_at, removed_at, effects)
       select $1, n, n, 'refunds', '1', 'alice', 'completed', 'succeeded', holdpoint.clock(), holdpoint.clock(), e
       from (values ($2::uuid, $4::jsonb), ($3::uuid, $5::jsonb)) as t(n, e)`,
      [
        store.tenantId,
        runId,
        newId(),
        JSON.stringify([{ ...buried, at: "2026-01-01T00:00:00Z", failedAt: null }]),
        JSON.stringify([{ ...buried, operationId: newId(), at: "2026-01-01T00:00:00Z", failedAt: null }]),
      ],
    );
    const status = "failed";
    const reported = await recordCallback(store, { source: "pay", eventId: "evt_1", status, effect: { operationId } });
    expect(reported).toEqual({ result: "buried", runId, isNews: true });
    return { runId, subject: operationId };
  },
  task_reported_late: async (store) => {
    const { runId, tokenHash } = await aStartedTask(store);
    await takeOverRun(store, { runId, actor: OPERATOR, reason: "it does not answer" });
    await startTaskAgain(store, runId);
    await reportTask(store, { runId, tokenHash, report: DONE });
    return { runId, subject: "runner 7" };
  },
  service_closed_long: async (store) => {
    await reportTrouble(store, { service: "payments", reason: "throttled", retryAfterMs: 45 * MINUTE_MS });
    await later(31 * MINUTE_MS);
    return { runId: null, subject: "payments" };
  },
  delivery_failing: async (store) => {
    const webhook = {
      name: "billing",
      url: "https://example.com",
      secret: "s".repeat(32),
      policy: "done_only",
    } as const;
    await addWebhook(store, { ...webhook, agentName: null, by: "olga" });
    const run = await ended(store, "completed");
    const sending = new Map<string, number>();
    const [claimed] = await claimDeliveries(store, { limit: 1, perWebhook: 1, sending, leaseMs: 60_000 });
    const { id: deliveryId, attempt } = claimed ?? { id: "", attempt: 0 };
    await recordSending(store, { deliveryId, attempt, httpStatus: 500, errorCode: "HTTP_500", retryInMs: null });
    return { runId: run.id, subject: deliveryId };
  },
  invariant_violated: async (store) => {
    const { run } = await aClaimedRun(store);
    await bench.sql("update holdpoint.runs set open_attempts = 1 where id = $1", [run.id]);
    return { runId: run.id, subject: "open_attempts_differ" };
  },
};

describe("each finding fires, and says what mends it", () => {
  test.each(Object.entries(FIRES))("%s", async (code, fire) => {
    const expected = await fire(bench.store);
    const found = (await audit()).filter((finding) => finding.code === code);
    expect(found).toMatchObject([{ code, ...AUDIT_RULES[code as FindingCode], ...expected }]);
    await clear();
  });

  test("queue_drift: runs are queued, and nothing in the queue says so; or it is full of what is not there", async () => {
    await aRun(bench.store);
    await later(10_000);
    expect(await audit(0)).toEqual([]);
    await later(40_000);
    expect(await audit(0)).toMatchObject([{ code: "queue_drift", subject: "refunds@1", severity: "warning" }]);
    expect(await audit(1)).toEqual([]);
    expect(await audit(2_000)).toMatchObject([{ code: "queue_drift" }]);
  });

  test("queue_unreadable: what could not be read is told, and not taken for health", async () => {
    await aRun(bench.store);
    expect(await audit(null)).toMatchObject([{ code: "queue_unreadable", subject: "refunds@1" }]);
  });

  test("invariants_unreadable: the same of the rules", async () => {
    const { pool } = bench.store;
    const cancelled = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
    const slow = new Proxy(pool, {
      get: (target, key) =>
        key !== "query"
          ? Reflect.get(target, key)
          : (config: { name?: string }) =>
              config.name?.startsWith("holdpoint_find_violations") === true
                ? Promise.reject(cancelled)
                : target.query(config as never),
    });
    const store = { ...bench.store, pool: slow };
    expect(await auditFleet({ store, publisher: queueWith(0) })).toMatchObject([{ code: "invariants_unreadable" }]);
  });
});

test("a word that came too late is told for a week where its task has ended", async () => {
  const { runId, tokenHash } = await aStartedTask(bench.store);
  await takeOverRun(bench.store, { runId, actor: OPERATOR, reason: "it does not answer" });
  const next = await startTaskAgain(bench.store, runId);
  await reportTask(bench.store, { runId, tokenHash: next.tokenHash, report: DONE });
  await reportTask(bench.store, { runId, tokenHash, report: DONE });
  const told = async () => (await audit()).filter(({ code }) => code === "task_reported_late");
  await later(7 * DAY_MS - MINUTE_MS);
  expect(await told()).toMatchObject([{ runId }]);
  await later(7 * DAY_MS + MINUTE_MS);
  expect(await told()).toEqual([]);
  await clear();
});

test("a pending effect of a run that has ended is a finding after a day, until its end is reported", async () => {
  const { claimed, call } = await anOpenEffect(bench.store);
  await bench.sql("update holdpoint.attempts set ended_at = started_at, outcome = 'happened' where run_id = $1", [
    claimed.run.id,
  ]);
  await bench.sql(
    `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
     values ($1, $2, 3, 1, 'effect_pending', $3, holdpoint.clock())`,
    [bench.store.tenantId, claimed.run.id, { kind: "effect_pending", callId: call.id }],
  );
  await bench.sql(
    "update holdpoint.runs set status = 'cancelled', owner = null, open_attempts = 0, ended_at = holdpoint.clock() where id = $1",
    [claimed.run.id],
  );
  const unresolved = async () => (await audit()).filter(({ code }) => code === "effect_unresolved");
  expect(await unresolved()).toEqual([]);
  await later(DAY_MS + MINUTE_MS);
  expect(await unresolved()).toMatchObject([{ runId: claimed.run.id, subject: call.id }]);
  await clear();
});

test("a transition before the one that it follows is found, were the run live for long", async () => {
  const { run } = await aClaimedRun(bench.store);
  await bench.sql("update holdpoint.transitions set at = at - interval '1 minute' where run_id = $1 and seq = 2", [
    run.id,
  ]);
  expect((await audit()).map(({ code, runId, subject }) => [code, runId, subject])).toEqual([
    ["time_inversion", run.id, "a transition before the one that it follows"],
  ]);
  await clear();
});

describe("no findings", () => {
  test("in a busy fleet that is well: a run in each status, and calls under way", async () => {
    for (const make of Object.values(RUNS)) await make(bench.store);
    for (let number = 0; number < 20; number += 1)
      await claim(bench.store, (await aRun(bench.store)).id, await aWorker(bench.store));
    await anOpenEffect(bench.store, aCall());
    await anUnknownRun(bench.store);
    await anAskingRun(bench.store, { calls: [aGatedCall()] });
    await reportTrouble(bench.store, { service: "payments", reason: "throttled", retryAfterMs: 1_000 });
    await reportTrouble(bench.store, { service: "mail", reason: "unavailable", retryAfterMs: null });
    expect(await audit(50)).toEqual([]);
  });

  test("about a hold of three days on its second day; one once its deadline has passed", async () => {
    const run = await aHeldRun(bench.store, { ...QUESTION, deadline: { inMs: 3 * DAY_MS } });
    await aHeldRun(bench.store, { ...operatorHold("call_failed", newId()), deadline: { inMs: 3 * DAY_MS } });
    await anAskingRun(bench.store, { request: { terms: { deadlineMs: 3 * DAY_MS } } });
    await later(2 * DAY_MS);
    expect(await audit()).toEqual([]);
    await later(3 * DAY_MS + 2 * MINUTE_MS);
    const found = await audit();
    expect(found.map(({ code }) => code)).toEqual(["hold_past_deadline", "hold_past_deadline", "hold_past_deadline"]);
    expect(found.map(({ runId }) => runId)).toContain(run.id);
  });

  test("about a request that enough people may decide, were one of them excluded", async () => {
    await anAskingRun(bench.store, { request: { terms: { quorum: 3 } } });
    expect(await audit()).toEqual([]);
    await revokeRole(bench.store, { user: "mira", role: "manager", by: "test" });
    expect(await audit()).toMatchObject([{ code: "hold_without_assignee" }]);
  });
});

test("errors come before warnings, and of each what is oldest first", async () => {
  const old = await aRun(bench.store);
  await later(5 * MINUTE_MS);
  const young = await aRun(bench.store);
  await later(10 * MINUTE_MS);
  const late = await aHeldRun(bench.store, { ...QUESTION, deadline: { inMs: MINUTE_MS } });
  await later(20 * MINUTE_MS);
  expect((await audit()).map(({ code, runId }) => [code, runId])).toEqual([
    ["hold_past_deadline", late.id],
    ["queued_too_long", old.id],
    ["queued_too_long", young.id],
  ]);
});
