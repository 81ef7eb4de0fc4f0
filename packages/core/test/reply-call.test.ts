import { expect, test } from "vitest";
import { isPartOfReply } from "../src/reply-call.ts";
import type { Call } from "../src/step.ts";
import { aCall } from "./builders.ts";

const READ = { kind: "read" } as const;
const EFFECT = {
  kind: "effect",
  keyValidForMs: null,
  lookUpSettlesWithinMs: null,
  equalCallsAreDistinct: false,
  settlement: null,
} as const;
const CHILDREN = {
  kind: "children",
  wait: "all",
  atOnce: 1,
  onBlocked: "tell",
  equalCallsAreDistinct: false,
  withinMs: 1,
} as const;
const ALLOWED = { kind: "allowed" } as const;
const DENIED = { kind: "denied", rule: "never", message: "No." } as const;
const INVALID = { kind: "invalid", message: "There is no tool fly." } as const;
const APPROVAL = {
  rule: "over_limit",
  approvers: { roles: ["manager"], users: [] },
  quorum: 1,
  veto: true,
  fourEyes: true,
  decisions: ["approve", "reject"],
  answerSchema: null,
  deadlineMs: 1_000,
  onDeadline: "reject",
  remindAfterMs: [],
  escalation: [],
  validForMs: 1_000,
} as const;
const GATED = { kind: "needs_approval", approval: APPROVAL } as const;

/** What a call does, what was said about it, and whether it is a part of its reply. */
const CALLS: readonly (readonly [string, Pick<Call, "effect" | "verdict">, boolean])[] = [
  ["a read", { effect: READ, verdict: ALLOWED }, true],
  ["a read that a rule forbids", { effect: READ, verdict: DENIED }, true],
  ["a call of no tool, or with arguments that do not fit", { effect: READ, verdict: INVALID }, true],
  ["a read that a person has to release", { effect: READ, verdict: GATED }, false],
  ["an effect", { effect: EFFECT, verdict: ALLOWED }, false],
  ["an effect that a rule forbids", { effect: EFFECT, verdict: DENIED }, false],
  ["a call of child runs", { effect: CHILDREN, verdict: ALLOWED }, false],
  ["a timer", { effect: { kind: "timer" }, verdict: ALLOWED }, false],
];

test.each(CALLS)("%s", (_, what, expected) => {
  expect(isPartOfReply(aCall(0, what))).toBe(expected);
});
