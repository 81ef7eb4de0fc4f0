import { describe, expect, test } from "vitest";
import type { RunEvent } from "../src/event.ts";
import { reduce } from "../src/reduce.ts";
import { DEFAULT_DEADLINES, NOW, type RunState, submitted } from "../src/state.ts";
import { isTerminal, STATUSES } from "../src/status.ts";
import {
  deadlinePassed,
  decided,
  ESCALATED_HOLD,
  effectSettled,
  factArrived,
  operatorDecided,
  raiserOf,
} from "./all-events.ts";
import { anUnknownAtOperator, aRun, HOLDS, SUCCEEDED } from "./builders.ts";
import { violations } from "./violations.ts";

const CLAIMED: RunEvent = { type: "Claimed", owner: "worker_2" };
const GONE: RunEvent = { type: "OwnerGone", reason: "wedged" };
const DEADLINE = deadlinePassed(null);
const COMPLETED: RunEvent = { type: "Ended", status: "completed", outcome: SUCCEEDED, reason: null };

/** What `ESCALATED_HOLD` makes of a hold. */
const ESCALATED: Partial<RunState> = {
  waitingFor: ESCALATED_HOLD.waitingFor,
  waitDeadline: ESCALATED_HOLD.deadline,
  onDeadline: ESCALATED_HOLD.onDeadline,
};

function decide(run: RunState, event: RunEvent) {
  return reduce(run, event, { kind: raiserOf(event), id: "somebody" });
}

function nextOf(run: RunState, event: RunEvent): RunState {
  const decision = decide(run, event);
  if (!("next" in decision)) throw new Error(`${event.type} is ${decision.verdict} in ${run.status}`);
  return decision.next;
}

describe("the builders", () => {
  test.each(STATUSES)("make complete runs: %s", (status) => {
    expect(violations(aRun(status))).toEqual([]);
  });

  test("make a complete run that waits for an operator to settle its attempt, and a submitted one", () => {
    expect(violations(anUnknownAtOperator())).toEqual([]);
    expect(violations(submitted())).toEqual([]);
    expect(submitted()).toMatchObject({ status: "queued", queuedSince: NOW });
  });
});

describe("a claim", () => {
  test("takes a run out of the queue and off its deadline", () => {
    expect(nextOf(aRun("queued"), CLAIMED)).toEqual(aRun("running", { owner: "worker_2" }));
  });

  test("after a loss is a takeover, which is counted; the evidence of the loss goes", () => {
    const lost = { lostAt: NOW, lostReason: "wedged", takeovers: 1 };
    const after = { owner: "worker_2", takeovers: 2, lostAt: null, lostReason: null };
    expect(nextOf(aRun("queued", lost), CLAIMED)).toMatchObject({ ...after, status: "running" });
    expect(nextOf(aRun("outcome_unknown", lost), CLAIMED)).toMatchObject({ ...after, status: "outcome_unknown" });
  });

  test("for a look-up keeps the status, the times and the count of takeovers", () => {
    const run = aRun("outcome_unknown");
    expect(nextOf(run, CLAIMED)).toEqual({ ...run, owner: "worker_2" });
  });

  test("for a look-up needs an open attempt and no other owner", () => {
    const stopping = aRun("cancelling", { owner: null, openAttempts: 1 });
    expect(nextOf(stopping, CLAIMED)).toEqual({ ...stopping, owner: "worker_2" });
    expect(decide({ ...stopping, openAttempts: 0 }, CLAIMED)).toEqual({ verdict: "ignored" });
    expect(decide(aRun("outcome_unknown", { owner: "worker_1" }), CLAIMED)).toEqual({ verdict: "ignored" });
  });
});

describe("an owner that is gone", () => {
  test("leaves a run lost, with the reason", () => {
    const run = nextOf(aRun("running", { takeovers: 1, pauseRequestedAt: NOW }), GONE);
    expect(run).toMatchObject({ status: "lost", owner: null, lostAt: NOW, lostReason: "wedged", takeovers: 1 });
    expect(run.waitDeadline).toEqual({ inMs: DEFAULT_DEADLINES.lostMs });
    expect(run.pauseRequestedAt).toEqual(NOW);
  });

  test("was gone before: nothing happens where the attempt or the child is still waited for", () => {
    expect(decide(aRun("outcome_unknown"), GONE)).toEqual({ verdict: "ignored" });
    expect(decide(aRun("cancelling", { owner: null, openAttempts: 1 }), GONE)).toEqual({ verdict: "ignored" });
    expect(decide(aRun("cancelling", { owner: null, liveChildren: 1 }), GONE)).toEqual({ verdict: "ignored" });
    expect(nextOf(aRun("cancelling", { owner: null }), GONE).status).toBe("cancelled");
  });
});

describe("a request to stop", () => {
  const CANCEL: RunEvent = { type: "CancelRequested", reason: null };

  test("leaves the run with its worker until it gives it back", () => {
    const run = nextOf(aRun("running", { openAttempts: 1 }), CANCEL);
    expect(run).toMatchObject({
      status: "cancelling",
      owner: "worker_1",
      cancelRequestedAt: NOW,
      nextReconcileAt: NOW,
    });
    expect(run.waitDeadline).toEqual({ inMs: DEFAULT_DEADLINES.cancelMs });
    expect(nextOf(aRun("running"), CANCEL).nextReconcileAt).toBeNull();
  });

  test("of a run whose effect is unknown leaves the next look-up where it was", () => {
    expect(nextOf(aRun("outcome_unknown"), CANCEL).nextReconcileAt).toEqual({ at: 6_000 });
  });

  test("closes the open approval requests, as every end does; a hold and an answer do not", () => {
    expect(decide(aRun("waiting_approval"), CANCEL)).toMatchObject({ closesApprovals: true });
    expect(decide(aRun("running"), CANCEL)).toMatchObject({ closesApprovals: true });
    expect(decide(aRun("running"), COMPLETED)).toMatchObject({ closesApprovals: true });
    expect(decide(aRun("running"), { type: "Held", hold: HOLDS.approval })).toMatchObject({ closesApprovals: false });
    expect(decide(aRun("waiting_approval"), factArrived("decision", true))).toMatchObject({ closesApprovals: false });
  });

  test("past its deadline takes the run from its worker; what is open is looked up by others", () => {
    const run = aRun("cancelling", { openAttempts: 1, waitDeadline: { at: 1 } });
    const next = { owner: null, nextReconcileAt: NOW, waitDeadline: { inMs: DEFAULT_DEADLINES.cancelMs } };
    expect(decide(run, DEADLINE)).toMatchObject({ verdict: "recorded", next });
    expect(nextOf(aRun("cancelling"), DEADLINE).status).toBe("cancelled");
  });

  test("past its deadline stays with an owner elsewhere that is heard of: on-call is named again", () => {
    const run = aRun("cancelling", { waitDeadline: { at: 1 } });
    const escalated = deadlinePassed(null, "escalate");
    expect(nextOf(run, escalated)).toEqual({ ...run, waitDeadline: { inMs: DEFAULT_DEADLINES.cancelMs } });
    expect(nextOf({ ...run, owner: null }, escalated).status).toBe("cancelled");
  });

  test("keeps the first request's time and names a termination as the reason", () => {
    const run = aRun("cancelling", { cancelRequestedAt: { at: 5 }, endReason: "changed_my_mind" });
    const next = nextOf(run, operatorDecided("terminate"));
    expect(next).toMatchObject({ status: "cancelled", cancelRequestedAt: { at: 5 }, endReason: "terminated" });
  });
});

describe("a termination", () => {
  test("ends a run only if each of its open attempts is named as not established", () => {
    const run = aRun("running", { openAttempts: 2 });
    expect(nextOf(run, operatorDecided("terminate", 1))).toMatchObject({ status: "cancelling", openAttempts: 1 });
    expect(nextOf(run, operatorDecided("terminate", 2))).toMatchObject({ status: "cancelled", openAttempts: 0 });
    expect(nextOf(run, operatorDecided("terminate", 9))).toMatchObject({ status: "cancelled", openAttempts: 0 });
  });
});

describe("a pause", () => {
  test("of a run at work is a mark, whose first time stays; resuming takes it away", () => {
    const marked = nextOf(aRun("running"), { type: "PauseRequested" });
    expect(marked).toEqual(aRun("running", { pauseRequestedAt: NOW }));
    const again = nextOf(aRun("running", { pauseRequestedAt: { at: 5 } }), { type: "PauseRequested" });
    expect(again.pauseRequestedAt).toEqual({ at: 5 });
    for (const status of ["running", "outcome_unknown", "lost"] as const) {
      const run = aRun(status, { pauseRequestedAt: NOW });
      expect(nextOf(run, { type: "Resumed" })).toEqual({ ...run, pauseRequestedAt: null });
    }
  });

  test("that was asked for before an effect became unknown can be taken back while an operator decides about that", () => {
    const run = anUnknownAtOperator({ pauseRequestedAt: { at: 5 } });
    expect(nextOf(run, { type: "Resumed" })).toEqual({ ...run, pauseRequestedAt: null });
    expect(decide(anUnknownAtOperator(), { type: "Resumed" })).toEqual({ verdict: "refused", rule: "not_paused" });
  });

  test("that a fact completes goes on anew, and so does an end that the fact came before", () => {
    const held = aRun("paused", { resumeTo: { to: "hold", hold: HOLDS.input } });
    expect(nextOf(held, factArrived("answer", true)).resumeTo).toEqual({ to: "queued" });
    expect(nextOf(held, factArrived("message", false)).resumeTo).toEqual(held.resumeTo);
    const ending = aRun("paused", { resumeTo: { to: "end", status: "completed", outcome: SUCCEEDED, reason: null } });
    expect(nextOf(ending, factArrived("message", false)).resumeTo).toEqual({ to: "queued" });
  });
});

describe("a decision", () => {
  const WAITING = aRun("waiting_approval");
  const PAUSED = aRun("paused", { resumeTo: { to: "hold", hold: HOLDS.approval } });

  test("that leaves requests pending leaves the run to those who are asked now, since when it was", () => {
    const decision = decide(WAITING, decided({ hold: ESCALATED_HOLD }));
    expect(decision).toMatchObject({ verdict: "recorded", pinsSteps: false, closesApprovals: false });
    expect(nextOf(WAITING, decided({ hold: ESCALATED_HOLD }))).toEqual({ ...WAITING, ...ESCALATED });
  });

  test("during a pause changes what is resumed, and nothing else", () => {
    const next = nextOf(PAUSED, decided({ hold: ESCALATED_HOLD }));
    expect(next).toEqual({ ...PAUSED, resumeTo: { to: "hold", hold: ESCALATED_HOLD } });
    expect(nextOf(PAUSED, factArrived("decision", false))).toEqual(PAUSED);
  });

  test("that stops the run ends it, with its requests, also during a pause", () => {
    for (const run of [WAITING, PAUSED])
      expect(decide(run, decided({ aborts: true }))).toMatchObject({
        verdict: "moved",
        closesApprovals: true,
        next: { status: "cancelled", endReason: "aborted", cancelRequestedAt: NOW, endedAt: NOW, resumeTo: null },
      });
    expect(nextOf({ ...WAITING, liveChildren: 1 }, decided({ aborts: true }))).toMatchObject({
      status: "cancelling",
      endReason: "aborted",
    });
  });

  test("that stops the run does so though it completes the hold as well", () => {
    const event: RunEvent = { type: "FactArrived", fact: "decision", completesHold: true, aborts: true };
    expect(nextOf(WAITING, event).status).toBe("cancelled");
    expect(nextOf(PAUSED, event).status).toBe("cancelled");
  });
});

describe("a settled attempt", () => {
  test("counts down, and ends the look-ups with the last one", () => {
    const two = anUnknownAtOperator({ openAttempts: 2, lookUpsEndAt: { at: 1 } });
    const one = nextOf(two, effectSettled("late_evidence", true));
    expect(one).toEqual({ ...two, openAttempts: 1 });
    expect(nextOf(one, effectSettled("late_evidence", true))).toMatchObject({ openAttempts: 0, lookUpsEndAt: null });
  });

  test("wakes no operator's hold that is about something else", () => {
    const { waitingFor } = aRun("waiting_operator");
    const run = anUnknownAtOperator({ waitingFor });
    expect(nextOf(run, effectSettled("person", true))).toMatchObject({
      status: "waiting_operator",
      openAttempts: 0,
      waitingFor,
    });
  });

  test("lets the owner that settled it carry on at once", () => {
    const run = aRun("outcome_unknown", { owner: "worker_1", pauseRequestedAt: NOW });
    const next = aRun("running", { owner: "worker_1", pauseRequestedAt: NOW });
    expect(nextOf(run, effectSettled("owner", true))).toEqual(next);
  });

  test("starts the run anew where the owner is gone or another attempt is open", () => {
    expect(nextOf(aRun("outcome_unknown"), effectSettled("owner", true)).status).toBe("queued");
    const two = aRun("outcome_unknown", { owner: "worker_1", openAttempts: 2 });
    expect(nextOf(two, effectSettled("owner", true))).toMatchObject({ status: "outcome_unknown", owner: null });
  });
});

describe("look-ups", () => {
  test("have one end for an attempt, however often they are given back", () => {
    const unknown = (lookUpsEnd: RunState["lookUpsEndAt"]): RunEvent => ({
      type: "EffectUnknown",
      nextLookUp: { inMs: 7 },
      lookUpsEnd,
    });
    const first = nextOf(aRun("running", { openAttempts: 1 }), unknown({ at: 100 }));
    expect(first).toMatchObject({ lookUpsEndAt: { at: 100 }, waitDeadline: { at: 100 } });
    const again = nextOf({ ...first, owner: "worker_2" }, unknown({ at: 900 }));
    expect(again).toMatchObject({ lookUpsEndAt: { at: 100 }, waitDeadline: { at: 100 }, nextReconcileAt: { inMs: 7 } });
  });
});

describe("a deadline", () => {
  test("of one approval leaves the hold to the next one that is pending", () => {
    const run = aRun("waiting_approval");
    const decision = decide(run, deadlinePassed(ESCALATED_HOLD, "reject"));
    expect(decision).toMatchObject({ verdict: "recorded", pinsSteps: false, closesApprovals: false });
    expect(nextOf(run, deadlinePassed(ESCALATED_HOLD))).toEqual({ ...run, ...ESCALATED });
  });

  test("of an approval goes where that approval says, whatever the hold's first one does", () => {
    const rejecting = aRun("waiting_approval", { onDeadline: "reject" });
    expect(nextOf(rejecting, deadlinePassed(null, "operator")).status).toBe("waiting_operator");
    const asking = aRun("waiting_approval", { onDeadline: "operator" });
    expect(nextOf(asking, deadlinePassed(null, "reject")).status).toBe("queued");
    const stopping = aRun("waiting_approval", { onDeadline: "abort" });
    expect(nextOf(stopping, deadlinePassed(null, "reject")).status).toBe("queued");
  });

  test.each([
    ["the call whose approval asked for one", "call_2", "call_2"],
    ["the hold's own call where none is named", null, "call_1"],
    ["the hold's own call where nothing is said of one", undefined, "call_1"],
  ])("of an approval leaves to an operator %s", (_which, subject, shown) => {
    const next = nextOf(aRun("waiting_approval"), deadlinePassed(null, "operator", subject));
    const waitingFor = { kind: "operator", principal: "role:operator", subject: shown, reason: "deadline_passed" };
    expect(next).toMatchObject({ status: "waiting_operator", waitingFor });
  });

  test("that stands for something else than time says for what", () => {
    const event: RunEvent = {
      type: "DeadlinePassed",
      remaining: null,
      onDeadline: "operator",
      because: "backing_missing",
    };
    const waitingFor = { kind: "operator", subject: "call_1", reason: "backing_missing" };
    expect(nextOf(aRun("waiting_dependency"), event)).toMatchObject({ status: "waiting_operator", waitingFor });
  });

  test("that stops the run says so, and waits for its children", () => {
    const aborted = { cancelRequestedAt: NOW, endReason: "aborted", waitingFor: null };
    expect(decide(aRun("waiting_approval"), deadlinePassed(null, "abort"))).toMatchObject({
      verdict: "moved",
      closesApprovals: true,
      next: { ...aborted, status: "cancelled", endedAt: NOW },
    });
    expect(nextOf(aRun("waiting_dependency", { onDeadline: "abort", liveChildren: 1 }), DEADLINE)).toMatchObject({
      ...aborted,
      status: "cancelling",
      endedAt: null,
    });
  });

  test("that an operator or a pause lets pass comes again", () => {
    const operator = nextOf(aRun("waiting_operator"), DEADLINE);
    expect(operator).toEqual(aRun("waiting_operator", { waitDeadline: { inMs: DEFAULT_DEADLINES.operatorMs } }));
    const paused = nextOf(aRun("paused"), DEADLINE);
    expect(paused).toEqual(aRun("paused", { waitDeadline: { inMs: DEFAULT_DEADLINES.pauseReviewMs } }));
  });

  test("of a hold without a subject leaves the operator's without one as well", () => {
    const run = aRun("waiting_input", { onDeadline: "operator" });
    expect(nextOf(run, DEADLINE).waitingFor).toMatchObject({ reason: "deadline_passed", subject: null });
  });
});

describe("an operator's choice", () => {
  test("to skip needs something to skip", () => {
    const { waitingFor } = anUnknownAtOperator();
    const decision = decide(aRun("waiting_operator", { waitingFor }), operatorDecided("skip"));
    expect(decision).toEqual({ verdict: "refused", rule: "nothing_to_skip" });
  });

  test("to settle needs an open attempt", () => {
    for (const run of [aRun("waiting_operator"), aRun("cancelling")]) {
      const decision = decide(run, operatorDecided("not_established"));
      expect(decision).toEqual({ verdict: "refused", rule: "effect_not_open" });
    }
  });
});

describe("an end", () => {
  test("is refused while a child is alive, unless the run is being cancelled", () => {
    const parent = aRun("running", { liveChildren: 1 });
    expect(decide(parent, COMPLETED)).toEqual({ verdict: "refused", rule: "children_live" });
    expect(nextOf(aRun("cancelling", { liveChildren: 1 }), COMPLETED)).toMatchObject({
      status: "cancelling",
      owner: null,
    });
  });
});

describe("the end of a child", () => {
  const told = factArrived("child", false);

  test("is counted wherever its parent stands, and moves it only where it completes the hold", () => {
    for (const status of STATUSES.filter((each) => !isTerminal(each))) {
      const parent = aRun(status, { liveChildren: 2 });
      expect(nextOf(parent, told)).toEqual({ ...parent, liveChildren: 1 });
    }
    const waiting = aRun("waiting_dependency", { liveChildren: 2 });
    expect(nextOf(waiting, factArrived("child", true))).toMatchObject({ status: "queued", liveChildren: 1 });
    const paused = aRun("paused", { liveChildren: 2, resumeTo: { to: "hold", hold: HOLDS.dependency } });
    const woken = { status: "paused", liveChildren: 1, resumeTo: { to: "queued" } };
    expect(nextOf(paused, factArrived("child", true))).toMatchObject(woken);
  });

  test("never counts below none, and says nothing after the parent's end", () => {
    expect(nextOf(aRun("running"), told).liveChildren).toBe(0);
    expect(decide(aRun("completed"), told)).toEqual({ verdict: "refused", rule: "run_ended" });
  });

  test("is no other fact's business", () => {
    for (const fact of ["message", "answer", "decision", "callback"] as const)
      expect(nextOf(aRun("running", { liveChildren: 1 }), factArrived(fact, false)).liveChildren).toBe(1);
  });

  test("ends a parent that is being stopped, with the last of them and nobody at work on it", () => {
    const stopping = aRun("cancelling", { owner: null, liveChildren: 2, waitDeadline: { at: 9 } });
    const one = nextOf(stopping, told);
    expect(one).toEqual({ ...stopping, liveChildren: 1 });
    expect(decide(one, told)).toMatchObject({ verdict: "moved", next: { status: "cancelled", liveChildren: 0 } });
    const owned = aRun("cancelling", { liveChildren: 1 });
    expect(nextOf(owned, told)).toEqual({ ...owned, liveChildren: 0 });
    expect(nextOf(nextOf(owned, told), { type: "Released", retryAt: null }).status).toBe("cancelled");
  });

  test("leaves a parent that is being stopped with what is still open", () => {
    const open = aRun("cancelling", { owner: null, liveChildren: 1, openAttempts: 1, nextReconcileAt: { at: 7 } });
    expect(nextOf(open, told)).toEqual({ ...open, liveChildren: 0 });
  });
});

describe("what a write pins", () => {
  test("includes the steps where the decision rests on what they move", () => {
    const pinning: readonly (readonly [RunState, RunEvent])[] = [
      [aRun("running"), COMPLETED],
      [aRun("running"), { type: "Held", hold: HOLDS.input }],
      [aRun("running"), GONE],
      [aRun("outcome_unknown"), CLAIMED],
      [aRun("running"), operatorDecided("terminate")],
      [aRun("waiting_input"), factArrived("answer", true)],
      [aRun("running", { liveChildren: 1 }), factArrived("child", false)],
      [aRun("cancelling", { liveChildren: 1 }), factArrived("child", false)],
    ];
    for (const [run, event] of pinning) expect(decide(run, event)).toMatchObject({ pinsSteps: true });
  });

  test("leaves the steps of a run at work alone for a fact, a mark and a claim", () => {
    const free: readonly (readonly [RunState, RunEvent])[] = [
      [aRun("running"), factArrived("message", false)],
      [aRun("cancelling"), factArrived("message", false)],
      [aRun("running"), { type: "PauseRequested" }],
      [aRun("running"), { type: "Resumed" }],
      [aRun("running"), { type: "CancelRequested", reason: null }],
      [aRun("queued"), CLAIMED],
    ];
    for (const [run, event] of free) expect(decide(run, event)).toMatchObject({ pinsSteps: false });
  });
});

describe("deadlines that nobody chose", () => {
  test("are those of the design", () => {
    const [minute, hour, day] = [60_000, 3_600_000, 86_400_000] as const;
    expect(DEFAULT_DEADLINES).toEqual({
      queueMs: day,
      inputMs: 7 * day,
      approvalMs: day,
      dependencyMs: day,
      operatorMs: day,
      lookUpsMs: hour,
      lostMs: hour,
      cancelMs: 10 * minute,
      pauseReviewMs: 7 * day,
    });
  });
});
