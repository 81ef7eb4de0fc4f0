import {
  auditRuns,
  claimRuns,
  findForsaken,
  findIdleCancelling,
  findLeftovers,
  findLookUpsDue,
  findMissedByCascade,
  findOverdue,
  findRemindersDue,
  findRetentionDue,
  findRetriesDue,
  findUnclaimed,
  findUntoldParents,
  findWedged,
  openStore,
  renewLease,
  type Store,
} from "@holdpoint/store";
import { createTestDatabase, type TestDatabase } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aRun, aWorker } from "../../store/test/a-run.ts";
import { applyMaintenance } from "../src/index.ts";
import { writeHistory } from "./a-history.ts";
import { pagesRead, plansOf } from "./a-plan.ts";

const RUNS = 100_000;
const LEASE_MS = 5_000;
const LIVE = 20;
/** How long maintenance is let go on; it removes some thousand runs in it. */
const APPLY_MS = 10_000;

let database: TestDatabase;
let store: Store;
let workers: readonly string[];

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  await writeHistory(store, RUNS);
  workers = await Promise.all(Array.from({ length: 10 }, () => aWorker(store, LEASE_MS)));
  for (let number = 0; number < LIVE; number += 1) await aRun(store);
}, 120_000);
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** How many pages the verb's statements read, each as the server runs it. */
async function pagesOf(verb: (store: Store) => Promise<unknown>): Promise<number> {
  return (await plansOf(store, verb)).reduce((sum, each) => sum + pagesRead(each), 0);
}

/** The history alone has more than 20 000 pages. */
const FEW_PAGES = 1_000;

test.each<[string, (store: Store) => Promise<unknown>]>([
  ["overdue", (s) => findOverdue(s, 500)],
  ["forsaken", (s) => findForsaken(s, 500)],
  ["wedged", (s) => findWedged(s, 500)],
  ["to be tried again", (s) => findRetriesDue(s, 500)],
  ["stopping", (s) => findIdleCancelling(s, 500)],
  ["missed by a cascade", (s) => findMissedByCascade(s, 500)],
  ["untold", (s) => findUntoldParents(s, { limit: 500 })],
  ["unclaimed", (s) => findUnclaimed(s, 2_000, 500)],
  ["due for a look-up", (s) => findLookUpsDue(s, 500)],
  ["to be reminded of", (s) => findRemindersDue(s, 500)],
  ["with findings", (s) => auditRuns(s, 50)],
  ["left over", (s) => findLeftovers(s, 100)],
])("a large history costs nothing where runs are looked for that are %s", async (_what, verb) => {
  expect(await pagesOf(verb)).toBeLessThan(FEW_PAGES);
});

test("nor where one is claimed", async () => {
  const { rows } = await store.pool.query("select id from holdpoint.runs where status = 'queued' limit 1");
  const claim = { runIds: [rows[0].id], workerId: workers[0] ?? "", progressMs: 60_000, mayTakeSuspect: true };
  expect(await pagesOf((s) => claimRuns(s, claim))).toBeLessThan(FEW_PAGES);
});

test("what is past its retention is found through the index made for it, a hundred at a time", async () => {
  expect(await pagesOf((s) => findRetentionDue(s, 100))).toBeLessThan(3_000);
});

/** Renews the leases one after the other until it is told to stop; gives how long each took, in milliseconds. */
async function beat(stop: AbortSignal): Promise<readonly number[]> {
  await using own = openStore({ url: database.url });
  const took: number[] = [];
  for (let number = 0; !stop.aborted; number += 1) {
    const startedMs = performance.now();
    const renewal = await renewLease(own, { workerId: workers[number % workers.length] ?? "", leaseMs: LEASE_MS });
    took.push(performance.now() - startedMs);
    if (!renewal.renewed) throw new Error("a worker was declared gone");
  }
  return took;
}

test(`maintenance on ${RUNS} old runs keeps the 99th percentile of heartbeats under a tenth of the lease`, async () => {
  const beats = new AbortController();
  const beating = Promise.all([beat(beats.signal), beat(beats.signal)]);
  const queue = {
    publish: async () => ({ published: 0, failed: 0, error: null }),
    waiting: async () => LIVE,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const context = { store, publisher: queue, id: "maintenance", graceMs: 5_000, limit: 500, number: 1 };
  const { applied } = await applyMaintenance(context, AbortSignal.timeout(APPLY_MS)).finally(() => beats.abort());
  const took = (await beating).flat().toSorted((a, b) => a - b);
  const p99Ms = took[Math.floor(took.length * 0.99)] ?? Number.POSITIVE_INFINITY;
  const { rows } = await store.pool.query("select count(*)::int as removed from holdpoint.tombstones");
  expect(applied?.failed).toEqual([]);
  expect(rows[0].removed).toBeGreaterThanOrEqual(1_000);
  expect(took.length).toBeGreaterThan(200);
  expect(p99Ms).toBeLessThan(LEASE_MS / 10);
}, 60_000);
