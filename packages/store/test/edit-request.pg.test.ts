import type { ApprovalRule, JsonObject, JsonValue, PolicyRule } from "@holdpoint/core";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  type ApprovalDecision,
  commitSteps,
  decideApproval,
  denyCalls,
  grantRoles,
  hashArgs,
  liftDenial,
  type RegisteredTool,
  requestPause,
  resumeRun,
} from "../src/index.ts";
import { aDecision, by } from "./a-decision.ts";
import { aCommit, aStart, aWorker, claim, DIRECTOR, MANAGER, OPERATOR, OTHER_MANAGER } from "./a-run.ts";
import { type Asked, accepted, aGatedCall, anAskingRun, MINUTE_MS, reload, TERMS } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const INPUT = z.object({
  order: z.string().startsWith("o-"),
  amount: z.string().regex(/^\d+\.\d\d$/),
  currency: z.string().default("EUR"),
  to: z.object({ iban: z.string() }).optional(),
});

function ask(name: string, above: string, terms: Partial<ApprovalRule>): PolicyRule {
  const { rule: _, ...approval } = { ...TERMS, ...terms };
  return {
    name,
    tools: ["send_refund"],
    when: [{ argument: "amount", is: ">", value: above }],
    action: "ask",
    approval,
  };
}

const ESCALATION = [{ approvers: { roles: ["director"], users: [] }, deadlineMs: 5 * MINUTE_MS }];

const TOOL: RegisteredTool = {
  name: "send_refund",
  description: "Sends a refund.",
  effect: "effect",
  // As a worker registers it.
  inputSchema: JSON.parse(JSON.stringify(z.toJSONSchema(INPUT, { io: "input" }))) as JsonObject,
  rules: [
    ask("over_1000", "1000", { quorum: 2, deadlineMs: 7 * MINUTE_MS }),
    ask("over_limit", "100", { escalation: ESCALATION }),
    {
      name: "no_other_currency",
      tools: ["send_refund"],
      when: [{ argument: "currency", is: "!=", value: "EUR" }],
      action: "deny",
      message: "Refunds are made in EUR.",
    },
  ],
  presentation: { redact: ["to.iban"], amount: { minor: "amount", currency: "currency" }, risk: null },
};

const ARGS = { order: "o-5", amount: "300.00", currency: "EUR" };

/** A run that asks for the release of a refund of 300 EUR. */
async function anAskedRefund({ terms, ...asked }: Asked = {}, tools: readonly RegisteredTool[] = [TOOL]) {
  const call = aGatedCall({ args: ARGS, argsHash: hashArgs("send_refund", ARGS) });
  const request = { ...asked, args: JSON.stringify(ARGS), terms: { escalation: ESCALATION, ...terms } };
  const asking = await anAskingRun(bench.store, { calls: [call], request, tools });
  const edit = (change: JsonValue, overrides: Partial<ApprovalDecision> = {}) => {
    const args = typeof change === "object" && change !== null ? { ...ARGS, ...change } : change;
    const decision = { decision: "approve_with_edits", args, ...overrides } as const;
    return decideApproval(bench.store, aDecision(asking, decision));
  };
  const requests = async () => (await reload(bench.store, asking.run.id)).approvals;
  return { ...asking, edit, requests };
}

const latest = async ({ requests }: Awaited<ReturnType<typeof anAskedRefund>>) => {
  const request = (await requests()).at(-1);
  if (request === undefined) throw new Error("there is no request");
  return request;
};

test("an edit to what needs nobody is enough; the history keeps what the model said and what ran", async () => {
  const asked = await anAskedRefund();
  expect(await asked.edit({ amount: "50.00" }, { note: "half is fair" })).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued" } },
  });
  const edited = { ...ARGS, amount: "50.00" };
  const argsHash = hashArgs("send_refund", edited);
  expect(await asked.requests()).toMatchObject([
    { id: asked.request.id, state: "superseded", decidedBy: "mona", argsHash: asked.call.argsHash, args: ARGS },
    { state: "approved", decidedBy: "mona", editedBy: "mona", note: "half is fair", argsHash, args: edited },
  ]);
  const claimed = await claim(bench.store, asked.run.id, await aWorker(bench.store));
  const { id: approvalId } = await latest(asked);
  const start = { ...aStart(asked.call, 1, approvalId), argsHash };
  expect(await commitSteps(bench.store, [aCommit(claimed, { start, progress: false })])).toMatchObject([
    { started: true },
  ]);
  expect(await bench.sql("select args_hash from holdpoint.attempts where run_id = $1", [asked.run.id])).toEqual([
    { args_hash: argsHash },
  ]);
  const { calls } = await reload(bench.store, asked.run.id);
  expect(calls).toMatchObject([{ args: ARGS, argsHash: asked.call.argsHash }]);
});

test("what was shown before an edit is not spent, and the edit is not spent for it", async () => {
  const asked = await anAskedRefund();
  await asked.edit({ amount: "50.00" });
  const { id } = await latest(asked);
  const claimed = await claim(bench.store, asked.run.id, await aWorker(bench.store));
  for (const approvalId of [id, asked.request.id]) {
    const start = aStart(asked.call, 1, approvalId);
    expect(await commitSteps(bench.store, [aCommit(claimed, { start })])).toMatchObject([
      { result: "taken", started: false },
    ]);
  }
});

test("an edit to what needs two voids the approvals before it and asks for one more", async () => {
  const asked = await anAskedRefund({ terms: { quorum: 2 } });
  accepted(await decideApproval(bench.store, aDecision(asked, by(OTHER_MANAGER))));
  expect(await asked.edit({ amount: "2000.00" })).toMatchObject({
    result: "accepted",
    run: { state: { status: "waiting_approval", waitingFor: { reason: "over_1000", subject: asked.call.id } } },
  });
  const edited = await latest(asked);
  expect(edited).toMatchObject({ state: "pending", editedBy: "mona", terms: { rule: "over_1000", quorum: 2 } });
  const given = "select given, roles from holdpoint.approvals where id = $1";
  expect(await bench.sql(given, [edited.id])).toEqual([{ given: 1, roles: ["manager"] }]);
  const { run } = await reload(bench.store, asked.run.id);
  const waitsUntil = run.state.waitDeadline !== null && "at" in run.state.waitDeadline ? run.state.waitDeadline.at : 0;
  // The request is made a moment after it was read.
  expect(edited.deadlineMs - waitsUntil).toBeGreaterThanOrEqual(0);
  expect(edited.deadlineMs - waitsUntil).toBeLessThan(MINUTE_MS);
  const again = { approvalId: edited.id, argsHash: edited.argsHash };
  expect(await decideApproval(bench.store, aDecision(asked, again))).toMatchObject({ result: "repeated" });
  expect(await decideApproval(bench.store, aDecision(asked, { ...again, ...by(OTHER_MANAGER) }))).toMatchObject({
    run: { state: { status: "queued" } },
  });
  expect(await latest(asked)).toMatchObject({ state: "approved", decidedBy: "max" });
});

test("an edit to what the editor may not approve asks those who may, and counts nothing", async () => {
  const tool = { ...TOOL, rules: [ask("over_1000", "1000", { approvers: { roles: ["director"], users: [] } })] };
  const asked = await anAskedRefund({}, [tool]);
  await asked.edit({ amount: "2000.00" });
  const edited = await latest(asked);
  expect(edited).toMatchObject({ state: "pending", decidedBy: null, editedBy: "mona" });
  const decision = aDecision(asked, { approvalId: edited.id, argsHash: edited.argsHash });
  expect(await decideApproval(bench.store, decision)).toMatchObject({ rule: "not_an_approver" });
  expect(await decideApproval(bench.store, { ...decision, actor: DIRECTOR })).toMatchObject({ result: "accepted" });
});

test("an edit to what a rule of the tool forbids is refused, and so is one that an operator forbids", async () => {
  const asked = await anAskedRefund();
  expect(await asked.edit({ currency: "USD" })).toMatchObject({ result: "refused", rule: "edit_denied" });
  const rule = { name: "incident", tools: ["*"], when: [], action: "deny", message: "No." } as const;
  await denyCalls(bench.store, { rule, reason: "incident", by: "olga" });
  const denied = await asked.edit({ amount: "1.00" });
  await liftDenial(bench.store, { name: "incident", by: "olga" });
  expect(denied).toMatchObject({ result: "refused", rule: "edit_denied" });
  expect(await asked.requests()).toMatchObject([{ state: "pending" }]);
});

test.each([
  ["a field that the tool does not name", { approved: true }, /approved/],
  ["a field inside that it does not name", { to: { iban: "DE1", bic: "X" } }, /bic/],
  ["another type", { amount: 50 }, /expected string/],
  ["another form", { amount: "50" }, /amount/],
  ["no object", ["o-5"], /object/],
  ["nothing at all", null, /object/],
  ["what was shown", {}, /approve them/],
])("arguments with %s are turned down with what is wrong", async (_, change, problem) => {
  const asked = await anAskedRefund();
  const args = Array.isArray(change) || change === null ? change : { ...ARGS, ...change };
  expect(await asked.edit({}, { args })).toMatchObject({ result: "invalid", problem: expect.stringMatching(problem) });
  expect((await reload(bench.store, asked.run.id)).run).toEqual(asked.run);
});

test("an edit without arguments, or of a tool that nobody has registered, is turned down", async () => {
  const asked = await anAskedRefund();
  const { args: _, ...nothing } = aDecision(asked, { decision: "approve_with_edits" });
  expect(await decideApproval(bench.store, nothing)).toMatchObject({ result: "invalid" });
  const unknown = await anAskedRefund({}, []);
  expect(await unknown.edit({ amount: "50.00" })).toMatchObject({ result: "invalid" });
});

test("a schema that can't be judged here turns every edit down, and no decision fails of it", async () => {
  const asked = await anAskedRefund({}, [{ ...TOOL, inputSchema: { if: {}, type: "object" } }]);
  expect(await asked.edit({ amount: "50.00" })).toMatchObject({ result: "invalid" });
  expect(await decideApproval(bench.store, aDecision(asked))).toMatchObject({ result: "accepted" });
});

test("an edit that leaves something to defaults is turned down: nobody approves what they did not see", async () => {
  const asked = await anAskedRefund();
  expect(await asked.edit({}, { args: { amount: "50.00", order: "o-5" } })).toMatchObject({
    result: "invalid",
    problem: expect.stringMatching(/give all of them/),
  });
  expect(await asked.requests()).toMatchObject([{ state: "pending" }]);
});

test("the edited request is shown as its tool says: amount, and without what is redacted", async () => {
  const asked = await anAskedRefund();
  await asked.edit({ amount: "50.00", to: { iban: "DE89" } });
  const { id } = await latest(asked);
  const [row] = await bench.sql("select request from holdpoint.approvals where id = $1", [id]);
  expect(row?.request).toMatchObject({
    amount: { minor: "50.00", currency: "EUR" },
    redactedArgs: { to: { iban: "[redacted]" } },
  });
});

test("the same edit twice is answered as the first was, another one is refused", async () => {
  const asked = await anAskedRefund();
  await asked.edit({ amount: "50.00" });
  expect(await asked.edit({ amount: "50.00" })).toMatchObject({ result: "repeated" });
  expect(await asked.edit({ amount: "40.00" })).toMatchObject({ result: "refused", rule: "approval_superseded" });
  expect(await asked.edit({ amount: "50.00" }, by(OTHER_MANAGER))).toMatchObject({ rule: "approval_superseded" });
  expect(await asked.requests()).toHaveLength(2);
});

test("an edit does not get whoever asked around four eyes where only the new rule demands them", async () => {
  await grantRoles(bench.store, { grants: [{ user: "alice", role: "manager" }], by: "olga" });
  const asked = await anAskedRefund({ terms: { fourEyes: false }, excluded: [] }, [
    { ...TOOL, rules: [ask("over_1000", "1000", {})] },
  ]);
  const alice = by({ kind: "approver", id: "alice" });
  expect(await asked.edit({ amount: "2000.00" }, alice)).toMatchObject({
    run: { state: { status: "waiting_approval" } },
  });
  const edited = await latest(asked);
  expect(edited).toMatchObject({ state: "pending", decidedBy: null });
  const decision = aDecision(asked, { approvalId: edited.id, argsHash: edited.argsHash });
  expect(await decideApproval(bench.store, { ...decision, ...alice })).toMatchObject({ rule: "own_request" });
  expect(await decideApproval(bench.store, { ...decision, ...by(MANAGER) })).toMatchObject({ result: "accepted" });
});

test("those who were asked after an escalation may edit under the same rule", async () => {
  const asked = await anAskedRefund();
  await decideApproval(bench.store, aDecision(asked, { decision: "escalate" }));
  expect(await asked.edit({ amount: "200.00" }, by(DIRECTOR))).toMatchObject({ run: { state: { status: "queued" } } });
  expect(await latest(asked)).toMatchObject({ state: "approved", decidedBy: "dora", terms: { escalation: [] } });
});

test("an edit of one request leaves the run waiting for the others", async () => {
  const calls = [0, 1].map((ordinal) => aGatedCall({ ordinal, args: ARGS, argsHash: hashArgs("send_refund", ARGS) }));
  const asking = await anAskingRun(bench.store, { calls, request: { args: JSON.stringify(ARGS) }, tools: [TOOL] });
  const edits = { decision: "approve_with_edits", args: { ...ARGS, amount: "50.00" } } as const;
  expect(await decideApproval(bench.store, aDecision(asking, edits))).toMatchObject({
    run: { state: { status: "waiting_approval", waitingFor: { subject: calls[1]?.id } } },
  });
});

test("an edit of a paused run that asks for more is what the run waits with when it is resumed", async () => {
  const asked = await anAskedRefund();
  await requestPause(bench.store, { runId: asked.run.id, actor: OPERATOR });
  await asked.edit({ amount: "2000.00" });
  expect(accepted(await resumeRun(bench.store, { runId: asked.run.id, actor: OPERATOR })).state).toMatchObject({
    status: "waiting_approval",
    waitingFor: { reason: "over_1000" },
  });
});
