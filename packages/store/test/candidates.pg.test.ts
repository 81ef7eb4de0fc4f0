import { beforeAll, expect, test } from "vitest";
import { findLookUpsDue, findUnclaimed, registerAgent, type Store } from "../src/index.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

beforeAll(async () => {
  for (let version = 1; version <= 50; version += 1) {
    await registerAgent(bench.store, { name: "refunds", version: String(version), tools: [] });
  }
});

/** The plan of the verb's statement, as the server would run it with these values. */
async function planOf(verb: (store: Store) => Promise<unknown>): Promise<string> {
  const plan: string[] = [];
  const query = async (config: { readonly text: string; values: unknown[] }) => {
    await using planner = await bench.lonely();
    // The tables of a test are small enough to be read whole.
    await planner.store.pool.query("set enable_seqscan = off");
    const { rows } = await planner.store.pool.query(`explain ${config.text}`, config.values);
    plan.push(...rows.map((row) => row["QUERY PLAN"]));
    return { rows: [] };
  };
  const { pool } = bench.store;
  await verb({
    ...bench.store,
    pool: new Proxy(pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) }),
  });
  return plan.join("\n");
}

test.each([
  ["queued runs", "runs_queued", (store: Store) => findUnclaimed(store, 2_000, 500)],
  ["look-ups that are due", "runs_look_up", (store: Store) => findLookUpsDue(store, 500)],
])("%s of each of 50 versions are found through the index made for them, in its order", async (_what, index, verb) => {
  const plan = await planOf(verb);
  const ofRuns = plan.split("\n").filter((line) => line.includes(" on runs "));
  expect(ofRuns).toHaveLength(1);
  expect(ofRuns[0]).toMatch(new RegExp(`Index Scan using ${index} on runs `));
  const condition = /Index Cond: .*tenant_id.*agent_name = a\.name.*agent_version = a\.version.*now\(\)/;
  expect(plan).toMatch(condition);
  // One sort, of what all versions together give; none of a version's whole backlog.
  expect(plan.match(/Sort Key/g)).toHaveLength(1);
});
