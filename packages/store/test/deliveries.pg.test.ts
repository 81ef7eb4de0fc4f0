import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  addWebhook,
  type ClaimedDelivery,
  changePolicy,
  changeRetention,
  claimDeliveries,
  disableWebhook,
  dismissDelivery,
  dismissOfDisabled,
  findRetentionDue,
  findViolations,
  type NewWebhook,
  readClock,
  recordFact,
  recordSending,
  removeRuns,
  requestCancel,
  requestPause,
  resumeRun,
  retryDelivery,
  type SendingRoom,
  startNow,
  WEBHOOKS_LIMIT,
} from "../src/index.ts";
import { findDelivery, listDeliveries, listWebhooks } from "../src/read/index.ts";
import { aParent } from "./a-parent.ts";
import { ALICE, aRun, aWorker, claim, OPERATOR } from "./a-run.ts";
import { aSchedule } from "./a-schedule.ts";
import { aClaimedRun, accepted, aHeldRun, endBy, ended, lose, QUESTION } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const FIRST = { limit: 200, after: null };

beforeEach(async () => {
  await bench.sql("truncate holdpoint.webhooks, holdpoint.deliveries, holdpoint.delivery_changes");
});
afterEach(() => moveClock(bench.url, 0));

async function aWebhook(more: Partial<NewWebhook> = {}) {
  const usual = {
    name: "billing",
    url: "https://example.com/hook",
    secret: "s".repeat(32),
    agentName: null,
    by: "olga",
  };
  const added = await addWebhook(bench.store, { policy: "done_only", ...usual, ...more });
  if (added.result !== "added") throw new Error(added.result);
  return added.webhook;
}

/** What a sender takes; as many as there are unless `room` says less. */
const take = (room: Partial<SendingRoom> = {}): Promise<readonly ClaimedDelivery[]> =>
  claimDeliveries(bench.store, { limit: 100, perWebhook: 100, sending: new Map(), leaseMs: MINUTE_MS, ...room });

const deliver = ({ id: deliveryId, attempt }: ClaimedDelivery) =>
  recordSending(bench.store, { deliveryId, attempt, httpStatus: 204, errorCode: null, retryInMs: null });

const fail = ({ id: deliveryId, attempt }: ClaimedDelivery, retryInMs: number | null) =>
  recordSending(bench.store, { deliveryId, attempt, httpStatus: 500, errorCode: "HTTP_500", retryInMs });

/** What is told of a run, in the order of its versions. */
async function toldOf(runId: string): Promise<readonly string[]> {
  const rows = await bench.sql<{ status: string }>(
    "select status from holdpoint.deliveries where run_id = $1 order by version",
    [runId],
  );
  return rows.map(({ status }) => status);
}

async function statesOf(runId: string): Promise<readonly string[]> {
  const { items } = await listDeliveries(bench.store, { runId }, FIRST);
  return items.toReversed().map(({ state }) => state);
}

describe("what is told", () => {
  test("done_only: exactly one notice for each webhook, with the end and nothing before it", async () => {
    await aWebhook();
    await aWebhook({ name: "ledger" });
    const run = await ended(bench.store, "completed");
    expect(await toldOf(run.id)).toEqual(["completed", "completed"]);
    const [told] = await take();
    expect(told?.notice).toEqual({
      runId: run.id,
      parent: null,
      agent: { name: "refunds", version: "1" },
      status: "completed",
      outcome: "succeeded",
      reason: null,
      waitingFor: null,
      version: run.version,
      atMs: run.updatedAtMs,
    });
  });

  test("state_changes: one for each changed status, from the submission on, and none for what was only recorded", async () => {
    await aWebhook({ policy: "state_changes" });
    const { id } = await aHeldRun(bench.store, QUESTION);
    const paused = accepted(await requestPause(bench.store, { runId: id, actor: OPERATOR }));
    // Recorded: the run stays paused.
    const recorded = await recordFact(bench.store, { runId: id, actor: ALICE, kind: "message", text: "hurry" });
    expect(accepted(recorded).version).toBeGreaterThan(paused.version);
    accepted(await resumeRun(bench.store, { runId: id, actor: OPERATOR }));
    await endBy(bench.store, await claim(bench.store, id, await aWorker(bench.store)), "failed");
    const told = await toldOf(id);
    expect(told.slice(0, 4)).toEqual(["queued", "running", "waiting_input", "paused"]);
    expect(told.slice(-2)).toEqual(["running", "failed"]);
    const changed = await bench.sql<{ to_status: string }>(
      "select to_status from holdpoint.transitions where run_id = $1 and from_status is distinct from to_status order by seq",
      [id],
    );
    expect(told).toEqual(changed.map(({ to_status }) => to_status));
  });

  test("says for whom a run waits, and why it ended", async () => {
    await aWebhook({ policy: "state_changes" });
    const { id } = await aHeldRun(bench.store, QUESTION);
    accepted(await requestCancel(bench.store, { runId: id, actor: ALICE, reason: "changed my mind" }));
    const [queued, , waiting, cancelled] = await bench.sql<{ notice: object }>(
      "select notice from holdpoint.deliveries where run_id = $1 order by version",
      [id],
    );
    expect(queued?.notice).toMatchObject({ reason: null, waitingFor: null });
    expect(waiting?.notice).toMatchObject({ waitingFor: { kind: "requester", principal: "alice" } });
    expect(cancelled?.notice).toMatchObject({ reason: "changed my mind", waitingFor: null });
  });

  test("two statuses of one statement are two notices: a loss, and what came of it", async () => {
    await aWebhook({ policy: "state_changes" });
    const { run } = await aClaimedRun(bench.store);
    await lose(bench.store, run);
    expect(await toldOf(run.id)).toEqual(["queued", "running", "lost", "queued"]);
  });

  test("a child run is told from its start, with whose it is; so is a run that a schedule has started", async () => {
    await aWebhook({ policy: "state_changes" });
    const { parent, childIds } = await aParent(bench.store, { count: 2 });
    for (const childId of childIds) {
      const told = await bench.sql(
        "select status, version, notice->>'parent' as parent from holdpoint.deliveries where run_id = $1",
        [childId],
      );
      expect(told).toEqual([{ status: "queued", version: 1, parent: parent.run.id }]);
    }
    await aSchedule(bench.store, { name: "hourly", slotAtMs: await readClock(bench.store) });
    const started = await startNow(bench.store, { name: "hourly", by: "olga" });
    if (started.result !== "started") throw new Error(started.result);
    expect(await toldOf(started.run.id)).toEqual(["queued"]);
  });

  test("silent, another agent's, and disabled webhooks are told nothing", async () => {
    await aWebhook({ name: "muted", policy: "silent" });
    await aWebhook({ name: "others", agentName: "somebody-else" });
    await aWebhook({ name: "gone" });
    await disableWebhook(bench.store, { name: "gone", by: "olga" });
    await aWebhook({ name: "mine", agentName: "refunds" });
    const run = await ended(bench.store, "completed");
    const { items } = await listDeliveries(bench.store, { runId: run.id }, FIRST);
    expect(items.map(({ webhook }) => webhook)).toEqual(["mine"]);
  });

  test("a changed policy is for what happens from then on", async () => {
    await aWebhook({ policy: "silent" });
    const before = await ended(bench.store, "completed");
    const changed = await changePolicy(bench.store, { name: "billing", policy: "done_only", by: "otto" });
    expect(changed).toMatchObject({ policy: "done_only", createdBy: "olga", changedBy: "otto" });
    const after = await ended(bench.store, "completed");
    expect(await toldOf(before.id)).toEqual([]);
    expect(await toldOf(after.id)).toEqual(["completed"]);
    expect(await changePolicy(bench.store, { name: "nobody", policy: "silent", by: "otto" })).toBeNull();
  });

  test("a run that ended while it was asked to stop is told as cancelled, without what its owner said", async () => {
    await aWebhook();
    const claimed = await aClaimedRun(bench.store);
    const stopping = accepted(await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: null }));
    const run = await endBy(bench.store, { ...claimed, run: stopping });
    expect(run.state.status).toBe("cancelled");
    const [told] = await take();
    expect(told?.notice).toMatchObject({ status: "cancelled", outcome: null });
  });

  test("nothing of a transition that came too late", async () => {
    await aWebhook({ policy: "state_changes" });
    const claimed = await aClaimedRun(bench.store);
    accepted(await requestCancel(bench.store, { runId: claimed.run.id, actor: ALICE, reason: null }));
    await expect(endBy(bench.store, claimed)).rejects.toThrow("conflict");
    expect(await toldOf(claimed.run.id)).toEqual(["queued", "running", "cancelling"]);
  });
});

describe("sending", () => {
  test("a delivery is one sender's until its lease is over, and then another's under the same id", async () => {
    await aWebhook();
    await ended(bench.store, "completed");
    const [first] = await take();
    expect(first).toMatchObject({ attempt: 1, url: "https://example.com/hook", secret: "s".repeat(32) });
    expect(await take()).toEqual([]);
    await moveClock(bench.url, MINUTE_MS + 1_000);
    const [second] = await take();
    expect(second).toMatchObject({ id: first?.id, attempt: 2 });
  });

  test("two senders at once take each delivery once", async () => {
    await aWebhook();
    for (let n = 0; n < 10; n += 1) await ended(bench.store, "completed");
    const taken = (await Promise.all([take(), take(), take(), take()])).flat();
    expect(taken).toHaveLength(10);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(10);
  });

  test("a later version waits for the earlier one, and is due at once when that is settled", async () => {
    await aWebhook({ policy: "state_changes" });
    const { id } = await aHeldRun(bench.store, QUESTION);
    const order: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const taken = await take();
      expect(taken).toHaveLength(1);
      for (const each of taken) {
        order.push(each.notice.status);
        // Nothing else of the run while that one is under way.
        expect(await take()).toEqual([]);
        await deliver(each);
      }
    }
    expect(order).toEqual(["queued", "running", "waiting_input"]);
    expect(await statesOf(id)).toEqual(["delivered", "delivered", "delivered"]);
  });

  test("a later version is found within minutes although nobody has said that its turn has come", async () => {
    await aWebhook({ policy: "state_changes" });
    await aHeldRun(bench.store, QUESTION);
    const [queued] = await take();
    await bench.sql(
      "update holdpoint.deliveries set state = 'delivered', next_at = null, delivered_at = holdpoint.clock() where id = $1",
      [queued?.id],
    );
    expect(await take()).toEqual([]);
    await moveClock(bench.url, 6 * MINUTE_MS);
    expect((await take()).map(({ notice }) => notice.status)).toEqual(["running"]);
  });

  test("a dead one and a dismissed one let the next go; other runs never wait", async () => {
    await aWebhook({ policy: "state_changes" });
    const { id } = await aHeldRun(bench.store, QUESTION);
    const [queued] = await take();
    if (queued === undefined) throw new Error("nothing was due");
    await aRun(bench.store);
    const [other] = await take();
    expect(other?.notice.runId).not.toBe(id);
    expect(await fail(queued, null)).toBe("dead");
    const [running] = await take();
    expect(running?.notice.status).toBe("running");
    await dismissDelivery(bench.store, { deliveryId: running?.id ?? "", by: "olga", note: null });
    expect((await take()).map(({ notice }) => notice.status)).toEqual(["waiting_input"]);
  });

  test("one that failed is due again after its delay, and counts its attempts", async () => {
    await aWebhook();
    await ended(bench.store, "completed");
    const [first] = await take();
    if (first === undefined) throw new Error("nothing was due");
    expect(await fail(first, 10_000)).toBe("pending");
    expect(await findDelivery(bench.store, first.id)).toMatchObject({ lastStatus: 500, lastErrorCode: "HTTP_500" });
    expect(await take()).toEqual([]);
    await moveClock(bench.url, 11_000);
    expect((await take()).map(({ attempt }) => attempt)).toEqual([2]);
  });

  test("an attempt that was overtaken cannot put off the one that followed, but what it brought home counts", async () => {
    await aWebhook();
    await ended(bench.store, "completed");
    const [first] = await take();
    await moveClock(bench.url, MINUTE_MS + 1_000);
    const [second] = await take();
    if (first === undefined || second === undefined) throw new Error("nothing was due");
    expect(await fail(first, null)).toBeNull();
    expect(await fail(second, null)).toBe("dead");
    expect(await deliver(first)).toBe("delivered");
    expect(await fail(second, 1)).toBeNull();
    expect(await findDelivery(bench.store, first.id)).toMatchObject({ state: "delivered", lastErrorCode: null });
  });

  test("a webhook never has more under way than its room, whatever is due, and leaves the others theirs", async () => {
    const slow = await aWebhook({ name: "slow" });
    await aWebhook({ name: "quick" });
    for (let n = 0; n < 5; n += 1) await ended(bench.store, "completed");
    const taken = await take({ perWebhook: 3, sending: new Map([[slow.id, 2]]) });
    const counts = Map.groupBy(taken, ({ webhookId }) => webhookId);
    expect(counts.get(slow.id)).toHaveLength(1);
    expect(taken).toHaveLength(4);
    expect(await take({ perWebhook: 3, sending: new Map([[slow.id, 3]]), limit: 1 })).toHaveLength(1);
  });

  test("a delivery that fails leaves its run as it is, byte by byte", async () => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    const row = async () =>
      (await bench.sql("select r::text as text, xmin::text from holdpoint.runs r where id = $1", [run.id]))[0];
    const before = await row();
    const [taken] = await take();
    if (taken === undefined) throw new Error("nothing was due");
    await fail(taken, null);
    expect(await statesOf(run.id)).toEqual(["dead"]);
    expect(await row()).toEqual(before);
  });
});

describe("operators", () => {
  async function aDeadOne() {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    const [taken] = await take();
    if (taken === undefined) throw new Error("nothing was due");
    await fail(taken, null);
    return { run, taken, deliveryId: taken.id };
  }

  test("send a dead one again, with all of its attempts before it; it is known who did", async () => {
    const { deliveryId } = await aDeadOne();
    expect(await retryDelivery(bench.store, { deliveryId, by: "olga", note: "receiver is back" })).toEqual({
      result: "accepted",
    });
    const [again] = await take();
    expect(again).toMatchObject({ id: deliveryId, attempt: 1 });
    if (again !== undefined) await deliver(again);
    expect(await findDelivery(bench.store, deliveryId)).toMatchObject({
      state: "delivered",
      changes: [{ change: "retried", by: "olga", note: "receiver is back" }],
    });
    for (const verb of [retryDelivery, dismissDelivery])
      expect(await verb(bench.store, { deliveryId, by: "olga", note: null })).toEqual({ result: "delivered" });
  });

  test("dismiss one for good, unless somebody sends it after all", async () => {
    const { deliveryId } = await aDeadOne();
    expect(await dismissDelivery(bench.store, { deliveryId, by: "olga", note: null })).toEqual({ result: "accepted" });
    expect(await dismissDelivery(bench.store, { deliveryId, by: "otto", note: null })).toEqual({ result: "ignored" });
    await moveClock(bench.url, DAY_MS);
    expect(await take()).toEqual([]);
    expect(await retryDelivery(bench.store, { deliveryId, by: "otto", note: null })).toEqual({ result: "accepted" });
    expect(await findDelivery(bench.store, deliveryId)).toMatchObject({
      state: "pending",
      changes: [
        { change: "retried", by: "otto" },
        { change: "dismissed", by: "olga" },
      ],
    });
  });

  test("disable a webhook: what it was not told is dismissed in their name, what comes late too", async () => {
    const { deliveryId } = await aDeadOne();
    const late = await ended(bench.store, "completed");
    await disableWebhook(bench.store, { name: "billing", by: "otto" });
    expect(await take()).toEqual([]);
    expect(await dismissOfDisabled(bench.store, 1)).toBe(1);
    expect(await dismissOfDisabled(bench.store, 100)).toBe(1);
    expect(await dismissOfDisabled(bench.store, 100)).toBe(0);
    expect(await statesOf(late.id)).toEqual(["dismissed"]);
    expect(await findDelivery(bench.store, deliveryId)).toMatchObject({
      state: "dismissed",
      changes: [{ change: "dismissed", by: "otto", note: "webhook disabled" }],
    });
    expect(await retryDelivery(bench.store, { deliveryId, by: "olga", note: null })).toEqual({
      result: "webhook_disabled",
    });
    expect(await disableWebhook(bench.store, { name: "billing", by: "olga" })).toBeNull();
  });

  test("take the name of a disabled webhook, not of another; and not more than there may be", async () => {
    await aWebhook();
    const again = {
      name: "billing",
      url: "https://example.com",
      secret: "s".repeat(32),
      policy: "silent",
      agentName: null,
      by: "olga",
    } as const;
    expect(await addWebhook(bench.store, again)).toEqual({ result: "name_taken" });
    await disableWebhook(bench.store, { name: "billing", by: "olga" });
    expect((await addWebhook(bench.store, again)).result).toBe("added");
    for (let n = 1; n < WEBHOOKS_LIMIT; n += 1) await aWebhook({ name: `more-${n}` });
    expect(await addWebhook(bench.store, { ...again, name: "one-too-many" })).toEqual({ result: "too_many" });
  });

  test("see webhooks and deliveries page by page, and never what signs", async () => {
    for (const name of ["one", "two", "three"]) await aWebhook({ name });
    const run = await ended(bench.store, "completed");
    const first = await listWebhooks(bench.store, { limit: 2, after: null });
    const rest = await listWebhooks(bench.store, { limit: 2, after: first.next });
    expect([...first.items, ...rest.items].map(({ name }) => name)).toEqual(["one", "two", "three"]);
    expect(JSON.stringify([first, rest])).not.toContain("ssss");
    const page = await listDeliveries(bench.store, { runId: run.id }, { limit: 2, after: null });
    const next = await listDeliveries(bench.store, { runId: run.id }, { limit: 2, after: page.next });
    expect(new Set([...page.items, ...next.items].map(({ webhook }) => webhook)).size).toBe(3);
    expect(await listDeliveries(bench.store, { state: "dead" }, FIRST)).toEqual({ items: [], next: null });
    expect((await listDeliveries(bench.store, { webhook: "two" }, FIRST)).items).toHaveLength(1);
  });
});

describe("retention", () => {
  test("keeps a run that somebody is still to be told of, and takes its deliveries with it afterwards", async () => {
    await aWebhook();
    const run = await ended(bench.store, "completed");
    await changeRetention(bench.store, { by: "test" });
    const [taken] = await take();
    if (taken === undefined) throw new Error("nothing was due");
    const look = async () => {
      const due = (await findRetentionDue(bench.store, 100)).filter(({ runId }) => runId === run.id);
      return { due, ...(await removeRuns(bench.store, due)) };
    };
    await moveClock(bench.url, 31 * DAY_MS);
    expect(await look()).toMatchObject({ due: [{ keptBy: "pending_delivery" }], removed: [], kept: [run.id] });
    await fail(taken, null);
    await retryDelivery(bench.store, { deliveryId: taken.id, by: "olga", note: null });
    const [again] = await take();
    if (again !== undefined) await deliver(again);
    await moveClock(bench.url, 33 * DAY_MS);
    expect(await look()).toMatchObject({ removed: [{ runId: run.id }] });
    const left = await bench.sql(
      "select id from holdpoint.deliveries where run_id = $1 union all select id from holdpoint.delivery_changes where run_id = $1",
      [run.id],
    );
    expect(left).toEqual([]);
    expect(await findViolations(bench.store)).toEqual([]);
  });
});
