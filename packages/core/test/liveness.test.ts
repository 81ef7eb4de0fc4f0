import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  goneAtMs,
  judgeLiveness,
  LIVENESS_VERDICTS,
  type LivenessEvidence,
  type OwnerEvidence,
  PROOF_OF,
} from "../src/liveness.ts";

const LEASE_MS = 15_000;
const GRACE_MS = 5_000;
const NOW_MS = 1_000_000;
const WATCH = { sinceMs: 0, graceMs: GRACE_MS };

const anOwner = (more: Partial<OwnerEvidence> = {}): OwnerEvidence => ({
  kind: "process",
  leaseUntilMs: NOW_MS + 10_000,
  leaseMs: LEASE_MS,
  graceMs: null,
  goneReason: null,
  ...more,
});
const owned = (owner: OwnerEvidence | null, progressDueAtMs: number | null = NOW_MS + 60_000): LivenessEvidence => ({
  of: "owned",
  owner,
  progressDueAtMs,
});
const judge = (evidence: LivenessEvidence, watch = WATCH) => judgeLiveness(evidence, { nowMs: NOW_MS, watch });

describe("a run that a process has", () => {
  test("is active while the lease lasts and progress is not due", () => {
    expect(judge(owned(anOwner()))).toEqual({ verdict: "active", rule: "lease", reason: null, untilMs: null });
    expect(judge(owned(anOwner(), null))).toMatchObject({ verdict: "active" });
    expect(judge(owned(anOwner({ kind: "task" })))).toMatchObject({ verdict: "active", rule: "heartbeat" });
  });

  test("is waited for from the end of the lease to the end of the grace", () => {
    expect(judge(owned(anOwner({ leaseUntilMs: NOW_MS })))).toEqual({
      verdict: "grace_pending",
      rule: "lease",
      reason: "lease_expired",
      untilMs: NOW_MS + GRACE_MS,
    });
  });

  test("of a task is waited for by the heartbeat and the task's own grace", () => {
    const task = anOwner({ kind: "task", leaseUntilMs: NOW_MS - 6_000, graceMs: 60_000 });
    expect(judge(owned(task))).toEqual({
      verdict: "grace_pending",
      rule: "heartbeat",
      reason: "heartbeat_missed",
      untilMs: NOW_MS + 54_000,
    });
  });

  test("is given one whole lease after a gap of the watch, however long its own has been over", () => {
    const owner = anOwner({ leaseUntilMs: NOW_MS - 3_600_000 });
    expect(judge(owned(owner), { ...WATCH, sinceMs: NOW_MS - 1_000 })).toEqual({
      verdict: "grace_pending",
      rule: "own_gap",
      reason: "lease_expired",
      untilMs: NOW_MS - 1_000 + LEASE_MS + GRACE_MS,
    });
  });

  test("of a task that is heard of once in a week is given an hour after a gap, or where many are silent", () => {
    const week = 7 * 86_400_000;
    const task = anOwner({ kind: "task", leaseMs: week, leaseUntilMs: NOW_MS - 6_000, graceMs: 1_000 });
    expect(judge(owned(task), { ...WATCH, sinceMs: NOW_MS })).toMatchObject({
      rule: "own_gap",
      untilMs: NOW_MS + 3_600_000 + 1_000,
    });
    expect(judge(owned(task), { ...WATCH, sinceMs: -week })).toMatchObject({
      rule: "blast_radius",
      untilMs: NOW_MS - 5_000 + 3_600_000,
    });
  });

  test("whose owner is overdue and still not declared gone is given another lease", () => {
    expect(judge(owned(anOwner({ leaseUntilMs: NOW_MS - GRACE_MS })))).toEqual({
      verdict: "grace_pending",
      rule: "blast_radius",
      reason: "lease_expired",
      untilMs: NOW_MS + LEASE_MS,
    });
  });

  test("is lost once its owner is declared gone, for the reason that its row gives", () => {
    expect(judge(owned(anOwner({ goneReason: "retired" })))).toEqual({
      verdict: "lost",
      rule: "lease",
      reason: "worker_gone",
      untilMs: null,
    });
  });

  test("is kept where its owner's row cannot be read", () => {
    expect(judge(owned(null))).toEqual({
      verdict: "evidence_unreadable",
      rule: "lease",
      reason: null,
      untilMs: null,
    });
  });

  test("is waited for shortly before its progress is due, and wedged after it: renewal is no progress", () => {
    expect(judge(owned(anOwner(), NOW_MS + GRACE_MS + 1))).toMatchObject({ verdict: "active" });
    expect(judge(owned(anOwner(), NOW_MS + GRACE_MS))).toEqual({
      verdict: "grace_pending",
      rule: "progress",
      reason: "wedged",
      untilMs: NOW_MS + GRACE_MS,
    });
    expect(judge(owned(anOwner(), NOW_MS))).toEqual({
      verdict: "lost",
      rule: "progress",
      reason: "wedged",
      untilMs: null,
    });
  });
});

describe("a run that waits", () => {
  test("for children is kept while their rows are there, and lost without them", () => {
    expect(judge({ of: "child_wait", children: 1 })).toMatchObject({ verdict: "backing_present" });
    expect(judge({ of: "child_wait", children: 0 })).toMatchObject({ verdict: "lost", reason: "backing_missing" });
  });

  test("for the other side is not ours to judge", () => {
    expect(judge({ of: "settlement" })).toMatchObject({ verdict: "not_authoritative_here", rule: PROOF_OF.settlement });
  });

  test("in the queue of a version that nobody has is waited for until its limit, never lost", () => {
    expect(judge({ of: "queued", servedBy: 0, limitMs: 9 })).toEqual({
      verdict: "grace_pending",
      rule: "served_version",
      reason: "version_gone",
      untilMs: 9,
    });
    expect(judge({ of: "queued", servedBy: 1, limitMs: 9 })).toMatchObject({ verdict: "active" });
  });

  test("for people or the clock has nothing to prove", () => {
    expect(judge({ of: "rest" })).toMatchObject({ verdict: "active" });
  });
});

describe("in every case", () => {
  const owner = fc.record({
    kind: fc.constantFrom("process" as const, "task" as const),
    leaseUntilMs: fc.integer({ min: 0, max: 200_000 }),
    leaseMs: fc.integer({ min: 100, max: 60_000 }),
    graceMs: fc.option(fc.integer({ min: 0, max: 60_000 })),
    goneReason: fc.constant(null),
  });

  test("nobody is lost by silence alone: a lease that is over is waited for, whatever the watch", () => {
    fc.assert(
      fc.property(owner, fc.nat(200_000), fc.nat(200_000), (each, sinceMs, nowMs) => {
        const watch = { sinceMs, graceMs: GRACE_MS };
        const { verdict, untilMs } = judgeLiveness(owned(each, null), { nowMs, watch });
        expect(LIVENESS_VERDICTS).toContain(verdict);
        expect(verdict).not.toBe("lost");
        if (nowMs < goneAtMs(each, watch)) expect(untilMs ?? goneAtMs(each, watch)).toBe(goneAtMs(each, watch));
      }),
    );
  });

  test("whoever renews within its lease after a gap is never overdue", () => {
    fc.assert(
      fc.property(owner, fc.nat(100_000), fc.nat(100), (each, sinceMs, percent) => {
        const renewedAtMs = sinceMs + (each.leaseMs * percent) / 100;
        expect(goneAtMs(each, { sinceMs, graceMs: GRACE_MS })).toBeGreaterThanOrEqual(renewedAtMs);
      }),
    );
  });
});
