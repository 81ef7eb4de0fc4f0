import { describe, expect, test } from "vitest";
import { advance, EMPTY_CHECKPOINT, nextInWords } from "../src/checkpoint.ts";
import { plan } from "../src/plan.ts";
import { wakesParent } from "../src/plan-children.ts";
import { operatorHold } from "../src/rest.ts";
import { MIGRATION_SUBJECT } from "../src/run-totals.ts";
import type { Call, ResultKind, StepBody } from "../src/step.ts";
import {
  aCall,
  aChild,
  aClosedService,
  aFact,
  anApproval,
  anAttempt,
  anEffect,
  anInput,
  anOrder,
  aResult,
  BLOCKED,
  childRuns,
  endedWith,
  type InputPatch,
  LIMITS,
  NEEDS_APPROVAL,
  NOW_MS,
  SUCCEEDED,
  steps,
  theStart,
} from "./builders.ts";

const WORK: Partial<Call> = { tool: "ask_departments", effect: childRuns() };
const TIMER: Partial<Call> = { tool: "wait_a_week", effect: { kind: "timer" } };

function theNodes(callIds: readonly string[], turn = 1): Extract<StepBody, { kind: "nodes_started" }> {
  const nodes = callIds.map((id) => ({ id, node: `node_of_${id}`, round: 1, item: null, settled: null }));
  return { kind: "nodes_started", turn, callIds, nodes };
}

/** What a run does next whose graph has made these calls in its first turn, after these steps. */
function nextOf(calls: readonly Call[], bodies: readonly StepBody[] = [], patch: InputPatch = {}) {
  const history = steps(theNodes(calls.map(({ id }) => id)), ...bodies);
  return plan(anInput({ isGraph: true, calls, steps: history, ...patch }));
}

function timerSet(callId: string, dueAtMs: number): StepBody {
  return { kind: "timer_set", callId, dueAtMs };
}

/** What the run waits for if the graph starts nothing. */
function waitingOf(next: ReturnType<typeof plan>) {
  if (next.do !== "decide") throw new Error(`The graph is not asked: ${next.do}`);
  if (next.waiting?.do === "poll") throw new Error("It asks what has become of an effect");
  return next.waiting;
}

describe("plan, a run whose turns a graph decides", () => {
  test("asks the graph first, and again after every turn", () => {
    expect(plan(anInput({ isGraph: true }))).toEqual({ do: "decide", turn: 1, waiting: null });
    expect(nextOf([aCall(1)], [aResult("call_1")])).toEqual({ do: "decide", turn: 2, waiting: null });
    expect(nextOf([], [theNodes([], 2)])).toEqual({ do: "decide", turn: 3, waiting: null });
  });

  test("does every open call that can go on, whatever those before it wait for", () => {
    const calls = [aCall(1, WORK), aCall(2, TIMER), aCall(3)];
    const waiting = [theStart([0]), timerSet("call_2", NOW_MS + 9)];
    const input = { children: [aChild(0)], liveChildren: 1 };
    expect(nextOf(calls, waiting, input)).toMatchObject({ do: "execute", call: calls[2] });
    expect(nextOf(calls, [theStart([0])], input)).toMatchObject({ do: "set_timer", call: calls[1] });
    const ended = { children: [aChild(0, endedWith(SUCCEEDED))] };
    expect(nextOf(calls, waiting, ended)).toMatchObject({ do: "write_result", call: calls[0], result: "succeeded" });
  });

  test("lets a call that is the same piece of work as an open one wait for that one's record", () => {
    const calls = [aCall(1, WORK), aCall(2, WORK), aCall(3, WORK)];
    const input = { children: [aChild(0)], liveChildren: 1 };
    const equal = calls.map((call, index) => (index === 2 ? call : { ...call, argsHash: "equal" }));
    const waiting = nextOf(equal, [theStart([0])], input);
    expect(waiting).toMatchObject({ do: "start_children", call: { id: "call_3" } });
    const done = [theStart([0]), aResult("call_1")];
    expect(nextOf(equal, done)).toMatchObject({
      do: "write_result",
      call: { id: "call_2" },
      result: "answered_from_record",
    });
    const distinct = equal.map((call) => ({ ...call, effect: childRuns({ equalCallsAreDistinct: true }) }));
    expect(nextOf(distinct, [theStart([0])], input)).toMatchObject({ do: "start_children", call: { id: "call_2" } });
  });

  test("has the calls of all turns open that have no result", () => {
    const calls = [aCall(1), aCall(2)];
    const history = steps(theNodes(["call_1"]), theNodes(["call_2"], 2), aResult("call_1"));
    expect(plan(anInput({ isGraph: true, calls, steps: history }))).toMatchObject({ do: "execute", call: calls[1] });
  });

  test("lets a person decide before anything else goes on", () => {
    const calls = [aCall(1, WORK), aCall(2)];
    const children = [aChild(0, endedWith(BLOCKED))];
    const held = { do: "hold", hold: operatorHold("child_blocked", "call_1"), requests: [] };
    expect(nextOf(calls, [theStart([0])], { children })).toEqual(held);
  });

  test("settles what is open and takes an operator's word first, and reads the rest before it asks the graph", () => {
    const [attempt, order, message] = [anAttempt("call_1"), aFact(anOrder("retry", null)), aFact()];
    expect(nextOf([aCall(1)], [], { openAttempts: [attempt] })).toMatchObject({ do: "settle_attempt", attempt });
    expect(nextOf([aCall(1)], [], { unread: [message, order] })).toEqual({ do: "read_facts", facts: [order] });
    expect(nextOf([aCall(1)], [], { unread: [message] })).toMatchObject({ do: "execute" });
    const read = { do: "read_facts", facts: [message] };
    expect(nextOf([aCall(1)], [aResult("call_1")], { unread: [message] })).toEqual(read);
  });

  test("asks no more often than its limits allow; a retry grants them once more", () => {
    const limits = { ...LIMITS, turns: 1 };
    const held = { do: "hold", hold: operatorHold("limit_turns", null), requests: [] };
    expect(nextOf([], [], { limits })).toEqual(held);
    expect(nextOf([], [anOrder("retry", null)], { limits })).toMatchObject({ do: "decide", turn: 2 });
    const late = { limits: { ...LIMITS, wallMs: 1 }, workedMs: 1 };
    expect(nextOf([], [], late)).toMatchObject({ hold: { waitingFor: { reason: "limit_wall_time" } } });
  });
});

describe("plan, what a graph's run waits for", () => {
  test("is the only thing that it waits for, as it is", () => {
    const waiting = waitingOf(nextOf([aCall(1, TIMER)], [timerSet("call_1", NOW_MS + 9)]));
    expect(waiting).toMatchObject({
      hold: { waitingFor: { kind: "timer", subject: "call_1" }, deadline: { at: NOW_MS + 9 } },
    });
  });

  test("is the first of several deadlines", () => {
    const calls = [aCall(1, TIMER), aCall(2, TIMER)];
    const set = [timerSet("call_1", NOW_MS + 9), timerSet("call_2", NOW_MS + 5)];
    const timer = { kind: "timer", principal: "a timer", subject: null, reason: "timer" };
    expect(waitingOf(nextOf(calls, set))?.hold).toEqual({
      kind: "dependency",
      waitingFor: timer,
      deadline: { at: NOW_MS + 5 },
      onDeadline: "continue",
    });
  });

  test("is children wherever some are among it: each end of one wakes the run", () => {
    const calls = [aCall(1, TIMER), aCall(2, WORK), aCall(3, WORK)];
    const set = [timerSet("call_1", NOW_MS + 9)];
    const starts = [theStart([0], { callId: "call_2" }), theStart([0], { callId: "call_3" })];
    const children = ["call_2", "call_3"].map((callId) => aChild(0, { callId, id: `child_of_${callId}` }));
    const hold = waitingOf(nextOf(calls, [...set, ...starts], { children, liveChildren: 2 }))?.hold ?? null;
    expect(hold).toMatchObject({
      waitingFor: { kind: "child", subject: null, reason: "child_running" },
      deadline: { at: NOW_MS + 9 },
      onDeadline: "continue",
    });
    expect(wakesParent(hold, { effect: null, family: null, liveChildren: 1 })).toBe(true);
  });

  test("is counted from now where a hold says how long", () => {
    const closed = aClosedService({ untilMs: NOW_MS + 50 });
    const calls = [aCall(1), aCall(2, { effect: childRuns({ withinMs: 7 }) })];
    const input = { services: [closed], children: [aChild(0, { callId: "call_2" })], liveChildren: 1 };
    const hold = waitingOf(nextOf(calls, [theStart([0], { callId: "call_2" })], input))?.hold;
    expect(hold).toMatchObject({ waitingFor: { kind: "child" }, deadline: { inMs: 7 }, onDeadline: "operator" });
  });

  test("is a person's decision when nothing else is under way", () => {
    const gated = aCall(1, { verdict: NEEDS_APPROVAL });
    expect(waitingOf(nextOf([gated]))).toMatchObject({ hold: { kind: "approval" }, requests: [{ call: gated }] });
    const approvals = [anApproval(gated)];
    expect(waitingOf(nextOf([gated], [], { approvals }))).toMatchObject({ hold: { kind: "approval" }, requests: [] });
    const both = nextOf([gated, aCall(2, TIMER)], [timerSet("call_2", NOW_MS + 9)]);
    expect(waitingOf(both)).toMatchObject({ hold: { waitingFor: { kind: "timer", subject: "call_2" } } });
  });
});

describe("a graph's turn", () => {
  test("opens its calls beside those that are open, and names what it has completed", () => {
    const first = advance(EMPTY_CHECKPOINT, { seq: 1, body: theNodes(["call_1"]) }, []);
    expect(first).toMatchObject({ stepSeq: 1, turn: 1, openCalls: 1, lastCompleted: null });
    const settled = { state: "done", output: null } as const;
    const gate = { id: "n1", node: "policy_gate", round: 1, item: null, settled };
    const body = { ...theNodes(["call_2"], 2), nodes: [gate] };
    expect(advance(first, { seq: 2, body }, [])).toMatchObject({
      turn: 2,
      openCalls: 2,
      lastCompleted: "policy_gate",
    });
  });

  test("counts its open calls, however many they are", () => {
    const ids = Array.from({ length: 20 }, (_, index) => `call_${index}`);
    expect(advance(EMPTY_CHECKPOINT, { seq: 1, body: theNodes(ids) }, []).openCalls).toBe(ids.length);
  });

  test("is announced in words", () => {
    expect(nextInWords({ do: "decide", turn: 3, waiting: null })).toBe("ask the graph what is ready, turn 3");
  });
});

describe("plan, an effect of a graph that the other side settles in its own time", () => {
  const effect = anEffect({ settlement: { everyMs: 1_000, withinMs: 9_000_000 }, equalCallsAreDistinct: true });
  const accepted = { kind: "effect_pending", callId: "call_1", output: "pending" } as const;
  const poll = { do: "poll", call: { id: "call_1" } };

  test("keeps nothing from going on that is open beside it, and nothing from starting", () => {
    const calls = [aCall(1, { effect }), aCall(2)];
    expect(nextOf(calls, [accepted])).toMatchObject({ do: "execute", call: { id: "call_2" } });
    const next = nextOf(calls, [accepted, aResult("call_2")]);
    expect(next).toMatchObject({ do: "decide", waiting: poll });
    expect(next).not.toHaveProperty("waiting.beside");
  });

  test("is asked about at once where the other side has reported something, and before a limit ends the run's turns", () => {
    const unread = [aFact({ kind: "callback", callId: "call_1" })];
    expect(nextOf([aCall(1, { effect })], [accepted], { unread })).toMatchObject(poll);
    const limits = { ...LIMITS, turns: 1 };
    expect(nextOf([aCall(1, { effect })], [accepted], { limits })).toMatchObject(poll);
  });

  test("is waited for together with what is open beside it, but for people", () => {
    const calls = [aCall(1, { effect }), aCall(2, TIMER)];
    const next = nextOf(calls, [accepted, timerSet("call_2", NOW_MS + 9)]);
    expect(next).toMatchObject({ waiting: { ...poll, beside: { waitingFor: { kind: "timer" } } } });
    const asking = [aCall(1, { effect }), aCall(2, { verdict: NEEDS_APPROVAL })];
    expect(nextOf(asking, [accepted])).not.toHaveProperty("waiting.beside");
  });
});

describe("plan, a call of a graph that is equal to one before it", () => {
  const nodes = (tool: Partial<Call>) => [
    aCall(1, { argsHash: "same", ...tool }),
    aCall(2, { argsHash: "same", turn: 2, ...tool }),
  ];
  const after = (tool: Partial<Call>, result: ResultKind) => {
    const history = steps(theNodes(["call_1"]), aResult("call_1", { result }), theNodes(["call_2"], 2));
    return plan(anInput({ isGraph: true, calls: nodes(tool), steps: history }));
  };

  test.each(["rejected", "expired", "skipped"] as const)("is asked for anew where that one was %s", (result) => {
    expect(after({ verdict: NEEDS_APPROVAL }, result)).toMatchObject({ do: "decide", waiting: { requests: [{}] } });
    expect(after({ effect: anEffect() }, result)).toMatchObject({ do: "execute", call: { id: "call_2" } });
  });

  test("is not done again where that one has happened, and names the artifact that has the whole", () => {
    const happened: StepBody = { ...aResult("call_1"), artifact: "sha" };
    const history = steps(theNodes(["call_1"]), happened, theNodes(["call_2"], 2));
    const next = plan(anInput({ isGraph: true, calls: nodes({ effect: anEffect() }), steps: history }));
    expect(next).toMatchObject({ do: "write_result", result: "answered_from_record", artifact: "sha" });
  });

  test("is a person's business where nobody knows what has become of that one", () => {
    const next = after({ effect: anEffect() }, "not_established");
    expect(next).toEqual({ do: "hold", hold: operatorHold("equal_effect_unknown", "call_2"), requests: [] });
  });
});

describe("plan, a run that an operator wants to go on in another version", () => {
  const wanted: StepBody = { kind: "migration", version: "2", by: "otto" };

  test("reads that before anything else, and has it checked before its calls go on", () => {
    const fact = aFact(wanted);
    expect(nextOf([aCall(1)], [], { unread: [fact] })).toEqual({ do: "read_facts", facts: [fact] });
    expect(nextOf([aCall(1)], [wanted])).toEqual({ do: "migrate", version: "2" });
  });

  test("goes on once it goes by that version, or where that is passed over", () => {
    expect(nextOf([aCall(1)], [wanted], { version: "2" })).toMatchObject({ do: "execute" });
    expect(nextOf([aCall(1)], [wanted, anOrder("skip", MIGRATION_SUBJECT)])).toMatchObject({ do: "execute" });
    expect(nextOf([aCall(1)], [wanted, anOrder("retry", MIGRATION_SUBJECT)])).toMatchObject({ do: "migrate" });
    const again = nextOf([aCall(1)], [wanted, anOrder("skip", MIGRATION_SUBJECT), { ...wanted, version: "3" }]);
    expect(again).toEqual({ do: "migrate", version: "3" });
  });
});
