import { moveClock } from "@holdpoint/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { type ApprovalDecision, decideApproval, requestPause, resumeRun } from "../src/index.ts";
import { type Asking, aDecision, by, passDeadline } from "./a-decision.ts";
import { aCall, DIRECTOR, MANAGER, OPERATOR, OTHER_MANAGER } from "./a-run.ts";
import { accepted, anAskingRun, MINUTE_MS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

afterEach(() => moveClock(bench.url, 0));

const decide = (asking: Asking, overrides: Partial<ApprovalDecision>) =>
  decideApproval(bench.store, aDecision(asking, overrides));

const DIRECTORS = { approvers: { roles: ["director"], users: [] }, deadlineMs: 3 * MINUTE_MS };
const LEVELS = { escalation: [DIRECTORS] };

async function requestsOf(runId: string) {
  return (await reload(bench.store, runId)).approvals;
}

/** The run as it waits: for whom, until when (from its request on, in milliseconds), and what happens then. */
async function waitOf({ run }: Asking) {
  const { waitingFor, waitDeadline, onDeadline, status } = (await reload(bench.store, run.id)).run.state;
  const [asked] = await bench.sql(
    "select min(deadline) as deadline from holdpoint.approvals where run_id = $1 and state = 'pending'",
    [run.id],
  );
  const at = waitDeadline !== null && "at" in waitDeadline ? waitDeadline.at : null;
  return { status, principal: waitingFor?.principal, onDeadline, isTheRequests: asked?.deadline?.getTime() === at };
}

describe("respond", () => {
  const answerSchema = {
    type: "object",
    properties: { refund: { type: "string" } },
    required: ["refund"],
    additionalProperties: false,
  } as const;

  test("knows the same answer again, of text that the database does not take as it is", async () => {
    const asking = await anAskingRun(bench.store);
    const answer = { refund: "made\u0000by hand \ud800" };
    expect(await decide(asking, { decision: "respond", answer })).toMatchObject({ result: "accepted" });
    expect(await decide(asking, { decision: "respond", answer })).toMatchObject({ result: "repeated" });
  });

  test("gives the model the answer instead of the call", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: { answerSchema } } });
    const answer = { refund: "made by hand" };
    expect(await decide(asking, { decision: "respond", answer })).toMatchObject({
      result: "accepted",
      run: { state: { status: "queued" } },
    });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "answered", answer, decidedBy: "mona" }]);
    expect(await decide(asking, { decision: "respond", answer })).toMatchObject({ result: "repeated" });
    expect(await decide(asking, { decision: "respond", answer: { refund: "no" } })).toMatchObject({
      rule: "already_decided",
    });
  });

  test.each([
    ["a field is missing", {}, /refund/],
    ["there is one too many", { refund: "x", approved: true }, /approved/],
    ["it is of another type", "x", /object/],
    ["there is none", undefined, /give what the agent/],
    ["it is larger than what is kept whole", { refund: "x".repeat(32_768) }, /32781 bytes.+32768/],
  ])("is turned down with what is wrong when %s, and nothing is stored", async (_, answer, problem) => {
    const asking = await anAskingRun(bench.store, { request: { terms: { answerSchema } } });
    const given = answer === undefined ? {} : { answer };
    expect(await decide(asking, { decision: "respond", ...given })).toMatchObject({
      result: "invalid",
      problem: expect.stringMatching(problem),
    });
    expect((await reload(bench.store, asking.run.id)).run).toEqual(asking.run);
  });

  test("takes any JSON where the rule says nothing of its form, null as well", async () => {
    const asking = await anAskingRun(bench.store);
    expect(await decide(asking, { decision: "respond", answer: null })).toMatchObject({ result: "accepted" });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "answered", answer: null }]);
  });
});

test("a skipped request is neither rejected nor expired", async () => {
  const asking = await anAskingRun(bench.store);
  expect(await decide(asking, { decision: "skip" })).toMatchObject({ run: { state: { status: "queued" } } });
  expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "skipped", decidedBy: "mona" }]);
});

test.each(["approve_with_edits", "respond", "skip", "escalate"] as const)(
  "%s is refused where the rule does not offer it, whatever it brings",
  async (decision) => {
    const asking = await anAskingRun(bench.store, { request: { terms: { decisions: ["approve", "reject"] } } });
    expect(await decide(asking, { decision })).toMatchObject({ result: "refused", rule: "decision_not_offered" });
  },
);

test("a rejection that aborts ends the run, and closes its other requests with the reason", async () => {
  const calls = [aCall(), aCall({ ordinal: 1 }), aCall({ ordinal: 2 })];
  const asking = await anAskingRun(bench.store, { calls });
  const [, second] = asking.requests;
  if (second === undefined) throw new Error("there are three");
  accepted(await decide({ run: asking.run, request: second }, {}));
  const answer = await decide(asking, { decision: "reject_and_abort", note: "fraud" });
  expect(answer).toMatchObject({
    result: "accepted",
    run: { state: { status: "cancelled", endReason: "aborted", waitingFor: null } },
  });
  const rows = await bench.sql(
    "select state, decided_by, note, closed_reason from holdpoint.approvals where run_id = $1 order by id",
    [asking.run.id],
  );
  expect(rows).toEqual([
    { state: "rejected", decided_by: "mona", note: "fraud", closed_reason: null },
    { state: "withdrawn", decided_by: "mona", note: null, closed_reason: "run cancelled" },
    { state: "withdrawn", decided_by: null, note: null, closed_reason: "run cancelled" },
  ]);
  expect(await decide(asking, { decision: "reject_and_abort" })).toMatchObject({ result: "repeated" });
  expect(await decide(asking, { decision: "reject" })).toMatchObject({ rule: "already_decided" });
});

test("an abort of a paused run ends it as well", async () => {
  const asking = await anAskingRun(bench.store);
  await requestPause(bench.store, { runId: asking.run.id, actor: OPERATOR });
  expect(await decide(asking, { decision: "reject_and_abort" })).toMatchObject({
    run: { state: { status: "cancelled", endReason: "aborted", resumeTo: null } },
  });
});

test("without a veto a request is rejected by as many as would have to approve it", async () => {
  const asking = await anAskingRun(bench.store, { request: { terms: { quorum: 2, veto: false } } });
  expect(await decide(asking, { decision: "reject" })).toMatchObject({
    run: { state: { status: "waiting_approval" } },
  });
  expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "pending" }]);
  expect(await decide(asking, { decision: "reject", ...by(OTHER_MANAGER) })).toMatchObject({
    run: { state: { status: "queued" } },
  });
  expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "rejected", decidedBy: "max" }]);
});

describe("escalate", () => {
  test("asks the next level anew: other people, another deadline, no approval counted", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: { ...LEVELS, quorum: 2 } } });
    accepted(await decide(asking, by(OTHER_MANAGER)));
    expect(await decide(asking, { decision: "escalate" })).toMatchObject({ result: "accepted" });
    expect(await waitOf(asking)).toEqual({
      status: "waiting_approval",
      principal: "role:director",
      onDeadline: "reject",
      isTheRequests: true,
    });
    const [row] = await bench.sql("select roles, given, level, state from holdpoint.approvals where run_id = $1", [
      asking.run.id,
    ]);
    expect(row).toEqual({ roles: ["director"], given: 0, level: 1, state: "pending" });
    expect(await decide(asking, { decision: "escalate" })).toMatchObject({ result: "repeated" });
    expect(await decide(asking, {})).toMatchObject({ result: "refused", rule: "not_an_approver" });
    expect(await decide(asking, { decision: "escalate", ...by(DIRECTOR) })).toMatchObject({
      rule: "nothing_to_escalate_to",
    });
    expect(await decide(asking, by(DIRECTOR))).toMatchObject({ run: { state: { status: "waiting_approval" } } });
  });

  test("keeps the run waiting for what is due first", async () => {
    const calls = [aCall(), aCall({ ordinal: 1 })];
    const request = [{ terms: LEVELS }, { terms: { deadlineMs: 2 * MINUTE_MS } }];
    const asking = await anAskingRun(bench.store, { calls, request });
    await decide(asking, { decision: "escalate" });
    const { run } = await reload(bench.store, asking.run.id);
    expect(run.state.waitingFor).toMatchObject({ principal: "role:manager", subject: calls[1]?.id });
    expect(await waitOf(asking)).toMatchObject({ isTheRequests: true });
  });

  test("of a paused run is what it waits with when it is resumed", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: LEVELS } });
    await requestPause(bench.store, { runId: asking.run.id, actor: OPERATOR });
    await decide(asking, { decision: "escalate" });
    accepted(await resumeRun(bench.store, { runId: asking.run.id, actor: OPERATOR }));
    expect(await waitOf(asking)).toMatchObject({ status: "waiting_approval", principal: "role:director" });
    expect(await decide(asking, by(DIRECTOR))).toMatchObject({ run: { state: { status: "queued" } } });
  });
});

describe("a deadline", () => {
  test("passes a request on to the next level, and after the last to an operator", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: { ...LEVELS, onDeadline: "escalate" } } });
    await moveClock(bench.url, MINUTE_MS + 1);
    expect(await passDeadline(bench.store, asking.run.id)).toMatchObject({
      run: { state: { status: "waiting_approval" } },
    });
    expect(await waitOf(asking)).toMatchObject({
      principal: "role:director",
      onDeadline: "escalate",
      isTheRequests: true,
    });
    expect(await decide(asking, by(MANAGER))).toMatchObject({ rule: "not_an_approver" });
    await moveClock(bench.url, 5 * MINUTE_MS);
    expect(await passDeadline(bench.store, asking.run.id)).toMatchObject({
      run: {
        state: { status: "waiting_operator", waitingFor: { reason: "deadline_passed", subject: asking.call.id } },
      },
    });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "withdrawn", level: 1 }]);
  });

  test("is extended once, by the same time again", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: { onDeadline: "extend" } } });
    await moveClock(bench.url, MINUTE_MS + 1);
    await passDeadline(bench.store, asking.run.id);
    expect(await waitOf(asking)).toMatchObject({ status: "waiting_approval", isTheRequests: true });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "pending", extended: true, level: 0 }]);
    await moveClock(bench.url, 2 * MINUTE_MS + 5_000);
    expect(await passDeadline(bench.store, asking.run.id)).toMatchObject({ run: { state: { status: "queued" } } });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "expired", decidedBy: null }]);
  });

  test("that was extended lets whoever had not decided decide", async () => {
    const asking = await anAskingRun(bench.store, { request: { terms: { onDeadline: "extend", quorum: 2 } } });
    await decide(asking, {});
    await moveClock(bench.url, MINUTE_MS + 1);
    await passDeadline(bench.store, asking.run.id);
    expect(await decide(asking, by(OTHER_MANAGER))).toMatchObject({ run: { state: { status: "queued" } } });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "approved" }]);
  });

  test("that aborts ends the run, and takes the requests that are not due with it", async () => {
    const calls = [aCall(), aCall({ ordinal: 1 })];
    const request = [{ terms: { onDeadline: "abort" } as const }, { terms: { deadlineMs: 9 * MINUTE_MS } }];
    const asking = await anAskingRun(bench.store, { calls, request });
    await moveClock(bench.url, MINUTE_MS + 1);
    expect(await passDeadline(bench.store, asking.run.id)).toMatchObject({
      run: { state: { status: "cancelled", endReason: "aborted" } },
    });
    const rows = await bench.sql("select state, closed_reason from holdpoint.approvals where run_id = $1 order by id", [
      asking.run.id,
    ]);
    expect(rows).toEqual([
      { state: "expired", closed_reason: "abort" },
      { state: "withdrawn", closed_reason: "abort" },
    ]);
  });

  test("that nobody's request has reached only moves the run's", async () => {
    const early = { kind: "approval", deadline: { inMs: 1_000 }, onDeadline: "reject" } as const;
    const waitingFor = { kind: "approvers", principal: "role:manager", subject: null, reason: "over_limit" } as const;
    const asking = await anAskingRun(bench.store, { hold: { ...early, waitingFor } });
    await moveClock(bench.url, 2_000);
    await passDeadline(bench.store, asking.run.id);
    expect(await waitOf(asking)).toMatchObject({ status: "waiting_approval", isTheRequests: true });
    expect(await requestsOf(asking.run.id)).toMatchObject([{ state: "pending" }]);
  });
});
