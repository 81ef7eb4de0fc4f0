import type { RunEvent } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { requestCancel, type Store, type TransitionResult, transitionOne } from "../src/index.ts";
import { ALICE, aWorker, claimAll, OPERATOR } from "./a-run.ts";
import { aClaimedRun, lose, ownerOf, RUNS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const historyOf = (runId: string) =>
  bench.sql<{ seq: number; event: string; actor_id: string; to_status: string }>(
    "select seq::int, event, actor_id, to_status from holdpoint.transitions where run_id = $1 order by seq",
    [runId],
  );

test("of fifty who move a run that they have all read, one does; the others are told how it is now", async () => {
  const run = await RUNS.queued(bench.store);
  const pause = (n: number) => ({
    run,
    actor: { ...OPERATOR, id: `operator-${n}` },
    events: [{ type: "PauseRequested" }] as const,
  });
  const results = await Promise.all(Array.from({ length: 50 }, (_, n) => transitionOne(bench.store, pause(n))));
  const { run: now } = await reload(bench.store, run.id);
  expect(now).toMatchObject({ version: run.version + 1, state: { status: "paused" } });
  expect(results.filter(({ result }) => result === "accepted")).toEqual([{ result: "accepted", run: now }]);
  const others = results.filter(({ result }) => result !== "accepted");
  expect(others).toHaveLength(49);
  for (const other of others) expect(other).toEqual({ result: "conflict", current: now });
  expect((await historyOf(run.id)).map(({ seq, event }) => [seq, event])).toEqual([
    [1, "Submitted"],
    [2, "PauseRequested"],
  ]);
});

test("of twenty workers that claim a lost run at once, one has it, under the next epoch", async () => {
  const lost = await lose(bench.store, (await aClaimedRun(bench.store)).run);
  const workers = await Promise.all(Array.from({ length: 20 }, () => aWorker(bench.store)));
  const claims = await Promise.all(
    workers.map((workerId) =>
      claimAll(bench.store, { runIds: [lost.id], workerId, progressMs: 60_000, mayTakeSuspect: true }),
    ),
  );
  const [claimed, ...more] = claims.flat();
  expect(more).toEqual([]);
  expect(claimed?.run.epoch).toBe(lost.epoch + 1);
  expect((await reload(bench.store, lost.id)).run.state.owner).toBe(claimed?.run.state.owner);
});

describe("a request to stop and the owner's end", () => {
  const ended: RunEvent = { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null };

  test("the end first: it stands, and the request is refused as too late", async () => {
    const claimed = await aClaimedRun(bench.store);
    const [end, request] = await bench.inOrder(claimed.run.id, endOf(claimed), stopOf(claimed.run.id));
    expect(end).toMatchObject({ result: "accepted", run: { state: { status: "completed" } } });
    expect(request).toMatchObject({ result: "refused", rule: "run_ended" });
    expect((await historyOf(claimed.run.id)).map(({ event }) => event)).toEqual(["Submitted", "Claimed", "Ended"]);
  });

  test("the request first: the run is cancelled, and what it had achieved is kept beside that", async () => {
    const claimed = await aClaimedRun(bench.store);
    const [request, end] = await bench.inOrder(claimed.run.id, stopOf(claimed.run.id), endOf(claimed));
    expect(request).toMatchObject({ result: "accepted", run: { state: { status: "cancelling" } } });
    expect(end).toMatchObject({ result: "conflict", current: { state: { status: "cancelling" } } });
    const again = await endOf(await reload(bench.store, claimed.run.id))(bench.store);
    expect(again).toMatchObject({
      result: "accepted",
      run: { state: { status: "cancelled", outcome: { kind: "succeeded" } } },
    });
    const told = await historyOf(claimed.run.id);
    expect(told.at(-1)).toMatchObject({ event: "Ended", to_status: "cancelled" });
    expect(told.map(({ to_status: status }) => status)).not.toContain("completed");
  });

  function endOf(claimed: Awaited<ReturnType<typeof aClaimedRun>>) {
    return (store: Store): Promise<TransitionResult> =>
      transitionOne(store, { run: claimed.run, actor: ownerOf(claimed), events: [ended] });
  }

  function stopOf(runId: string) {
    return (store: Store) => requestCancel(store, { runId, actor: ALICE, reason: null });
  }
});

test("a request to stop is stored whole or not at all, wherever whoever asks for it dies", async () => {
  const { passed } = await diesAt(null);
  const left: string[] = [];
  for (let at = 1; at <= passed; at += 1) {
    const { before } = await diesAt(at);
    const { run } = await reload(bench.store, before.id);
    const [last] = (await historyOf(run.id)).slice(-1);
    left.push(run.state.status);
    if (run.state.status === "running") expect([run, last?.event]).toEqual([before, "Claimed"]);
    else {
      expect(run).toMatchObject({ version: before.version + 1, state: { status: "cancelling" } });
      expect(run.state.cancelRequestedAt).not.toBeNull();
      expect(last).toMatchObject({ seq: run.version, event: "CancelRequested", to_status: "cancelling" });
    }
  }
  expect(new Set(left)).toEqual(new Set(["running", "cancelling"]));
});

/** Asks a run of its own to stop, and dies there: before a statement or after it, and nothing more is sent from then on. */
async function diesAt(at: number | null) {
  const { run: before } = await aClaimedRun(bench.store);
  const death = new Error("the process has died");
  let passed = 0;
  const live = () => {
    passed += 1;
    if (at !== null && passed >= at) throw death;
  };
  const { pool } = bench.store;
  const query = async (config: string) => {
    live();
    const answer = await pool.query(config);
    live();
    return answer;
  };
  const mortal = new Proxy(pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) });
  const asked = requestCancel({ ...bench.store, pool: mortal }, { runId: before.id, actor: ALICE, reason: null });
  if (at === null) await asked;
  else await expect(asked).rejects.toThrow(death);
  return { before, passed };
}
