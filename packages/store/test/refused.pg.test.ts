import { LONE_TAKEOVERS } from "@holdpoint/core";
import { expect, test } from "vitest";
import {
  claimRuns,
  findOwnRuns,
  isUnloaded,
  loseAndRecover,
  type Store,
  transition,
  transitionOne,
} from "../src/index.ts";
import { ALICE, aRun, aWorker, claim, SWEEPER } from "./a-run.ts";
import { aClaimedRun, lose, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

const BROKEN = "it breaks";

/** The run's next transitions are refused by the server, for no fault of the data's form. */
async function refuse(runId: string): Promise<void> {
  await bench.sql(`create or replace function holdpoint.refuse() returns trigger language plpgsql as
    $$ begin raise exception '${BROKEN}' using errcode = '54000'; end $$`);
  await bench.sql(`create trigger refuse_${runId.replaceAll("-", "")} before insert on holdpoint.transitions
    for each row when (new.run_id = '${runId}') execute function holdpoint.refuse()`);
}

const note = (run: Awaited<ReturnType<typeof aRun>>) => ({
  run,
  actor: ALICE,
  events: [{ type: "FactArrived", fact: "message", completesHold: false }] as const,
});

test("of several moves one that the server refuses fails alone, with its error", async () => {
  const runs = [await aRun(bench.store), await aRun(bench.store), await aRun(bench.store)];
  const [first, bad, last] = runs;
  await refuse(bad?.id ?? "");
  const results = await transition(bench.store, runs.map(note));
  expect(results).toMatchObject([{ result: "accepted" }, { message: BROKEN }, { result: "accepted" }]);
  expect(results[1]).toBeInstanceOf(Error);
  for (const run of [first, last]) expect((await reload(bench.store, run?.id ?? "")).run.version).toBe(2);
  if (bad !== undefined) await expect(transitionOne(bench.store, note(bad))).rejects.toThrow(BROKEN);
});

test("of several lost runs one that cannot be moved keeps none of the others", async () => {
  const lost = [(await aClaimedRun(bench.store)).run, (await aClaimedRun(bench.store)).run];
  await refuse(lost[0]?.id ?? "");
  const losses = lost.map((run) => ({ run, reason: "lease_expired" as const }));
  const { moved, errors } = await loseAndRecover(bench.store, losses, SWEEPER);
  expect(moved.map(({ id }) => id)).toEqual([lost[1]?.id]);
  expect(errors).toMatchObject([{ message: BROKEN }]);
});

test("of several claims one that the server refuses fails alone", async () => {
  const runs = [await aRun(bench.store), await aRun(bench.store), await aRun(bench.store)];
  await refuse(runs[1]?.id ?? "");
  const claims = { runIds: runs.map(({ id }) => id), workerId: await aWorker(bench.store), progressMs: 60_000 };
  const claimed = await claimRuns(bench.store, { ...claims, mayTakeSuspect: true });
  expect(claimed).toMatchObject([
    { run: { id: runs[0]?.id } },
    { runId: runs[1]?.id, taken: null, error: { message: BROKEN } },
    { run: { id: runs[2]?.id } },
  ]);
});

test("a claim that is split still takes one suspect", async () => {
  // The last of three shares its half of the batch with what is refused.
  const runs = [await aRun(bench.store), await aRun(bench.store), await aRun(bench.store)];
  const runIds = runs.map(({ id }) => id);
  await bench.sql("update holdpoint.runs set takeovers = $1 where id = any($2::uuid[])", [LONE_TAKEOVERS, runIds]);
  const workerId = await aWorker(bench.store);
  const claims = { runIds: [...runIds, "no id"], workerId, progressMs: 60_000, mayTakeSuspect: true };
  const claimed = await claimRuns(bench.store, claims);
  expect(claimed.filter((each) => !isUnloaded(each))).toHaveLength(1);
  expect(claimed.filter(isUnloaded)).toMatchObject([{ runId: "no id" }]);
  expect(await findOwnRuns(bench.store, { workerId, runIds: claims.runIds })).toHaveLength(1);
});

test.each(["another worker", "the same worker"])(
  "a claim that %s has followed before it was loaded is none",
  async (who) => {
    const run = await aRun(bench.store);
    const workerId = await aWorker(bench.store);
    const next = who === "the same worker" ? workerId : await aWorker(bench.store);
    const store = reloading(async () => {
      await lose(bench.store, (await reload(bench.store, run.id)).run);
      await claim(bench.store, run.id, next);
    });
    expect(await claimRuns(store, { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true })).toEqual(
      [],
    );
    expect((await reload(bench.store, run.id)).run).toMatchObject({ epoch: 2, state: { owner: next } });
  },
);

/** The same store, but for what sends its statements. */
function storeWith(query: (config: Sent) => Promise<{ readonly rows: Record<string, unknown>[] }>): Store {
  const { store } = bench;
  const get = (pool: Store["pool"], key: string | symbol) => (key === "query" ? query : Reflect.get(pool, key));
  return { ...store, pool: new Proxy(store.pool, { get }) };
}

type Sent = { readonly name?: string; readonly text: string; values: unknown[] };

/** A store whose claims find their load stale, with something that happens before they load again. */
function reloading(before: () => Promise<void>): Store {
  return storeWith(async (config) => {
    if (config.name?.startsWith("holdpoint_load_run") === true) await before();
    const answer = await bench.store.pool.query(config);
    if (config.name?.startsWith("holdpoint_claim_runs") === true) for (const row of answer.rows) row.complete = false;
    return answer;
  });
}

test("findOwnRuns waits for a claim that is still under way", async () => {
  const run = await aRun(bench.store);
  const workerId = await aWorker(bench.store);
  const own = await bench.whileHeld(
    run.id,
    (store) => findOwnRuns(store, { workerId, runIds: [run.id] }),
    (holder) =>
      claim(
        storeWith((config) => holder.query(config)),
        run.id,
        workerId,
      ),
  );
  expect(own).toMatchObject([{ id: run.id, epoch: 1 }]);
});

test("a server that has become a standby is a broken connection: the next statement has another one", async () => {
  await using lonely = await bench.lonely();
  const run = await aRun(bench.store);
  await lonely.store.pool.query("set default_transaction_read_only = on");
  expect(await transitionOne(lonely.store, note(run))).toMatchObject({ result: "conflict", current: { version: 1 } });
  expect(await transitionOne(lonely.store, note(run))).toMatchObject({ result: "accepted" });
});
