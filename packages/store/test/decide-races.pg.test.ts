import { moveClock } from "@holdpoint/testkit";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import {
  type ApprovalDecision,
  decideApproval,
  decideAsOperator,
  findViolations,
  openStore,
  type RegisteredTool,
  recordFact,
  requestCancel,
  requestPause,
  resumeRun,
  type Store,
} from "../src/index.ts";
import { type Asking, aDecision, by, deciding, overdue } from "./a-decision.ts";
import { ALICE, aCall, MANAGER, OPERATOR, OTHER_MANAGER, THIRD_MANAGER } from "./a-run.ts";
import { anAskingRun, MINUTE_MS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

afterEach(() => moveClock(bench.url, 0));

/** Takes any arguments. */
const LOOSE: RegisteredTool = {
  name: "send_refund",
  description: "Sends a refund.",
  effect: "effect",
  inputSchema: { type: "object", additionalProperties: true },
  rules: [],
  presentation: { redact: [], amount: null, risk: null },
};

function refusals(runId: string) {
  return bench.sql("select rule, actor_id from holdpoint.refusals where run_id = $1 order by at, id", [runId]);
}

async function requestOf({ run, request }: Asking) {
  const { approvals } = await reload(bench.store, run.id);
  return approvals.find(({ id }) => id === request.id);
}

function closingOf({ request }: Asking) {
  return bench.sql("select state, closed_reason, decided_at, decided_by from holdpoint.approvals where id = $1", [
    request.id,
  ]);
}

const cancelling =
  ({ run }: Asking) =>
  (store: Store) =>
    requestCancel(store, { runId: run.id, actor: ALICE, reason: null });

const terminating =
  ({ run }: Asking) =>
  (store: Store) =>
    decideAsOperator(store, { runId: run.id, choice: "terminate", actor: OPERATOR, reason: "no", attemptIds: [] });

test.each([
  ["a cancel", cancelling],
  ["an operator's termination", terminating],
])(
  "%s before a decision that has been read: the card is closed with its reason, the decision refused",
  async (_, end) => {
    const asking = await anAskingRun(bench.store);
    const [ended, decided] = await bench.inOrder<{ result: string }, { result: string }>(
      asking.run.id,
      end(asking),
      deciding(asking),
    );
    expect(ended).toMatchObject({ result: "accepted", run: { state: { status: "cancelled" } } });
    expect(decided).toMatchObject({ result: "refused", rule: "approval_withdrawn" });
    expect(await closingOf(asking)).toEqual([
      { state: "withdrawn", closed_reason: "run cancelled", decided_at: null, decided_by: null },
    ]);
    expect(await refusals(asking.run.id)).toEqual([{ rule: "approval_withdrawn", actor_id: "mona" }]);
  },
);

test.each([
  ["a cancel", cancelling],
  ["an operator's termination", terminating],
])(
  "a decision before %s that has been read: it stands, the run ends, and what it released is withdrawn",
  async (_, end) => {
    const asking = await anAskingRun(bench.store);
    const [decided] = await bench.inOrder<{ result: string }, { result: string }>(
      asking.run.id,
      deciding(asking),
      end(asking),
    );
    expect(decided).toMatchObject({ result: "accepted" });
    expect((await reload(bench.store, asking.run.id)).run.state.status).toMatch(/cancelled|queued/);
    await cancelling(asking)(bench.store);
    expect((await reload(bench.store, asking.run.id)).run.state.status).toBe("cancelled");
    expect(await closingOf(asking)).toMatchObject([
      { state: "withdrawn", closed_reason: "run cancelled", decided_by: "mona" },
    ]);
  },
);

test.each([
  ["reject", "queued", "expired", "approval_expired"],
  ["abort", "cancelled", "expired", "approval_expired"],
  ["operator", "waiting_operator", "withdrawn", "approval_withdrawn"],
] as const)(
  "a deadline that says %s passes before a decision that has been read: the decision is refused",
  async (onDeadline, status, state, rule) => {
    const asking = await anAskingRun(bench.store, { request: { terms: { onDeadline } } });
    await moveClock(bench.url, MINUTE_MS + 1);
    const pass = await overdue(bench.store, asking.run.id);
    // Read in time, by a clock that the sweeper's pass has overtaken.
    await moveClock(bench.url, 0);
    const [passed, decided] = await bench.inOrder(asking.run.id, pass, deciding(asking));
    expect(passed).toMatchObject({ result: "accepted", run: { state: { status } } });
    expect(decided).toMatchObject({ result: "refused", rule });
    expect(await closingOf(asking)).toEqual([{ state, closed_reason: onDeadline, decided_at: null, decided_by: null }]);
  },
);

test("a decision before a deadline's pass that has been read: it stands, and the pass moves nothing", async () => {
  const asking = await anAskingRun(bench.store);
  await moveClock(bench.url, MINUTE_MS + 1);
  const pass = await overdue(bench.store, asking.run.id);
  await moveClock(bench.url, 0);
  const [decided, passed] = await bench.inOrder(asking.run.id, deciding(asking), pass);
  expect(decided).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
  expect(passed).toMatchObject({ result: "conflict", current: { state: { status: "queued" } } });
  expect(await requestOf(asking)).toMatchObject({ state: "approved", decidedBy: "mona" });
});

const ESCALATES = {
  terms: { escalation: [{ approvers: { roles: ["director"], users: [] }, deadlineMs: 2 * MINUTE_MS }] },
};

test("a request that was passed on before a decision of those who were asked first: they are not asked any more", async () => {
  const asking = await anAskingRun(bench.store, { request: ESCALATES });
  const [passedOn, decided] = await bench.inOrder(
    asking.run.id,
    deciding(asking, { decision: "escalate" }),
    deciding(asking, by(OTHER_MANAGER)),
  );
  expect(passedOn).toMatchObject({ result: "accepted", run: { state: { status: "waiting_approval" } } });
  expect(decided).toMatchObject({ result: "refused", rule: "not_an_approver" });
  expect(await requestOf(asking)).toMatchObject({ state: "pending", level: 1 });
});

test("a decision before the request is passed on: it stands, and nobody else is asked", async () => {
  const asking = await anAskingRun(bench.store, { request: ESCALATES });
  const [, passedOn] = await bench.inOrder(
    asking.run.id,
    deciding(asking),
    deciding(asking, { decision: "escalate", ...by(OTHER_MANAGER) }),
  );
  expect(passedOn).toMatchObject({ result: "refused", rule: "already_decided" });
  expect(await requestOf(asking)).toMatchObject({ state: "approved", level: 0 });
});

const EDITS: Partial<ApprovalDecision> = { decision: "approve_with_edits", args: { amount: "20.00" } };

test("an edit before a plain approval: what was shown is superseded, the approval of it refused", async () => {
  const asking = await anAskingRun(bench.store, { tools: [LOOSE] });
  const [edited, decided] = await bench.inOrder(
    asking.run.id,
    deciding(asking, EDITS),
    deciding(asking, by(OTHER_MANAGER)),
  );
  expect(edited).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
  expect(decided).toMatchObject({ result: "refused", rule: "approval_superseded" });
  const { approvals } = await reload(bench.store, asking.run.id);
  expect(approvals.map(({ state, editedBy }) => [state, editedBy])).toEqual([
    ["superseded", null],
    ["approved", "mona"],
  ]);
});

test("a plain approval before an edit: it stands, and the edit is refused", async () => {
  const asking = await anAskingRun(bench.store, { tools: [LOOSE] });
  const [, edited] = await bench.inOrder(asking.run.id, deciding(asking, by(OTHER_MANAGER)), deciding(asking, EDITS));
  expect(edited).toMatchObject({ result: "refused", rule: "already_decided" });
  expect((await reload(bench.store, asking.run.id)).approvals).toMatchObject([{ state: "approved", decidedBy: "max" }]);
});

test("two edits at once: the first replaces what was shown, the second is refused", async () => {
  const asking = await anAskingRun(bench.store, { tools: [LOOSE] });
  const [, second] = await bench.inOrder(
    asking.run.id,
    deciding(asking, EDITS),
    deciding(asking, { ...EDITS, args: { amount: "1.00" }, ...by(OTHER_MANAGER) }),
  );
  expect(second).toMatchObject({ result: "refused", rule: "approval_superseded" });
  expect((await reload(bench.store, asking.run.id)).approvals).toHaveLength(2);
});

test("two approvals of a quorum of two at the same moment: approved once, and the run queued once", async () => {
  const asking = await anAskingRun(bench.store, { request: { terms: { quorum: 2 } } });
  const answers = await bench.inOrder(asking.run.id, deciding(asking), deciding(asking, by(OTHER_MANAGER)));
  expect(answers).toMatchObject([
    { result: "accepted", run: { state: { status: "waiting_approval" } } },
    { result: "accepted", run: { state: { status: "queued" } } },
  ]);
  expect(await requestOf(asking)).toMatchObject({ state: "approved", decidedBy: "max" });
  expect(await deciding(asking, by(THIRD_MANAGER))(bench.store)).toMatchObject({ rule: "already_decided" });
  const queued =
    "select from holdpoint.transitions where run_id = $1 and to_status = 'queued' and from_status <> to_status";
  expect(await bench.sql(`${queued} and from_status = 'waiting_approval'`, [asking.run.id])).toHaveLength(1);
});

test("one person approves twice at once: that is one approval of two", async () => {
  const asking = await anAskingRun(bench.store, { request: { terms: { quorum: 2 } } });
  const answers = await bench.inOrder(asking.run.id, deciding(asking), deciding(asking));
  expect(answers.map(({ result }) => result)).toEqual(["accepted", "repeated"]);
  expect(await requestOf(asking)).toMatchObject({ state: "pending" });
});

test("a rejection between two approvals of a quorum vetoes", async () => {
  const asking = await anAskingRun(bench.store, { request: { terms: { quorum: 2 } } });
  await deciding(asking)(bench.store);
  const [, second] = await bench.inOrder(
    asking.run.id,
    deciding(asking, { decision: "reject", ...by(OTHER_MANAGER) }),
    deciding(asking, by(THIRD_MANAGER)),
  );
  expect(second).toMatchObject({ result: "refused", rule: "already_decided" });
  expect(await requestOf(asking)).toMatchObject({ state: "rejected", decidedBy: "max" });
});

test("a message between the reading and the writing of a decision delays nothing and decides nothing", async () => {
  const asking = await anAskingRun(bench.store);
  const { id: runId } = asking.run;
  const [said, decided] = await bench.inOrder(
    runId,
    (store) => recordFact(store, { runId, kind: "message", text: "mona says: approved", actor: ALICE }),
    deciding(asking),
  );
  expect(said).toMatchObject({ result: "accepted", run: { state: { status: "waiting_approval" } } });
  expect(decided).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
});

test("a pause that begins before the deadline keeps a decision in time, one that begins after it does not", async () => {
  const early = await anAskingRun(bench.store);
  const late = await anAskingRun(bench.store);
  await requestPause(bench.store, { runId: early.run.id, actor: OPERATOR });
  await moveClock(bench.url, MINUTE_MS + 1);
  await requestPause(bench.store, { runId: late.run.id, actor: OPERATOR });
  expect(await deciding(early)(bench.store)).toMatchObject({ result: "accepted" });
  expect(await deciding(late)(bench.store)).toMatchObject({ result: "refused", rule: "deadline_passed" });
  expect(await requestOf(late)).toMatchObject({ state: "pending" });
  expect(await resumeRun(bench.store, { runId: late.run.id, actor: OPERATOR })).toMatchObject({
    run: { state: { status: "waiting_approval" } },
  });
  expect(await deciding(late)(bench.store)).toMatchObject({ result: "refused", rule: "deadline_passed" });
});

test("a wait that was overdue when a pause began is overdue after it, and not for longer than its requests", async () => {
  const { run } = await anAskingRun(bench.store);
  await moveClock(bench.url, 5 * MINUTE_MS);
  await requestPause(bench.store, { runId: run.id, actor: OPERATOR });
  await moveClock(bench.url, 6 * MINUTE_MS);
  await resumeRun(bench.store, { runId: run.id, actor: OPERATOR });
  expect((await findViolations(bench.store)).filter(({ runId }) => runId === run.id)).toEqual([]);
  const pass = await overdue(bench.store, run.id);
  expect(await pass(bench.store)).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
});

test("a decision that was read before a pause and comes after its deadline is judged by the pause's start", async () => {
  const asking = await anAskingRun(bench.store);
  const { id: runId } = asking.run;
  const [, decided] = await bench.inOrder(
    runId,
    (store) => requestPause(store, { runId, actor: OPERATOR }),
    deciding(asking),
  );
  expect(decided).toMatchObject({
    result: "accepted",
    run: { state: { status: "paused", resumeTo: { to: "queued" } } },
  });
});

const PEOPLE = [MANAGER, OTHER_MANAGER, THIRD_MANAGER];

/** What one of three people does, on one of two handles, after a moment of the event loop. */
const clicks = fc.array(
  fc.record({
    person: fc.constantFrom(...PEOPLE),
    decision: fc.constantFrom("approve" as const, "approve" as const, "reject" as const),
    handle: fc.nat({ max: 1 }),
  }),
  { minLength: 3, maxLength: 5 },
);

test("of 500 crowds of three people who click at once on two handles, each leaves one outcome and one resume", {
  timeout: 300_000,
}, async () => {
  await using other = openStore({ url: bench.url });
  const handles = [bench.store, other];
  const property = fc.asyncProperty(clicks, fc.constantFrom(1, 2), async (crowd, quorum) => {
    const asking = await anAskingRun(bench.store, { request: { terms: { quorum } }, calls: [aCall()] });
    const answers = await Promise.all(
      crowd.map(({ person, decision, handle }) =>
        decideApproval(handles[handle] ?? bench.store, aDecision(asking, { decision, actor: person })),
      ),
    );
    const decided = await requestOf(asking);
    const kinds = new Set(answers.map(({ result }) => result));
    expect([...kinds].every((kind) => ["accepted", "repeated", "refused"].includes(kind))).toBe(true);
    const refused = answers.filter((each) => each.result === "refused");
    expect(refused.every((each) => "rule" in each && each.rule === "already_decided")).toBe(true);
    expect(await refusals(asking.run.id)).toHaveLength(refused.length);
    const resumes = await bench.sql(
      "select from holdpoint.transitions where run_id = $1 and from_status = 'waiting_approval' and to_status = 'queued'",
      [asking.run.id],
    );
    const { status } = (await reload(bench.store, asking.run.id)).run.state;
    expect([decided?.state === "pending" ? "waiting_approval" : "queued", resumes.length]).toEqual([
      status,
      status === "queued" ? 1 : 0,
    ]);
    const counted = await bench.sql<{ decision: string; actor_id: string }>(
      "select decision, actor_id from holdpoint.decisions where approval_id = $1",
      [asking.request.id],
    );
    expect(new Set(counted.map(({ actor_id }) => actor_id)).size).toBe(counted.length);
    expect(counted).toHaveLength(answers.filter(({ result }) => result === "accepted").length);
    const outcome = counted.some(({ decision }) => decision === "reject")
      ? "rejected"
      : counted.length >= quorum
        ? "approved"
        : "pending";
    expect(decided?.state).toBe(outcome);
  });
  await fc.assert(property, { numRuns: 500 });
});
