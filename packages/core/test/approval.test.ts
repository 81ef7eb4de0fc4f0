import { describe, expect, test } from "vitest";
import {
  APPROVAL_STATES,
  type ApprovalRule,
  type ApprovalState,
  applyChange,
  approversAt,
  DECISIONS,
  type DecidableRequest,
  type DecisionKind,
  escalated,
  type GivenDecision,
  holdOf,
  judgeDecision,
  passDeadlines,
  type RecordedDecision,
} from "../src/approval.ts";
import { aDecidable, aDecision, aRequest, ESCALATION, NOW_MS, RULE } from "./builders.ts";

function judge(given: Partial<GivenDecision>, request: Partial<DecidableRequest> = {}) {
  return judgeDecision(aDecidable(request), aDecision(given));
}

function terms(patch: Partial<ApprovalRule>) {
  return { terms: { ...RULE, ...patch } };
}

function decidedBy(by: string, kind: DecisionKind = "approve", patch: Partial<RecordedDecision> = {}) {
  return { by, kind, level: 0, payload: null, ...patch };
}

const PENDING = { become: "pending", aborts: false };
const DECIDED = APPROVAL_STATES.filter((state) => state !== "pending");

describe("judgeDecision, what a decision does", () => {
  test.each([
    ["approve", "approved", false],
    ["approve_with_edits", "superseded", false],
    ["reject", "rejected", false],
    ["reject_and_abort", "rejected", true],
    ["respond", "answered", false],
    ["skip", "skipped", false],
    ["escalate", "pending", false],
  ] as const)("to a request that one person decides: %s", (kind, become, aborts) => {
    expect(judge({ kind }, terms({ escalation: ESCALATION }))).toEqual({ become, aborts });
  });

  test("has a line above for each kind", () => {
    expect(DECISIONS).toHaveLength(7);
  });

  test("waits for as many different people as the quorum says", () => {
    const three = terms({ quorum: 3 });
    expect(judge({}, three)).toEqual(PENDING);
    expect(judge({}, { ...three, decided: [decidedBy("user:a")] })).toEqual(PENDING);
    const two = [decidedBy("user:a"), decidedBy("user:b")];
    expect(judge({}, { ...three, decided: two })).toEqual({ become: "approved", aborts: false });
  });

  test("counts only approvals of those who are asked now", () => {
    const decided = [decidedBy("user:a"), decidedBy("user:b", "escalate")];
    const request = { ...terms({ quorum: 2, escalation: ESCALATION }), decided };
    expect(judge({ by: "user:dan", roles: ["director"] }, { ...request, level: 1 })).toEqual(PENDING);
    const before = [...decided, decidedBy("user:eve", "approve", { level: 1 })];
    const second = judge({ by: "user:dan", roles: ["director"] }, { ...request, level: 1, decided: before });
    expect(second).toMatchObject({ become: "approved" });
  });

  test("with one rejection ends it, or with a quorum of them where the rule says so", () => {
    const lenient = terms({ quorum: 2, veto: false });
    expect(judge({ kind: "reject" }, terms({ quorum: 2 }))).toMatchObject({ become: "rejected" });
    expect(judge({ kind: "reject" }, lenient)).toEqual(PENDING);
    expect(judge({ kind: "reject" }, { ...lenient, decided: [decidedBy("user:a")] })).toEqual(PENDING);
    for (const kind of ["reject", "reject_and_abort"] as const)
      expect(judge({ kind: "reject" }, { ...lenient, decided: [decidedBy("user:a", kind)] })).toMatchObject({
        become: "rejected",
      });
  });
});

describe("judgeDecision, who may decide", () => {
  test("are the users and the roles of the rule, and nobody else", () => {
    expect(judge({ by: "user:bob", roles: [] })).toMatchObject({ become: "approved" });
    expect(judge({ by: "user:mia", roles: ["clerk", "manager"] })).toMatchObject({ become: "approved" });
    for (const kind of DECISIONS)
      expect(judge({ kind, by: "user:eve", roles: ["clerk"] })).toEqual({ refuse: "not_an_approver" });
  });

  test("are those of the level that is asked now", () => {
    const request = { ...terms({ escalation: ESCALATION }), level: 1 };
    expect(judge({}, request)).toEqual({ refuse: "not_an_approver" });
    expect(judge({ by: "user:dan", roles: ["director"] }, request)).toMatchObject({ become: "approved" });
    expect(judge({ by: "user:dan", roles: ["director"] }, { ...request, level: 2 })).toEqual({
      refuse: "not_an_approver",
    });
  });

  test.each(["approve", "approve_with_edits", "respond"] as const)(
    "are not those whom the rule of four eyes excludes, whatever their roles: %s",
    (kind) => {
      const own = { kind, by: "user:ann", roles: ["manager"] };
      expect(judge(own)).toEqual({ refuse: "own_request" });
      expect(judge(own, { excluded: [] })).not.toHaveProperty("refuse");
    },
  );

  test("includes whoever asked for it where they take it back, which needs no quorum", () => {
    const lenient = terms({ quorum: 2, veto: false });
    const own = { by: "user:ann", roles: [] };
    expect(judge({ ...own, kind: "reject" }, lenient)).toEqual({ become: "rejected", aborts: false });
    expect(judge({ ...own, kind: "reject_and_abort" })).toEqual({ become: "rejected", aborts: true });
    expect(judge({ ...own, kind: "skip" })).toEqual({ refuse: "not_an_approver" });
    expect(judge({ by: "user:eve", roles: [], kind: "reject" })).toEqual({ refuse: "not_an_approver" });
  });
});

describe("judgeDecision, what is refused", () => {
  test("is a decision that the rule does not offer", () => {
    const yesOrNo = terms({ decisions: ["approve", "reject"] });
    expect(judge({ kind: "skip" }, yesOrNo)).toEqual({ refuse: "decision_not_offered" });
    expect(judge({ kind: "approve" }, yesOrNo)).toMatchObject({ become: "approved" });
  });

  test("is passing it on beyond the last level", () => {
    const lastLevel = { ...terms({ escalation: ESCALATION }), level: 2 };
    expect(judge({ kind: "escalate" })).toEqual({ refuse: "nothing_to_escalate_to" });
    expect(judge({ kind: "escalate", roles: ["board"] }, lastLevel)).toEqual({ refuse: "nothing_to_escalate_to" });
    expect(judge({ kind: "escalate", roles: ["director"] }, { ...lastLevel, level: 1 })).toEqual(PENDING);
  });

  test.each(["approve", "approve_with_edits", "respond", "skip", "reject"] as const)(
    "is a decision about other arguments than those that are asked for: %s",
    (kind) => {
      expect(judge({ kind, argsHash: "hash_2" })).toEqual({ refuse: "hash_mismatch" });
    },
  );

  test("is a second, different decision of the same person", () => {
    const request = { ...terms({ quorum: 2 }), decided: [decidedBy("user:mia")] };
    expect(judge({ kind: "reject" }, request)).toEqual({ refuse: "already_decided" });
  });

  const RULES: Readonly<Record<Exclude<ApprovalState, "pending">, string>> = {
    approved: "already_decided",
    spent: "already_decided",
    rejected: "already_decided",
    answered: "already_decided",
    skipped: "already_decided",
    expired: "approval_expired",
    superseded: "approval_superseded",
    withdrawn: "approval_withdrawn",
  };
  test.each(DECIDED)("is every decision about a request that is %s", (state) => {
    const request = { ...terms({ escalation: ESCALATION }), state, decided: [decidedBy("user:bob")] };
    for (const kind of DECISIONS)
      expect(judge({ kind }, request)).toEqual({ refuse: RULES[state as keyof typeof RULES] });
  });
});

describe("judgeDecision, a repeat", () => {
  test("that is identical is answered as the first was, in every state", () => {
    for (const state of APPROVAL_STATES) {
      const decided = [decidedBy("user:mia", "respond", { payload: { b: 2, a: 1 } })];
      const again = judge({ kind: "respond", payload: { a: 1, b: 2 } }, { state, decided });
      expect(again).toEqual({ repeated: true });
      expect(judge({ kind: "respond", payload: { a: 1, b: 3 } }, { state, decided })).toHaveProperty("refuse");
    }
  });

  test("is none where something else was shown", () => {
    const request = { state: "approved", decided: [decidedBy("user:mia")] } as const;
    expect(judge({ argsHash: "hash_2" }, request)).toEqual({ refuse: "already_decided" });
  });

  test("is answered as the first was even after others are asked, or the person has lost the role", () => {
    const decided = [decidedBy("user:mia")];
    expect(judge({}, { ...terms({ escalation: ESCALATION }), level: 1, decided })).toEqual({ repeated: true });
    expect(judge({ roles: [] }, { ...terms({ quorum: 2 }), decided })).toEqual({ repeated: true });
    expect(judge({ roles: [], kind: "reject" }, { ...terms({ quorum: 2 }), decided })).toEqual({
      refuse: "not_an_approver",
    });
  });

  test("of passing it on passes it on once, though the person is asked at the next level as well", () => {
    const request = {
      ...terms({ escalation: ESCALATION }),
      level: 1,
      decided: [decidedBy("user:mia", "escalate"), decidedBy("user:bob")],
    };
    expect(judge({ kind: "escalate", roles: ["manager", "director"] }, request)).toEqual({ repeated: true });
    const approves = { kind: "approve", by: "user:bob", roles: ["director"] } as const;
    expect(judge(approves, request)).toMatchObject({ become: "approved" });
  });
});

describe("escalation", () => {
  test("asks the next level until its own deadline, and ends with the last", () => {
    const request = aRequest("call_1", terms({ escalation: ESCALATION }));
    const first = escalated(request, NOW_MS);
    expect(first).toEqual({ id: request.id, become: "pending", level: 1, deadlineMs: NOW_MS + 600_000 });
    const second = escalated({ ...request, level: 1 }, NOW_MS);
    expect(second).toMatchObject({ level: 2, deadlineMs: NOW_MS + 1_200_000 });
    expect(escalated({ ...request, level: 2 }, NOW_MS)).toBeNull();
  });

  test("names those who are asked at each level", () => {
    const rule = { ...RULE, escalation: ESCALATION };
    expect(approversAt(rule, 0)).toBe(RULE.approvers);
    expect(approversAt(rule, 2)).toBe(ESCALATION[1].approvers);
    expect(approversAt(rule, 3)).toBe(RULE.approvers);
  });

  test("changes the request as it says, and closes it where it is not pending any more", () => {
    const request = aRequest("call_1", terms({ escalation: ESCALATION }));
    const { id } = request;
    expect(applyChange(request, { id, become: "pending", level: 1, deadlineMs: 9 })).toEqual([
      { ...request, level: 1, deadlineMs: 9 },
    ]);
    expect(applyChange(request, { id, become: "pending", extended: true, deadlineMs: 9 })).toEqual([
      { ...request, extended: true, deadlineMs: 9 },
    ]);
    for (const become of ["expired", "withdrawn"] as const) expect(applyChange(request, { id, become })).toEqual([]);
  });
});

describe("passDeadlines", () => {
  const due = (callId: string, patch: Partial<ApprovalRule> = {}, more: object = {}) =>
    aRequest(callId, { ...terms(patch), deadlineMs: NOW_MS, ...more });
  const later = aRequest("call_9", { deadlineMs: NOW_MS + 1 });
  const expired = (callId: string) => ({ id: `approval_of_${callId}`, become: "expired" });
  const withdrawn = (callId: string) => ({ id: `approval_of_${callId}`, become: "withdrawn" });

  test("leaves everything as it is before the first deadline", () => {
    const unchanged = { changes: [], onDeadline: "reject", subject: null };
    expect(passDeadlines([later], NOW_MS)).toEqual({ ...unchanged, remaining: holdOf([later]) });
    expect(passDeadlines([], NOW_MS)).toEqual({ ...unchanged, remaining: null });
  });

  test("lets each that is due expire by itself; the hold goes on for the others", () => {
    const passed = passDeadlines([due("call_1"), later, due("call_2")], NOW_MS);
    expect(passed).toEqual({
      changes: [expired("call_1"), expired("call_2")],
      remaining: holdOf([later]),
      onDeadline: "reject",
      subject: null,
    });
    expect(passDeadlines([due("call_1")], NOW_MS)).toMatchObject({
      remaining: null,
      onDeadline: "reject",
      subject: null,
    });
  });

  test("asks the next level, and the operator after the last, whom all that is pending is left to", () => {
    const rule = { onDeadline: "escalate", escalation: ESCALATION } as const;
    const once = passDeadlines([due("call_1", rule), later], NOW_MS);
    const change = { id: "approval_of_call_1", become: "pending", level: 1, deadlineMs: NOW_MS + 600_000 };
    expect(once).toMatchObject({ changes: [change], onDeadline: "reject" });
    expect(once.remaining).toMatchObject({ waitingFor: { subject: "call_9" }, deadline: { at: NOW_MS + 1 } });
    const only = passDeadlines([due("call_1", rule)], NOW_MS);
    expect(only.remaining).toMatchObject({
      waitingFor: { principal: "role:director", subject: "call_1" },
      deadline: { at: NOW_MS + 600_000 },
    });
    const last = passDeadlines([later, due("call_1", rule, { level: 2 })], NOW_MS);
    expect(last).toEqual({
      changes: [withdrawn("call_9"), withdrawn("call_1")],
      remaining: null,
      onDeadline: "operator",
      subject: "call_1",
    });
  });

  test("extends a request once, by its time again, and then lets it expire", () => {
    const request = due("call_1", { onDeadline: "extend", deadlineMs: 700 });
    const first = passDeadlines([request], NOW_MS);
    expect(first).toMatchObject({
      changes: [{ id: request.id, become: "pending", extended: true, deadlineMs: NOW_MS + 700 }],
      remaining: { deadline: { at: NOW_MS + 700 }, onDeadline: "extend" },
    });
    const second = passDeadlines([{ ...request, extended: true }], NOW_MS);
    expect(second).toEqual({ changes: [expired("call_1")], remaining: null, onDeadline: "reject", subject: null });
  });

  test.each([
    [0, 700],
    [1, 600_000],
    [2, 1_200_000],
    [3, 700],
  ])("extends a request by the time of those who are asked at level %i: %i", (level, timeMs) => {
    const rule = { onDeadline: "extend", deadlineMs: 700, escalation: ESCALATION } as const;
    const { changes, remaining } = passDeadlines([due("call_1", rule, { level })], NOW_MS);
    const deadlineMs = NOW_MS + timeMs;
    expect(changes).toEqual([{ id: "approval_of_call_1", become: "pending", extended: true, deadlineMs }]);
    expect(remaining).toMatchObject({ deadline: { at: deadlineMs } });
  });

  test("leaves to an operator what says so and what is not over: it is asked anew after a retry", () => {
    const asks = { onDeadline: "operator" } as const;
    const passed = passDeadlines([later, due("call_1", asks), due("call_2", asks)], NOW_MS);
    expect(passed).toEqual({
      changes: [withdrawn("call_9"), withdrawn("call_1"), withdrawn("call_2")],
      remaining: null,
      onDeadline: "operator",
      subject: "call_1",
    });
  });

  test("lets expire what says so and is due, though another one asks for the operator", () => {
    const extend = { onDeadline: "extend" } as const;
    const requests = [
      due("call_1"),
      due("call_2", { onDeadline: "operator" }),
      due("call_3", extend, { extended: true }),
      due("call_4", extend),
      due("call_5", { onDeadline: "escalate", escalation: ESCALATION }),
    ];
    expect(passDeadlines(requests, NOW_MS)).toEqual({
      changes: [expired("call_1"), withdrawn("call_2"), expired("call_3"), withdrawn("call_4"), withdrawn("call_5")],
      remaining: null,
      onDeadline: "operator",
      subject: "call_2",
    });
  });

  test("stops the run where one of them says so, whatever the others say", () => {
    const requests = [
      due("call_1", { onDeadline: "operator" }),
      due("call_2", { onDeadline: "abort" }),
      due("call_3"),
      due("call_4", { onDeadline: "extend" }),
      later,
    ];
    expect(passDeadlines(requests, NOW_MS)).toEqual({
      changes: [expired("call_1"), expired("call_2"), expired("call_3"), withdrawn("call_4"), withdrawn("call_9")],
      remaining: null,
      onDeadline: "abort",
      subject: "call_2",
    });
  });
});

describe("holdOf", () => {
  test("waits for those of the request whose deadline comes first, and does then what that one says", () => {
    const first = aRequest("call_2", {
      terms: { ...RULE, rule: "big_refund", onDeadline: "escalate", escalation: ESCALATION },
      level: 1,
      deadlineMs: NOW_MS + 1,
    });
    expect(holdOf([aRequest("call_1"), first])).toEqual({
      kind: "approval",
      waitingFor: { kind: "approvers", principal: "role:director", subject: "call_2", reason: "big_refund" },
      deadline: { at: NOW_MS + 1 },
      onDeadline: "escalate",
    });
  });

  test("says how many have to agree, where one is not enough", () => {
    const two = aRequest("call_1", { terms: { ...RULE, quorum: 2 } });
    expect(holdOf([two]).waitingFor).toMatchObject({ principal: "role:manager or user:bob", quorum: 2 });
    expect(holdOf([aRequest("call_1")]).waitingFor).not.toHaveProperty("quorum");
  });

  test("names roles and users", () => {
    expect(holdOf([aRequest("call_1")]).waitingFor.principal).toBe("role:manager or user:bob");
  });

  test("needs a request to wait for", () => {
    expect(() => holdOf([])).toThrow(new RangeError("A hold for approval needs a pending request"));
  });
});
