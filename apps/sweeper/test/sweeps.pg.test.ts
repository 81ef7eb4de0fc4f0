import type { ApprovalRule, Hold, RunEvent } from "@holdpoint/core";
import type { Publisher } from "@holdpoint/queue";
import {
  type ApprovalRequest,
  claimRuns,
  createSession,
  findViolations,
  isUnloaded,
  type LoadedRun,
  loadRun,
  newId,
  openStore,
  registerAgent,
  registerWorker,
  requestCancel,
  type Store,
  submitRun,
  transitionOne,
  type Writes,
} from "@holdpoint/store";
import { createTestDatabase, moveClock, type TestDatabase, waitFor } from "@holdpoint/testkit";
import { MOVING, NOTHING, type SweepContext, WAKING } from "@holdpoint/upkeep";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { aParent } from "../../../packages/store/test/a-parent.ts";
import { runSweeper } from "../src/run-sweeper.ts";

const AGENT = { name: "desk", version: "1" };
const ALICE = { kind: "requester", id: "alice" } as const;
const MINUTE_MS = 60_000;

let database: TestDatabase;
let store: Store;
let sessionId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  await registerAgent(store, { ...AGENT, tools: [] });
  sessionId = (await createSession(store, "alice")).id;
});
// What one test leaves is no candidate of the next.
beforeEach(async () => {
  await store.pool.query(
    "truncate holdpoint.runs, holdpoint.transitions, holdpoint.steps, holdpoint.approvals, holdpoint.reminders, holdpoint.inbox, holdpoint.calls, holdpoint.attempts cascade",
  );
});
afterEach(async () => {
  await moveClock(database.url, 0);
  expect(await findViolations(store)).toEqual([]);
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** Notes what is published; says how long the queue is. */
function notes(waiting: number | null = 0) {
  const published: { readonly runId: string; readonly sweep: number | undefined }[] = [];
  const publisher: Publisher = {
    publish: async (wakeUps, { sweep } = {}) => {
      published.push(...wakeUps.map(({ runId }) => ({ runId, sweep })));
      return { published: wakeUps.length, failed: 0, error: null };
    },
    waiting: async () => waiting,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  return { published, publisher };
}

/** Somebody has looked at the leases all the time, so that none is prolonged for a gap. */
async function watchLeases(): Promise<void> {
  await store.pool.query(`insert into holdpoint.lease_watch (tenant_id, since, seen_at, seen_by, grace_ms)
    select id, holdpoint.clock() - interval '400 days', holdpoint.clock(), 'earlier', 0 from holdpoint.tenants
    on conflict (tenant_id) do update set since = excluded.since, seen_at = excluded.seen_at`);
}

async function sweep(name: string, overrides: Partial<SweepContext> = {}) {
  await watchLeases();
  const found = [...MOVING, ...WAKING].find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no sweep ${name}`);
  return found.run({
    store,
    publisher: notes().publisher,
    id: "s1",
    graceMs: 5_000,
    limit: 100,
    number: 7,
    ...overrides,
  });
}

async function queued(agent = AGENT): Promise<string> {
  const submitted = await submitRun(store, { sessionId, agent, goal: "do it", actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  return submitted.run.id;
}

async function aWorker(leaseMs = MINUTE_MS): Promise<string> {
  const id = newId();
  await registerWorker(store, { id, host: "h", pid: 1, agents: [AGENT], slots: 1, leaseMs });
  return id;
}

async function running(workerId: string, progressMs = 86_400_000 * 30): Promise<LoadedRun> {
  const [loaded] = await claimRuns(store, { runIds: [await queued()], workerId, progressMs, mayTakeSuspect: true });
  if (loaded === undefined || isUnloaded(loaded)) throw new Error("not claimed");
  return loaded;
}

async function moved(event: RunEvent, writes: Writes = {}): Promise<string> {
  const workerId = await aWorker(86_400_000 * 20);
  const { run } = await running(workerId);
  const result = await transitionOne(store, { run, events: [event], actor: { kind: "worker", id: workerId }, writes });
  expect(result.result).toBe("accepted");
  return run.id;
}

function hold(kind: Hold["kind"], onDeadline: Hold["onDeadline"], inMs = MINUTE_MS): RunEvent {
  const waitingFor = {
    kind: kind === "input" ? "requester" : "approvers",
    principal: "alice",
    subject: null,
    reason: "r",
  } as const;
  return { type: "Held", hold: { kind, waitingFor, deadline: { inMs }, onDeadline } };
}

function request(
  deadlineMs: number,
  onDeadline: ApprovalRule["onDeadline"] = "reject",
  more: Partial<ApprovalRule> = {},
) {
  const terms: ApprovalRule = {
    rule: "r",
    approvers: { roles: ["manager"], users: [] },
    quorum: 1,
    veto: true,
    fourEyes: true,
    decisions: ["approve", "reject"],
    answerSchema: null,
    deadlineMs,
    onDeadline,
    remindAfterMs: [],
    escalation: [],
    validForMs: MINUTE_MS,
    ...more,
  };
  const shown = { redactedArgs: {}, modelReason: null, amount: null, risk: null, evidence: [], editSchema: null };
  const call = { callId: newId(), tool: "pay", args: "{}", argsHash: "h" };
  return { id: newId(), ...call, terms, request: shown, excluded: [], editedBy: null, approval: null };
}

const load = async (runId: string): Promise<LoadedRun> => {
  const loaded = await loadRun(store, runId);
  if (loaded === null) throw new Error("the run is gone");
  return loaded;
};
const statusOf = async (runId: string) => (await load(runId)).run.state.status;

async function eventsOf(runId: string): Promise<readonly string[]> {
  const { rows } = await store.pool.query<{ event: string }>(
    "select event from holdpoint.transitions where run_id = $1 order by seq",
    [runId],
  );
  return rows.map(({ event }) => event);
}

async function reasonsOf(runId: string): Promise<readonly (string | null)[]> {
  const { rows } = await store.pool.query<{ reason: string | null }>(
    "select reason from holdpoint.transitions where run_id = $1 order by seq",
    [runId],
  );
  return rows.map(({ reason }) => reason);
}

interface Kind {
  readonly name: string;
  /** Makes a run that the sweep has to find once `afterMs` have passed. */
  readonly make: () => Promise<string>;
  readonly afterMs: number;
  readonly becomes: string;
  readonly adds: readonly string[];
}

const KINDS: readonly Kind[] = [
  {
    name: "recover-forsaken",
    make: async () => (await running(await aWorker(1_000))).run.id,
    afterMs: 7_000,
    becomes: "queued",
    adds: ["OwnerGone", "Recovered"],
  },
  {
    name: "recover-wedged",
    make: async () => (await running(await aWorker(86_400_000), 1_000)).run.id,
    afterMs: 2_000,
    becomes: "queued",
    adds: ["OwnerGone", "Recovered"],
  },
  {
    name: "pass-deadlines",
    make: () => moved(hold("input", "no_answer")),
    afterMs: 61_000,
    becomes: "queued",
    adds: ["DeadlinePassed"],
  },
  {
    name: "retry-due",
    make: () => moved({ type: "Released", retryAt: { inMs: 30_000 } }),
    afterMs: 31_000,
    becomes: "queued",
    adds: ["RetryDue"],
  },
  {
    name: "repair-cascade",
    make: async () => {
      const { parent, childIds } = await aParent(store, { count: 1 });
      await requestCancel(store, { runId: parent.run.id, actor: ALICE, reason: null });
      return childIds[0] ?? "";
    },
    afterMs: 0,
    becomes: "cancelled",
    adds: ["CancelRequested"],
  },
  {
    name: "settle-cancelling",
    make: async () => {
      const { run } = await running(await aWorker(86_400_000));
      await requestCancel(store, { runId: run.id, actor: ALICE, reason: null });
      await store.pool.query("update holdpoint.runs set owner = null where id = $1", [run.id]);
      return run.id;
    },
    afterMs: 0,
    becomes: "cancelled",
    adds: ["OwnerGone"],
  },
];

describe.each(KINDS)("$name", ({ name, make, afterMs, becomes, adds }) => {
  test("finds nothing before its time", async () => {
    if (afterMs === 0) return expect(await sweep(name)).toMatchObject(NOTHING);
    const runId = await make();
    expect(await sweep(name)).toMatchObject(NOTHING);
    expect((await eventsOf(runId)).slice(-adds.length)).not.toEqual(adds);
  });

  test("moves what it finds, and wakes a worker for what can go on", async () => {
    const runId = await make();
    await moveClock(database.url, afterMs);
    const { published, publisher } = notes();
    expect(await sweep(name, { publisher })).toMatchObject({ found: 1, moved: 1, errors: [] });
    expect(await statusOf(runId)).toBe(becomes);
    expect((await eventsOf(runId)).slice(-adds.length)).toEqual(adds);
    expect(published).toEqual(becomes === "queued" ? [{ runId, sweep: undefined }] : []);
    expect(await sweep(name)).toMatchObject(NOTHING);
  });

  test("looks at no more than its limit in a pass, and at the rest in the next", async () => {
    for (let n = 0; n < 3; n += 1) await make();
    await moveClock(database.url, afterMs);
    // Gone workers are found under the same limit.
    expect((await sweep(name, { limit: 2 })).moved).toBe(2);
    expect((await sweep(name, { limit: 2 })).moved).toBe(1);
  });

  test("two sweepers at once move each run once", async () => {
    const ids = [];
    for (let n = 0; n < 6; n += 1) ids.push(await make());
    await moveClock(database.url, afterMs);
    const [first, second] = await Promise.all([sweep(name, { id: "s1" }), sweep(name, { id: "s2" })]);
    const rest = await sweep(name);
    expect(first.moved + second.moved + rest.moved).toBe(6);
    for (const id of ids) expect((await eventsOf(id)).filter((event) => event === adds[0])).toHaveLength(1);
  });
});

describe("deadlines", () => {
  test("one of two approvals expires: the run waits on for the other, until its deadline", async () => {
    const requests = [request(MINUTE_MS), request(3 * MINUTE_MS)];
    const runId = await moved(hold("approval", "reject"), { requests });
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect((await sweep("pass-deadlines")).moved).toBe(1);
    const after = await load(runId);
    expect(after.run.state.status).toBe("waiting_approval");
    expect(after.approvals.map(({ state }) => state)).toEqual(["expired", "pending"]);
    expect(after.run.state.waitDeadline).toEqual({ at: after.approvals[1]?.deadlineMs });
    expect(await sweep("pass-deadlines")).toEqual(NOTHING);
    await moveClock(database.url, 3 * MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    const ended = await load(runId);
    expect([ended.run.state.status, ...ended.approvals.map(({ state }) => state)]).toEqual([
      "queued",
      "expired",
      "expired",
    ]);
  });

  test("a question without an answer: the run goes on, and is told so", async () => {
    const runId = await moved(hold("input", "no_answer"));
    await moveClock(database.url, MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    expect((await load(runId)).unread.map(({ body }) => body)).toEqual([{ kind: "no_answer" }]);
  });

  test("a timer that has run out: the run goes on, and is told nothing", async () => {
    const runId = await moved(hold("dependency", "continue"));
    await moveClock(database.url, MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    const after = await load(runId);
    expect([after.run.state.status, after.unread]).toEqual(["queued", []]);
  });

  test("an approval that is passed on waits for the next level, then for an operator", async () => {
    const escalation = [{ approvers: { roles: ["director"], users: [] }, deadlineMs: 2 * MINUTE_MS }];
    const runId = await moved(hold("approval", "escalate"), {
      requests: [request(MINUTE_MS, "escalate", { escalation })],
    });
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect(await sweep("pass-deadlines")).toEqual({ found: 1, moved: 1, errors: [] });
    const after = await load(runId);
    expect(after.run.state).toMatchObject({
      status: "waiting_approval",
      waitingFor: { principal: "role:director" },
      waitDeadline: { at: after.approvals[0]?.deadlineMs },
    });
    expect(after.approvals).toMatchObject([{ state: "pending", level: 1 }]);
    expect(await sweep("pass-deadlines")).toEqual(NOTHING);
    await moveClock(database.url, 4 * MINUTE_MS);
    await sweep("pass-deadlines");
    expect((await load(runId)).run.state).toMatchObject({ status: "waiting_operator" });
    expect(await reasonsOf(runId)).toEqual([null, null, null, "escalate", "operator"]);
  });

  test("a hold that is due ahead of its requests waits for them, and the history claims nothing", async () => {
    const runId = await moved(hold("approval", "extend"), { requests: [request(2 * MINUTE_MS, "extend")] });
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect((await sweep("pass-deadlines")).moved).toBe(1);
    const { run, approvals } = await load(runId);
    expect(approvals).toMatchObject([{ state: "pending", extended: false }]);
    expect(run.state).toMatchObject({ status: "waiting_approval", waitDeadline: { at: approvals[0]?.deadlineMs } });
    expect(await reasonsOf(runId)).toEqual([null, null, null, "deadline"]);
  });

  test("an approval is extended once, then it expires", async () => {
    const runId = await moved(hold("approval", "extend"), { requests: [request(MINUTE_MS, "extend")] });
    await moveClock(database.url, MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    expect((await load(runId)).approvals).toMatchObject([{ state: "pending", extended: true }]);
    await moveClock(database.url, 3 * MINUTE_MS);
    await sweep("pass-deadlines");
    const after = await load(runId);
    expect([after.run.state.status, after.approvals[0]?.state]).toEqual(["queued", "expired"]);
    expect(await reasonsOf(runId)).toEqual([null, null, null, "extend", "reject"]);
  });

  test("an approval that aborts ends the run with all its requests", async () => {
    const requests = [request(MINUTE_MS, "abort"), request(3 * MINUTE_MS)];
    const runId = await moved(hold("approval", "abort"), { requests });
    await moveClock(database.url, MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    const after = await load(runId);
    expect(after.run.state).toMatchObject({ status: "cancelled", endReason: "aborted" });
    expect(after.approvals.map(({ state }) => state)).toEqual(["expired", "withdrawn"]);
  });

  test("an approval whose rule asks an operator: the request is withdrawn, and an operator is asked", async () => {
    const runId = await moved(hold("approval", "operator"), { requests: [request(MINUTE_MS, "operator")] });
    await moveClock(database.url, MINUTE_MS + 1_000);
    await sweep("pass-deadlines");
    const after = await load(runId);
    expect([after.run.state.status, after.approvals[0]?.state]).toEqual(["waiting_operator", "withdrawn"]);
  });

  // What the hold says is what the first of its requests says.
  test.each([
    ["reject", ["operator", "reject"], ["withdrawn", "expired"], "waiting_operator"],
    ["reject", ["reject", "operator"], ["expired", "withdrawn"], "waiting_operator"],
    ["operator", ["operator", "reject"], ["withdrawn", "expired"], "waiting_operator"],
    ["operator", ["reject", "reject"], ["expired", "expired"], "queued"],
  ] as const)("of a hold that says %s, requests that say %s end as they say: %s", async (says, own, ends, status) => {
    const requests = own.map((each) => request(MINUTE_MS, each));
    const runId = await moved(hold("approval", says), { requests });
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect((await sweep("pass-deadlines")).moved).toBe(1);
    const after = await load(runId);
    const stateOf = ({ id }: ApprovalRequest) => after.approvals.find((approval) => approval.id === id)?.state;
    expect(requests.map(stateOf)).toEqual(ends);
    expect(after.run.state.status).toBe(status);
  });

  test("of two that are due, the one that asks an operator is what the operator is asked about", async () => {
    const requests = [request(MINUTE_MS), request(MINUTE_MS + 1, "operator")];
    const runId = await moved(hold("approval", "reject"), { requests });
    await moveClock(database.url, 2 * MINUTE_MS);
    await sweep("pass-deadlines");
    expect((await load(runId)).run.state.waitingFor).toMatchObject({
      reason: "deadline_passed",
      subject: requests[1]?.callId,
    });
  });

  test("a request that asks an operator does not wait for the others: they are withdrawn with it", async () => {
    const requests = [request(MINUTE_MS, "operator"), request(3 * MINUTE_MS)];
    const runId = await moved(hold("approval", "reject"), { requests });
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect((await sweep("pass-deadlines")).moved).toBe(1);
    const after = await load(runId);
    expect(after.run.state).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "deadline_passed" } });
    expect(after.approvals.map(({ state }) => state)).toEqual(["withdrawn", "withdrawn"]);
  });

  test("a run that nobody takes for a day is shown to an operator, and then escalated without end", async () => {
    const runId = await queued();
    await moveClock(database.url, 86_400_000 + 1_000);
    await sweep("pass-deadlines");
    expect((await load(runId)).run.state).toMatchObject({
      status: "waiting_operator",
      waitingFor: { reason: "queue_limit" },
    });
    await moveClock(database.url, 2 * 86_400_000 + 5_000);
    expect(await sweep("pass-deadlines")).toEqual({ found: 1, moved: 1, errors: [] });
    expect(await sweep("pass-deadlines")).toEqual(NOTHING);
    expect(await statusOf(runId)).toBe("waiting_operator");
  });
});

describe("remind-approvers", () => {
  const stages = { remindAfterMs: [MINUTE_MS, 2 * MINUTE_MS] };
  const asking = () =>
    moved(hold("approval", "reject", 9 * MINUTE_MS), { requests: [request(9 * MINUTE_MS, "reject", stages)] });

  test("makes what is due, once, and moves no run", async () => {
    const runId = await asking();
    expect(await sweep("remind-approvers")).toEqual(NOTHING);
    await moveClock(database.url, MINUTE_MS + 1_000);
    expect(await sweep("remind-approvers")).toEqual({ found: 1, moved: 1, errors: [] });
    expect(await sweep("remind-approvers")).toEqual(NOTHING);
    expect(await eventsOf(runId)).toEqual(["Submitted", "Claimed", "Held"]);
  });

  test("two sweepers at once make each reminder once, within their limits", async () => {
    for (let n = 0; n < 5; n += 1) await asking();
    await moveClock(database.url, MINUTE_MS + 1_000);
    const [first, second] = await Promise.all([
      sweep("remind-approvers", { limit: 2 }),
      sweep("remind-approvers", { limit: 2 }),
    ]);
    expect(Math.max(first.moved, second.moved)).toBeLessThanOrEqual(2);
    const rest = await sweep("remind-approvers");
    expect(first.moved + second.moved + rest.moved).toBe(5);
  });

  test("comes after the deadlines in a pass: who is late is not reminded any more", async () => {
    const names = MOVING.map(({ name }) => name);
    expect(names.indexOf("remind-approvers")).toBeGreaterThan(names.indexOf("pass-deadlines"));
  });
});

describe("repair-wake-ups", () => {
  test("leaves a run alone that has only just been queued", async () => {
    await queued();
    expect(await sweep("repair-wake-ups")).toEqual(NOTHING);
  });

  test("publishes under the number of the pass, and moves nothing", async () => {
    const runId = await queued();
    await moveClock(database.url, 3_000);
    const { published, publisher } = notes();
    expect(await sweep("repair-wake-ups", { publisher })).toEqual({ found: 1, moved: 1, errors: [] });
    expect(published).toEqual([{ runId, sweep: 7 }]);
    expect(await eventsOf(runId)).toEqual(["Submitted"]);
  });

  test.each([
    [998, 2],
    [999, 1],
    [1_000, 0],
    [null, 0],
  ])("with %s waiting it adds the oldest %i", async (waiting, count) => {
    const ids = [await queued(), await queued(), await queued()];
    await moveClock(database.url, 3_000);
    const { published, publisher } = notes(waiting);
    expect(await sweep("repair-wake-ups", { publisher })).toEqual({ found: 3, moved: count, errors: [] });
    expect(published.map(({ runId }) => runId)).toEqual(ids.slice(0, count));
  });
});

test("a run that cannot be moved keeps none of the others: they are moved and woken, and it is told of", async () => {
  const bad = await moved({ type: "Released", retryAt: { inMs: 30_000 } });
  const good = await moved({ type: "Released", retryAt: { inMs: 30_000 } });
  await moveClock(database.url, 31_000);
  await store.pool.query(`create function holdpoint.refuse() returns trigger language plpgsql as
    $$ begin raise exception 'it breaks' using errcode = '54000'; end $$`);
  await store.pool.query(`create trigger refuse before insert on holdpoint.transitions
    for each row when (new.run_id = '${bad}') execute function holdpoint.refuse()`);
  const { published, publisher } = notes();
  const swept = await sweep("retry-due", { publisher });
  await store.pool.query("drop function holdpoint.refuse cascade");
  expect(swept).toMatchObject({ found: 2, moved: 1, errors: [{ message: "it breaks" }] });
  expect(published).toEqual([{ runId: good, sweep: undefined }]);
  expect([await statusOf(bad), await statusOf(good)]).toEqual(["retrying", "queued"]);
});

describe("while the queue does not answer", () => {
  test("the queues of several agents are asked at once", async () => {
    const other = { name: "desk", version: "2" };
    await registerAgent(store, { ...other, tools: [] });
    await queued();
    await queued(other);
    await moveClock(database.url, 3_000);
    const both = Promise.withResolvers<void>();
    let asked = 0;
    const waiting = async () => {
      asked += 1;
      if (asked === 2) both.resolve();
      await both.promise;
      return 0;
    };
    expect((await sweep("repair-wake-ups", { publisher: { ...notes().publisher, waiting } })).moved).toBe(2);
  });

  test("deadlines and recoveries go on", async () => {
    await queued();
    await moveClock(database.url, 3_000);
    const stop = new AbortController();
    const hung = Promise.withResolvers<null>();
    let asked = 0;
    const waiting = () => {
      asked += 1;
      return hung.promise;
    };
    const publisher = { ...notes().publisher, waiting };
    const log = pino({ level: "silent" });
    const options = { store, publisher, id: "s1", sweepMs: 50, graceMs: 5_000, limit: 100, log };
    const sweeping = runSweeper(options, stop.signal);
    await waitFor(() => asked > 0, { deadlineMs: 10_000, what: "the queue to be asked" });
    const aRetryGoesOn = async () => {
      const due = await moved({ type: "Released", retryAt: { inMs: 1 } });
      await waitFor(async () => (await statusOf(due)) === "queued", {
        deadlineMs: 10_000,
        what: "the retry to be due",
      });
    };
    // Both wake-up sweeps may have something to ask for; once they have asked, they ask nothing more while they wait.
    await aRetryGoesOn();
    const askedAtFirst = asked;
    await aRetryGoesOn();
    stop.abort();
    hung.resolve(null);
    await sweeping;
    expect(asked).toBe(askedAtFirst);
  });
});
