import { type EXPLAINED_ABOUT, operatorHold } from "@holdpoint/core";
import { markExited, newId, reportTrouble, requestPause, type Store } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { AGENT, problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, ask, aWaitingRun, callForRefund, claim, end, move, startRefund, stored } from "./stage-run.ts";

const api = useTestApi();
const olga = () => api.as("olga-token");

/** What is said of the run itself. */
async function explained(runId: string) {
  const { runs } = await olga().explainRun({ runId });
  const [run] = runs;
  if (run === undefined) throw new Error("the run is not explained");
  return run;
}

const textsOf = (run: Awaited<ReturnType<typeof explained>>, about: (typeof EXPLAINED_ABOUT)[number]) =>
  run.reasons.flatMap((reason) => (reason.about === about ? [reason.text] : []));

async function aSentRefund() {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  const attemptId = await startRefund(api.store, run.id, { ...owner, callId });
  return { runId: run.id, workerId: owner.workerId, callId, attemptId };
}

const sql = (store: Store, text: string, values: readonly unknown[] = []) => store.pool.query(text, [...values]);

describe("runs explain", () => {
  test("a run that nobody serves: it says so, and which worker has to be started", async () => {
    await sql(
      api.store,
      "update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = 'retired' where gone_at is null",
    );
    const { id } = await aRun(api);
    const run = await explained(id);
    expect(run).toMatchObject({ id, depth: 0, status: "queued", servedBy: 0, owner: null, verdict: null });
    expect(textsOf(run, "queue")).toEqual([`No live worker has ${AGENT.name}@${AGENT.version}: nobody takes it up.`]);
    expect(run.waysOn).toEqual([
      {
        text: `a worker with ${AGENT.name}@${AGENT.version} is started`,
        command: "holdpoint worker --agents <module>",
      },
    ]);
  });

  test("a run that is worked on: by whom, when it was heard of, when it is taken for gone, what is open", async () => {
    const { runId } = await aSentRefund();
    const run = await explained(runId);
    expect(run.owner).toMatchObject({ host: expect.any(String), silent: false, drainRequestedAt: null });
    expect(Date.parse(run.owner?.heardAt ?? "")).toBeLessThan(Date.parse(run.owner?.leaseUntil ?? ""));
    expect(run.attempts).toMatchObject([
      {
        tool: "send_refund",
        number: 1,
        effectClass: "key",
        overdue: false,
        operationId: expect.stringMatching(/^op_/),
      },
    ]);
    expect(textsOf(run, "attempt")[0]).toMatch(
      /^Attempt 1 of send_refund \(an effect with a key\), sent at .* its worker waits/,
    );
    expect(run.waysOn.map(({ command }) => command)).toContain(`holdpoint workers takeover ${runId} --dry-run`);
    expect(run.recent.map(({ event }) => event)).toEqual(["Claimed", "Submitted"]);
  });

  test("an approval that nobody may decide: the role that somebody has to be given", async () => {
    const { runId, approvalId } = await aWaitingRun(api, {
      terms: { approvers: { roles: ["director"], users: [] } },
    });
    const run = await explained(runId);
    expect(run.approvals).toMatchObject([{ id: approvalId, roles: ["director"], deciders: 0 }]);
    expect(textsOf(run, "approval")[0]).toMatch(/Nobody may decide it at present/);
    expect(run.waysOn[0]?.command).toBe("holdpoint assignments grant <user> director");
    await olga().grantRole({ user: "dora", role: "director" });
    expect((await explained(runId)).approvals).toMatchObject([{ deciders: 1 }]);
  });

  test("counts only those who may decide: not who is excluded by four eyes", async () => {
    const { runId } = await aWaitingRun(api, { token: "alice-manager" });
    const before = (await explained(runId)).approvals[0]?.deciders ?? 0;
    await sql(api.store, "update holdpoint.approvals set excluded = excluded || array['mona'] where run_id = $1", [
      stored(runId),
    ]);
    expect((await explained(runId)).approvals[0]?.deciders).toBe(before - 1);
  });

  test("a service that is closed, a pause that was asked for, and the last verdict", async () => {
    const run = await aRun(api);
    const owner = await claim(api.store, run.id);
    await reportTrouble(api.store, { service: "bank", reason: "throttled", retryAfterMs: 60_000 });
    await requestPause(api.store, { runId: stored(run.id), actor: { kind: "operator", id: "olga" } });
    const marked = await explained(run.id);
    expect(textsOf(marked, "request")[0]).toMatch(/^It was asked to pause at/);
    await olga().resumeRun({ runId: run.id });
    const waitingFor = { kind: "service", principal: "bank", subject: null, reason: "throttled" } as const;
    const hold = { kind: "dependency", waitingFor, deadline: { inMs: 60_000 }, onDeadline: "continue" } as const;
    await move(api.store, { runId: run.id, workerId: owner.workerId, event: { type: "Held", hold } });
    await sql(
      api.store,
      `insert into holdpoint.verdicts (tenant_id, run_id, run_version, verdict, reason, rule, evidence, until, at)
       select id, $1, 1, 'grace_pending', 'lease_expired', 'own_gap', '{"status":"running"}', holdpoint.clock(), holdpoint.clock()
       from holdpoint.tenants`,
      [stored(run.id)],
    );
    const held = await explained(run.id);
    expect(held.service).toMatchObject({ name: "bank", reason: "throttled" });
    expect(textsOf(held, "service")[0]).toMatch(/closed for all runs until/);
    expect(held.verdict).toMatchObject({ verdict: "grace_pending", rule: "own_gap", evidence: { status: "running" } });
    expect(textsOf(held, "verdict")[0]).toMatch(/by the rule own gap: kept until/);
  });

  test("a run whose worker is gone: it says when it was last heard of and that it is recovered next", async () => {
    const { runId, workerId } = await aSentRefund();
    await markExited(api.store, workerId);
    const run = await explained(runId);
    expect(run.owner).toMatchObject({ silent: true, goneAt: null });
    expect(textsOf(run, "owner")[0]).toMatch(/it has been declared gone/);
    expect(run.waysOn[0]?.text).toMatch(/in the sweeper's next pass$/);
  });

  test("a run that waits for an operator, and one that has ended", async () => {
    const waiting = await aRun(api);
    const owner = await claim(api.store, waiting.id);
    await move(api.store, {
      runId: waiting.id,
      workerId: owner.workerId,
      event: { type: "Held", hold: operatorHold("call_failed", newId()) },
    });
    expect((await explained(waiting.id)).waysOn.map(({ command }) => command?.split(" ")[4])).toEqual([
      "retry",
      "skip",
      "abort",
    ]);
    const done = await aRun(api);
    await end(api.store, done.id, await claim(api.store, done.id));
    const ended = await explained(done.id);
    expect(ended.reasons).toHaveLength(1);
    expect(ended.waysOn).toEqual([]);
  });

  test("a tree: each live child with its own chain, and the way up", async () => {
    const parent = await aRun(api);
    const child = await aRun(api);
    const grandchild = await aRun(api);
    const over = await aRun(api);
    await end(api.store, over.id, await claim(api.store, over.id));
    const adopt = (one: string, of: readonly string[]) =>
      sql(
        api.store,
        `update holdpoint.runs set parent = $2, ancestors = $3, parent_call = gen_random_uuid(), parent_ordinal = 0, parent_try = 1,
           told_parent_at = case when ended_at is not null then holdpoint.clock() end where id = $1`,
        [stored(one), stored(of.at(-1) ?? ""), of.map(stored)],
      );
    await adopt(child.id, [parent.id]);
    await adopt(over.id, [parent.id]);
    await adopt(grandchild.id, [parent.id, child.id]);
    await sql(api.store, "update holdpoint.runs set live_children = 1 where id = any($1::uuid[])", [
      [stored(parent.id), stored(child.id)],
    ]);
    await ask(api.store, grandchild.id, await claim(api.store, grandchild.id));
    const { runs, cut, ancestors } = await olga().explainRun({ runId: parent.id });
    expect(runs.map(({ id, depth, parent: of }) => [id, depth, of])).toEqual([
      [parent.id, 0, null],
      [child.id, 1, parent.id],
      [grandchild.id, 2, child.id],
    ]);
    expect([cut, ancestors]).toEqual([false, []]);
    expect(runs[0]?.reasons.flatMap(({ about, text }) => (about === "child" ? [text] : []))).toEqual([
      `Its child ${child.id} is queued.`,
    ]);
    expect(runs[2]?.waysOn[0]?.command).toBe(`holdpoint answer ${grandchild.id} "<answer>"`);
    const below = await olga().explainRun({ runId: grandchild.id });
    expect(below.ancestors.map(({ id }) => id)).toEqual([child.id, parent.id]);
    await sql(api.store, "delete from holdpoint.runs where id = $1", [stored(grandchild.id)]);
    expect((await explained(child.id)).reasons).toContainEqual({
      about: "child",
      text: "1 of its 1 live child runs are not there any more.",
    });
    // What this test has made by hand is no family that the others may meet.
    await sql(api.store, "update holdpoint.runs set live_children = 0 where id = any($1::uuid[])", [
      [stored(parent.id), stored(child.id)],
    ]);
  });

  test("is for who may see the run", async () => {
    const { id } = await aRun(api);
    expect((await api.as("alice-token").explainRun({ runId: id })).runs).toHaveLength(1);
    expect(await problemOf(api.as("bob-token").explainRun({ runId: id }))).toMatchObject({ code: "not_found" });
  });
});
