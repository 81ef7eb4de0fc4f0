import {
  claimDeliveries,
  countQueued,
  DEFAULT_TENANT,
  dismissOfDisabled,
  findOwnedBy,
  findOwnRuns,
  findViolations,
  openStore,
  renewLease,
  type Store,
} from "@holdpoint/store";
import {
  findRun,
  findServices,
  listApprovals,
  listDeliveries,
  listFindings,
  listRuns,
  listTasks,
  listWorkers,
} from "@holdpoint/store/read";
import { createTestDatabase, type TestDatabase } from "@holdpoint/testkit";
import { writeHeldRuns } from "@holdpoint/testkit/held-runs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENT, aWorker } from "../../store/test/a-run.ts";
import { MOVING, type Sweep, type SweepContext, TIDYING, WAKING, WATCHING } from "../src/index.ts";
import { judgeSilentRuns } from "../src/sweeps/judge-liveness.ts";
import { resolveVanished } from "../src/sweeps/resolve-vanished.ts";
import { type Carried, nodesOf, pagesRead, plansOf, rowsLookedAt } from "./a-plan.ts";

const HELD = 20_000;

let database: TestDatabase;
let store: Store;
let worker: string;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
  const client = await store.pool.connect();
  await writeHeldRuns(client, { count: HELD, tenantId: DEFAULT_TENANT, agent: AGENT.name });
  client.release(true);
  worker = await aWorker(store, 3_600_000);
}, 60_000);
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const publisher: SweepContext["publisher"] = {
  publish: async () => ({ published: 0, failed: 0, error: null }),
  waiting: async () => 0,
  check: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};

function contextOf(of: Store): SweepContext {
  return { store: of, publisher, id: "sweeper-1", graceMs: 5_000, limit: 500, number: 1 };
}

/** Tables that grow with what is stored. */
const GROWING = /^(runs|approvals|transitions|steps|calls|attempts|verdicts|deliveries|sessions|messages)(_|$)/;

/** The server's own tables, which it may go through for as few relations as there are. */
const CATALOG = /^pg_/;

/** What a statement does that grows with what is stored: nothing of it may be there. */
function growing(carried: Carried, most: number): readonly string[] {
  return nodesOf(carried.plan).flatMap((node) => {
    const table = node["Relation Name"] ?? node["Index Name"] ?? "";
    const looked = rowsLookedAt(node);
    const name = `${node["Node Type"]} of ${table} ${node["Index Name"] ?? ""} in ${carried.text.slice(0, 80)}: ${looked} rows`;
    if (GROWING.test(table) && node["Node Type"].includes("Seq Scan") && looked > 0) return [name];
    return looked > most && !CATALOG.test(table) ? [name] : [];
  });
}

/** A part of a round is ten rows of each of its lists. */
const ROWS_OF_SWEEPS = 60;
const PAGES_OF_SWEEPS = 400;

describe(`with ${HELD} held runs and nothing due`, () => {
  test("they are as valid as those that the store's own verbs make", async () => {
    expect(await findViolations(store)).toEqual([]);
  });

  test.each<Sweep>([...MOVING, WATCHING, ...WAKING, ...TIDYING])(
    "the sweep $name looks at a few rows",
    async (sweep) => {
      const carried = await plansOf(store, async (watched) => {
        const { errors, moved } = await sweep.run(contextOf(watched));
        expect({ errors, moved }).toEqual({ errors: [], moved: 0 });
      });
      expect(carried.length).toBeGreaterThan(0);
      expect(carried.flatMap((each) => growing(each, ROWS_OF_SWEEPS))).toEqual([]);
      expect(carried.reduce((sum, each) => sum + pagesRead(each), 0)).toBeLessThan(PAGES_OF_SWEEPS);
    },
  );

  test.each<[string, (store: Store) => Promise<unknown>]>([
    ["a heartbeat", (s) => renewLease(s, { workerId: worker, leaseMs: 3_600_000 })],
    ["a look for a worker's runs", (s) => findOwnedBy(s, worker, 100)],
    ["a look after a lost claim", (s) => findOwnRuns(s, { workerId: worker, runIds: [worker] })],
    [
      "a look for deliveries",
      (s) => claimDeliveries(s, { limit: 32, perWebhook: 8, sending: new Map(), leaseMs: 1_000 }),
    ],
    ["a look for deliveries of nobody", (s) => dismissOfDisabled(s, 500)],
    ["a count of what is queued", (s) => countQueued(s, 50)],
  ])("%s looks at a few rows", async (_what, verb) => {
    const carried = await plansOf(store, verb);
    expect(carried.length).toBeGreaterThan(0);
    expect(carried.flatMap((each) => growing(each, ROWS_OF_SWEEPS))).toEqual([]);
    expect(carried.reduce((sum, each) => sum + pagesRead(each), 0)).toBeLessThan(PAGES_OF_SWEEPS);
  });
});

const PAGE = { limit: 10, after: null };
/** Each run of a page comes with what its readers need beside its row. */
const ROWS_OF_LISTS = 500;
const PAGES_OF_LISTS = 2_500;

test.each<[string, (store: Store) => Promise<unknown>]>([
  ["runs", (s) => listRuns(s, {}, PAGE)],
  ["runs of a status", (s) => listRuns(s, { statuses: ["waiting_operator"] }, PAGE)],
  ["runs of a status that none has", (s) => listRuns(s, { statuses: ["lost"] }, PAGE)],
  ["runs of several statuses that few have", (s) => listRuns(s, { statuses: ["lost", "queued", "cancelling"] }, PAGE)],
  ["runs that wait for a service", (s) => listRuns(s, { waitingForKind: "service" }, PAGE)],
  ["runs that wait for children", (s) => listRuns(s, { waitingForKind: "child" }, PAGE)],
  ["runs that wait for alice", (s) => listRuns(s, { waitingForPrincipal: "alice" }, PAGE)],
  ["runs that wait for somebody who is not there", (s) => listRuns(s, { waitingForPrincipal: "zoe" }, PAGE)],
  ["runs that are overdue", (s) => listRuns(s, { overdue: true }, PAGE)],
  ["runs of somebody without any", (s) => listRuns(s, { visibleTo: "zoe" }, PAGE)],
  ["runs by what they are known as outside", (s) => listRuns(s, { externalRef: "op-19" }, PAGE)],
  ["requests", (s) => listApprovals(s, {}, PAGE)],
  ["requests that are pending", (s) => listApprovals(s, { states: ["pending"] }, PAGE)],
  ["requests of states that none has", (s) => listApprovals(s, { states: ["approved", "rejected"] }, PAGE)],
  ["requests for a manager", (s) => listApprovals(s, { decidableBy: { user: "mona", roles: ["manager"] } }, PAGE)],
  ["requests for nobody", (s) => listApprovals(s, { decidableBy: { user: "zoe", roles: ["nobody"] } }, PAGE)],
  ["requests of somebody without any", (s) => listApprovals(s, { visibleTo: "zoe" }, PAGE)],
  ["deliveries that were dismissed", (s) => listDeliveries(s, { state: "dismissed" }, PAGE)],
  ["deliveries that are dead", (s) => listDeliveries(s, { state: "dead" }, PAGE)],
  ["tasks", (s) => listTasks(s, {}, PAGE)],
  ["workers", (s) => listWorkers(s, { gone: true }, PAGE)],
  ["services", (s) => findServices(s, PAGE)],
  ["findings", (s) => listFindings(s, PAGE)],
  ["one run", (s) => findRun(s, worker)],
])("a page of %s looks at a few rows, however many are held", async (_what, verb) => {
  const carried = await plansOf(store, verb);
  expect(carried.length).toBeGreaterThan(0);
  expect(carried.flatMap((each) => growing(each, ROWS_OF_LISTS))).toEqual([]);
  expect(carried.reduce((sum, each) => sum + pagesRead(each), 0)).toBeLessThan(PAGES_OF_LISTS);
});

test("a long queue that the statistics do not know of yet costs a pass no more", async () => {
  await store.pool.query("alter table holdpoint.runs set (autovacuum_enabled = false)");
  await store.pool.query(
    `update holdpoint.runs set status = 'queued', queued_since = holdpoint.clock() - interval '1 minute', waiting_for = null
     where status = 'waiting_operator'`,
  );
  const looked = [judgeSilentRuns, resolveVanished].map(async (sweep) =>
    (await plansOf(store, (watched) => sweep.run(contextOf(watched)))).flatMap((each) => growing(each, ROWS_OF_SWEEPS)),
  );
  expect((await Promise.all(looked)).flat()).toEqual([]);
});

test("a round of passes comes by every parent: a child that has vanished is missed, wherever it was", async () => {
  const { rows } = await store.pool.query<{ parent: string }>(
    `delete from holdpoint.runs where id = (select id from holdpoint.runs where parent is not null order by id desc limit 1)
     returning parent`,
  );
  const parent = rows[0]?.parent;
  let moved = 0;
  let passes = 0;
  for (; moved === 0 && passes <= HELD / 20; passes += 1) moved = (await resolveVanished.run(contextOf(store))).moved;
  const { rows: after } = await store.pool.query("select status from holdpoint.runs where id = $1", [parent]);
  expect(after).toEqual([{ status: "waiting_operator" }]);
  // The last of a thousand parents is not in the first part.
  expect(passes).toBeGreaterThan(10);
});
