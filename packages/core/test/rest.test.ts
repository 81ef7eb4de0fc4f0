import { describe, expect, test } from "vitest";
import type { RunEvent } from "../src/event.ts";
import { reduce } from "../src/reduce.ts";
import { afterPause, atPresent, operatorHold, presentHold, rest } from "../src/rest.ts";
import type { Asked, Hold, RunState } from "../src/state.ts";
import { DEFAULT_DEADLINES, NOW } from "../src/state.ts";
import { deadlinePassed, decided, effectSettled, factArrived, operatorDecided, raiserOf } from "./all-events.ts";
import { anUnknownAtOperator, aRun, HOLDS, heldAt, SUCCEEDED } from "./builders.ts";
import { violations } from "./violations.ts";

type Example = readonly [event: RunEvent, run: RunState, next: Partial<RunState>];

const HELD = Object.values(HOLDS).map((hold): RunEvent => ({ type: "Held", hold }));
const RELEASED: RunEvent = { type: "Released", retryAt: null };
const TO_RETRY: RunEvent = { type: "Released", retryAt: { inMs: 5_000 } };
const UNKNOWN: RunEvent = { type: "EffectUnknown", nextLookUp: { inMs: 2_000 }, lookUpsEnd: { inMs: 50_000 } };
const NO_LOOK_UP: RunEvent = { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null };
const COMPLETED: RunEvent = { type: "Ended", status: "completed", outcome: SUCCEEDED, reason: null };
const FAILED: RunEvent = { type: "Ended", status: "failed", outcome: null, reason: "no_such_order" };
const GIVE_BACK: readonly RunEvent[] = [...HELD, RELEASED, TO_RETRY, COMPLETED, FAILED];
const GONE: RunEvent = { type: "OwnerGone", reason: "lease_expired" };
const RECOVERED: RunEvent = { type: "Recovered" };
const DEADLINE = deadlinePassed(null);
const ANSWERED = factArrived("answer", true);
const CANCEL: RunEvent = { type: "CancelRequested", reason: "changed_my_mind" };
const PAUSE: RunEvent = { type: "PauseRequested" };
const RESUMED: RunEvent = { type: "Resumed" };
const BY_PERSON: readonly RunEvent[] = [operatorDecided("mark_done"), operatorDecided("not_established")];
const EVIDENCE: readonly RunEvent[] = [effectSettled("late_evidence", true), effectSettled("person", true)];

const MARKED = { pauseRequestedAt: NOW };
const THIRD_LOSS = { lostAt: NOW, lostReason: "lease_expired", takeovers: 2 };
const THIRD_WEDGED = { ...THIRD_LOSS, lostReason: "wedged" };
const WORKING = aRun("outcome_unknown", { owner: "worker_1" });
const AT_REST = (
  ["queued", "waiting_input", "waiting_approval", "waiting_dependency", "waiting_operator", "retrying"] as const
).map((status) => aRun(status));

/** What an operator waits for, in the fields that tell one reason from the other. */
function operatorFor(reason: string, more: Partial<RunState> = {}): Partial<RunState> {
  return { status: "waiting_operator", waitingFor: operatorHold(reason, null).waitingFor, ...more };
}

function resumesWith(resumeTo: Asked): Partial<RunState> {
  return { status: "paused", resumeTo, pausedAt: NOW, waitDeadline: { inMs: DEFAULT_DEADLINES.pauseReviewMs } };
}

function each(events: readonly RunEvent[], run: RunState, next: Partial<RunState>): readonly Example[] {
  return events.map((event) => [event, run, next] as const);
}

const STOPPED: readonly Example[] = [
  ...each([...GIVE_BACK, GONE, DEADLINE, operatorDecided("terminate")], aRun("cancelling"), {
    status: "cancelled",
    endedAt: NOW,
  }),
  [effectSettled("owner", true), aRun("cancelling", { openAttempts: 1 }), { status: "cancelled" }],
  ...each(EVIDENCE, aRun("cancelling", { openAttempts: 1, owner: null }), { status: "cancelled" }),
  [operatorDecided("not_established"), aRun("cancelling", { openAttempts: 1, owner: null }), { status: "cancelled" }],
  ...[...AT_REST, aRun("paused")].map(
    (run): Example => [CANCEL, run, { status: "cancelled", endReason: "changed_my_mind" }],
  ),
  ...[...AT_REST.slice(1), aRun("running"), aRun("lost"), aRun("paused")].map(
    (run): Example => [operatorDecided("terminate"), run, { status: "cancelled", endReason: "terminated" }],
  ),
  ...[aRun("running", { openAttempts: 1 }), WORKING, anUnknownAtOperator()].map(
    (run): Example => [operatorDecided("terminate", 1), run, { status: "cancelled", openAttempts: 0 }],
  ),
  [operatorDecided("abort"), aRun("waiting_operator"), { status: "cancelled", endReason: "aborted" }],
  ...[deadlinePassed(null, "abort"), decided({ aborts: true })].map(
    (event): Example => [event, aRun("waiting_approval"), { status: "cancelled", endReason: "aborted" }],
  ),
  [DEADLINE, aRun("waiting_approval", { onDeadline: "abort" }), { status: "cancelled", endReason: "aborted" }],
  [
    decided({ aborts: true }),
    aRun("paused", { resumeTo: { to: "hold", hold: HOLDS.approval } }),
    { status: "cancelled", endReason: "aborted" },
  ],
];

const OPEN = { openAttempts: 1 };
const STOPPING: readonly Example[] = [OPEN, { liveChildren: 1 }].flatMap((pending): readonly Example[] => [
  ...each([...GIVE_BACK, GONE], aRun("cancelling", pending), {
    status: "cancelling",
    owner: null,
    waitDeadline: { inMs: 3 },
  }),
  [
    DEADLINE,
    aRun("cancelling", pending),
    { status: "cancelling", owner: null, waitDeadline: { inMs: DEFAULT_DEADLINES.cancelMs } },
  ],
  [operatorDecided("terminate"), aRun("cancelling", pending), { status: "cancelling", owner: null }],
  [
    operatorDecided("terminate"),
    aRun("running", pending),
    { status: "cancelling", owner: null, endReason: "terminated" },
  ],
]);

const STOPPING_WITH_ATTEMPT: readonly Example[] = [
  ...each([UNKNOWN], aRun("cancelling", OPEN), { status: "cancelling", owner: null, nextReconcileAt: { inMs: 2_000 } }),
  ...each([NO_LOOK_UP], aRun("cancelling", OPEN), { status: "cancelling", owner: null, nextReconcileAt: null }),
  ...each([effectSettled("owner", true)], aRun("cancelling", { openAttempts: 2 }), {
    status: "cancelling",
    owner: null,
  }),
  ...each([...EVIDENCE, operatorDecided("not_established")], aRun("cancelling", OPEN), {
    status: "cancelling",
    owner: "worker_1",
  }),
  [CANCEL, anUnknownAtOperator(), { status: "cancelling", nextReconcileAt: null }],
  [operatorDecided("abort"), anUnknownAtOperator(), { status: "cancelling", endReason: "aborted" }],
  [operatorDecided("terminate"), anUnknownAtOperator(), { status: "cancelling", openAttempts: 1 }],
];

const STOPPING_WITH_CHILD: readonly Example[] = [
  ...[...AT_REST, aRun("paused")].map(
    (run): Example => [CANCEL, { ...run, liveChildren: 1 }, { status: "cancelling", owner: null }],
  ),
  [operatorDecided("abort"), aRun("waiting_operator", { liveChildren: 1 }), { status: "cancelling" }],
  ...[deadlinePassed(null, "abort"), decided({ aborts: true })].map(
    (event): Example => [
      event,
      aRun("waiting_approval", { liveChildren: 1 }),
      { status: "cancelling", endReason: "aborted" },
    ],
  ),
  [
    effectSettled("owner", true),
    aRun("cancelling", { openAttempts: 1, liveChildren: 1 }),
    { status: "cancelling", owner: null },
  ],
];

const UNSETTLED: readonly Example[] = [
  ...each(GIVE_BACK, aRun("running", OPEN), {
    status: "outcome_unknown",
    nextReconcileAt: NOW,
    waitDeadline: { inMs: DEFAULT_DEADLINES.lookUpsMs },
  }),
  [
    UNKNOWN,
    aRun("running", OPEN),
    { status: "outcome_unknown", nextReconcileAt: { inMs: 2_000 }, waitDeadline: { inMs: 50_000 } },
  ],
  [
    UNKNOWN,
    WORKING,
    { status: "outcome_unknown", owner: null, nextReconcileAt: { inMs: 2_000 }, waitDeadline: { at: 9_000 } },
  ],
  ...each([RELEASED, TO_RETRY], WORKING, { status: "outcome_unknown", owner: null, nextReconcileAt: { at: 6_000 } }),
  [GONE, WORKING, { status: "outcome_unknown", owner: null, nextReconcileAt: NOW, lostReason: "lease_expired" }],
  ...each([...EVIDENCE, ...BY_PERSON], aRun("outcome_unknown", { openAttempts: 2 }), {
    status: "outcome_unknown",
    openAttempts: 1,
  }),
  ...each([RECOVERED, DEADLINE], aRun("lost", OPEN), { status: "outcome_unknown", lostAt: NOW, nextReconcileAt: NOW }),
  [
    operatorDecided("retry"),
    anUnknownAtOperator(),
    { status: "outcome_unknown", lookUpsOver: false, nextReconcileAt: NOW },
  ],
];

const LOOK_UPS_OVER: readonly Example[] = [
  [NO_LOOK_UP, aRun("running", OPEN), operatorFor("outcome_unknown", { lookUpsOver: true, openAttempts: 1 })],
  [NO_LOOK_UP, WORKING, operatorFor("outcome_unknown", { owner: null })],
  [DEADLINE, WORKING, operatorFor("outcome_unknown", { owner: null, lookUpsOver: true })],
  ...each(
    [...EVIDENCE, ...BY_PERSON],
    anUnknownAtOperator({ openAttempts: 2 }),
    operatorFor("outcome_unknown", { openAttempts: 1 }),
  ),
  [PAUSE, anUnknownAtOperator(), operatorFor("outcome_unknown", { pauseRequestedAt: NOW })],
];

const LOOK_UPS_QUARANTINED: readonly Example[] = [
  ...each(
    [RECOVERED, DEADLINE],
    aRun("lost", { ...OPEN, ...THIRD_LOSS }),
    operatorFor("outcome_unknown", { lookUpsOver: true }),
  ),
  [GONE, { ...WORKING, takeovers: 2 }, operatorFor("outcome_unknown", { lookUpsOver: true })],
  [RECOVERED, aRun("lost", { ...OPEN, ...THIRD_WEDGED }), operatorFor("outcome_unknown", { lookUpsOver: true })],
];

const PAUSED: readonly Example[] = [
  ...Object.values(HOLDS).map(
    (hold): Example => [{ type: "Held", hold }, aRun("running", MARKED), resumesWith({ to: "hold", hold })],
  ),
  [RELEASED, aRun("running", MARKED), resumesWith({ to: "queued" })],
  [TO_RETRY, aRun("running", MARKED), resumesWith({ to: "retrying", at: { inMs: 5_000 } })],
  [
    COMPLETED,
    aRun("running", MARKED),
    resumesWith({ to: "end", status: "completed", outcome: SUCCEEDED, reason: null }),
  ],
  [
    FAILED,
    aRun("running", MARKED),
    resumesWith({ to: "end", status: "failed", outcome: null, reason: "no_such_order" }),
  ],
  [UNKNOWN, aRun("running", MARKED), resumesWith({ to: "look_up", at: { inMs: 2_000 } })],
  ...each([...EVIDENCE, ...BY_PERSON], aRun("outcome_unknown", MARKED), resumesWith({ to: "queued" })),
  ...each(
    [...EVIDENCE, ...BY_PERSON, effectSettled("owner", true)],
    anUnknownAtOperator(MARKED),
    resumesWith({ to: "queued" }),
  ),
  [RECOVERED, aRun("lost", MARKED), resumesWith({ to: "queued" })],
  [DEADLINE, aRun("lost", MARKED), resumesWith({ to: "hold", hold: operatorHold("lost", null) })],
  [
    RECOVERED,
    aRun("lost", { ...MARKED, ...THIRD_LOSS }),
    resumesWith({ to: "hold", hold: operatorHold("quarantined", null) }),
  ],
  [
    RECOVERED,
    aRun("lost", { ...MARKED, ...THIRD_WEDGED }),
    resumesWith({ to: "hold", hold: operatorHold("limit_idle", null) }),
  ],
  ...AT_REST.map((run): Example => [PAUSE, run, resumesWith(atPresent(run))]),
];

const QUARANTINED: readonly Example[] = [
  ...each([RECOVERED, DEADLINE], aRun("lost", THIRD_LOSS), operatorFor("quarantined", { owner: null })),
  ...each([RECOVERED, DEADLINE], aRun("lost", THIRD_WEDGED), operatorFor("limit_idle", { owner: null })),
  ...each([...EVIDENCE, ...BY_PERSON], anUnknownAtOperator(THIRD_WEDGED), operatorFor("limit_idle")),
  ...each(
    [...EVIDENCE, ...BY_PERSON],
    anUnknownAtOperator(THIRD_LOSS),
    operatorFor("quarantined", { openAttempts: 0 }),
  ),
];

const GRANTED: readonly Example[] = [
  ...Object.values(HOLDS).map(
    (hold): Example => [
      { type: "Held", hold },
      aRun("running"),
      { ...heldAt(hold), status: `waiting_${hold.kind}`, owner: null },
    ],
  ),
  [
    RELEASED,
    aRun("running"),
    { status: "queued", queuedSince: NOW, waitDeadline: { inMs: DEFAULT_DEADLINES.queueMs } },
  ],
  [TO_RETRY, aRun("running"), { status: "retrying", retryAt: { inMs: 5_000 }, owner: null }],
  [UNKNOWN, aRun("running"), { status: "queued" }],
  [COMPLETED, aRun("running"), { status: "completed", outcome: SUCCEEDED, endedAt: NOW, owner: null }],
  [FAILED, aRun("running"), { status: "failed", endReason: "no_such_order", endedAt: NOW }],
  ...each([...EVIDENCE, ...BY_PERSON], WORKING, { status: "queued", owner: null, openAttempts: 0 }),
  ...each([...EVIDENCE, ...BY_PERSON, effectSettled("owner", true)], anUnknownAtOperator(), {
    status: "queued",
    lookUpsOver: false,
  }),
  [RECOVERED, aRun("lost"), { status: "queued", lostAt: NOW }],
  [RECOVERED, aRun("lost", { takeovers: 1 }), { status: "queued", takeovers: 1 }],
  [RECOVERED, aRun("lost", { takeovers: 1, lostReason: "wedged" }), { status: "queued", takeovers: 1 }],
  [DEADLINE, aRun("lost"), operatorFor("lost")],
  [DEADLINE, aRun("queued"), operatorFor("queue_limit")],
  [DEADLINE, aRun("waiting_input"), { status: "queued", waitingFor: null }],
  [DEADLINE, aRun("waiting_approval"), { status: "queued" }],
  ...(["reject", "extend"] as const).map(
    (onDeadline): Example => [
      DEADLINE,
      aRun("waiting_approval", { onDeadline }),
      { status: "queued", waitingFor: null },
    ],
  ),
  [DEADLINE, aRun("waiting_dependency", { onDeadline: "continue" }), { status: "queued", waitingFor: null }],
  ...(["operator", "escalate"] as const).map(
    (onDeadline): Example => [
      deadlinePassed(null, onDeadline),
      aRun("waiting_approval"),
      { status: "waiting_operator", waitingFor: operatorHold("deadline_passed", "call_1").waitingFor },
    ],
  ),
  [
    DEADLINE,
    aRun("waiting_dependency"),
    { status: "waiting_operator", waitingFor: operatorHold("deadline_passed", "call_1").waitingFor },
  ],
  [DEADLINE, aRun("waiting_input", { onDeadline: "operator" }), operatorFor("deadline_passed")],
  [DEADLINE, aRun("waiting_input", { onDeadline: "escalate" }), operatorFor("deadline_passed")],
  ...AT_REST.slice(1, 4).map(
    (run): Example => [ANSWERED, run, { status: "queued", waitingFor: null, onDeadline: null }],
  ),
  [
    operatorDecided("retry"),
    aRun("waiting_operator", THIRD_LOSS),
    { status: "queued", takeovers: 0, lostAt: null, lostReason: null },
  ],
  [operatorDecided("skip"), aRun("waiting_operator"), { status: "queued" }],
  [RESUMED, aRun("paused"), { status: "queued", pauseRequestedAt: null, pausedAt: null, resumeTo: null }],
  [RESUMED, aRun("paused", { resumeTo: { to: "look_up", at: NOW } }), { status: "queued" }],
  [
    RESUMED,
    aRun("paused", { resumeTo: { to: "retrying", at: { at: 4_000 } } }),
    { status: "retrying", retryAt: { inMs: 3_000 } },
  ],
  [
    RESUMED,
    aRun("paused", { resumeTo: { to: "end", status: "completed", outcome: SUCCEEDED, reason: null } }),
    { status: "completed" },
  ],
  ...Object.values(HOLDS).map(
    (hold): Example => [
      RESUMED,
      aRun("paused", { resumeTo: { to: "hold", hold: { ...hold, deadline: { at: 51_000 } } } }),
      { status: `waiting_${hold.kind}`, waitDeadline: { inMs: 50_000 }, onDeadline: hold.onDeadline },
    ],
  ),
];

const ARMS: readonly (readonly [string, readonly Example[]])[] = [
  ["a stop request and nothing pending: cancelled", STOPPED],
  ["a stop request and something pending: cancelling", [...STOPPING, ...STOPPING_WITH_ATTEMPT, ...STOPPING_WITH_CHILD]],
  ["an open attempt: outcome_unknown", UNSETTLED],
  ["an open attempt that nobody looks up any more: an operator", LOOK_UPS_OVER],
  ["an open attempt whose look-ups cost three workers: an operator", LOOK_UPS_QUARANTINED],
  ["a pause request: paused, with what was asked for", PAUSED],
  ["three losses in a row: an operator", QUARANTINED],
  ["nothing of that: what was asked for", GRANTED],
];

describe.each(ARMS)("rest: %s", (_arm, examples) => {
  test.each(examples.map((example) => [example[0].type, example[1].status, example] as const))(
    "%s in %s",
    (_type, _status, [event, run, next]) => {
      expect(violations(run)).toEqual([]);
      const decision = reduce(run, event, { kind: raiserOf(event), id: "somebody" });
      expect(decision).toMatchObject({ next });
      expect("next" in decision && violations(decision.next)).toEqual([]);
    },
  );
});

describe("rest", () => {
  test("lets the stop request win over everything, and keeps the late outcome as evidence", () => {
    const run = aRun("cancelling", { ...THIRD_LOSS, ...MARKED, owner: null });
    const end: Asked = { to: "end", status: "completed", outcome: SUCCEEDED, reason: null };
    expect(rest(run, end)).toMatchObject({ status: "cancelled", outcome: SUCCEEDED });
    expect(rest({ ...run, liveChildren: 1 }, end)).toMatchObject({ status: "cancelling", outcome: SUCCEEDED });
    expect(rest(run, { to: "queued" })).toMatchObject({ status: "cancelled", outcome: null });
  });

  test("keeps the deadline of a run that is being cancelled already", () => {
    const run = aRun("cancelling", { openAttempts: 1, waitDeadline: { at: 77 }, nextReconcileAt: { at: 66 } });
    expect(rest(run, { to: "queued" })).toMatchObject({ waitDeadline: { at: 77 }, nextReconcileAt: { at: 66 } });
  });

  test("lets an open attempt win over a pause and a quarantine, and the pause over the quarantine", () => {
    const run = aRun("lost", { ...THIRD_LOSS, ...MARKED });
    expect(rest({ ...run, openAttempts: 1 }, { to: "queued" }).status).toBe("waiting_operator");
    expect(rest(run, { to: "queued" }).status).toBe("paused");
  });

  test("forgets the look-ups of an attempt that is settled", () => {
    const run = aRun("running", { lookUpsOver: true, lookUpsEndAt: { at: 1 } });
    expect(rest(run, { to: "queued" })).toMatchObject({ lookUpsOver: false, lookUpsEndAt: null });
  });
});

describe("presentHold", () => {
  test("is the hold of a waiting run, and the one that a pause has interrupted", () => {
    const held = aRun("waiting_approval");
    const hold = presentHold(held);
    expect(hold?.kind).toBe("approval");
    expect(presentHold(aRun("paused", { resumeTo: atPresent(held) }))).toEqual(hold);
  });

  test.each(["running", "queued", "retrying"] as const)("is none for a run that is %s", (status) => {
    expect(presentHold(aRun(status))).toBeNull();
  });
});

describe("atPresent", () => {
  test.each(Object.values(HOLDS))("takes a hold as it stands: $kind", (hold) => {
    expect(atPresent(aRun(`waiting_${hold.kind}`))).toEqual({ to: "hold", hold });
  });

  test("takes a retry, a pause and a place in the queue as they stand", () => {
    expect(atPresent(aRun("retrying"))).toEqual({ to: "retrying", at: { at: 5_000 } });
    expect(atPresent(aRun("paused", { resumeTo: { to: "retrying", at: NOW } }))).toEqual({ to: "retrying", at: NOW });
    expect(atPresent(aRun("queued"))).toEqual({ to: "queued" });
  });
});

describe("afterPause", () => {
  const hold = (deadline: Hold["deadline"]): Asked => ({ to: "hold", hold: { ...HOLDS.input, deadline } });

  test("gives back the time that was left when the pause began", () => {
    expect(afterPause(hold({ at: 5_000 }), { at: 2_000 })).toEqual(hold({ inMs: 3_000 }));
    expect(afterPause({ to: "look_up", at: { at: 5_000 } }, { at: 2_000 })).toEqual({
      to: "look_up",
      at: { inMs: 3_000 },
    });
  });

  test("leaves overdue by as much what was overdue when the pause began", () => {
    expect(afterPause(hold({ at: 1_000 }), { at: 2_000 })).toEqual(hold({ inMs: -1_000 }));
    expect(afterPause({ to: "retrying", at: { at: 1_000 } }, { at: 2_000 })).toEqual({
      to: "retrying",
      at: { inMs: -1_000 },
    });
  });

  test("leaves alone what is not a moment of the clock, and what has none", () => {
    expect(afterPause(hold({ inMs: 9 }), { at: 2_000 })).toEqual(hold({ inMs: 9 }));
    expect(afterPause(hold({ at: 9 }), null)).toEqual(hold({ at: 9 }));
    expect(afterPause(hold({ at: 9 }), NOW)).toEqual(hold({ at: 9 }));
    expect(afterPause({ to: "queued" }, { at: 2_000 })).toEqual({ to: "queued" });
  });
});
