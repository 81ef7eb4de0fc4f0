import { describe, expect, test } from "vitest";
import {
  commitSteps,
  findUntoldParents,
  findViolations,
  loadRun,
  newId,
  requestCancel,
  requestPause,
  stopChildren,
  stopDescendants,
  tellingMove,
  tellParents,
  transition,
  transitionOne,
} from "../src/index.ts";
import {
  aChildrenStart,
  aParent,
  aParentCall,
  aPlanning,
  CHILDREN,
  childHold,
  commitOne,
  endChild,
  holdParent,
  startCommit,
} from "./a-parent.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, OPERATOR, SWEEPER } from "./a-run.ts";
import { aClaimedRun, ownerOf, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

describe("the start of child runs", () => {
  test("makes them queued, each in a session of its own, and counts them on the parent's row", async () => {
    const { parent, call, childIds } = await aParent(bench.store);
    expect(parent.run.state).toMatchObject({ status: "running", liveChildren: 2 });
    expect(parent.steps.at(-1)?.body).toMatchObject({ kind: "children_started", total: 2, ordinals: [0, 1] });
    for (const [ordinal, id] of childIds.entries()) {
      const child = await reload(bench.store, id);
      expect(child.run).toMatchObject({
        parent: parent.run.id,
        parentCall: { callId: call.id, ordinal, try: 1 },
        ancestors: [parent.run.id],
        requester: "alice",
        submittedBy: "alice",
        line: id,
        goal: `part ${ordinal} of refund order 4411`,
        state: { status: "queued" },
      });
      expect(child.messages).toEqual([{ seq: 1, role: "user", text: child.run.goal }]);
      expect(child.run.sessionId).not.toBe(parent.run.sessionId);
    }
  });

  test("leaves nothing behind where the run was asked to pause meanwhile", async () => {
    const call = aParentCall();
    const planning = await aPlanning(bench.store, call);
    await requestPause(bench.store, { runId: planning.run.id, actor: OPERATOR });
    const start = aChildrenStart(planning, call);
    expect(await commitOne(bench.store, startCommit(planning, start))).toMatchObject({ started: false, refusal: null });
    expect(await loadRun(bench.store, start.children[0]?.id ?? "")).toBeNull();
    expect((await reload(bench.store, planning.run.id)).run.state.liveChildren).toBe(0);
  });

  test("is not taken with the call itself: it is one of the next commit", async () => {
    const call = aParentCall();
    const claimed = await aClaimedRun(bench.store);
    const start = aChildrenStart(claimed, call);
    const commit = { ...aCommit(claimed, { steps: [aReply([call])], calls: [call] }), start };
    expect(await commitOne(bench.store, commit)).toMatchObject({ result: "taken", started: false });
    expect((await reload(bench.store, claimed.run.id)).run.state.liveChildren).toBe(0);
  });

  test("is refused for an agent that nobody has registered, and says so", async () => {
    const call = aParentCall();
    const planning = await aPlanning(bench.store, call);
    const start = aChildrenStart(planning, call);
    const children = start.children.map((child) => ({ ...child, agent: { name: "nobody", version: "1" } }));
    const result = await commitOne(bench.store, startCommit(planning, { ...start, children }));
    expect(result).toMatchObject({ result: "taken", started: false, refusal: "agent_unknown" });
  });

  test("is refused beyond the most runs that a tree may have, counted over all of it", async () => {
    const { parent, childIds } = await aParent(bench.store, { count: 3 });
    const call = aParentCall();
    const child = await reload(bench.store, childIds[0] ?? "");
    const planning = await aPlanning(bench.store, call, { run: child.run });
    const start = aChildrenStart(planning, call, { count: 2, treeLimit: 4 });
    expect(await commitOne(bench.store, startCommit(planning, start))).toMatchObject({ refusal: "tree_limit" });
    const within = { ...start, treeLimit: 5 };
    expect(await commitOne(bench.store, startCommit(planning, within))).toMatchObject({ started: true, refusal: null });
    expect((await reload(bench.store, start.children[0]?.id ?? "")).run.ancestors).toEqual([
      parent.run.id,
      child.run.id,
    ]);
  });

  test("whose answer is lost is found again by its children, and not made twice", async () => {
    const call = aParentCall();
    const planning = await aPlanning(bench.store, call);
    const start = aChildrenStart(planning, call);
    const result = await bench.answerLost(planning.run.id, (store) => commitOne(store, startCommit(planning, start)));
    expect(result).toMatchObject({ result: "taken", started: true });
    expect((await reload(bench.store, planning.run.id)).run.state.liveChildren).toBe(2);
  });

  test("of another claim with the same steps is not taken for this one's", async () => {
    const call = aParentCall();
    const planning = await aPlanning(bench.store, call);
    const [mine, other] = [aChildrenStart(planning, call), aChildrenStart(planning, call)];
    expect(await commitOne(bench.store, startCommit(planning, other))).toMatchObject({ started: true });
    expect(await commitOne(bench.store, startCommit(planning, mine))).toEqual({ result: "reload" });
  });

  test("for the same arguments again goes on in the lines of the children before", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 1 });
    await endChild(bench.store, childIds[0] ?? "", { kind: "blocked", step: "s", reason: "r" });
    await tellParents(bench.store, childIds, SWEEPER);
    const now = await reload(bench.store, parent.run.id);
    const start = aChildrenStart(now, call, { count: 1 });
    const again = { ...start, body: { ...start.body, try: 2 } };
    expect(await commitOne(bench.store, startCommit(now, again))).toMatchObject({ started: true });
    const child = await reload(bench.store, start.children[0]?.id ?? "");
    expect(child.run).toMatchObject({ line: childIds[0], retryOf: childIds[0], parentCall: { try: 2 } });
  });

  test("of a graph's node goes on in the line of the same place, whichever round it is", async () => {
    const effect = { ...CHILDREN, equalCallsAreDistinct: true, sameWork: "place" } as const;
    const first = aParentCall({ effect, toolCallId: "write/0@1", args: { goal: "a" }, argsHash: "a" });
    const { parent, childIds } = await aParent(bench.store, { count: 1, call: first });
    await endChild(bench.store, childIds[0] ?? "");
    await tellParents(bench.store, childIds, SWEEPER);
    const [again, other] = ["write/0@2", "write/1@1"].map((toolCallId, ordinal) =>
      aParentCall({ effect, toolCallId, ordinal: ordinal + 1, args: { goal: "b" }, argsHash: "b" }),
    );
    if (again === undefined || other === undefined) throw new Error("there are two");
    const told = await reload(bench.store, parent.run.id);
    const nodes = [again, other].map(({ id }) => ({ id, node: "write", round: 1, item: 0, settled: null }));
    const started = { kind: "nodes_started", turn: 2, callIds: [again.id, other.id], nodes } as const;
    await commitOne(bench.store, aCommit(told, { steps: [started], calls: [again, other] }));
    const lines: string[] = [];
    for (const call of [again, other]) {
      const now = await reload(bench.store, parent.run.id);
      const start = aChildrenStart(now, call, { count: 1 });
      await commitOne(bench.store, startCommit(now, start));
      lines.push((await reload(bench.store, start.children[0]?.id ?? "")).run.line);
    }
    expect(lines[0]).toBe(childIds[0]);
    expect(lines[1]).not.toBe(childIds[0]);
  });
});

describe("a stop of an ancestor", () => {
  test("forbids every start below it from the moment it is stored, before the cascade comes there", async () => {
    const { parent, childIds } = await aParent(bench.store, { count: 1 });
    const call = aCall();
    const child = await reload(bench.store, childIds[0] ?? "");
    const planning = await aPlanning(bench.store, call, { run: child.run });
    await requestCancel(bench.store, { runId: parent.run.id, actor: ALICE, reason: null });
    const [result] = await commitSteps(bench.store, [aCommit(planning, { start: aStart(call) })]);
    expect(result).toMatchObject({
      result: "taken",
      started: false,
      refusal: "ancestor_stopped",
      status: "running",
    });
    const more = aParentCall({ ordinal: 1 });
    const rows = aCommit(await reload(bench.store, child.run.id), { calls: [more] });
    await commitSteps(bench.store, [rows]);
    const again = await reload(bench.store, child.run.id);
    expect(await commitOne(bench.store, startCommit(again, aChildrenStart(again, more)))).toMatchObject({
      started: false,
    });
  });

  test("that commits while a start below waits for the ancestor's row refuses it", async () => {
    const { parent, childIds } = await aParent(bench.store, { count: 1 });
    const call = aCall();
    const child = await reload(bench.store, childIds[0] ?? "");
    const planning = await aPlanning(bench.store, call, { run: child.run });
    const [cancelled, [result]] = await bench.inOrder(
      parent.run.id,
      (store) => requestCancel(store, { runId: parent.run.id, actor: ALICE, reason: null }),
      (store) => commitSteps(store, [aCommit(planning, { start: aStart(call) })]),
    );
    expect(cancelled).toMatchObject({ result: "accepted" });
    expect(result).toMatchObject({ result: "taken", started: false });
  });

  test("reaches everything below it, of every depth", async () => {
    const top = await aParent(bench.store, { count: 2 });
    const middle = await aParent(bench.store, {
      count: 2,
      run: (await reload(bench.store, top.childIds[0] ?? "")).run,
    });
    await requestCancel(bench.store, { runId: top.parent.run.id, actor: ALICE, reason: null });
    const { moved, errors } = await stopDescendants(bench.store, top.parent.run.id);
    expect(errors).toEqual([]);
    expect(moved).toHaveLength(4);
    const statuses = await bench.sql<{ status: string }>(
      "select status from holdpoint.runs where $1 = any(ancestors) order by id",
      [top.parent.run.id],
    );
    expect(statuses.map(({ status }) => status).toSorted()).toEqual([
      "cancelled",
      "cancelled",
      "cancelled",
      "cancelling",
    ]);
    await tellParents(bench.store, middle.childIds, SWEEPER);
    expect((await reload(bench.store, middle.parent.run.id)).run.state).toMatchObject({
      status: "cancelling",
      liveChildren: 0,
    });
  });

  test("has stopped the run itself once the last of its children has, and no sooner", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 2 });
    await holdParent(bench.store, parent, call);
    await requestCancel(bench.store, { runId: parent.run.id, actor: ALICE, reason: null });
    await stopDescendants(bench.store, parent.run.id);
    await tellParents(bench.store, childIds.slice(0, 1), SWEEPER);
    expect((await reload(bench.store, parent.run.id)).run.state).toMatchObject({
      status: "cancelling",
      liveChildren: 1,
    });
    await tellParents(bench.store, childIds, SWEEPER);
    expect((await reload(bench.store, parent.run.id)).run.state).toMatchObject({
      status: "cancelled",
      liveChildren: 0,
    });
  });

  test("of single children leaves the others alone", async () => {
    const { parent, childIds } = await aParent(bench.store, { count: 2 });
    const [first, second] = childIds;
    const { moved } = await stopChildren(bench.store, { parentId: parent.run.id, childIds: [first ?? ""] });
    expect(moved.map(({ id, state }) => [id, state.endReason])).toEqual([[first, "not_needed"]]);
    expect((await reload(bench.store, second ?? "")).run.state.status).toBe("queued");
  });
});

describe("the end of a child", () => {
  test("wakes a parent that waits for the last of them, and is counted once by two who tell it at once", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 2 });
    await holdParent(bench.store, parent, call);
    for (const id of childIds) await endChild(bench.store, id);
    const seen = await findUntoldParents(bench.store, { limit: 10, childIds });
    const telling = seen.map((each) => ({ ...tellingMove(each), actor: SWEEPER }));
    const [first, second] = await Promise.all([transition(bench.store, telling), transition(bench.store, telling)]);
    const results = [...first, ...second].map((each) => (each instanceof Error ? each : each.result));
    expect(results.toSorted()).toEqual(["accepted", "conflict"]);
    const woken = await reload(bench.store, parent.run.id);
    expect(woken.run.state).toMatchObject({ status: "queued", liveChildren: 0 });
    expect(woken.children).toMatchObject([
      { ended: true, result: "what it brought", outcome: { kind: "succeeded" } },
      { ended: true },
    ]);
  });

  test("leaves a parent waiting that needs another, and wakes it with the other's", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 2 });
    await holdParent(bench.store, parent, call);
    await endChild(bench.store, childIds[0] ?? "");
    await tellParents(bench.store, childIds, SWEEPER);
    expect((await reload(bench.store, parent.run.id)).run.state).toMatchObject({
      status: "waiting_dependency",
      liveChildren: 1,
    });
    await endChild(bench.store, childIds[1] ?? "");
    await tellParents(bench.store, childIds, SWEEPER);
    expect((await reload(bench.store, parent.run.id)).run.state).toMatchObject({ status: "queued", liveChildren: 0 });
  });

  test("told between the parent's look and its hold refuses the hold: it never sleeps over it", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 1 });
    await endChild(bench.store, childIds[0] ?? "");
    await tellParents(bench.store, childIds, SWEEPER);
    const held = await transitionOne(bench.store, {
      run: parent.run,
      events: [{ type: "Held", hold: childHold(call) }],
      actor: ownerOf(parent),
    });
    expect(held).toMatchObject({ result: "conflict", current: { state: { liveChildren: 0 } } });
  });

  test("told after the hold that was decided without it wakes the parent", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 1 });
    await endChild(bench.store, childIds[0] ?? "");
    await holdParent(bench.store, parent, call);
    const { moved } = await tellParents(bench.store, childIds, SWEEPER);
    expect(moved.map(({ state }) => state.status)).toEqual(["queued"]);
  });

  test("is told in a pause as well, and the parent goes on with it when it is resumed", async () => {
    const { parent, call, childIds } = await aParent(bench.store, { count: 1 });
    await holdParent(bench.store, parent, call);
    await requestPause(bench.store, { runId: parent.run.id, actor: OPERATOR });
    await endChild(bench.store, childIds[0] ?? "");
    await tellParents(bench.store, childIds, SWEEPER);
    expect((await reload(bench.store, parent.run.id)).run.state).toMatchObject({
      status: "paused",
      liveChildren: 0,
      resumeTo: { to: "queued" },
    });
  });

  test("keeps its parent from ending before it is counted", async () => {
    const { parent, childIds } = await aParent(bench.store, { count: 1 });
    await endChild(bench.store, childIds[0] ?? "");
    const ended = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null } as const;
    const actor = ownerOf(parent);
    expect(await transitionOne(bench.store, { run: parent.run, events: [ended], actor })).toMatchObject({
      result: "rejected",
      rule: "children_live",
    });
    await expect(
      bench.sql(
        "update holdpoint.runs set status = 'completed', owner = null, ended_at = now(), outcome = '{}' where id = $1",
        [parent.run.id],
      ),
    ).rejects.toThrow("no_end_with_open_work");
  });
});

test("children that nobody has started, or that are not counted, are found", async () => {
  const { parent } = await aParent(bench.store, { count: 1 });
  await bench.sql("update holdpoint.runs set live_children = 5 where id = $1", [parent.run.id]);
  expect(await findViolations(bench.store)).toEqual([{ rule: "live_children_differ", runId: parent.run.id }]);
  await bench.sql("update holdpoint.runs set live_children = 1 where id = $1", [parent.run.id]);
  const stranger = await aRun(bench.store);
  await bench.sql(
    `update holdpoint.runs set parent = $2, parent_call = $3, parent_ordinal = 0, parent_try = 1, ancestors = array[$2::uuid]
     where id = $1`,
    [stranger.id, parent.run.id, newId()],
  );
  const rules = (await findViolations(bench.store)).map(({ rule }) => rule);
  expect(rules).toEqual(["child_nobody_has_started", "live_children_differ"]);
  await bench.sql(
    "update holdpoint.runs set parent = null, parent_call = null, parent_ordinal = null, parent_try = null, ancestors = '{}' where id = $1",
    [stranger.id],
  );
});
