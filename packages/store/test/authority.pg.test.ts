import { holdOf } from "@holdpoint/core";
import { expect, test } from "vitest";
import {
  type ApprovalDecision,
  createSession,
  decideApproval,
  grantRoles,
  newId,
  type Run,
  requestCancel,
  revokeRole,
  rolesOf,
  type Store,
  submitRun,
  syncRoles,
} from "../src/index.ts";
import { type Asking, aDecision, by } from "./a-decision.ts";
import { AGENT, ALICE, aCall, aReply, aRun, aWorker, claim } from "./a-run.ts";
import { type Asked, anAskingRun, aRequest, moved, ownerOf, reload, took } from "./a-status.ts";
import { reachesWait, useBench } from "./a-store.ts";

const bench = useBench();

const person = (id: string) => by({ kind: "approver", id });
const decide = (asking: Asking, overrides: Partial<ApprovalDecision>) =>
  decideApproval(bench.store, aDecision(asking, overrides));
const aPerson = () => `user-${newId().slice(-8)}`;
const grant = (user: string, role = "manager") => grantRoles(bench.store, { grants: [{ user, role }], by: "olga" });

async function revision(): Promise<number> {
  const rows = await bench.sql<{ policy_revision: number }>("select policy_revision from holdpoint.tenants");
  return rows[0]?.policy_revision ?? -1;
}

test("a role counts from the moment it is granted until it is revoked", async () => {
  const user = aPerson();
  const asking = await anAskingRun(bench.store, { request: { terms: { quorum: 2 } } });
  expect(await decide(asking, person(user))).toMatchObject({ result: "refused", rule: "not_an_approver" });
  await grant(user);
  expect(await decide(asking, person(user))).toMatchObject({ result: "accepted" });
  await revokeRole(bench.store, { user, role: "manager", by: "olga" });
  const other = await anAskingRun(bench.store);
  expect(await decide(other, person(user))).toMatchObject({ rule: "not_an_approver" });
  // The first answer again, whatever has become of the right since.
  expect(await decide(asking, person(user))).toMatchObject({ result: "repeated" });
});

test.each(["approve", "approve_with_edits", "respond"] as const)(
  "nobody who has caused the call may %s, whatever roles they have",
  async (decision) => {
    const [requester, submitter, sender] = [aPerson(), aPerson(), aPerson()];
    for (const user of [requester, submitter, sender]) await grant(user);
    const asking = await anAskingRun(bench.store, { request: { excluded: [requester, submitter, sender] } });
    for (const user of [requester, submitter, sender]) {
      const brings = { args: {}, answer: "done" };
      expect(await decide(asking, { decision, ...brings, ...person(user) })).toMatchObject({ rule: "own_request" });
    }
    expect((await reload(bench.store, asking.run.id)).run).toEqual(asking.run);
    expect(await decide(asking, {})).toMatchObject({ result: "accepted" });
  },
);

/** A run of alice's session, submitted by `by` in these words, or as another run done again. */
async function submitted(sessionId: string, by: string, what: { goal: string } | { retryOf: string }): Promise<Run> {
  const kind = by === ALICE.id ? "requester" : "operator";
  const result = await submitRun(bench.store, {
    sessionId,
    agent: AGENT,
    goal: null,
    ...what,
    actor: { kind, id: by },
  });
  if (result.result !== "submitted") throw new Error(`not submitted: ${result.result}`);
  return result.run;
}

/** Lets a run ask for the release of a call, with nobody excluded but its requester. */
async function asking(run: Run, asked: Asked = {}): Promise<Asking> {
  const call = aCall();
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  const planned = await took(bench.store, claimed, { steps: [aReply([call])], calls: [call] });
  const request = aRequest(call, asked);
  const hold = holdOf([{ ...request, level: 0, extended: false, deadlineMs: planned.nowMs + 60_000 }]);
  const events = [{ type: "Held", hold }] as const;
  const held = await moved(bench.store, {
    run: planned.run,
    actor: ownerOf(planned),
    events,
    writes: { requests: [request] },
  });
  return { run: held, request };
}

test("whoever has said what a run works on may not approve, in a retry and in a later run of the session as well", async () => {
  const speaker = aPerson();
  await grant(speaker);
  await aRun(bench.store);
  const { id: sessionId } = await createSession(bench.store, ALICE.id);
  const first = await submitted(sessionId, speaker, { goal: "refund order 7 to my account" });
  await requestCancel(bench.store, { runId: first.id, actor: ALICE, reason: null });
  const again = await submitted(sessionId, ALICE.id, { retryOf: first.id });
  const later = await submitted(sessionId, ALICE.id, { goal: "as was said" });
  for (const run of [again, later]) {
    const asked = await asking(run);
    expect(await decide(asked, person(speaker))).toMatchObject({ result: "refused", rule: "own_request" });
    expect(await decide(asked, {})).toMatchObject({ result: "accepted" });
  }
});

test("whoever has spoken only after a run was submitted, or where the rule does without four eyes, may approve", async () => {
  const speaker = aPerson();
  await grant(speaker);
  await aRun(bench.store);
  const { id: sessionId } = await createSession(bench.store, ALICE.id);
  const before = await submitted(sessionId, ALICE.id, { goal: "refund order 7" });
  const after = await submitted(sessionId, speaker, { goal: "refund order 8" });
  expect(await decide(await asking(before), person(speaker))).toMatchObject({ result: "accepted" });
  const lenient = await asking(after, { excluded: [], terms: { fourEyes: false } });
  expect(await decide(lenient, person(speaker))).toMatchObject({ result: "accepted" });
});

test("whoever asked may take it back without being asked, and nothing else", async () => {
  for (const decision of ["skip", "escalate"] as const) {
    const asking = await anAskingRun(bench.store);
    expect(await decide(asking, { decision, ...person("alice") })).toMatchObject({ rule: "not_an_approver" });
  }
  const rejected = await anAskingRun(bench.store, { request: { terms: { veto: false, quorum: 2 } } });
  expect(await decide(rejected, { decision: "reject", ...person("alice") })).toMatchObject({
    run: { state: { status: "queued" } },
  });
  const aborted = await anAskingRun(bench.store);
  expect(await decide(aborted, { decision: "reject_and_abort", ...person("alice") })).toMatchObject({
    run: { state: { status: "cancelled" } },
  });
});

test("where the rule does without four eyes, whoever asked may approve in the role", async () => {
  const asking = await anAskingRun(bench.store, { request: { excluded: [], terms: { fourEyes: false } } });
  expect(await decide(asking, person("alice"))).toMatchObject({ rule: "not_an_approver" });
  await grant("alice");
  expect(await decide(asking, person("alice"))).toMatchObject({ result: "accepted" });
  await revokeRole(bench.store, { user: "alice", role: "manager", by: "olga" });
});

test("a person's name that is a role's is no role", async () => {
  const asking = await anAskingRun(bench.store);
  expect(await decide(asking, person("manager"))).toMatchObject({ rule: "not_an_approver" });
});

test("a configuration grants and revokes what is its own, and leaves people's decisions alone", async () => {
  const [kept, dropped, taken, given] = [aPerson(), aPerson(), aPerson(), aPerson()];
  const grants = [kept, dropped, taken].map((user) => ({ user, role: "manager" }));
  await syncRoles(bench.store, [...grants, ...grants]);
  await revokeRole(bench.store, { user: taken, role: "manager", by: "olga" });
  await grant(given);
  const known = await revision();
  await syncRoles(bench.store, [
    { user: kept, role: "manager" },
    { user: taken, role: "manager" },
    { user: given, role: "manager" },
  ]);
  const roles = await Promise.all([kept, dropped, taken, given].map((user) => rolesOf(bench.store, user)));
  expect(roles).toEqual([["manager"], [], [], ["manager"]]);
  expect(await revision()).toBe(known + 1);
  await syncRoles(bench.store, [{ user: dropped, role: "manager" }]);
  expect(await rolesOf(bench.store, dropped)).toEqual(["manager"]);
  expect(await rolesOf(bench.store, given)).toEqual(["manager"]);
  const { rows: shown } = await bench.admin.query(
    "select granted_by, revoked_by from holdpoint.role_assignments where user_id = $1",
    [taken],
  );
  expect(shown).toEqual([{ granted_by: "configuration", revoked_by: "olga" }]);
  await syncRoles(bench.store, []);
});

test("what a person grants stays when the configuration that had granted it names it no more", async () => {
  const user = aPerson();
  await syncRoles(bench.store, [{ user, role: "manager" }]);
  await grant(user);
  await syncRoles(bench.store, []);
  expect(await rolesOf(bench.store, user)).toEqual(["manager"]);
});

test("what changes nothing leaves the revision, and a plan made under it, in force", async () => {
  const user = aPerson();
  await grant(user);
  const known = await revision();
  await grant(user);
  await syncRoles(bench.store, []);
  expect(await revokeRole(bench.store, { user: aPerson(), role: "manager", by: "olga" })).toBe(false);
  expect(await revision()).toBe(known);
  expect(await revokeRole(bench.store, { user, role: "manager", by: "olga" })).toBe(true);
  expect(await revision()).toBe(known + 1);
});

test.each<[string, (store: Store, user: string) => Promise<unknown>]>([
  ["a grant", (store, user) => grantRoles(store, { grants: [{ user, role: "clerk" }], by: "olga" })],
  ["a configuration", (store, user) => syncRoles(store, [{ user, role: "clerk" }])],
  ["a revocation", (store, user) => revokeRole(store, { user, role: "manager", by: "olga" })],
])("%s that waits for another change of the policy is counted after it", async (_, change) => {
  const user = aPerson();
  await grant(user);
  const known = await revision();
  await using waiting = await bench.lonely();
  await bench.sql("begin");
  await bench.sql("update holdpoint.tenants set policy_revision = policy_revision + 1");
  const late = change(waiting.store, user);
  await reachesWait(bench.admin, waiting.pid, late);
  await bench.sql("commit");
  await late;
  expect(await revision()).toBe(known + 2);
  await syncRoles(bench.store, []);
});
