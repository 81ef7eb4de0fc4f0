import { expect, test } from "vitest";
import { isLostReason, LOST_REASONS, lostReasonOf, PROOFS } from "../src/lost.ts";
import { reduce } from "../src/reduce.ts";
import { aRun } from "./builders.ts";

test("the reasons are these and no other, each with its proof", () => {
  const proofs = Object.entries(LOST_REASONS).map(([reason, { proof }]) => [reason, proof]);
  expect(proofs).toEqual([
    ["lease_expired", "lease"],
    ["process_exited", "lease"],
    ["worker_gone", "lease"],
    ["taken_over", "lease"],
    ["wedged", "progress"],
    ["heartbeat_missed", "heartbeat"],
    ["version_gone", "served_version"],
    ["backing_missing", "backing_record"],
  ]);
  for (const { proof, seen, grace } of Object.values(LOST_REASONS)) {
    expect(PROOFS[proof]).not.toBe("");
    expect([seen, grace].every((text) => /^[a-z].*[a-z]$/.test(text))).toBe(true);
  }
});

test("only what a live process was doing goes on at once, and a person decides where nobody knows what was done", () => {
  const by = (recovery: string) =>
    Object.entries(LOST_REASONS).flatMap(([reason, rule]) => (rule.recovery === recovery ? [reason] : []));
  expect(by("at_once")).toEqual(["lease_expired", "process_exited", "worker_gone", "taken_over", "wedged"]);
  expect(by("with_its_evidence")).toEqual(["heartbeat_missed", "version_gone"]);
  expect(by("by_a_person")).toEqual(["backing_missing"]);
});

test("a worker's end is the reason of its runs' loss; one that retired is simply gone", () => {
  expect(lostReasonOf("process_exited")).toBe("process_exited");
  expect(lostReasonOf("lease_expired")).toBe("lease_expired");
  expect(lostReasonOf("retired")).toBe("worker_gone");
  expect([isLostReason("wedged"), isLostReason("toString"), isLostReason("owner_gone")]).toEqual([true, false, false]);
});

test("a deadline that is passed for a reason of its own tells the operator that reason, and asks in no other way", () => {
  const waits = aRun("waiting_dependency");
  const passed = {
    type: "DeadlinePassed",
    remaining: null,
    onDeadline: "operator",
    because: "backing_missing",
  } as const;
  const decision = reduce(waits, passed, { kind: "sweeper", id: "s1" });
  expect(decision).toMatchObject({
    verdict: "moved",
    next: {
      status: "waiting_operator",
      waitingFor: { kind: "operator", reason: "backing_missing", subject: waits.waitingFor?.subject ?? null },
      onDeadline: "escalate",
    },
  });
});
