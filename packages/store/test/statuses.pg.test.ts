import { type RunEvent, reduce, STATUSES } from "@holdpoint/core";
import { expect, test } from "vitest";
import { requestCancel } from "../src/index.ts";
import { ALICE, aWorker, claimAll } from "./a-run.ts";
import { RUNS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

test.each(STATUSES)("a claim of a %s run is what core's table says", async (status) => {
  const before = await RUNS[status](bench.store);
  expect(before.state.status).toBe(status);
  const workerId = await aWorker(bench.store);
  const event: RunEvent = { type: "Claimed", owner: workerId };
  const decision = reduce(before.state, event, { kind: "worker", id: workerId });
  const [claimed] = await claimAll(bench.store, {
    runIds: [before.id],
    workerId,
    progressMs: 60_000,
    mayTakeSuspect: true,
  });
  if ("next" in decision) {
    expect(claimed?.run).toMatchObject({ version: before.version + 1, epoch: before.epoch + 1, state: decision.next });
    expect(claimed?.run.progressDueAtMs).toBeGreaterThan(before.updatedAtMs);
  } else {
    expect(claimed).toBeUndefined();
    expect((await reload(bench.store, before.id)).run).toEqual(before);
  }
});

test.each(STATUSES)("a cancel request on a %s run is what core's table says", async (status) => {
  const before = await RUNS[status](bench.store);
  const decision = reduce(before.state, { type: "CancelRequested", reason: "no longer needed" }, ALICE);
  const answer = await requestCancel(bench.store, { runId: before.id, actor: ALICE, reason: "no longer needed" });
  const { run, approvals } = await reload(bench.store, before.id);
  if ("next" in decision) {
    expect(answer).toMatchObject({ result: "accepted", run: { state: { status: decision.next.status } } });
    expect(run.state).toMatchObject({ endReason: "no longer needed", cancelRequestedAt: { at: expect.any(Number) } });
    expect(approvals.every(({ state }) => state === "withdrawn")).toBe(true);
  } else if (decision.verdict === "refused") {
    expect(answer).toMatchObject({ result: "refused", rule: decision.rule, event: "CancelRequested" });
    expect(await refusals(before.id)).toEqual([{ rule: decision.rule, status, actor_id: "alice" }]);
    expect(run).toEqual(before);
  } else {
    expect(answer).toMatchObject({ result: "ignored" });
    expect(run).toEqual(before);
  }
});

function refusals(runId: string) {
  return bench.sql("select rule, status, actor_id from holdpoint.refusals where run_id = $1", [runId]);
}
