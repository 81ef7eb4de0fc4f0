import { advance, holdOf } from "@holdpoint/core";
import { moveClock } from "@holdpoint/testkit";
import { afterEach, beforeAll, expect, test } from "vitest";
import {
  changeSchedule,
  commitSteps,
  decideApproval,
  findRetentionDue,
  findViolations,
  fireSlot,
  grantRoles,
  loadRun,
  newId,
  type Run,
  registerAgent,
  removeLeftovers,
  removeRuns,
  requestCancel,
  type Store,
  startNow,
  submitRun,
} from "../src/index.ts";
import { aDecision, by } from "./a-decision.ts";
import { AGENT, aCall, aCommit, aReply, aWorker, claim, OPERATOR } from "./a-run.ts";
import { aSchedule, HOUR_MS, seen } from "./a-schedule.ts";
import { aRequest, moved, ownerOf, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const NINE = Date.UTC(2026, 0, 5, 9);
const MANAGERS = ["olga", "mallory", "otto", "mona"] as const;

beforeAll(async () => {
  await registerAgent(bench.store, { ...AGENT, tools: [] });
  await grantRoles(bench.store, { grants: MANAGERS.map((user) => ({ user, role: "manager" })), by: "test" });
});

afterEach(() => moveClock(bench.url, 0));

/** A schedule of olga's that mallory has changed, and otto after her. */
async function changedByMany(name: string): Promise<void> {
  const { agent, timing, overlap, catchUp, goal } = await aSchedule(bench.store, { name, slotAtMs: NINE, by: "olga" });
  const change = (more: { goal: string }, who: string) =>
    changeSchedule(bench.store, {
      name,
      by: who,
      change: () => ({ definition: { agent, timing, overlap, catchUp, ...more }, nextSlotAtMs: NINE }),
    });
  await change({ goal: "refund everything" }, "mallory");
  await change({ goal }, "otto");
}

async function fire(store: Store, name: string): Promise<Run> {
  const due = { slotAtMs: NINE, missed: [], nextSlotAtMs: NINE + HOUR_MS };
  const fired = await fireSlot(store, await seen(store, name), due);
  if (fired.result !== "started") throw new Error(fired.result);
  return fired.run;
}

/** Lets a run ask for the release of a call, naming as excluded only whom its row names; gives what each manager is answered. */
async function answersTo(run: Run): Promise<Readonly<Record<string, string>>> {
  const call = aCall();
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  const planned = await took(bench.store, claimed, { steps: [aReply([call])], calls: [call] });
  const request = aRequest(call, { excluded: [run.requester, run.submittedBy] });
  const hold = holdOf([{ ...request, level: 0, extended: false, deadlineMs: planned.nowMs + 60_000 }]);
  const held = await moved(bench.store, {
    run: planned.run,
    actor: ownerOf(planned),
    events: [{ type: "Held", hold }],
    writes: { requests: [request] },
  });
  const answers: Record<string, string> = {};
  for (const user of MANAGERS) {
    const decision = { ...aDecision({ run: held, request }), ...by({ kind: "approver", id: user }) };
    const decided = await decideApproval(bench.store, decision);
    answers[user] = decided.result === "refused" ? decided.rule : decided.result;
  }
  return answers;
}

const NONE_OF_THEM = { olga: "own_request", mallory: "own_request", otto: "own_request", mona: "accepted" };

test("nobody who has created or changed a schedule approves what its run asks for", async () => {
  await changedByMany("many-hands");
  expect(await answersTo(await fire(bench.store, "many-hands"))).toEqual(NONE_OF_THEM);
});

test("nor in a run that does it again", async () => {
  await changedByMany("done-again");
  const run = await fire(bench.store, "done-again");
  await requestCancel(bench.store, { runId: run.id, actor: OPERATOR, reason: null });
  const again = await submitRun(bench.store, {
    sessionId: run.sessionId,
    agent: AGENT,
    goal: null,
    retryOf: run.id,
    actor: { kind: "operator", id: "nina" },
  });
  if (again.result !== "submitted") throw new Error(again.result);
  expect(await answersTo(again.run)).toEqual(NONE_OF_THEM);
});

test("nor does whoever has started it by hand", async () => {
  await aSchedule(bench.store, { name: "pressed", slotAtMs: NINE, by: "olga" });
  const now = await startNow(bench.store, { name: "pressed", by: "otto" });
  if (now.result !== "started") throw new Error(now.result);
  expect(await answersTo(now.run)).toEqual({
    olga: "own_request",
    mallory: "accepted",
    otto: "own_request",
    mona: "already_decided",
  });
});

test("nor in a run that the schedule's run has started, whoever of them it is", async () => {
  await changedByMany("delegating");
  const run = await fire(bench.store, "delegating");
  const call = aCall({
    effect: {
      kind: "children",
      wait: "all",
      atOnce: 1,
      onBlocked: "tell",
      equalCallsAreDistinct: false,
      withinMs: HOUR_MS,
    },
  });
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  const childId = newId();
  const planned = await took(bench.store, claimed, { steps: [aReply([call])], calls: [call] });
  const body = { kind: "children_started", callId: call.id, try: 1, ordinals: [0], total: 1 } as const;
  const checkpoint = advance(planned.run.checkpoint, { seq: planned.run.stepSeq + 1, body }, planned.calls);
  const start = {
    body,
    argsHash: call.argsHash,
    approvalId: null,
    policyRevision: planned.policyRevision,
    children: [{ id: childId, sessionId: newId(), ordinal: 0, agent: AGENT, goal: "refund one", input: null }],
    treeLimit: 10,
  };
  const committed = await commitSteps(bench.store, [{ ...aCommit(planned, { checkpoint }), start }]);
  expect(committed).toMatchObject([{ result: "taken", started: true }]);
  const child = await loadRun(bench.store, childId);
  if (child === null) throw new Error("no child");
  expect(await answersTo(child.run)).toEqual(NONE_OF_THEM);
});

test("nor in a later run of the conversation that it began, although its own run is past its retention", async () => {
  await changedByMany("long-ago");
  const first = await fire(bench.store, "long-ago");
  await requestCancel(bench.store, { runId: first.id, actor: OPERATOR, reason: null });
  const later = await submitRun(bench.store, {
    sessionId: first.sessionId,
    agent: AGENT,
    goal: "go on with it",
    actor: { kind: "requester", id: "olga" },
  });
  if (later.result !== "submitted") throw new Error(later.result);
  await moveClock(bench.url, 31 * 24 * HOUR_MS);
  const { removed } = await removeRuns(bench.store, await findRetentionDue(bench.store, 100));
  expect(removed.flatMap(({ runIds }) => runIds)).toContain(first.id);
  expect(await findViolations(bench.store)).toEqual([]);
  expect(await answersTo(later.run)).toEqual(NONE_OF_THEM);
  await requestCancel(bench.store, { runId: later.run.id, actor: OPERATOR, reason: null });
  await moveClock(bench.url, 62 * 24 * HOUR_MS);
  await removeRuns(bench.store, await findRetentionDue(bench.store, 100));
  await removeLeftovers(bench.store, 100);
  const slots = "select 1 from holdpoint.schedule_slots where session_id = $1";
  expect(await bench.sql(slots, [first.sessionId])).toEqual([]);
});
