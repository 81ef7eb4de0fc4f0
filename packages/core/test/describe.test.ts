import { expect, describe as group, test } from "vitest";
import { type Described, describe } from "../src/describe.ts";
import { operatorHold } from "../src/rest.ts";
import type { WaitingFor } from "../src/state.ts";
import { STATUSES } from "../src/status.ts";
import { HOLDS, SUCCEEDED } from "./builders.ts";

/** The sentence about a run; it began to be so at 12:00. */
function sentence(run: Partial<Described> & Pick<Described, "status">): string {
  return describe({
    currentStep: null,
    waitingFor: null,
    since: "12:00",
    until: null,
    onDeadline: null,
    outcome: null,
    endReason: null,
    ownerSilent: false,
    ...run,
  });
}

function waiting(status: Described["status"], waitingFor: WaitingFor | null, more: Partial<Described> = {}): string {
  return sentence({ status, waitingFor, until: "18:00", ...more });
}

group("describe, a run that somebody works on", () => {
  test("in the queue", () => {
    expect(sentence({ status: "queued", until: "tomorrow 12:00" })).toMatchInlineSnapshot(
      `"Waits for a free worker since 12:00, until tomorrow 12:00."`,
    );
  });

  test("running", () => {
    expect(sentence({ status: "running" })).toMatchInlineSnapshot(`"Working since 12:00."`);
    expect(sentence({ status: "running", currentStep: "quote_refund" })).toMatchInlineSnapshot(
      `"Working (quote_refund) since 12:00."`,
    );
  });

  test("running, with a worker that has not been heard of", () => {
    expect(sentence({ status: "running", currentStep: "quote_refund", ownerSilent: true })).toMatchInlineSnapshot(
      `"Was working (quote_refund); its worker has not been heard of since 12:00."`,
    );
  });

  test("retrying", () => {
    expect(sentence({ status: "retrying", currentStep: "find_order", until: "12:05" })).toMatchInlineSnapshot(
      `"Waits to try again (find_order) since 12:00, until 12:05."`,
    );
  });

  test("with an unknown outcome", () => {
    expect(sentence({ status: "outcome_unknown", currentStep: "send_refund", until: "13:00" })).toMatchInlineSnapshot(
      `"Nobody knows yet whether the last call acted (send_refund); looked up since 12:00, until 13:00."`,
    );
  });

  test("paused", () => {
    expect(sentence({ status: "paused", until: "Monday" })).toMatchInlineSnapshot(
      `"Paused by an operator since 12:00, until Monday."`,
    );
  });

  test("lost", () => {
    expect(sentence({ status: "lost", until: "13:00" })).toMatchInlineSnapshot(
      `"Its worker is gone; waits to be recovered since 12:00, until 13:00."`,
    );
  });

  test("cancelling", () => {
    expect(sentence({ status: "cancelling", currentStep: "send_refund", until: "12:10" })).toMatchInlineSnapshot(
      `"Stopping on request (send_refund) since 12:00, until 12:10."`,
    );
  });
});

group("describe, a run that waits", () => {
  test("for the requester", () => {
    const { waitingFor, onDeadline } = HOLDS.input;
    expect(waiting("waiting_input", waitingFor, { onDeadline })).toMatchInlineSnapshot(
      `"Waits for an answer from user:ann since 12:00, until 18:00; then the agent is told that nobody answered."`,
    );
  });

  test("for approval", () => {
    const { waitingFor, onDeadline } = HOLDS.approval;
    const currentStep = "send_refund of 250.00 EUR";
    expect(waiting("waiting_approval", waitingFor, { onDeadline, currentStep })).toMatchInlineSnapshot(
      `"Waits for approval of send_refund of 250.00 EUR by manager since 12:00, until 18:00; then it counts as rejected."`,
    );
    expect(waiting("waiting_approval", waitingFor)).toMatchInlineSnapshot(
      `"Waits for approval of a call by manager since 12:00, until 18:00."`,
    );
    const either = { ...waitingFor, principal: "role:manager or role:finance" };
    expect(waiting("waiting_approval", either)).toMatchInlineSnapshot(
      `"Waits for approval of a call by manager or finance since 12:00, until 18:00."`,
    );
    const two = { ...waitingFor, principal: "role:finance", quorum: 2 };
    expect(waiting("waiting_approval", two)).toMatchInlineSnapshot(
      `"Waits for approval of a call by 2 of finance since 12:00, until 18:00."`,
    );
  });

  test("for a service", () => {
    const waitingFor = { kind: "service", principal: "payments", subject: "call_1", reason: "throttled" } as const;
    expect(waiting("waiting_dependency", waitingFor, { onDeadline: "continue" })).toMatchInlineSnapshot(
      `"Waits for the service payments (throttled) since 12:00, until 18:00; then it is tried again."`,
    );
    expect(waiting("waiting_dependency", waitingFor, { onDeadline: "operator" })).toMatchInlineSnapshot(
      `"Waits for the service payments (throttled) since 12:00, until 18:00; then an operator decides."`,
    );
  });

  test("for an effect to settle", () => {
    const waitingFor = {
      kind: "callback",
      principal: "payments",
      subject: "call_1",
      reason: "settlement_pending",
    } as const;
    const currentStep = "send_refund";
    expect(waiting("waiting_dependency", waitingFor, { onDeadline: "continue", currentStep })).toMatchInlineSnapshot(
      `"Waits for payments to settle send_refund since 12:00, until 18:00; then the other side is asked."`,
    );
    expect(waiting("waiting_dependency", waitingFor)).toMatchInlineSnapshot(
      `"Waits for payments to settle a call since 12:00, until 18:00."`,
    );
  });

  test("for its child runs", () => {
    const waitingFor = {
      kind: "child",
      principal: "run_a and 2 more",
      subject: "call_1",
      reason: "child_running",
    } as const;
    const currentStep = "ask_departments";
    expect(waiting("waiting_dependency", waitingFor, { onDeadline: "operator", currentStep })).toMatchInlineSnapshot(
      `"Waits for run_a and 2 more (ask_departments) since 12:00, until 18:00; then an operator decides."`,
    );
    const stopping = { ...waitingFor, subject: null, reason: "children_stopping" };
    expect(waiting("waiting_dependency", stopping)).toMatchInlineSnapshot(
      `"Waits for run_a and 2 more since 12:00, until 18:00."`,
    );
  });

  test("for an operator", () => {
    const { waitingFor, onDeadline } = operatorHold("call_failed", "call_1");
    expect(waiting("waiting_operator", waitingFor, { onDeadline })).toMatchInlineSnapshot(
      `"Waits for an operator (call failed) since 12:00, until 18:00; then it is escalated again."`,
    );
  });

  test.each([
    ["abort", "then the run is stopped"],
    ["extend", "then it is extended once"],
    ["continue", "then it goes on"],
  ] as const)("with its consequence: %s", (onDeadline, then) => {
    const timer = { kind: "timer", principal: "a timer", subject: null, reason: "due" } as const;
    expect(waiting("waiting_dependency", timer, { onDeadline })).toBe(
      `Waits for a timer (due) since 12:00, until 18:00; ${then}.`,
    );
  });

  test("for somebody that its row does not name", () => {
    expect(waiting("waiting_dependency", null)).toMatchInlineSnapshot(`"Waits for somebody since 12:00, until 18:00."`);
    expect(waiting("waiting_dependency", null, { onDeadline: "continue" })).toMatchInlineSnapshot(
      `"Waits for somebody since 12:00, until 18:00; then it goes on."`,
    );
    expect(waiting("waiting_dependency", null, { onDeadline: "continue" })).toMatchInlineSnapshot(
      `"Waits for somebody since 12:00, until 18:00; then it goes on."`,
    );
  });

  test("with a consequence that this version does not know", () => {
    expect(waiting("waiting_input", HOLDS.input.waitingFor, { onDeadline: "page_somebody" })).toMatchInlineSnapshot(
      `"Waits for an answer from user:ann since 12:00, until 18:00."`,
    );
  });
});

group("describe, a run that has ended", () => {
  test("with success, and only then says so", () => {
    expect(sentence({ status: "completed", outcome: SUCCEEDED })).toMatchInlineSnapshot(
      `"Completed with success at 12:00."`,
    );
    expect(sentence({ status: "completed" })).toMatchInlineSnapshot(`"Completed at 12:00."`);
  });

  test("in part", () => {
    const outcome = { kind: "partial", reason: "one of two orders was refunded" } as const;
    expect(sentence({ status: "completed", outcome })).toMatchInlineSnapshot(
      `"Completed in part: one of two orders was refunded, at 12:00."`,
    );
  });

  test("without having achieved anything", () => {
    const outcome = { kind: "blocked", step: "find_order", reason: "there is no such order" } as const;
    expect(sentence({ status: "completed", outcome })).toMatchInlineSnapshot(
      `"Ended without achieving anything: there is no such order, at step find_order, at 12:00."`,
    );
  });

  test("failed", () => {
    expect(sentence({ status: "failed", endReason: "no_such_order" })).toMatchInlineSnapshot(
      `"Failed (no such order) at 12:00."`,
    );
    expect(sentence({ status: "failed" })).toMatchInlineSnapshot(`"Failed at 12:00."`);
  });

  test("cancelled", () => {
    expect(sentence({ status: "cancelled", endReason: "aborted" })).toMatchInlineSnapshot(
      `"Cancelled (aborted) at 12:00."`,
    );
    expect(sentence({ status: "cancelled" })).toMatchInlineSnapshot(`"Cancelled at 12:00."`);
  });
});

group("describe", () => {
  test.each(STATUSES)("is one sentence with its time: %s", (status) => {
    expect(sentence({ status })).toMatch(/^[A-Z][^.]*12:00\.$/);
  });
});

group("describe, a task that is worked on elsewhere", () => {
  const task = { executor: "runner 7" };

  test("says for whom it waits, and who has it in hands", () => {
    expect(sentence({ status: "queued", task: { executor: null }, until: "tomorrow" })).toMatchInlineSnapshot(
      `"Waits for somebody to start it since 12:00, until tomorrow."`,
    );
    expect(sentence({ status: "running", task })).toMatchInlineSnapshot(`"In the hands of runner 7 since 12:00."`);
    expect(sentence({ status: "running", task: { executor: null } })).toMatchInlineSnapshot(
      `"In the hands of somebody since 12:00."`,
    );
    expect(sentence({ status: "running", task, ownerSilent: true })).toMatchInlineSnapshot(
      `"In the hands of runner 7, who has not been heard of, since 12:00."`,
    );
    expect(sentence({ status: "lost", task: { executor: null }, until: "13:00" })).toMatchInlineSnapshot(
      `"Whoever had it in hands has not been heard of; waits to hear of them since 12:00, until 13:00."`,
    );
  });

  test("names who is pending while it is being stopped", () => {
    expect(sentence({ status: "cancelling", task, until: "12:10" })).toMatchInlineSnapshot(
      `"Stopping on request; runner 7 has not said yet that it has stopped, since 12:00, until 12:10."`,
    );
    expect(sentence({ status: "cancelling", task: { executor: null }, until: "12:10" })).toMatchInlineSnapshot(
      `"Stopping on request since 12:00, until 12:10."`,
    );
  });

  test("is described as every run where nobody elsewhere has to act", () => {
    expect(sentence({ status: "paused", task })).toBe(sentence({ status: "paused" }));
    expect(sentence({ status: "completed", task, outcome: SUCCEEDED })).toBe(
      sentence({ status: "completed", outcome: SUCCEEDED }),
    );
  });
});

group("describe, a run that waits for a person since its children achieved nothing", () => {
  const blocked = { run: "run_2", step: "grant_access", reason: "permission_missing", others: 0 };
  const held = operatorHold("child_blocked", "call_1").waitingFor;

  test("names the child, its step and its reason", () => {
    expect(waiting("waiting_operator", held, { blockedBy: blocked })).toMatchInlineSnapshot(
      `"Waits for an operator: run_2 achieved nothing (permission missing, at step grant_access), since 12:00, until 18:00."`,
    );
  });

  test("names the first, and says how many others there are", () => {
    expect(waiting("waiting_operator", held, { blockedBy: { ...blocked, others: 2 } })).toContain(
      "(permission missing, at step grant_access), and 2 more are blocked, since",
    );
  });
});
