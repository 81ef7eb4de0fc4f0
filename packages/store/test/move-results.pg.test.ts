import { expect, test } from "vitest";
import { type Move, openStore, type Store, type TransitionResult, transitionOne } from "../src/index.ts";
import { ALICE, SWEEPER } from "./a-run.ts";
import { aClaimedRun, ended, ownerOf, RUNS, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const stop = (run: Move["run"]): Move => ({ run, actor: ALICE, events: [{ type: "CancelRequested", reason: null }] });

/** For all that can become of a move, one that comes to it; a kind that is added and not shown here does not compile. */
const COMES_TO: Readonly<Record<TransitionResult["result"], (store: Store) => Promise<Move>>> = {
  accepted: async (store) => stop(await RUNS.queued(store)),
  ignored: async (store) => stop(await RUNS.cancelling(store)),
  rejected: async (store) => stop(await ended(store, "completed")),
  conflict: async (store) => {
    const run = await RUNS.queued(store);
    await transitionOne(store, stop(run));
    return stop(run);
  },
  notFound: async (store) => ({
    ...stop(await RUNS.queued(store)),
    run: { ...(await RUNS.queued(store)), id: NOBODY },
  }),
};
const NOBODY = "00000000-0000-7000-8000-000000000000";

test.each(Object.entries(COMES_TO))(
  "that a move was %s is told as such, with the row as it is now",
  async (kind, make) => {
    const move = await make(bench.store);
    const result = await transitionOne(bench.store, move);
    expect(result.result).toBe(kind);
    if (result.result === "notFound") return expect(result).toEqual({ result: "notFound" });
    const told = result.result === "conflict" ? result.current : result.run;
    expect(told).toEqual((await reload(bench.store, move.run.id)).run);
    if (result.result === "rejected") expect(result).toMatchObject({ rule: "run_ended", event: "CancelRequested" });
  },
);

test("a database that cannot be reached is no result: it is thrown, and nobody takes it for a refusal", async () => {
  const { run } = await aClaimedRun(bench.store);
  await using away = openStore({ url: "postgresql://nobody@127.0.0.1:1/none" });
  const gone = { run, actor: SWEEPER, events: [{ type: "OwnerGone", reason: "wedged" }] } as const;
  await expect(transitionOne(away, gone)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect((await reload(bench.store, run.id)).run).toEqual(run);
});

test("a run cannot be taken out of a result that was not looked at: that does not compile", async () => {
  const claimed = await aClaimedRun(bench.store);
  const released = {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Released", retryAt: null }],
  } as const;
  const first = await transitionOne(bench.store, released);
  const second = await transitionOne(bench.store, released);
  // @ts-expect-error nobody has asked whether it was accepted
  expect([first.run?.state.status, second.run?.state.status]).toEqual(["queued", undefined]);
});
