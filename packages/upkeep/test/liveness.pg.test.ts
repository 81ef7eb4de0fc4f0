import { randomUUID } from "node:crypto";
import type { Hold } from "@holdpoint/core";
import type { Publisher } from "@holdpoint/queue";
import {
  type ChildrenStart,
  commitSteps,
  decideAsOperator,
  findViolations,
  findWedged,
  loseAndRecover,
  markExited,
  newId,
  PART_ROWS,
  type Run,
  registerWorker,
  renewLease,
  requestCancel,
  retireWorker,
  type Store,
} from "@holdpoint/store";
import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AGENT, ALICE, aCall, aCommit, aReply, aRun, aWorker, claim, OPERATOR } from "../../store/test/a-run.ts";
import { aHeldRun, anUnknownRun, aPlannedRun, moved, ownerOf, reload } from "../../store/test/a-status.ts";
import { useBench } from "../../store/test/a-store.ts";
import { watched } from "../../store/test/watched.ts";
import type { SweepContext } from "../src/sweep.ts";
import { judgeSilentRuns } from "../src/sweeps/judge-liveness.ts";
import { recoverForsaken } from "../src/sweeps/recover-forsaken.ts";
import { recoverWedged } from "../src/sweeps/recover-wedged.ts";
import { resolveVanished } from "../src/sweeps/resolve-vanished.ts";

const bench = useBench();
const LEASE_MS = 15_000;
const GRACE_MS = 5_000;
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await moveClock(bench.url, 0);
  await bench.sql(
    "truncate holdpoint.runs, holdpoint.transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.inbox, holdpoint.verdicts, holdpoint.workers cascade",
  );
  await watched(bench.store);
});
afterEach(async () => {
  await moveClock(bench.url, 0);
  expect(await findViolations(bench.store)).toEqual([]);
});

const publisher: Publisher = {
  publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};
const context = (): SweepContext => ({
  store: bench.store,
  publisher,
  id: "s1",
  graceMs: GRACE_MS,
  limit: 100,
  number: 1,
});
const judge = async () => (await judgeSilentRuns.run(context())).moved;

interface Stored {
  readonly verdict: string;
  readonly reason: string | null;
  readonly rule: string;
  readonly until: Date | null;
  readonly evidence: Readonly<Record<string, unknown>>;
}

async function verdictOf(runId: string): Promise<Stored | null> {
  const [row] = await bench.sql<Stored>(
    "select verdict, reason, rule, until, evidence from holdpoint.verdicts where run_id = $1",
    [runId],
  );
  return row ?? null;
}

/** The clock goes on to a moment, and the leases were watched all the while. */
async function goTo(ms: number): Promise<void> {
  await moveClock(bench.url, ms);
  await watched(bench.store);
}

async function aRunningRun(leaseMs = LEASE_MS, progressMs = DAY_MS): Promise<{ run: Run; workerId: string }> {
  const workerId = await aWorker(bench.store, leaseMs);
  const { id } = await aRun(bench.store);
  await claim(bench.store, id, workerId);
  await bench.sql(
    "update holdpoint.runs set progress_due_at = holdpoint.clock() + $2 * interval '1 ms' where id = $1",
    [id, progressMs],
  );
  return { run: (await reload(bench.store, id)).run, workerId };
}

const waitsFor = (kind: "callback" | "child" | "timer", subject: string | null = null): Hold => ({
  kind: "dependency",
  waitingFor: { kind, principal: "payments", subject, reason: "r" },
  deadline: { inMs: DAY_MS },
  onDeadline: "operator",
});

describe("a run that somebody works on", () => {
  test("is not looked at while it is well: it has no verdict at all", async () => {
    const { run } = await aRunningRun();
    expect(await judge()).toBe(0);
    expect(await verdictOf(run.id)).toBeNull();
  });

  test("is waited for until the grace after its lease is over, and well again when its worker renews", async () => {
    const { run, workerId } = await aRunningRun();
    await goTo(17_000);
    expect(await judge()).toBe(1);
    expect(await verdictOf(run.id)).toMatchObject({
      verdict: "grace_pending",
      reason: "lease_expired",
      rule: "lease",
      evidence: { status: "running", worker: { id: workerId, leaseMs: LEASE_MS } },
    });
    expect(await judge()).toBe(0);
    await renewLease(bench.store, { workerId, leaseMs: LEASE_MS });
    expect(await judge()).toBe(1);
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "active", reason: null, until: null });
    expect(await judge()).toBe(0);
  });

  test("is lost with the reason and what was seen, goes on with another, and is well with it", async () => {
    const { run, workerId } = await aRunningRun();
    await goTo(21_000);
    expect(await recoverForsaken.run(context())).toMatchObject({ found: 1, moved: 1, errors: [] });
    expect(await verdictOf(run.id)).toMatchObject({
      verdict: "lost",
      reason: "lease_expired",
      rule: "lease",
      evidence: { worker: workerId, host: "test" },
    });
    const { rows } = await bench.store.pool.query(
      "select event, reason from holdpoint.transitions where run_id = $1 order by seq desc limit 2",
      [run.id],
    );
    expect(rows).toEqual([
      { event: "Recovered", reason: "lease_expired" },
      { event: "OwnerGone", reason: "lease_expired" },
    ]);
    // It stands until the run moves: the loss is what was last known of it.
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "lost" });
    await claim(bench.store, run.id, await aWorker(bench.store, DAY_MS));
    expect(await judge()).toBe(1);
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "active" });
  });

  test.each([
    ["whose end its supervisor has seen", markExited, "process_exited"],
    ["which gave its lease back and still had it", retireWorker, "worker_gone"],
  ] as const)("of a worker %s is lost for that reason", async (_how, end, reason) => {
    const { run, workerId } = await aRunningRun();
    await end(bench.store, workerId);
    await recoverForsaken.run(context());
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "lost", reason });
    expect((await reload(bench.store, run.id)).run.state).toMatchObject({ status: "queued", lostReason: reason });
  });

  test("without progress is waited for, then wedged although its worker renews", async () => {
    const { run } = await aRunningRun(DAY_MS, 60_000);
    await goTo(57_000);
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "grace_pending", reason: "wedged", rule: "progress" });
    await goTo(61_000);
    expect(await recoverWedged.run(context())).toMatchObject({ moved: 1 });
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "lost", reason: "wedged", rule: "progress" });
  });

  test("that stores progress after it was found wedged stays its worker's", async () => {
    const { run } = await aRunningRun(DAY_MS, 60_000);
    await goTo(61_000);
    const found = await findWedged(bench.store, 10);
    expect(found.map((each) => each.run.id)).toEqual([run.id]);
    await commitSteps(bench.store, [aCommit(await reload(bench.store, run.id), { steps: [aReply([])] })]);
    const losses = found.map((each) => ({ run: each.run, reason: "wedged" as const }));
    const { moved: lost } = await loseAndRecover(bench.store, losses, { kind: "sweeper", id: "s1" });
    expect(lost).toEqual([]);
    expect((await reload(bench.store, run.id)).run.state.status).toBe("running");
    expect(await verdictOf(run.id)).toBeNull();
  });

  test("is kept where its owner's row cannot be read, and judged anew once it can", async () => {
    const { run, workerId } = await aRunningRun(1_000);
    const [row] = await bench.sql("select * from holdpoint.workers where id = $1", [workerId]);
    await bench.sql("delete from holdpoint.workers where id = $1", [workerId]);
    await goTo(DAY_MS / 2);
    await recoverForsaken.run(context());
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "evidence_unreadable", evidence: { worker: null } });
    expect((await reload(bench.store, run.id)).run.state).toMatchObject({ status: "running", owner: workerId });
    await bench.sql("insert into holdpoint.workers select * from jsonb_populate_record(null::holdpoint.workers, $1)", [
      JSON.stringify(row),
    ]);
    await renewLease(bench.store, { workerId, leaseMs: LEASE_MS });
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "active" });
  });

  test("is given a lease by the sweeper after a gap of its own", async () => {
    const { run } = await aRunningRun();
    await moveClock(bench.url, 3_600_000);
    const { heldBack } = await recoverForsaken.run(context());
    expect(heldBack).toEqual({ own_gap: 1, blast_radius: 0 });
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "grace_pending", rule: "own_gap" });
    expect((await reload(bench.store, run.id)).run.state.status).toBe("running");
  });

  test("is given another lease where so many are silent that the fault may be the watcher's", async () => {
    const runs = [await aRunningRun(), await aRunningRun(), await aRunningRun()];
    await goTo(21_000);
    expect(await recoverForsaken.run(context())).toMatchObject({ found: 0, heldBack: { blast_radius: 3 } });
    await judge();
    for (const { run } of runs) expect(await verdictOf(run.id)).toMatchObject({ rule: "blast_radius" });
    await goTo(37_000);
    expect(await recoverForsaken.run(context())).toMatchObject({ found: 3, moved: 3 });
  });
});

describe("a run that waits", () => {
  test("for the other side is not ours to judge, and well once it goes on", async () => {
    const held = await aHeldRun(bench.store, waitsFor("callback"));
    const { run: unknown } = await anUnknownRun(bench.store);
    expect(await judge()).toBe(2);
    for (const id of [held.id, unknown.id]) {
      expect(await verdictOf(id)).toMatchObject({ verdict: "not_authoritative_here", rule: "provider_answer" });
    }
    expect(await judge()).toBe(0);
    await requestCancel(bench.store, { runId: held.id, actor: ALICE, reason: null });
    await judge();
    // It has ended: nobody asks any more whether it lives.
    expect(await verdictOf(held.id)).toBeNull();
  });

  test("for people or a timer is not looked at", async () => {
    await aHeldRun(bench.store, waitsFor("timer"));
    expect(await judge()).toBe(0);
  });

  test("in the queue of a version that nobody has is told so, and not lost; it is well once somebody has it", async () => {
    const agent = { name: `a${randomUUID().slice(0, 8)}`, version: "2" };
    const run = await aRun(bench.store, { agent });
    expect(await judge()).toBe(0);
    await goTo(6_000);
    expect(await judge()).toBe(1);
    expect(await verdictOf(run.id)).toMatchObject({
      verdict: "grace_pending",
      reason: "version_gone",
      evidence: { status: "queued", servedBy: 0 },
      until: new Date((await untilOf(run.id)) ?? 0),
    });
    expect(await judge()).toBe(0);
    await registerWorker(bench.store, { id: newId(), host: "h", pid: 1, agents: [agent], slots: 1, leaseMs: LEASE_MS });
    expect(await judge()).toBe(1);
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "active", rule: "served_version" });
    expect((await reload(bench.store, run.id)).run.state.status).toBe("queued");
  });
});

async function untilOf(runId: string): Promise<number | null> {
  const { waitDeadline } = (await reload(bench.store, runId)).run.state;
  return waitDeadline !== null && "at" in waitDeadline ? waitDeadline.at : null;
}

/** A run that waits for children which it has started. */
async function aParent(store: Store, count: number) {
  const call = aCall({
    tool: "delegate",
    effect: {
      kind: "children",
      wait: "all",
      atOnce: 8,
      onBlocked: "tell",
      equalCallsAreDistinct: false,
      withinMs: DAY_MS,
    },
  });
  const planned = await aPlannedRun(store, [call]);
  const children = Array.from({ length: count }, (_, ordinal) => ({
    id: newId(),
    sessionId: newId(),
    ordinal,
    agent: AGENT,
    goal: "a part",
    input: null,
  }));
  const start: ChildrenStart = {
    body: { kind: "children_started", callId: call.id, try: 1, ordinals: children.map((c) => c.ordinal), total: count },
    argsHash: call.argsHash,
    approvalId: null,
    policyRevision: planned.policyRevision,
    children,
    treeLimit: 100,
  };
  const [taken] = await commitSteps(store, [{ ...aCommit(planned), start }]);
  expect(taken).toMatchObject({ result: "taken", started: true });
  const started = await reload(store, planned.run.id);
  const hold = waitsFor("child", call.id);
  const run = await moved(store, { run: started.run, actor: ownerOf(started), events: [{ type: "Held", hold }] });
  return { run, children: children.map(({ id }) => id) };
}

/** What a hand on the tables, or a database put back in part, does. */
async function takeAway(...ids: readonly string[]): Promise<void> {
  for (const table of ["transitions", "steps"]) {
    await bench.sql(`delete from holdpoint.${table} where run_id = any($1::uuid[])`, [ids]);
  }
  await bench.sql("delete from holdpoint.runs where id = any($1::uuid[])", [ids]);
}

describe("a run that waits for children", () => {
  test("is kept while their rows are there", async () => {
    const { run } = await aParent(bench.store, 2);
    await judge();
    expect(await verdictOf(run.id)).toMatchObject({ verdict: "backing_present", evidence: { children: 2 } });
    expect(await resolveVanished.run(context())).toMatchObject({ found: 0 });
  });

  test("of which one is gone asks an operator: nobody knows what it had done, so it is not made anew", async () => {
    const { run, children } = await aParent(bench.store, 2);
    await takeAway(children[0] ?? "");
    expect(await resolveVanished.run(context())).toMatchObject({ found: 1, moved: 1, errors: [] });
    expect((await reload(bench.store, run.id)).run.state).toMatchObject({
      status: "waiting_operator",
      waitingFor: { reason: "backing_missing", subject: run.state.waitingFor?.subject },
      liveChildren: 1,
    });
    expect(await verdictOf(run.id)).toMatchObject({
      verdict: "lost",
      reason: "backing_missing",
      evidence: { missing: 1, liveChildren: 2 },
    });
    expect(await resolveVanished.run(context())).toMatchObject({ found: 0 });
  });

  test("that are all gone can end by the operator's word", async () => {
    const { run, children } = await aParent(bench.store, 2);
    await takeAway(...children);
    await resolveVanished.run(context());
    const decision = { runId: run.id, choice: "abort", actor: OPERATOR, reason: "restored", attemptIds: [] } as const;
    expect(await decideAsOperator(bench.store, decision)).toMatchObject({ result: "accepted" });
    expect((await reload(bench.store, run.id)).run.state).toMatchObject({ status: "cancelled", liveChildren: 0 });
  });

  test("which are being stopped and are gone has stopped", async () => {
    const { run, children } = await aParent(bench.store, 1);
    await requestCancel(bench.store, { runId: run.id, actor: ALICE, reason: null });
    expect((await reload(bench.store, run.id)).run.state.status).toBe("cancelling");
    await takeAway(...children);
    expect(await resolveVanished.run(context())).toMatchObject({ moved: 1 });
    expect((await reload(bench.store, run.id)).run.state.status).toBe("cancelled");
  });
});

test("two sweepers at once write each verdict once", async () => {
  for (let n = 0; n < 5; n += 1) await aHeldRun(bench.store, waitsFor("callback"));
  const both = await Promise.all([judgeSilentRuns.run(context()), judgeSilentRuns.run({ ...context(), id: "s2" })]);
  const rest = await judge();
  expect(both.reduce((sum, { moved: count }) => sum + count, rest)).toBe(5);
});

test("looks at a part of those that only wait in a pass, and at the rest in the next", async () => {
  for (let n = 0; n < PART_ROWS + 1; n += 1) await aHeldRun(bench.store, waitsFor("callback"));
  expect((await judgeSilentRuns.run(context())).moved).toBe(PART_ROWS);
  expect((await judgeSilentRuns.run(context())).moved).toBe(1);
});
