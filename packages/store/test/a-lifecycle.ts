import { expect, test } from "vitest";
import {
  commitSteps,
  decideApproval,
  loadRun,
  newId,
  recordFact,
  requestCancel,
  type Store,
  transitionOne,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, claim, grantAll, MANAGER } from "./a-run.ts";
import { SHOWN, TERMS } from "./a-status.ts";

/** The main way of a run, for a store that is opened in whatever manner. */
export function testLifecycle(opened: { readonly store: Store }): void {
  test("a run goes from submission over an approval to its end", async () => {
    const { store } = opened;
    await grantAll(store);
    const run = await aRun(store);
    expect(run).toMatchObject({ version: 1, goal: "refund order 4411", inputSeq: 1, state: { status: "queued" } });

    const first = await claim(store, run.id, await aWorker(store));
    expect(first.run).toMatchObject({ version: 2, epoch: 1, state: { status: "running", queuedSince: null } });
    expect(first.messages).toEqual([{ seq: 1, role: "user", text: "refund order 4411" }]);

    const call = aCall();
    const [replied] = await commitSteps(store, [aCommit(first, { steps: [aReply([call])], calls: [call] })]);
    expect(replied).toMatchObject({ result: "taken", stepSeq: 1, started: false, status: "running" });

    const afterReply = { ...first.run, stepSeq: 1 };
    const worker = { kind: "worker", id: first.run.state.owner ?? "" } as const;
    const approvalId = newId();
    const held = await transitionOne(store, {
      run: afterReply,
      actor: worker,
      events: [
        {
          type: "Held",
          hold: {
            kind: "approval",
            waitingFor: { kind: "approvers", principal: "role:manager", subject: call.id, reason: "over_limit" },
            deadline: { inMs: 60_000 },
            onDeadline: "reject",
          },
        },
      ],
      writes: {
        requests: [
          {
            id: approvalId,
            callId: call.id,
            tool: call.tool,
            args: "{}",
            argsHash: call.argsHash,
            terms: TERMS,
            request: SHOWN,
            excluded: ["alice"],
            editedBy: null,
            approval: null,
          },
        ],
      },
    });
    expect(held).toMatchObject({
      result: "accepted",
      run: { version: 3, holdSeq: 3, state: { status: "waiting_approval", owner: null } },
    });

    const decision = { approvalId, decision: "approve", argsHash: call.argsHash, note: null } as const;
    expect(await decideApproval(store, { ...decision, actor: { kind: "approver", id: "alice" } })).toMatchObject({
      result: "refused",
      rule: "own_request",
    });
    expect(await decideApproval(store, { ...decision, argsHash: "other", actor: MANAGER })).toMatchObject({
      rule: "hash_mismatch",
    });
    expect(await decideApproval(store, { ...decision, actor: MANAGER })).toMatchObject({
      result: "accepted",
      run: { state: { status: "queued" } },
    });
    expect(await decideApproval(store, { ...decision, actor: MANAGER })).toMatchObject({ result: "repeated" });

    const second = await claim(store, run.id, await aWorker(store));
    expect(second.approvals).toMatchObject([{ state: "approved", decidedBy: "mona" }]);
    const start = aStart(call, 1, approvalId);
    const [begun] = await commitSteps(store, [aCommit(second, { start, progress: false })]);
    expect(begun).toMatchObject({ result: "taken", started: true, stepSeq: 2 });
    expect(await loadRun(store, run.id)).toMatchObject({
      run: { externalRef: call.operationId, state: { openAttempts: 1 } },
      openAttempts: [{ id: start.attemptId, number: 1 }],
      approvals: [{ state: "spent" }],
    });

    const [done] = await commitSteps(store, [
      aCommit(
        { ...second, run: { ...second.run, stepSeq: 2 } },
        {
          steps: [{ kind: "tool_result", callId: call.id, result: "succeeded", output: { refund: "re_1" } }],
          settles: [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker", externalRef: "re_1" }],
        },
      ),
    ]);
    expect(done).toMatchObject({ result: "taken", stepSeq: 3 });

    const ended = await transitionOne(store, {
      run: { ...second.run, stepSeq: 3, state: { ...second.run.state, openAttempts: 0 } },
      actor: { kind: "worker", id: second.run.state.owner ?? "" },
      events: [{ type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null }],
    });
    expect(ended).toMatchObject({ result: "accepted", run: { state: { status: "completed", openAttempts: 0 } } });
    expect(await requestCancel(store, { runId: run.id, actor: ALICE, reason: null })).toMatchObject({
      result: "refused",
      rule: "run_ended",
    });
  });

  test("a message completes a question and is read in as a step of its own", async () => {
    const { store } = opened;
    const run = await aRun(store);
    const first = await claim(store, run.id, await aWorker(store));
    const worker = { kind: "worker", id: first.run.state.owner ?? "" } as const;
    await transitionOne(store, {
      run: first.run,
      actor: worker,
      events: [
        {
          type: "Held",
          hold: {
            kind: "input",
            waitingFor: { kind: "requester", principal: "alice", subject: null, reason: "question" },
            deadline: { inMs: 60_000 },
            onDeadline: "no_answer",
          },
        },
      ],
    });
    const fact = { runId: run.id, kind: "answer", text: "order 4411", actor: ALICE, holdSeq: 3 } as const;
    expect(await recordFact(store, fact)).toMatchObject({ result: "accepted", run: { state: { status: "queued" } } });
    expect(await recordFact(store, fact)).toMatchObject({ result: "refused", rule: "hold_is_over" });
    const second = await claim(store, run.id, await aWorker(store));
    expect(second.unread).toMatchObject([{ body: { kind: "message", text: "order 4411" } }]);
  });
}
