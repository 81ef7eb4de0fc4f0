import { type Call, holdOf } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import {
  createSession,
  decideApproval,
  grantRoles,
  hashArgs,
  type LoadedRun,
  newId,
  putMemory,
  type RegisteredTool,
  type Run,
  requestCancel,
  submitRun,
  tellParents,
} from "../src/index.ts";
import { aDecision, by } from "./a-decision.ts";
import { aChildrenStart, aParent, aParentCall, commitOne, endChild, startCommit } from "./a-parent.ts";
import { AGENT, ALICE, aCall, aReply, aRun, aWorker, claim, OPERATOR, SWEEPER } from "./a-run.ts";
import { anAskingRun, aRequest, moved, ownerOf, reload, TERMS, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

/** Somebody who may decide as a manager. */
async function aManager(): Promise<string> {
  const user = `user-${newId().slice(-8)}`;
  await grantRoles(bench.store, { grants: [{ user, role: "manager" }], by: "olga" });
  return user;
}

const DELEGATE: RegisteredTool = {
  name: "delegate",
  description: "Has others do it.",
  effect: "children",
  inputSchema: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
  rules: [],
  presentation: { redact: [], amount: null, risk: null },
};

const EDITED = { order: "edited" };
const EDITED_HASH = hashArgs("delegate", EDITED);

/** A claimed run whose call somebody has edited, and approved like that. */
async function anEdited(editor: string) {
  const args = { order: "as the model said" };
  const argsHash = hashArgs("delegate", args);
  const call = aParentCall({ args, argsHash, verdict: { kind: "needs_approval", approval: TERMS } });
  const requested = { args: JSON.stringify(args), argsHash };
  const asking = await anAskingRun(bench.store, { calls: [call], request: requested, tools: [DELEGATE] });
  const edit = { decision: "approve_with_edits", args: EDITED, ...by({ kind: "approver", id: editor }) } as const;
  expect(await decideApproval(bench.store, aDecision(asking, edit))).toMatchObject({ result: "accepted" });
  const claimed = await claim(bench.store, asking.run.id, await aWorker(bench.store));
  const approvalId = claimed.approvals.find(({ editedBy }) => editedBy === editor)?.id ?? "";
  return { claimed, call: { ...call, argsHash: EDITED_HASH }, approvalId };
}

/** Starts the only child of a call, by its n-th try; gives its id. */
async function startOne(claimed: LoadedRun, call: Call, approvalId: string | null, number = 1): Promise<string> {
  const start = aChildrenStart(claimed, call, { count: 1, approvalId });
  const commit = startCommit(claimed, { ...start, body: { ...start.body, try: number } });
  expect(await commitOne(bench.store, commit)).toMatchObject({ started: true, refusal: null });
  return start.children[0]?.id ?? "";
}

async function endBlocked(childId: string): Promise<void> {
  await endChild(bench.store, childId, { kind: "blocked", step: "look", reason: "permission_missing" });
  await tellParents(bench.store, [childId], SWEEPER);
}

async function retried(sessionId: string, retryOf: string): Promise<Run> {
  const result = await submitRun(bench.store, { sessionId, agent: AGENT, goal: null, retryOf, actor: OPERATOR });
  if (result.result !== "submitted") throw new Error(`not submitted: ${result.result}`);
  return result.run;
}

describe("children of a call that a person has edited", () => {
  test("go on in the line of those before them when the call is tried again", async () => {
    const { claimed, call, approvalId } = await anEdited(await aManager());
    const first = await startOne(claimed, call, approvalId);
    await endBlocked(first);
    const again = await reload(bench.store, claimed.run.id);
    const second = await startOne(again, call, approvalId, 2);
    expect((await reload(bench.store, second)).run).toMatchObject({ line: first, retryOf: first });
  });

  test("go on in it when another run of the line makes the call as it ran, and not as the model had made it", async () => {
    const { claimed, call, approvalId } = await anEdited(await aManager());
    const first = await startOne(claimed, call, approvalId);
    await endBlocked(first);
    const { id: runId, sessionId } = claimed.run;
    await requestCancel(bench.store, { runId, actor: ALICE, reason: null });
    await moved(bench.store, {
      run: (await reload(bench.store, runId)).run,
      actor: ownerOf(claimed),
      events: [{ type: "Released", retryAt: null }],
    });
    const run = await retried(sessionId, runId);
    const other = aParentCall();
    const same = aParentCall({ argsHash: EDITED_HASH, ordinal: 1 });
    const planning = await claim(bench.store, run.id, await aWorker(bench.store));
    const asked = await took(bench.store, planning, { steps: [aReply([other, same])], calls: [other, same] });
    const anew = await startOne(asked, other, null);
    expect((await reload(bench.store, anew)).run).toMatchObject({ line: anew, retryOf: null });
    const on = await startOne(await reload(bench.store, run.id), same, null);
    expect((await reload(bench.store, on)).run).toMatchObject({ line: first, retryOf: first });
  });
});

describe("what a child run asks for", () => {
  /** Lets a run ask for the release of a call, with nobody excluded but its requester; what that person is answered. */
  async function answerTo(run: Run, user: string): Promise<string> {
    const call = aCall();
    const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
    const planned = await took(bench.store, claimed, { steps: [aReply([call])], calls: [call] });
    const request = aRequest(call);
    const hold = holdOf([{ ...request, level: 0, extended: false, deadlineMs: planned.nowMs + 60_000 }]);
    const held = await moved(bench.store, {
      run: planned.run,
      actor: ownerOf(planned),
      events: [{ type: "Held", hold }],
      writes: { requests: [request] },
    });
    const decision = { ...aDecision({ run: held, request }), ...by({ kind: "approver", id: user }) };
    const decided = await decideApproval(bench.store, decision);
    return decided.result === "refused" ? decided.rule : decided.result;
  }

  test("is approved by nobody who had spoken to its parent, when it is done again by hand as well", async () => {
    const speaker = await aManager();
    await aRun(bench.store);
    const { id: sessionId } = await createSession(bench.store, ALICE.id);
    const words = { goal: "refund it to my account", actor: { kind: "operator", id: speaker } } as const;
    const said = await submitRun(bench.store, { sessionId, agent: AGENT, ...words });
    if (said.result !== "submitted") throw new Error(said.result);
    await requestCancel(bench.store, { runId: said.run.id, actor: ALICE, reason: null });
    const { childIds } = await aParent(bench.store, { count: 1, run: await aRun(bench.store, { sessionId }) });
    const [childId = ""] = childIds;
    await endBlocked(childId);
    const child = await reload(bench.store, childId);
    expect(await answerTo(await retried(child.run.sessionId, childId), speaker)).toBe("own_request");
  });

  test("is approved by nobody whose memory the run above it may have been told", async () => {
    const [keeper, later] = [await aManager(), await aManager()];
    const requester = `requester-${newId().slice(-8)}`;
    const kept = { subject: requester, key: "account", value: "pays to DE00", validForMs: 60_000 };
    await putMemory(bench.store, { ...kept, by: keeper });
    await aRun(bench.store);
    const { id: sessionId } = await createSession(bench.store, requester);
    const { childIds } = await aParent(bench.store, { count: 2, run: await aRun(bench.store, { sessionId }) });
    await putMemory(bench.store, { ...kept, key: "other", by: later });
    const [first, second] = await Promise.all(childIds.map((id) => reload(bench.store, id)));
    if (first === undefined || second === undefined) throw new Error("there are two");
    expect(await answerTo(first.run, keeper)).toBe("own_request");
    expect(await answerTo(second.run, later)).toBe("accepted");
  });

  test("is approved by nobody who has edited what it, or the run above it, was started with", async () => {
    const editor = await aManager();
    const { claimed, call, approvalId } = await anEdited(editor);
    const childId = await startOne(claimed, call, approvalId);
    const child = await reload(bench.store, childId);
    const { childIds } = await aParent(bench.store, { count: 1, run: child.run });
    const grandchild = await reload(bench.store, childIds[0] ?? "");
    expect(await answerTo(grandchild.run, editor)).toBe("own_request");
    const other = await anEdited(await aManager());
    const its = await reload(bench.store, await startOne(other.claimed, other.call, other.approvalId));
    expect(await answerTo(its.run, editor)).toBe("accepted");
  });
});
