import type { RunEvent } from "@holdpoint/core";
import { openFaultPoints } from "@holdpoint/testkit/fault-points";
import pg from "pg";
import { expect, test } from "vitest";
import {
  type Claim,
  commitSteps,
  decideApproval,
  findForsaken,
  findMissedByCascade,
  findOverdue,
  type LoadedRun,
  loadRun,
  markExited,
  markGone,
  newId,
  openStore,
  recordFact,
  renewLease,
  requestCancel,
  type Store,
  stoppingMove,
  submitRun,
  transition,
  transitionOne,
} from "../src/index.ts";
import { openGate } from "./a-gate.ts";
import { aChildrenStart, aParentCall, aPlanning, startCommit } from "./a-parent.ts";
import {
  AGENT,
  ALICE,
  aCall,
  aCommit,
  aReply,
  aRun,
  aStart,
  aWorker,
  claim,
  claimAll,
  MANAGER,
  SWEEPER,
} from "./a-run.ts";
import { aClaimedRun, aHeldRun, anAskingRun, aPlannedRun, lose, ownerOf, QUESTION, RUNS, reload } from "./a-status.ts";
import { deadlocksOf, reachesWait, useBench } from "./a-store.ts";
import { watched } from "./watched.ts";

const bench = useBench();

const GONE = { graceMs: 0, limit: 10, sweeper: "sweeper-1" };
const LOSS: readonly RunEvent[] = [{ type: "OwnerGone", reason: "lease_expired" }, { type: "Recovered" }];

function claiming(workerId: string, runId: string): Claim {
  return { runIds: [runId], workerId, progressMs: 60_000, mayTakeSuspect: true };
}

/** Holds a worker's row while a verb waits for it; `meanwhile` commits before the verb goes on. */
async function whileWorkerHeld<T>(workerId: string, verb: (store: Store) => Promise<T>, meanwhile: string): Promise<T> {
  await using store = openStore({ url: bench.url });
  const holder = new pg.Client({ connectionString: bench.url });
  await holder.connect();
  await holder.query("begin");
  await holder.query(meanwhile, [workerId]);
  try {
    const { rows } = await store.leasePool.query<{ pid: number }>("select pg_backend_pid() as pid");
    const late = verb(store);
    await reachesWait(bench.admin, rows[0]?.pid ?? 0, late);
    await holder.query("commit");
    return await late;
  } finally {
    await holder.end();
  }
}

test("a renewal that waits while its worker is declared gone is refused", async () => {
  const workerId = await aWorker(bench.store, -60_000);
  const gone = "update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = 'lease_expired' where id = $1";
  expect(await whileWorkerHeld(workerId, (store) => renewLease(store, { workerId, leaseMs: 15_000 }), gone)).toEqual({
    renewed: false,
  });
});

test("a worker whose renewal is under way is not declared gone", async () => {
  await watched(bench.store);
  const workerId = await aWorker(bench.store, -60_000);
  await bench.sql("begin");
  await bench.sql("update holdpoint.workers set lease_until = holdpoint.clock() + interval '15 s' where id = $1", [
    workerId,
  ]);
  expect((await markGone(bench.store, GONE)).gone).toEqual([]);
  await bench.sql("commit");
  expect((await markGone(bench.store, GONE)).gone).toEqual([]);
  expect(await renewLease(bench.store, { workerId, leaseMs: 15_000 })).toEqual({
    renewed: true,
    stop: [],
    drain: null,
  });
});

test("a claim whose snapshot is older than a fact loads the run again and misses nothing", async () => {
  const run = await aHeldRun(bench.store, QUESTION);
  await using gate = await openGate(bench);
  const answer = { runId: run.id, kind: "answer", text: "order 4411", actor: ALICE } as const;
  // Claimable in the statement's snapshot, and still when it gets the row.
  expect(await recordFact(bench.store, answer)).toMatchObject({ run: { state: { status: "queued" } } });
  const workerId = await aWorker(bench.store);
  const claimed = await gate.whileShut(
    (store) => claimAll(store, claiming(workerId, run.id)),
    () => recordFact(bench.store, { ...answer, kind: "message", text: "and hurry" }),
  );
  expect(claimed).toMatchObject([{ run: { version: 6, state: { status: "running" } } }]);
  expect(claimed[0]?.unread.map(({ body }) => "text" in body && body.text)).toEqual(["order 4411", "and hurry"]);
  expect(gate.trips()).toBe(2); // the claim saw that its load was stale
});

test("a claim whose snapshot is older than the last owner's steps and loss loads them", async () => {
  const run = await aRun(bench.store);
  await using gate = await openGate(bench);
  const workerId = await aWorker(bench.store);
  const call = aCall();
  const claimed = await gate.whileShut(
    (store) => claimAll(store, claiming(workerId, run.id)),
    async () => {
      const first = await claim(bench.store, run.id, await aWorker(bench.store));
      await commitSteps(bench.store, [aCommit(first, { steps: [aReply([call])], calls: [call] })]);
      await lose(bench.store, (await reload(bench.store, run.id)).run);
    },
  );
  expect(claimed).toMatchObject([{ run: { version: 5, epoch: 2, stepSeq: 1, state: { takeovers: 1 } } }]);
  expect(claimed[0]?.steps).toMatchObject([{ seq: 1, body: { kind: "model_reply" } }]);
  expect(claimed[0]?.calls).toMatchObject([{ id: call.id }]);
  expect(gate.trips()).toBe(2); // the claim saw that its load was stale
});

test("claims against steps, facts and losses never load less than their row has", { timeout: 60_000 }, async () => {
  const runs = await Promise.all([1, 2, 3, 4].map(() => aRun(bench.store)));
  const workers = await Promise.all([1, 2, 3].map(() => aWorker(bench.store)));
  const enough = 60;
  let claims = 0;
  const work = async (workerId: string) => {
    while (claims < enough) {
      const loaded = await claimAll(bench.store, { ...claiming(workerId, ""), runIds: runs.map(({ id }) => id) });
      for (const each of loaded) {
        claims += 1;
        expect(each.steps).toHaveLength(each.run.stepSeq);
        const readFacts = each.unread.map(({ id }) => id);
        const steps = [...each.unread.map(({ body }) => body), aReply([])];
        expect(await commitSteps(bench.store, [aCommit(each, { steps, readFacts })])).toMatchObject([
          { result: "taken" },
        ]);
        await giveBack(each);
      }
    }
  };
  const giveBack = async (claimed: LoadedRun): Promise<void> => {
    for (let { run } = await reload(bench.store, claimed.run.id); ; ) {
      const released = { run, actor: ownerOf(claimed), events: [{ type: "Released", retryAt: null }] } as const;
      const answer = await transitionOne(bench.store, released);
      if (answer.result === "accepted") return;
      if (answer.result !== "conflict") throw new Error(`the run was not given back: ${answer.result}`);
      run = answer.current; // a fact came between; nobody else takes the run from its owner here
    }
  };
  const talk = async () => {
    while (claims < enough) {
      for (const { id } of runs) {
        await recordFact(bench.store, { runId: id, kind: "message", text: "well?", actor: ALICE });
      }
    }
  };
  await Promise.all([...workers.map(work), talk()]);
});

test("a worker that is gone, and does not know it yet, claims nothing", async () => {
  const run = await aRun(bench.store);
  const workerId = await aWorker(bench.store);
  await markExited(bench.store, workerId);
  const claimed = { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true };
  expect(await claimAll(bench.store, claimed)).toEqual([]);
  expect((await reload(bench.store, run.id)).run.state).toMatchObject({ status: "queued", takeovers: 0 });
});

test("two workers take over at once: one has the run, the other nothing", async () => {
  const lost = await lose(bench.store, (await aClaimedRun(bench.store)).run);
  const workers = [await aWorker(bench.store), await aWorker(bench.store)];
  const claims = await Promise.all(workers.map((id) => claimAll(bench.store, claiming(id, lost.id))));
  expect(claims.flat()).toHaveLength(1);
  expect(claims.flat()[0]?.run).toMatchObject({ epoch: 2, state: { takeovers: 1 } });
});

test("a claim takes a run although facts have come since its wake-up", async () => {
  const run = await aRun(bench.store);
  await recordFact(bench.store, { runId: run.id, kind: "message", text: "and hurry", actor: ALICE });
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  expect(claimed.run.version).toBe(3);
  expect(claimed.unread).toHaveLength(1);
});

test("one run twice in a batch of moves: one is accepted, the other is told of the conflict", async () => {
  const claimed = await aClaimedRun(bench.store);
  const say = (text: string) => ({
    run: claimed.run,
    actor: ALICE,
    events: [{ type: "FactArrived", fact: "message", completesHold: false }] as const,
    writes: { facts: [{ id: newId(), body: { kind: "message", from: "alice", text } as const }] },
  });
  const results = await transition(bench.store, [say("one"), say("other")]);
  expect(results.map((each) => ("result" in each ? each.result : each.message)).sort()).toEqual([
    "accepted",
    "conflict",
  ]);
  expect((await reload(bench.store, claimed.run.id)).unread).toHaveLength(1);
});

test("a conflict tells the row as it is, not as the losing statement saw it", async () => {
  const run = await aHeldRun(bench.store, QUESTION);
  const [, late] = await bench.inOrder(
    run.id,
    (store) => requestCancel(store, { runId: run.id, actor: ALICE, reason: null }),
    (store) => transitionOne(store, { run, actor: SWEEPER, events: [{ type: "DeadlinePassed", remaining: null }] }),
  );
  expect(late).toMatchObject({ result: "conflict", current: { version: 4, state: { status: "cancelled" } } });
});

test("the last two decisions of one hold at once: the run goes on, with none pending", async () => {
  const calls = [aCall(), aCall({ ordinal: 1, argsHash: "hash-2" })];
  const { run, requests } = await anAskingRun(bench.store, { calls });
  const decide = (n: number) => (store: Store) =>
    decideApproval(store, {
      approvalId: requests[n]?.id ?? "",
      decision: "approve",
      argsHash: requests[n]?.argsHash ?? "",
      note: null,
      actor: MANAGER,
    });
  const answers = await bench.inOrder(run.id, decide(0), decide(1));
  expect(answers).toMatchObject([
    { result: "accepted", run: { state: { status: "waiting_approval" } } },
    { result: "accepted", run: { state: { status: "queued" } } },
  ]);
});

test("a deadline that was read before the last decision is refused as a conflict, and the run goes on", async () => {
  const { run, request } = await anAskingRun(bench.store);
  const sweep = {
    run,
    actor: SWEEPER,
    events: [{ type: "DeadlinePassed", remaining: null }],
    writes: { approvals: [{ id: request.id, state: "expired" }] },
  } as const;
  const decision = { approvalId: request.id, decision: "approve", argsHash: request.argsHash, note: null } as const;
  const [decided, swept] = await bench.inOrder(
    run.id,
    (store) => decideApproval(store, { ...decision, actor: MANAGER }),
    (store) => transitionOne(store, sweep),
  );
  expect(decided).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
  expect(swept).toMatchObject({ result: "conflict" });
  expect((await reload(bench.store, run.id)).approvals).toMatchObject([{ state: "approved", decidedBy: "mona" }]);
});

test("a decision that was read before the deadline's sweep is refused, and the run goes on without it", async () => {
  const { run, request } = await anAskingRun(bench.store);
  const decision = { approvalId: request.id, decision: "approve", argsHash: request.argsHash, note: null } as const;
  const [, decided] = await bench.inOrder(
    run.id,
    (store) =>
      transitionOne(store, {
        run,
        actor: SWEEPER,
        events: [{ type: "DeadlinePassed", remaining: null }],
        writes: { approvals: [{ id: request.id, state: "expired" }] },
      }),
    (store) => decideApproval(store, { ...decision, actor: MANAGER }),
  );
  expect(decided).toMatchObject({ result: "refused", rule: "approval_expired" });
  expect((await reload(bench.store, run.id)).approvals).toMatchObject([{ state: "expired", decidedBy: null }]);
});

test("a fact between read and hold: the hold is refused, and planned again with the fact", async () => {
  const claimed = await aClaimedRun(bench.store);
  const hold = { run: claimed.run, actor: ownerOf(claimed), events: [{ type: "Held", hold: QUESTION }] } as const;
  const [said, held] = await bench.inOrder(
    claimed.run.id,
    (store) => recordFact(store, { runId: claimed.run.id, kind: "message", text: "order 4411", actor: ALICE }),
    (store) => transitionOne(store, hold),
  );
  expect(said).toMatchObject({ result: "accepted", run: { state: { status: "running" } } });
  expect(held).toMatchObject({ result: "conflict", current: { state: { status: "running" } } });
  expect((await reload(bench.store, claimed.run.id)).unread).toMatchObject([{ body: { text: "order 4411" } }]);
});

test("a stale owner that repeats its hold on the row of the conflict cannot hold the other's run", async () => {
  const stale = await aClaimedRun(bench.store);
  const fresh = await claim(bench.store, (await lose(bench.store, stale.run)).id, await aWorker(bench.store));
  const hold = { actor: ownerOf(stale), events: [{ type: "Held", hold: QUESTION }] } as const;
  const first = await transitionOne(bench.store, { ...hold, run: stale.run });
  if (first.result !== "conflict") throw new Error(`not a conflict: ${first.result}`);
  expect(await transitionOne(bench.store, { ...hold, run: first.current })).toMatchObject({ result: "conflict" });
  expect((await reload(bench.store, fresh.run.id)).run).toEqual(fresh.run);
});

test("a claim whose run somebody is just moving takes it a moment later: its wake-up comes only once", async () => {
  const run = await aRun(bench.store);
  const workerId = await aWorker(bench.store);
  const mover = await bench.store.pool.connect();
  try {
    await mover.query("begin");
    await mover.query("select from holdpoint.runs where id = $1 for update", [run.id]);
    const points = openFaultPoints({
      at: "statement:claim_runs:answered",
      fault: async () => {
        await mover.query("commit");
      },
    });
    const claims = { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true };
    expect(await claimAll(points.store(bench.store), claims)).toMatchObject([{ run: { id: run.id } }]);
    expect(points.passed.filter((name) => name === "statement:claim_runs:answered")).toHaveLength(2);
  } finally {
    mover.release();
  }
});

test("a loss by a sweep that passes over locked rows does not overlook an intent that commits before its lock", async () => {
  const call = aCall();
  const claimed = await aPlannedRun(bench.store, [call]);
  await using gate = await openGate(bench);
  const [swept] = await gate.whileShut(
    (store) => transition(store, [{ run: claimed.run, actor: SWEEPER, events: LOSS }], { skipLocked: true }),
    () => commitSteps(bench.store, [aCommit(claimed, { start: aStart(call) })]),
  );
  expect(swept).toMatchObject({ result: "conflict", current: { state: { status: "running", openAttempts: 1 } } });
  expect((await lose(bench.store, (await reload(bench.store, claimed.run.id)).run)).state.status).toBe(
    "outcome_unknown",
  );
});

test("runs of a gone owner are found until they are lost, whatever came between", async () => {
  const claimed = await aClaimedRun(bench.store);
  await markExited(bench.store, ownerOf(claimed).id);
  const [found] = (await findForsaken(bench.store, 100)).filter(({ run }) => run.id === claimed.run.id);
  await recordFact(bench.store, { runId: claimed.run.id, kind: "message", text: "well?", actor: ALICE });
  const lost = await transitionOne(bench.store, { run: found?.run ?? claimed.run, actor: SWEEPER, events: LOSS });
  expect(lost).toMatchObject({ result: "conflict" });
  const [again] = (await findForsaken(bench.store, 100)).filter(({ run }) => run.id === claimed.run.id);
  expect(await lose(bench.store, again?.run ?? claimed.run)).toMatchObject({ state: { status: "queued" } });
  expect((await findForsaken(bench.store, 100)).filter(({ run }) => run.id === claimed.run.id)).toEqual([]);
});

test("two live retries of one line at once: one is submitted, the other refused", async () => {
  const first = await RUNS.failed(bench.store);
  const again = { sessionId: first.sessionId, agent: AGENT, goal: null, actor: ALICE, retryOf: first.id };
  const results = await Promise.all([submitRun(bench.store, again), submitRun(bench.store, again)]);
  expect(results.map(({ result }) => result).sort()).toEqual(["line_is_live", "submitted"]);
});

test("a child that is started while its parent's cancel waits is found by the cascade", async () => {
  const call = aParentCall();
  const planning = await aPlanning(bench.store, call);
  const start = aChildrenStart(planning, call, { count: 1 });
  await bench.inOrder(
    planning.run.id,
    (store) => commitSteps(store, [startCommit(planning, start)]),
    (store) => requestCancel(store, { runId: planning.run.id, actor: ALICE, reason: null }),
  );
  const missed = await findMissedByCascade(bench.store, 10);
  expect(missed.map(({ run }) => run.id)).toEqual(start.children.map(({ id }) => id));
  await transition(
    bench.store,
    missed.map(({ run }) => stoppingMove(run, "parent_cancelled")),
  );
  expect((await reload(bench.store, missed[0]?.run.id ?? "")).run.state).toMatchObject({ status: "cancelled" });
  expect(await findMissedByCascade(bench.store, 10)).toEqual([]);
});

test("a hold whose answer was lost is known by its own transition", async () => {
  const claimed = await aClaimedRun(bench.store);
  const hold = { run: claimed.run, actor: ownerOf(claimed), events: [{ type: "Held", hold: QUESTION }] } as const;
  const answer = await bench.answerLost(claimed.run.id, (store) => transitionOne(store, hold));
  expect(answer).toMatchObject({ result: "accepted", run: { version: 3, state: { status: "waiting_input" } } });
});

test("a hold whose connection broke before it took effect is not taken for the fact that came instead", async () => {
  const claimed = await aClaimedRun(bench.store);
  const hold = { run: claimed.run, actor: ownerOf(claimed), events: [{ type: "Held", hold: QUESTION }] } as const;
  const answer = await bench.cutBefore(
    claimed.run.id,
    (store) => transitionOne(store, hold),
    (store) => recordFact(store, { runId: claimed.run.id, kind: "message", text: "well?", actor: ALICE }),
  );
  expect(answer).toMatchObject({ result: "conflict", current: { version: 3, state: { status: "running" } } });
});

test("a message whose connection broke is not taken for another message of the same person", async () => {
  const { run } = await aClaimedRun(bench.store);
  const say = (text: string) => (store: Store) =>
    recordFact(store, { runId: run.id, kind: "message", text, actor: ALICE });
  expect(await bench.cutBefore(run.id, say("order 4411"), say("please"))).toMatchObject({ result: "accepted" });
  const { unread } = await reload(bench.store, run.id);
  expect(unread.map(({ body }) => "text" in body && body.text)).toEqual(["please", "order 4411"]);
});

test("batches, bulk moves and sweeps over the same runs in opposite orders never deadlock", {
  timeout: 60_000,
}, async () => {
  const claimed = await Promise.all(Array.from({ length: 12 }, () => aClaimedRun(bench.store)));
  const repeat = async (act: (runs: LoadedRun[]) => Promise<unknown>, order: number) => {
    for (let round = 0; round < 25; round += 1) {
      const sorted = [...claimed].sort((a, b) => order * (a.run.id < b.run.id ? -1 : 1));
      await act(sorted.slice(round % 4, 9 + (round % 4)));
    }
  };
  const read = (store: Store, runs: LoadedRun[]) => Promise.all(runs.map(({ run }) => loadRun(store, run.id)));
  const commitAll = (store: Store) => async (runs: LoadedRun[]) => {
    const now = (await read(store, runs)).filter((each) => each !== null);
    const commits = now.map((each) => aCommit(each, { steps: [aReply([])] }));
    await commitSteps(store, commits);
  };
  const noteAll = (store: Store, skipLocked: boolean) => async (runs: LoadedRun[]) => {
    const now = (await read(store, runs)).filter((each) => each !== null);
    const events = [{ type: "FactArrived", fact: "message", completesHold: false }] as const;
    const moves = now.map(({ run }) => ({ run, actor: ALICE, events }));
    await transition(store, moves, { skipLocked });
  };
  const deadlocks = await deadlocksOf(bench, (store) =>
    Promise.all([
      repeat(commitAll(store), 1),
      repeat(commitAll(store), -1),
      repeat(noteAll(store, false), -1),
      repeat(noteAll(store, true), 1),
    ]),
  );
  expect(deadlocks).toBe(0);
});

test("an overdue run that somebody else is moving is passed over and found again", async () => {
  const run = await aHeldRun(bench.store, { ...QUESTION, deadline: { inMs: 0 } });
  const due = (await findOverdue(bench.store, 100)).filter((each) => each.run.id === run.id);
  expect(due).toHaveLength(1);
  const sweep = (skipLocked: boolean) =>
    transition(
      bench.store,
      due.map((each) => ({ run: each.run, actor: SWEEPER, events: [{ type: "DeadlinePassed", remaining: null }] })),
      { skipLocked },
    );
  await bench.sql("begin");
  await bench.sql("select from holdpoint.runs where id = $1 for update", [run.id]);
  expect(await sweep(true)).toMatchObject([{ result: "conflict", current: { version: run.version } }]);
  await bench.sql("commit");
  expect(await sweep(true)).toMatchObject([{ result: "accepted", run: { state: { status: "queued" } } }]);
});
