import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import { familyOf, wakesParent } from "../src/plan-children.ts";
import { operatorHold } from "../src/rest.ts";
import type { Approval, Call, Child, ChildrenProperties, Step, StepBody } from "../src/step.ts";
import {
  aCall,
  aChild,
  aDenial,
  aFact,
  aLineEffect,
  anApproval,
  anInput,
  anOrder,
  aReply,
  aResult,
  BLOCKED,
  childRuns,
  endedWith,
  type InputPatch,
  LIMITS,
  NEEDS_APPROVAL,
  NOW_MS,
  PARTIAL,
  SUCCEEDED,
  steps,
  theStart,
} from "./builders.ts";

const GOOD = endedWith(SUCCEEDED, { refund: "re_1" });
const IN_PART = endedWith(PARTIAL);
const BLOCK = endedWith(BLOCKED);
const FAILED: Partial<Child> = { ended: true, status: "failed", endReason: "no_such_order" };
const CANCELLED: Partial<Child> = { ended: true, status: "cancelled", endReason: "aborted" };
const RETRY = anOrder("retry", "call_1");
const SKIP = anOrder("skip", "call_1");

function parentCall(effect: Partial<ChildrenProperties> = {}, patch: Partial<Call> = {}): Call {
  return aCall(1, { tool: "ask_departments", effect: childRuns(effect), retries: 0, ...patch });
}

interface Scene {
  readonly effect?: Partial<ChildrenProperties>;
  readonly call?: Partial<Call>;
  readonly children?: readonly Child[];
  readonly input?: InputPatch;
}

/** What a run does next whose model has asked for one call with children, after these steps. */
function nextOf(bodies: readonly StepBody[], { effect, call: patch, children = [], input }: Scene = {}) {
  const call = parentCall(effect, patch);
  const liveChildren = children.filter(({ ended }) => !ended).length;
  return plan(
    anInput({ calls: [call], steps: steps(aReply(["call_1"]), ...bodies), children, liveChildren, ...input }),
  );
}

/** Children of one try at the places 0, 1, 2 …, each with its own end. */
function family(...ends: readonly Partial<Child>[]): readonly Child[] {
  return ends.map((end, ordinal) => aChild(ordinal, end));
}

/** All of these children were started at once. */
function started(children: readonly Child[], scene: Scene = {}, ...more: readonly StepBody[]) {
  const start = theStart([...new Set(children.map(({ ordinal }) => ordinal))]);
  return nextOf([start, ...more], { ...scene, children });
}

function startOf(ordinals: readonly number[] | null, number = 1, approvalId: string | null = null) {
  return { do: "start_children", try: number, ordinals, approvalId };
}

function heldFor(reason: string) {
  return { do: "hold", hold: operatorHold(reason, "call_1"), requests: [] };
}

function waitsFor(principal: string, inMs = 3_600_000) {
  const waitingFor = { kind: "child", principal, subject: "call_1", reason: "child_running" };
  const hold = { kind: "dependency", waitingFor, deadline: { inMs }, onDeadline: "operator" };
  return { do: "hold", hold, requests: [] };
}

function toldAs(result: string, ...children: readonly unknown[]) {
  return { do: "write_result", result, output: { children } };
}

/** What the model is told of the child at this place. */
function told(ordinal: number, patch: Readonly<Record<string, unknown>>) {
  return { run: `run_${ordinal}`, agent: "clerk", outcome: null, reason: null, result: null, ...patch };
}

describe("plan, a call that starts child runs", () => {
  test("starts the first of them, with the whole call", () => {
    const call = parentCall();
    expect(nextOf([])).toEqual({ ...startOf(null), call });
  });

  test("starts none without the approval that it needs, and then with that", () => {
    const gated = parentCall({}, { verdict: NEEDS_APPROVAL });
    const after = (approvals: readonly Approval[]) =>
      nextOf([], { call: { verdict: NEEDS_APPROVAL }, input: { approvals } });
    expect(after([])).toMatchObject({ do: "hold", hold: { kind: "approval" }, requests: [{ call: gated }] });
    expect(after([anApproval(gated)])).toMatchObject({ do: "hold", hold: { kind: "approval" }, requests: [] });
    const approved = anApproval(gated, { state: "approved", validUntilMs: NOW_MS + 1 });
    expect(after([approved])).toMatchObject(startOf(null, 1, approved.id));
    expect(after([{ ...approved, state: "rejected" }])).toMatchObject({ do: "write_result", result: "rejected" });
  });

  test("starts none that an operator has forbidden, or for which the run has no time left", () => {
    const forbidden = nextOf([], { input: { denials: [aDenial("ask_departments")] } });
    expect(forbidden).toMatchObject({ do: "write_result", result: "denied", output: "NOT EXECUTED. It is off." });
    const late = nextOf([], { input: { limits: { ...LIMITS, wallMs: 5 }, workedMs: 5 } });
    expect(late).toEqual(heldFor("limit_wall_time"));
  });

  test("that needs none is over at once, and achieved what it was for", () => {
    expect(started([])).toMatchObject(toldAs("succeeded"));
    expect(started([], { effect: { wait: 1 } })).toMatchObject(toldAs("failed"));
  });

  test("is executed by nobody: what a service says is the children's business", () => {
    const services = [{ name: "orders", reason: "throttled", sinceMs: 0, untilMs: NOW_MS + 1 }] as const;
    expect(nextOf([], { input: { services } })).toMatchObject(startOf(null));
  });
});

describe("plan, children that run", () => {
  test("are waited for, one by its name and several by the first and a number", () => {
    expect(started(family({}))).toEqual(waitsFor("run_0"));
    expect(started(family(GOOD, {}, {}))).toEqual(waitsFor("run_1 and 1 more"));
    expect(started(family({}, {}, {}), { effect: { withinMs: 7 } })).toEqual(waitsFor("run_0 and 2 more", 7));
  });

  test("are started as places become free, under what the call was released with", () => {
    const start = theStart([0, 1], { total: 5 });
    const after = (...ends: readonly Partial<Child>[]) =>
      nextOf([start], { effect: { atOnce: 2 }, call: { verdict: NEEDS_APPROVAL }, children: family(...ends) });
    expect(after({}, {})).toEqual(waitsFor("run_0 and 1 more"));
    expect(after(GOOD, {})).toMatchObject(startOf([2]));
    expect(after({}, FAILED)).toMatchObject(startOf([2]));
    expect(after(BLOCK, CANCELLED)).toMatchObject(startOf([2, 3]));
  });

  test("are started no more once the tool is forbidden; those that live go on", () => {
    const denials = [aDenial("ask_departments")];
    const start = theStart([0], { total: 2 });
    const scene = { effect: { atOnce: 1 }, input: { denials } };
    expect(nextOf([start], { ...scene, children: family(GOOD) })).toEqual(heldFor("policy_changed"));
    expect(nextOf([start], { ...scene, children: family({}) })).toEqual(waitsFor("run_0"));
  });

  test("count as live until their end is counted on the parent's row", () => {
    expect(started(family({ status: "completed", outcome: SUCCEEDED }))).toEqual(waitsFor("run_0"));
  });

  test("are overtaken by nothing: neither by the next call nor by a message", () => {
    const calls = [parentCall(), aCall(2)];
    const input = { calls, unread: [aFact()], steps: steps(aReply(["call_1", "call_2"]), theStart([0])) };
    expect(plan(anInput({ ...input, children: family({}), liveChildren: 1 }))).toEqual(waitsFor("run_0"));
    expect(plan(anInput({ ...input, children: family(GOOD) }))).toMatchObject({ do: "write_result", call: calls[0] });
  });

  test("of other calls are other calls' affair", () => {
    const stray = aChild(1, { callId: "call_2" });
    expect(started([aChild(0, GOOD)], { input: { children: [aChild(0, GOOD), stray] } })).toMatchObject(
      toldAs("succeeded", told(0, { status: "completed", outcome: "succeeded", result: { refund: "re_1" } })),
    );
  });
});

describe("plan, children of which every one has to end", () => {
  test("are told with outcome, reason and result each, in their order", () => {
    expect(started(family(GOOD, IN_PART, FAILED).toReversed())).toMatchObject(
      toldAs(
        "partial",
        told(0, { status: "completed", outcome: "succeeded", result: { refund: "re_1" } }),
        told(1, { status: "completed", outcome: "partial", reason: "one of two orders" }),
        told(2, { status: "failed", reason: "no_such_order" }),
      ),
    );
  });

  test.each([
    ["all succeeded", "succeeded", [GOOD, GOOD]],
    ["one achieved a part", "partial", [GOOD, IN_PART]],
    ["one failed", "partial", [GOOD, FAILED]],
    ["one was cancelled", "partial", [CANCELLED, GOOD]],
    ["all achieved a part", "partial", [IN_PART, IN_PART]],
    ["one ended without an outcome", "partial", [GOOD, { ...GOOD, outcome: null }]],
    ["none achieved anything", "failed", [FAILED, CANCELLED]],
  ] as const)("end the call as what they achieved together: %s, %s", (_what, result, ends) => {
    expect(started(family(...ends))).toMatchObject({ do: "write_result", result });
  });

  test("hold the call for an operator where one is blocked, once all have ended", () => {
    expect(started(family(BLOCK, {}))).toEqual(waitsFor("run_1"));
    expect(started(family(BLOCK, GOOD))).toEqual(heldFor("child_blocked"));
  });

  test("are told as blocked where the tool says so", () => {
    const tell = { effect: { onBlocked: "tell" } } as const;
    const blocked = told(0, { status: "completed", outcome: "blocked", step: "find_order", reason: "no permission" });
    expect(started(family(BLOCK), tell)).toMatchObject(toldAs("blocked", blocked));
    expect(started(family(BLOCK, FAILED), tell)).toMatchObject({ result: "blocked" });
    expect(started(family(BLOCK, GOOD), tell)).toMatchObject({ result: "partial" });
  });
});

describe("plan, children that have failed", () => {
  const once = { call: { retries: 1 } };

  test("are started once more without a person's word, where the call has a try left", () => {
    const children = family(GOOD, FAILED, FAILED);
    expect(started(children, once)).toMatchObject(startOf([1, 2], 2));
    const again = [...children, aChild(1, { try: 2, ...GOOD }), aChild(2, { try: 2, ...FAILED })];
    expect(started(again, once, theStart([1, 2], { try: 2, total: 3 }))).toMatchObject({
      do: "write_result",
      result: "partial",
    });
  });

  test.each([
    ["was stopped by a person", CANCELLED, { do: "write_result", result: "failed" }],
    ["is blocked", BLOCK, heldFor("child_blocked")],
  ])("are left alone where another %s", (_what, other, next) => {
    expect(started(family(FAILED, other), once)).toMatchObject(next);
  });

  test("and have left no trace are a person's business", () => {
    expect(nextOf([theStart([0, 1])], { ...once, children: family(FAILED) })).toEqual(heldFor("backing_missing"));
  });
});

describe("plan, children of which some are enough", () => {
  const any = { effect: { wait: 1 } };
  const two = { effect: { wait: 2 } };

  test("are waited for until enough have achieved something", () => {
    expect(started(family({}, {}), any)).toEqual(waitsFor("run_0 and 1 more"));
    expect(started(family(FAILED, {}), any)).toEqual(waitsFor("run_1"));
    expect(started(family(GOOD, {}, {}), two)).toEqual(waitsFor("run_1 and 1 more"));
  });

  test("stop the rest before the call has its result, and each is asked once", () => {
    const children = family(GOOD, {}, { stopRequested: true });
    expect(started(children, any)).toMatchObject({ do: "stop_children", children: [children[1]] });
    const asked = family(GOOD, { stopRequested: true, status: "cancelling" });
    expect(started(asked, any)).toMatchObject(toldAs("succeeded", { run: "run_0" }, told(1, { status: "stopping" })));
  });

  test("ask none to stop that has ended, though its end has not been counted: it never would be marked", () => {
    const uncounted = family(GOOD, { status: "completed", outcome: SUCCEEDED });
    const second = told(1, { status: "completed", outcome: "succeeded" });
    expect(started(uncounted, any)).toMatchObject(toldAs("succeeded", { run: "run_0" }, second));
  });

  test("start no more of those that wait for a place", () => {
    const next = nextOf([theStart([0], { total: 9 })], { effect: { wait: 1, atOnce: 1 }, children: family(GOOD) });
    expect(next).toMatchObject({ do: "write_result", result: "succeeded" });
  });

  test("make a success only where enough have succeeded; more than enough spoils nothing", () => {
    expect(started(family(GOOD, IN_PART), any)).toMatchObject({ result: "succeeded" });
    expect(started(family(GOOD, IN_PART), two)).toMatchObject({ result: "partial" });
    expect(started(family(IN_PART, FAILED), any)).toMatchObject({ result: "partial" });
    expect(started(family(GOOD, FAILED), two)).toMatchObject({ result: "partial" });
    expect(started(family(GOOD), two)).toMatchObject({ result: "partial" });
    expect(started(family(FAILED, FAILED), any)).toMatchObject({ result: "failed" });
  });

  test("hold the call where a blocked one was needed, and only there", () => {
    expect(started(family(GOOD, BLOCK), any)).toMatchObject({ result: "succeeded" });
    expect(started(family(FAILED, BLOCK), any)).toEqual(heldFor("child_blocked"));
    expect(started(family(GOOD, BLOCK), two)).toEqual(heldFor("child_blocked"));
  });
});

describe("plan, children that an operator lets try again", () => {
  test("are those that achieved nothing, as a new try", () => {
    expect(started(family(BLOCK, GOOD, FAILED, IN_PART, CANCELLED), {}, RETRY)).toMatchObject(startOf([0, 2, 4], 2));
  });

  test("start no more than may live at once; the others follow", () => {
    const scene = { effect: { atOnce: 2 } };
    const blocked = [0, 1, 2].map((ordinal) => aChild(ordinal, BLOCK));
    expect(started(blocked, scene, RETRY)).toMatchObject(startOf([0, 1], 2));
    const again = [...blocked, aChild(0, { ...GOOD, try: 2 }), aChild(1, { try: 2 })];
    const bodies = [theStart([0, 1, 2]), RETRY, theStart([0, 1], { try: 2, total: 3 })];
    expect(nextOf(bodies, { ...scene, children: again })).toMatchObject(startOf([2], 2));
    const all = [...again.slice(0, 4), aChild(1, { ...GOOD, try: 2 }), aChild(2, { ...GOOD, try: 2 })];
    const last = theStart([2], { try: 2, total: 3 });
    expect(nextOf([...bodies, last], { ...scene, children: all })).toMatchObject({ result: "succeeded" });
  });

  test("count by their latest try, and are asked about anew", () => {
    const bodies = [theStart([0]), RETRY, theStart([0], { try: 2 })];
    const after = (...ends: readonly Partial<Child>[]) =>
      nextOf(bodies, { children: ends.map((end, index) => aChild(0, { try: index + 1, ...end })) });
    expect(after(BLOCK, {})).toEqual(waitsFor("run_0"));
    expect(after(BLOCK, GOOD)).toMatchObject({ result: "succeeded" });
    expect(after(BLOCK, BLOCK)).toEqual(heldFor("child_blocked"));
  });

  test("are judged as every start: by what the approval is worth now, and by what is forbidden", () => {
    const gated = parentCall({}, { verdict: NEEDS_APPROVAL });
    const spent = anApproval(gated, { state: "spent", validUntilMs: NOW_MS + 1 });
    const after = (approvals: readonly Approval[], input: InputPatch = {}) =>
      started(family(BLOCK), { call: { verdict: NEEDS_APPROVAL }, input: { approvals, ...input } }, RETRY);
    expect(after([spent])).toMatchObject(startOf([0], 2, spent.id));
    const lapsed = { ...spent, validUntilMs: NOW_MS };
    expect(after([lapsed])).toMatchObject({ do: "hold", hold: { kind: "approval" }, requests: [{ call: gated }] });
    expect(after([spent], { denials: [aDenial("ask_departments")] })).toEqual(heldFor("policy_changed"));
    const late = { limits: { ...LIMITS, wallMs: 1 }, workedMs: 2 };
    expect(after([spent], late)).toEqual(heldFor("limit_wall_time"));
  });

  test("leave the call with what was achieved before where the new try is turned down", () => {
    const gated = parentCall({}, { verdict: NEEDS_APPROVAL });
    const old = anApproval(gated, { state: "spent", validUntilMs: NOW_MS });
    const after = (state: Approval["state"], patch: Partial<Approval> = {}) =>
      started(
        family(BLOCK, GOOD),
        { call: { verdict: NEEDS_APPROVAL }, input: { approvals: [old, anApproval(gated, { state, ...patch })] } },
        RETRY,
      );
    for (const state of ["rejected", "expired", "skipped"] as const)
      expect(after(state)).toMatchObject(toldAs("partial", { run: "run_0" }, { run: "run_1" }));
    expect(after("answered", { answer: "by hand" })).toMatchObject({ result: "answered", output: "by hand" });
    const denied = started(family(FAILED, BLOCK), { input: { denials: [aDenial("ask_departments")] } }, RETRY);
    expect(denied).toMatchObject(toldAs("blocked", { run: "run_0" }, { run: "run_1" }));
  });

  test("are let by a word about this call that came since", () => {
    expect(started(family(BLOCK), {}, anOrder("retry", null))).toEqual(heldFor("child_blocked"));
    expect(nextOf([RETRY, theStart([0])], { children: family(BLOCK) })).toEqual(heldFor("child_blocked"));
    const order = aFact(RETRY);
    expect(started(family(BLOCK), { input: { unread: [order] } })).toEqual({ do: "read_facts", facts: [order] });
  });

  test("are none where more were needed than there are", () => {
    expect(started(family(GOOD), { effect: { wait: 2 } }, RETRY)).toMatchObject(startOf([], 2));
  });
});

describe("plan, children that are not there any more", () => {
  test("are shown to an operator once the others have ended, and never started by themselves", () => {
    const bodies = [theStart([0, 1])];
    expect(nextOf(bodies, { children: [aChild(0)] })).toEqual(waitsFor("run_0"));
    for (const onBlocked of ["operator", "tell"] as const)
      expect(nextOf(bodies, { effect: { onBlocked }, children: [aChild(0, BLOCK)] })).toEqual(
        heldFor("backing_missing"),
      );
    expect(nextOf(bodies, { effect: { wait: 1 }, children: [aChild(0, GOOD)] })).toMatchObject({ result: "succeeded" });
  });

  test("are found among all starts, each place by its last", () => {
    const bodies = [theStart([0], { total: 2 }), theStart([1], { total: 2 })];
    expect(nextOf(bodies, { children: [aChild(1, GOOD)] })).toEqual(heldFor("backing_missing"));
    const again = [theStart([0]), RETRY, theStart([0], { try: 2 })];
    expect(nextOf(again, { children: [aChild(0, { ...BLOCK, try: 1 })] })).toEqual(heldFor("backing_missing"));
    expect(nextOf(again, { children: [aChild(0, { ...GOOD, try: 2 })] })).toMatchObject({ result: "succeeded" });
  });

  test("are done again by an operator's word, as those that achieved nothing", () => {
    expect(nextOf([theStart([0, 1]), RETRY], { children: [aChild(0, GOOD)] })).toMatchObject(startOf([1], 2));
  });
});

describe("plan, a call with children that an operator skips", () => {
  const note = "An operator passed over what is left of this call: go on with what these runs achieved.";

  test("stops those that live, and then tells what they all came to", () => {
    const live = family(GOOD, BLOCK, {});
    expect(started(live, {}, SKIP)).toMatchObject({ do: "stop_children", children: [live[2]] });
    const asked = family(GOOD, BLOCK, { stopRequested: true });
    const children = [
      { outcome: "succeeded" },
      { outcome: "blocked", step: "find_order", reason: "no permission" },
      { status: "stopping", outcome: null },
    ];
    expect(started(asked, {}, SKIP)).toMatchObject({
      do: "write_result",
      result: "skipped",
      output: { note, children },
    });
  });

  test("tells the truth where they have achieved what they were for before the word came", () => {
    expect(started(family(GOOD, GOOD), {}, SKIP)).toMatchObject({ result: "succeeded" });
    expect(started(family(IN_PART, {}), { effect: { wait: 1 } }, SKIP)).toMatchObject({ do: "stop_children" });
  });

  test("was not executed where none had been started", () => {
    const output = "NOT EXECUTED. An operator skipped this call: go on without it.";
    expect(nextOf([SKIP])).toMatchObject({ do: "write_result", result: "skipped", output });
  });
});

describe("plan, a call with children that is equal to an earlier one", () => {
  const repeated = (result: Parameters<typeof aResult>[1], effect: Partial<ChildrenProperties> = {}) => {
    const same = { tool: "ask_departments", argsHash: "same", effect: childRuns(effect) };
    const calls = [aCall(1, same), aCall(2, same)];
    return plan(anInput({ calls, steps: steps(aReply(["call_1", "call_2"]), aResult("call_1", result)) }));
  };

  test.each(["succeeded", "partial", "answered", "answered_from_record"] as const)(
    "is answered from the record where that one %s",
    (result) => {
      const answer = { do: "write_result", result: "answered_from_record", output: { done: "call_1" } };
      expect(repeated({ result })).toMatchObject(answer);
    },
  );

  test.each(["blocked", "failed"] as const)("is done where that one achieved nothing: %s", (result) => {
    expect(repeated({ result })).toMatchObject(startOf(null));
  });

  test("gets the answer of one that was skipped, by reference", () => {
    const output = "NOT EXECUTED. This is the answer to an equal call before it.";
    expect(repeated({ result: "skipped", output: { children: [] } })).toMatchObject({ result: "skipped", output });
  });

  test("is another piece of work where the tool says so", () => {
    for (const result of ["succeeded", "partial", "skipped"] as const)
      expect(repeated({ result }, { equalCallsAreDistinct: true })).toMatchObject(startOf(null));
  });

  test("is found in an earlier run of the line", () => {
    const lineEffects = [aLineEffect(parentCall(), { result: "partial" })];
    expect(nextOf([], { input: { lineEffects } })).toMatchObject({ result: "answered_from_record", output: "re_1" });
  });

  test("is not asked about twice in one turn", () => {
    const same = { tool: "ask_departments", argsHash: "same", effect: childRuns(), verdict: NEEDS_APPROVAL };
    const asked = (patch: Partial<Call>) => {
      const calls = [aCall(1, { ...same, ...patch }), aCall(2, { ...same, ...patch })];
      const next = plan(anInput({ calls, steps: steps(aReply(["call_1", "call_2"])) }));
      return next.do === "hold" ? next.requests.map(({ call }) => call.id) : next.do;
    };
    expect(asked({})).toEqual(["call_1"]);
    expect(asked({ effect: childRuns({ equalCallsAreDistinct: true }) })).toEqual(["call_1", "call_2"]);
  });
});

describe("plan, the end of a run with children", () => {
  const answered = [theStart([0, 1]), aResult("call_1"), aReply([], { turn: 2, outcome: SUCCEEDED })];

  test("waits until those that were asked to stop have stopped", () => {
    const children = family(GOOD, { stopRequested: true });
    const waitingFor = { kind: "child", principal: "run_1", subject: null, reason: "children_stopping" };
    expect(nextOf(answered, { children })).toEqual({
      do: "hold",
      hold: { kind: "dependency", waitingFor, deadline: { inMs: 86_400_000 }, onDeadline: "operator" },
      requests: [],
    });
    expect(nextOf(answered, { children: family(GOOD, CANCELLED) })).toEqual({
      do: "end",
      status: "completed",
      outcome: SUCCEEDED,
    });
  });

  test("goes by the count on its row, whichever children were loaded", () => {
    const next = nextOf(answered, { children: [], input: { liveChildren: 1 } });
    expect(next).toMatchObject({ do: "hold", hold: { waitingFor: { principal: "child runs" } } });
  });

  test("comes after what was said meanwhile", () => {
    const input = { unread: [aFact()] };
    expect(nextOf(answered, { children: family(GOOD, { stopRequested: true }), input })).toMatchObject({
      do: "read_facts",
    });
  });
});

describe("familyOf", () => {
  const of = (bodies: readonly StepBody[], children: readonly Child[] = []) => {
    const rows: readonly Step[] = steps(...bodies);
    return familyOf({ steps: rows, children }, "call_1");
  };

  test("is none before the first start", () => {
    expect(of([theStart([0], { callId: "call_2" })], [aChild(0)])).toBeNull();
  });

  test("has the latest child of each place, in the order of the places", () => {
    const [first, second, other] = [aChild(0, { ...FAILED }), aChild(0, { try: 2 }), aChild(1, GOOD)];
    const bodies = [theStart([0, 1]), theStart([0], { try: 2, total: 2 })];
    const latest = { total: 2, try: 2, children: [second, other], vanished: [] };
    expect(of(bodies, [second, other, first])).toEqual(latest);
    expect(of(bodies, [first, other, second])).toEqual(latest);
  });
});

describe("wakesParent", () => {
  const waiting = { kind: "child", principal: "run_0", subject: "call_1", reason: "child_running" } as const;
  const hold = { kind: "dependency", waitingFor: waiting, deadline: { inMs: 1 }, onDeadline: "operator" } as const;
  const effect = childRuns({ atOnce: 2 });
  const after = (...ends: readonly Partial<Child>[]) => {
    const [children, bodies] = [family(...ends), [theStart([0, 1], { total: 3 })]];
    return { effect, family: familyOf({ steps: steps(...bodies), children }, "call_1"), liveChildren: 1 };
  };

  test("says so where a place has become free, or where the wait is over", () => {
    expect(wakesParent(hold, after({}, {}))).toBe(false);
    expect(wakesParent(hold, after({}, BLOCK))).toBe(true);
    expect(wakesParent(hold, after({}, {}, GOOD))).toBe(false);
    expect(wakesParent(hold, after(GOOD, FAILED, GOOD))).toBe(true);
    expect(wakesParent(hold, { ...after({}, GOOD), effect: { ...effect, wait: 1 } })).toBe(true);
  });

  test("says so of whoever waits until all have stopped, with the last", () => {
    const stopping = { ...hold, waitingFor: { ...waiting, subject: null, reason: "children_stopping" } };
    expect(wakesParent(stopping, { effect: null, family: null, liveChildren: 1 })).toBe(false);
    expect(wakesParent(stopping, { effect: null, family: null, liveChildren: 0 })).toBe(true);
  });

  test("says so where it can't be told what the parent waits for: asking once too often strands nobody", () => {
    expect(wakesParent(hold, { ...after({}, {}), effect: null })).toBe(true);
    expect(wakesParent(hold, { ...after({}, {}), family: null })).toBe(true);
  });

  test("takes back an operator's question why they take so long, once they have all ended", () => {
    const asked = operatorHold("deadline_passed", "call_1");
    expect(wakesParent(asked, after(GOOD, {}, GOOD))).toBe(false);
    expect(wakesParent(asked, after(GOOD, FAILED, GOOD))).toBe(true);
    expect(wakesParent(asked, { ...after(GOOD, GOOD, GOOD), effect: null })).toBe(false);
  });

  test("wakes nobody who waits for something else", () => {
    const nothingLeft = { ...after(GOOD, GOOD, GOOD), liveChildren: 0 };
    expect(wakesParent(null, nothingLeft)).toBe(false);
    expect(wakesParent(operatorHold("child_blocked", "call_1"), nothingLeft)).toBe(false);
  });
});
