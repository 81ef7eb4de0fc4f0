import { describe, expect, test } from "vitest";
import { type Action, type Actions, actionsFor } from "../src/actions.ts";
import type { ActorKind } from "../src/event.ts";
import type { RunState } from "../src/state.ts";
import { STATUSES } from "../src/status.ts";
import { aRun, HOLDS } from "./builders.ts";

function offered(run: RunState, ...kinds: readonly ActorKind[]): readonly string[] {
  const actions = actionsFor(
    run,
    kinds.map((kind) => ({ kind, id: "user:ann" })),
  );
  return Object.entries(actions).flatMap(([action, rule]) => (rule === null ? [action] : []));
}

function rulesFor(run: RunState, ...kinds: readonly ActorKind[]): Actions {
  return actionsFor(
    run,
    kinds.map((kind) => ({ kind, id: "user:ann" })),
  );
}

/** What each part may do with a run at rest in each status, by hand. */
const OFFERED: readonly (readonly [(typeof STATUSES)[number], Partial<Record<ActorKind, readonly Action[]>>])[] = [
  ["queued", { requester: ["message", "cancel"], operator: ["message", "cancel", "pause"] }],
  ["running", { requester: ["message", "cancel"], operator: ["message", "cancel", "pause", "resume", "terminate"] }],
  [
    "waiting_input",
    { requester: ["message", "answer", "cancel"], operator: ["message", "cancel", "pause", "terminate"] },
  ],
  ["waiting_approval", { approver: ["decide"], requester: ["message", "cancel"] }],
  ["waiting_dependency", { requester: ["message", "cancel"], operator: ["message", "cancel", "pause", "terminate"] }],
  ["waiting_operator", { operator: ["message", "cancel", "pause", "retry", "skip", "abort", "terminate"] }],
  [
    "retrying",
    { requester: ["message", "cancel"], operator: ["message", "cancel", "pause", "retry_now", "terminate"] },
  ],
  [
    "outcome_unknown",
    {
      operator: ["message", "cancel", "resume", "mark_done", "not_established", "terminate"],
      requester: ["message", "cancel"],
    },
  ],
  ["paused", { operator: ["message", "cancel", "pause", "resume", "terminate"], requester: ["message", "cancel"] }],
  ["lost", { operator: ["message", "cancel", "resume", "terminate"], requester: ["message", "cancel"] }],
  ["cancelling", { operator: ["message", "cancel", "terminate"], requester: ["message", "cancel"] }],
  ["completed", { operator: ["retry_as_new_run"], requester: ["retry_as_new_run"] }],
  ["failed", { operator: ["retry_as_new_run"], requester: ["retry_as_new_run"] }],
  ["cancelled", { operator: ["retry_as_new_run"], requester: ["retry_as_new_run"] }],
];

describe("actionsFor", () => {
  const rows = OFFERED.flatMap(([status, byKind]) =>
    Object.entries(byKind).map(([kind, actions]) => [status, kind as ActorKind, actions] as const),
  );
  test.each(rows)("offers in %s to a %s: %j", (status, kind, actions) => {
    expect([...offered(aRun(status), kind)].sort()).toEqual([...actions].sort());
  });

  test("has a row for every status", () => {
    expect(OFFERED.map(([status]) => status)).toEqual(STATUSES);
  });

  test("offers what any of the caller's parts may do", () => {
    const run = aRun("waiting_approval");
    expect(offered(run, "requester", "approver")).toEqual(["message", "decide", "cancel"]);
    expect(offered(run)).toEqual([]);
  });

  test("offers a decision during a pause of what waits for one, and of nothing else", () => {
    const paused = aRun("paused", { resumeTo: { to: "hold", hold: HOLDS.approval } });
    expect(offered(paused, "approver")).toEqual(["decide"]);
    expect(rulesFor(paused, "requester").decide).toBe("not_yours_to_raise");
    for (const kind of ["input", "dependency", "operator"] as const) {
      const other = aRun("paused", { resumeTo: { to: "hold", hold: HOLDS[kind] } });
      expect(rulesFor(other, "approver").decide).toBe("no_approval_pending");
    }
    expect(rulesFor(aRun("paused"), "approver").decide).toBe("no_approval_pending");
  });

  test("names the rule that says most where nothing is offered", () => {
    const run = aRun("waiting_input");
    expect(rulesFor(run, "requester").pause).toBe("not_yours_to_raise");
    expect(rulesFor(run, "requester", "operator").resume).toBe("not_paused");
    expect(rulesFor(run, "operator")).toMatchObject({ answer: "not_yours_to_raise", retry: "choice_not_offered" });
    expect(rulesFor(run, "requester")).toMatchObject({
      decide: "no_approval_pending",
      retry_as_new_run: "run_not_ended",
    });
    expect(rulesFor(aRun("queued"), "requester").answer).toBe("nothing_asked");
  });

  test("says of a run that has ended that it has ended", () => {
    const rules = rulesFor(aRun("completed"), "requester", "approver", "operator");
    expect(rules).toMatchObject({
      message: "run_ended",
      answer: "run_ended",
      decide: "run_ended",
      cancel: "run_ended",
    });
  });

  test("refuses to skip over an effect whose outcome nobody knows", () => {
    expect(rulesFor(aRun("waiting_operator", { openAttempts: 1, lookUpsOver: true }), "operator").skip).toBe(
      "effect_unsettled",
    );
  });
});
