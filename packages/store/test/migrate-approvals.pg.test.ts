import { canonicalJson } from "@holdpoint/core";
import type pg from "pg";
import { expect, test } from "vitest";
import {
  commitSteps,
  decideApproval,
  findViolations,
  grantRoles,
  loadRun,
  newId,
  openStore,
  requestCancel,
} from "../src/index.ts";
import { ALICE, aCommit, aStart, aWorker, claim, MANAGER } from "./a-run.ts";
import { anOldDatabase, insertRow, TENANT } from "./an-old-database.ts";

const ARGS = { amount: "30.00" };
const OLD_RULE = {
  rule: "over_limit",
  approvers: { roles: ["manager"], users: [] },
  deadlineMs: 90_500,
  onDeadline: "reject",
  validForMs: 60_000,
};

/** A run as the version before wrote it, up to its hold; gives its ids. */
async function anOldRun(client: pg.Client, state: string) {
  const ids = { runId: newId(), sessionId: newId(), callId: newId(), approvalId: newId(), decisionId: newId() };
  const waits = state === "pending";
  const insert = (table: string, row: Readonly<Record<string, unknown>>) => insertRow(client, table, row);
  const at = new Date().toISOString();
  const { runId, callId, approvalId } = ids;
  await insert("sessions", { id: ids.sessionId, requester: "alice", message_seq: 0, created_at: at });
  const waitingFor = { kind: "approvers", principal: "role:manager", subject: callId, reason: "over_limit" };
  const deadline = new Date(Date.parse(at) + OLD_RULE.deadlineMs).toISOString();
  const waiting = {
    status: "waiting_approval",
    waiting_for: waitingFor,
    waiting_since: at,
    wait_deadline: deadline,
    on_deadline: "reject",
    hold_seq: 3,
  };
  const queued = { status: "queued", queued_since: at, wait_deadline: deadline };
  await insert("runs", {
    id: runId,
    session_id: ids.sessionId,
    agent_name: "refunds",
    agent_version: "1",
    requester: "alice",
    goal: "refund",
    input_seq: 0,
    line: runId,
    version: waits ? 3 : 4,
    step_seq: 1,
    epoch: 1,
    open_attempts: 0,
    live_children: 0,
    takeovers: 0,
    look_ups_over: false,
    checkpoint: { stepSeq: 1, turn: 1, openCalls: [], lastCompleted: null, usage: { inputTokens: 0, outputTokens: 0 } },
    created_at: at,
    updated_at: at,
    ...(waits ? waiting : queued),
  });
  const moves = [
    [null, "queued", "Submitted"],
    ["queued", "running", "Claimed"],
    ["running", "waiting_approval", "Held"],
    ["waiting_approval", "queued", "FactArrived"],
  ] as const;
  for (const [index, [from, to, event]] of moves.slice(0, waits ? 3 : 4).entries()) {
    const who = { actor_kind: "worker", actor_id: "w", epoch: 1, at };
    await insert("transitions", { run_id: runId, seq: index + 1, from_status: from, to_status: to, event, ...who });
  }
  const usage = { inputTokens: 1, outputTokens: 1 };
  const reply = { kind: "model_reply", turn: 1, message: {}, text: "", callIds: [callId], outcome: null, usage };
  await insert("steps", { run_id: runId, seq: 1, epoch: 1, kind: "model_reply", body: reply, at });
  await insert("calls", {
    run_id: runId,
    id: callId,
    turn: 1,
    ordinal: 0,
    tool_call_id: "c1",
    tool: "send_refund",
    args: canonicalJson(ARGS),
    args_hash: "h1",
    operation_id: "op_1",
    effect: { kind: "effect", keyValidForMs: null, lookUpSettlesWithinMs: null, equalCallsAreDistinct: false },
    verdict: { kind: "needs_approval", approval: OLD_RULE },
    timeout_ms: 1_000,
    retries: 1,
    at,
  });
  const isDecided = state === "approved" || state === "rejected";
  await insert("approvals", {
    id: approvalId,
    run_id: runId,
    call_id: callId,
    hold_seq: 3,
    tool: "send_refund",
    args: canonicalJson(ARGS),
    args_hash: "h1",
    rule: "over_limit",
    roles: ["manager"],
    users: [],
    excluded: ["alice"],
    state,
    requested_at: at,
    deadline,
    on_deadline: "reject",
    valid_for_ms: 60_000,
    ...(isDecided ? { decided_at: at, decided_by: "mona" } : {}),
    ...(state === "approved" ? { valid_until: deadline } : {}),
  });
  if (isDecided) {
    const decision = state === "approved" ? "approve" : "reject";
    const made = { approval_id: approvalId, run_id: runId, actor_id: "mona", decision, args_hash: "h1", at };
    await insert("decisions", { id: ids.decisionId, ...made });
  }
  return ids;
}

test("what was asked before the migration can be decided, spent and edited after it", async () => {
  await using old = await anOldDatabase("0001_effects_and_approvals.sql");
  const { client } = old;
  await client.query(
    `insert into holdpoint.agents (tenant_id, name, version, tools)
     values ($1, 'refunds', '1', '[{"name": "send_refund", "description": "d", "effect": "effect"}]')`,
    [TENANT],
  );
  const waiting = await anOldRun(client, "pending");
  const approved = await anOldRun(client, "approved");
  for (const state of ["rejected", "expired", "withdrawn"]) await anOldRun(client, state);
  await old.migrateOn();
  await using store = openStore({ url: old.url });
  expect(await findViolations(store)).toEqual([]);
  await grantRoles(store, { grants: [{ user: "mona", role: "manager" }], by: "olga" });

  const before = await loadRun(store, waiting.runId);
  const terms = { rule: "over_limit", approvers: OLD_RULE.approvers, quorum: 1, veto: true, fourEyes: true };
  const times = { deadlineMs: OLD_RULE.deadlineMs, onDeadline: "reject", validForMs: 60_000 };
  expect(before?.approvals).toMatchObject([{ state: "pending", level: 0, terms: { ...terms, ...times } }]);
  expect(before?.calls[0]?.verdict).toMatchObject({ kind: "needs_approval", approval: { ...terms, ...times } });
  const { rows } = await store.pool.query("select request from holdpoint.approvals where id = $1", [
    waiting.approvalId,
  ]);
  expect(rows).toMatchObject([{ request: { redactedArgs: ARGS, evidence: [], editSchema: null } }]);

  const decision = { approvalId: waiting.approvalId, argsHash: "h1", note: null, actor: MANAGER } as const;
  const edits = { ...decision, decision: "approve_with_edits", args: { amount: "1.00" } } as const;
  expect(await decideApproval(store, edits)).toMatchObject({ result: "refused", rule: "decision_not_offered" });
  expect(await decideApproval(store, { ...decision, decision: "approve" })).toMatchObject({
    result: "accepted",
    run: { state: { status: "queued" } },
  });
  for (const { runId, approvalId } of [waiting, approved]) {
    const claimed = await claim(store, runId, await aWorker(store));
    const [call] = claimed.calls;
    if (call === undefined) throw new Error("the call is gone");
    expect(call).toMatchObject({ effect: { settlement: null }, service: "", throttledForMs: 86_400_000 });
    const start = aStart(call, 1, approvalId);
    expect(await commitSteps(store, [aCommit(claimed, { start, progress: false })])).toMatchObject([{ started: true }]);
    await requestCancel(store, { runId, actor: ALICE, reason: null });
  }
  expect(await findViolations(store)).toEqual([]);
});
