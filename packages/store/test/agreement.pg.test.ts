// Core decides, the store writes: whatever can happen to a run, its row is the state that core has reduced, field by
// field. The clock of this database stands still, so that instants are compared exactly.

import { type Actor, type Hold, type Instant, type RunEvent, type RunState, reduce } from "@holdpoint/core";
import { stopClock } from "@holdpoint/testkit";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import {
  type ApprovalRequest,
  claimRuns,
  commitSteps,
  type LoadedRun,
  type Run,
  transition,
  transitionOne,
  type Writes,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, MANAGER, OPERATOR, SWEEPER } from "./a-run.ts";
import { APPROVAL, aRequest, aResult, DEPENDENCY, operatorHold, QUESTION, RUNS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const AT = new Date("2026-03-01T10:00:00.123Z");

beforeAll(() => stopClock(bench.url, AT));

/** The state with every relative instant on the clock that stands still. */
function written(state: RunState): RunState {
  return Object.fromEntries(
    Object.entries(state).map(([field, value]) => [field, isInstant(value) ? at(value) : value]),
  ) as unknown as RunState;
}

function isInstant(value: unknown): value is Instant {
  return typeof value === "object" && value !== null && ("inMs" in value || "at" in value);
}

function at(instant: Instant): Instant {
  return "at" in instant ? instant : { at: AT.getTime() + instant.inMs };
}

const SUCCEEDED = { kind: "succeeded" } as const;
const PARENT: Actor = { kind: "parent", id: "parent" };

/** What a run that waits for an approval waits with once that was passed on. */
const NEXT_LEVEL: Hold = {
  ...APPROVAL,
  waitingFor: { ...APPROVAL.waitingFor, principal: "role:director" },
  deadline: { inMs: 30_000 },
};

/** Events with the kind of actor that raises them; a worker is the run's owner. */
const EVENTS: readonly (readonly [RunEvent, Actor | "owner"])[] = [
  ...[QUESTION, APPROVAL, DEPENDENCY, operatorHold("call_failed", "call-1")].map(
    (hold) => [{ type: "Held", hold }, "owner"] as const,
  ),
  [{ type: "Released", retryAt: null }, "owner"],
  [{ type: "Released", retryAt: { inMs: 5_000 } }, "owner"],
  [{ type: "EffectUnknown", nextLookUp: { inMs: 2_000 }, lookUpsEnd: { inMs: 50_000 } }, "owner"],
  [{ type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null }, "owner"],
  [{ type: "EffectSettled", by: "owner", wasOpen: true }, "owner"],
  [
    { type: "EffectSettled", by: "late_evidence", wasOpen: true },
    { kind: "worker", id: "late" },
  ],
  [
    { type: "EffectSettled", by: "late_evidence", wasOpen: false },
    { kind: "worker", id: "late" },
  ],
  [{ type: "Ended", status: "completed", outcome: SUCCEEDED, reason: null }, "owner"],
  [
    {
      type: "Ended",
      status: "completed",
      outcome: { kind: "blocked", step: "send_refund", reason: "denied" },
      reason: null,
    },
    "owner",
  ],
  [{ type: "Ended", status: "failed", outcome: null, reason: "no_such_order" }, "owner"],
  [{ type: "OwnerGone", reason: "lease_expired" }, SWEEPER],
  [{ type: "Recovered" }, SWEEPER],
  [{ type: "DeadlinePassed", remaining: null }, SWEEPER],
  [{ type: "DeadlinePassed", remaining: null, onDeadline: "abort" }, SWEEPER],
  [{ type: "DeadlinePassed", remaining: NEXT_LEVEL }, SWEEPER],
  [{ type: "RetryDue" }, SWEEPER],
  [{ type: "FactArrived", fact: "message", completesHold: true }, ALICE],
  [{ type: "FactArrived", fact: "message", completesHold: false }, ALICE],
  [{ type: "FactArrived", fact: "decision", completesHold: true }, MANAGER],
  [{ type: "FactArrived", fact: "decision", completesHold: false, hold: NEXT_LEVEL }, MANAGER],
  [{ type: "FactArrived", fact: "decision", completesHold: true, aborts: true }, MANAGER],
  ...(["retry", "skip", "abort", "mark_done", "not_established", "retry_now"] as const).map(
    (choice) => [{ type: "OperatorDecided", choice, notEstablished: 0 }, OPERATOR] as const,
  ),
  [{ type: "OperatorDecided", choice: "terminate", notEstablished: 0 }, OPERATOR],
  [{ type: "OperatorDecided", choice: "terminate", notEstablished: 1 }, OPERATOR],
  [{ type: "CancelRequested", reason: "changed my mind" }, ALICE],
  [{ type: "CancelRequested", reason: null }, PARENT],
  [{ type: "PauseRequested" }, OPERATOR],
  [{ type: "Resumed" }, OPERATOR],
];

const STEPS = ["claim", "reply", "start"] as const;

const act = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...EVENTS) },
  { weight: 3, arbitrary: fc.constantFrom(...STEPS) },
);

/** What belongs to an event outside the run's row, so that the other tables stay true to it. */
function writesFor(loaded: LoadedRun, event: RunEvent, next: RunState): Writes {
  const { openAttempts, approvals, run } = loaded;
  const settled = openAttempts.slice(0, run.state.openAttempts - next.openAttempts);
  const settles = settled.map(({ id }) => ({ attemptId: id, outcome: "not_established", settledBy: "test" }) as const);
  if (awaitsApproval(next))
    return { settles, requests: awaitsApproval(run.state) || event.type !== "Held" ? [] : [asking()] };
  const open = approvals.filter(({ state }) => state === "pending");
  return { settles, approvals: open.map(({ id }) => ({ id, state: "expired" })) };
}

function awaitsApproval({ status, resumeTo }: RunState): boolean {
  return (
    status === "waiting_approval" ||
    (status === "paused" && resumeTo?.to === "hold" && resumeTo.hold.kind === "approval")
  );
}

function asking(): ApprovalRequest {
  return aRequest(aCall());
}

/** Whether the event can come to this run: nobody settles what is not open, nobody but its owner gives it back. */
function canHappen({ state }: Run, event: RunEvent, actor: Actor | "owner"): boolean {
  if (actor === "owner" && state.owner === null) return false;
  if (("hold" in event && event.type === "FactArrived") || ("remaining" in event && event.remaining !== null)) {
    return awaitsApproval(state);
  }
  if (event.type === "EffectSettled") return !event.wasOpen || state.openAttempts > 0;
  if (event.type === "EffectUnknown") return state.openAttempts > 0;
  if (event.type === "OperatorDecided") return event.notEstablished <= state.openAttempts;
  return event.type !== "OwnerGone" || state.owner !== null;
}

/** Results of the calls that have none: no model is asked, and no run completed, over an open question. */
function missingResults({ calls, steps }: LoadedRun) {
  const answered = steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body.callId] : []));
  return calls.filter(({ id }) => !answered.includes(id)).map((call) => aResult(call));
}

async function apply(before: LoadedRun, [event, by]: (typeof EVENTS)[number], workerId: string): Promise<void> {
  if (!canHappen(before.run, event, by)) return;
  const loaded = event.type === "Ended" ? await answering(before) : before;
  const { run } = loaded;
  const actor =
    by === "owner"
      ? { kind: "worker" as const, id: run.state.owner ?? "" }
      : by.id === "late"
        ? { kind: by.kind, id: workerId }
        : by;
  const decision = reduce(run.state, event, actor);
  const writes = "next" in decision ? writesFor(loaded, event, decision.next) : {};
  const result = await transitionOne(bench.store, { run, events: [event], actor, writes });
  const after = (await reload(bench.store, run.id)).run;
  if (!("next" in decision)) {
    expect(result.result).toBe(decision.verdict === "refused" ? "rejected" : "ignored");
    expect(after).toEqual(run);
    return;
  }
  expect(result).toEqual({ result: "accepted", run: after });
  expect(after).toMatchObject({ version: run.version + 1, stepSeq: run.stepSeq, epoch: run.epoch });
  expect(after.state).toEqual(written(decision.next));
}

async function answering(loaded: LoadedRun): Promise<LoadedRun> {
  const steps = missingResults(loaded);
  if (steps.length === 0) return loaded;
  await commitSteps(bench.store, [aCommit(loaded, { steps, progress: false })]);
  return reload(bench.store, loaded.run.id);
}

async function step(loaded: LoadedRun, kind: (typeof STEPS)[number], workerId: string): Promise<void> {
  const { run } = loaded;
  if (kind === "claim") {
    const decision = reduce(run.state, { type: "Claimed", owner: workerId }, { kind: "worker", id: workerId });
    await claimRuns(bench.store, { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true });
    const after = (await reload(bench.store, run.id)).run;
    expect(after.state).toEqual("next" in decision ? written(decision.next) : run.state);
    return;
  }
  if (run.state.owner === null || (kind === "start" && run.state.openAttempts > 0)) return;
  const call = aCall({ turn: run.stepSeq + 1 });
  const missing = missingResults(loaded);
  const commit =
    kind === "reply"
      ? aCommit(loaded, { steps: [...missing, aReply([])] })
      : aCommit(loaded, { steps: [...missing, aReply([call])], calls: [call], start: aStart(call), progress: false });
  const [result] = await commitSteps(bench.store, [commit]);
  const mayStart = run.state.status === "running" && run.state.pauseRequestedAt === null;
  expect(result).toMatchObject({ result: "taken", started: kind === "start" && mayStart });
  const { state } = (await reload(bench.store, run.id)).run;
  expect(state).toEqual({
    ...run.state,
    takeovers: kind === "reply" ? 0 : run.state.takeovers,
    openAttempts: run.state.openAttempts + (kind === "start" && mayStart ? 1 : 0),
  });
}

test("whatever happens to a run, its row is what core has reduced", { timeout: 120_000 }, async () => {
  const workerId = await aWorker(bench.store);
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 40 }), async (acts) => {
      const { id } = await aRun(bench.store);
      for (const each of acts) {
        const loaded = await reload(bench.store, id);
        if (typeof each === "string") await step(loaded, each, workerId);
        else await apply(loaded, each, workerId);
      }
    }),
    { numRuns: 60 },
  );
});

test("each event on a run of each status is written as core has reduced it", { timeout: 120_000 }, async () => {
  const workerId = await aWorker(bench.store);
  for (const make of Object.values(RUNS)) {
    for (const event of EVENTS) await apply(await reload(bench.store, (await make(bench.store)).id), event, workerId);
  }
});

test("several events of one move are reduced one after the other and become a transition each", async () => {
  const run = await RUNS.running(bench.store);
  const events: readonly RunEvent[] = [{ type: "OwnerGone", reason: "lease_expired" }, { type: "Recovered" }];
  const [result] = await transition(bench.store, [{ run, events, actor: SWEEPER, reason: "silent" }]);
  expect(result).toMatchObject({ result: "accepted", run: { version: run.version + 2, state: { status: "queued" } } });
  const rows = await bench.sql(
    "select seq, from_status, to_status, event, actor_id, epoch, reason from holdpoint.transitions where run_id = $1 and seq > $2 order by seq",
    [run.id, run.version],
  );
  const same = { actor_id: "sweeper-1", epoch: 1, reason: "silent" };
  expect(rows).toEqual([
    { seq: 3, from_status: "running", to_status: "lost", event: "OwnerGone", ...same },
    { seq: 4, from_status: "lost", to_status: "queued", event: "Recovered", ...same },
  ]);
});

test("a transition is never written before the one that it follows", async () => {
  const run = await RUNS.running(bench.store);
  await stopClock(bench.url, new Date(AT.getTime() - 60_000));
  const move = { run, events: [{ type: "PauseRequested" }], actor: OPERATOR } as const;
  expect(await transitionOne(bench.store, move)).toMatchObject({
    result: "accepted",
    run: { updatedAtMs: run.updatedAtMs },
  });
  await stopClock(bench.url, AT);
  const times = await bench.sql("select at from holdpoint.transitions where run_id = $1 order by seq", [run.id]);
  expect(times.map((row) => row.at)).toEqual([AT, AT, AT]);
});
