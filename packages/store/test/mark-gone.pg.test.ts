import { goneAtMs } from "@holdpoint/core";
import { moveClock, stopClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { markExited, markGone, newId, renewLease, type Store } from "../src/index.ts";
import { aWorker } from "./a-run.ts";
import { useBench } from "./a-store.ts";
import { watched } from "./watched.ts";

const bench = useBench();
const LEASE_MS = 15_000;
const GRACE_MS = 5_000;

/** Nothing passes but what the test says: each moment is exact, however busy the machine is. */
const START_MS = Date.parse("2026-03-02T12:00:00Z");
const goTo = (ms: number) => stopClock(bench.url, new Date(START_MS + ms));

beforeEach(async () => {
  await goTo(0);
  await bench.sql(
    "update holdpoint.workers set gone_at = holdpoint.clock(), gone_reason = 'retired' where gone_at is null",
  );
  await watched(bench.store);
});
afterEach(() => moveClock(bench.url, 0));

const look = (store: Store = bench.store, more: { graceMs?: number; limit?: number; sweeper?: string } = {}) =>
  markGone(store, { graceMs: GRACE_MS, limit: 10, sweeper: "s1", ...more });

/** Time passes, and a sweeper looks at the leases often enough all the while; gives who is gone, and the last look. */
async function pass(fromMs: number, toMs: number, sweeper = "s1") {
  const gone: string[] = [];
  for (let ms = fromMs; ms < toMs; ms += GRACE_MS) {
    await goTo(ms);
    gone.push(...(await look(bench.store, { sweeper })).gone);
  }
  await goTo(toMs);
  const last = await look(bench.store, { sweeper });
  return { ...last, gone: [...gone, ...last.gone] };
}

/** As if somebody had looked without a gap until then. */
async function watchTo(ms: number): Promise<void> {
  await goTo(ms);
  await bench.sql("update holdpoint.lease_watch set seen_at = holdpoint.clock()");
}

const reasonOf = async (workerId: string) =>
  (await bench.sql<{ gone_reason: string }>("select gone_reason from holdpoint.workers where id = $1", [workerId]))[0]
    ?.gone_reason;

describe("a worker", () => {
  test("is gone only after its lease and the grace, once and for all", async () => {
    const workerId = await aWorker(bench.store, LEASE_MS);
    expect((await pass(0, 20_000)).gone).toEqual([]);
    expect((await pass(20_000, 20_001)).gone).toEqual([workerId]);
    expect((await look()).gone).toEqual([]);
    await goTo(0);
    expect(await renewLease(bench.store, { workerId, leaseMs: LEASE_MS })).toEqual({ renewed: false });
    expect(await reasonOf(workerId)).toBe("lease_expired");
  });

  test("that renews in time is never gone", async () => {
    const workerId = await aWorker(bench.store, LEASE_MS);
    for (const ms of [10_000, 20_000, 30_000]) {
      await goTo(ms);
      expect(await renewLease(bench.store, { workerId, leaseMs: LEASE_MS })).toMatchObject({ renewed: true });
      expect((await look(bench.store, { graceMs: 0 })).gone).toEqual([]);
    }
  });

  test("whose end was seen keeps that as its reason", async () => {
    const workerId = await aWorker(bench.store, LEASE_MS);
    await markExited(bench.store, workerId);
    await pass(0, 30_000);
    expect(await reasonOf(workerId)).toBe("process_exited");
  });

  test("that is a task goes by its own grace, and has missed its heartbeat", async () => {
    const id = newId();
    await bench.sql(
      `insert into holdpoint.workers (tenant_id, id, host, pid, agents, slots, started_at, lease_until, lease_ms, kind, grace_ms)
       select id, $1, 'elsewhere', 0, '[]', 1, holdpoint.clock(), holdpoint.clock() + interval '15 s', 15000, 'task', 60000
       from holdpoint.tenants`,
      [id],
    );
    expect((await pass(0, 75_000)).gone).toEqual([]);
    expect((await pass(75_000, 75_001)).gone).toEqual([id]);
    expect(await reasonOf(id)).toBe("heartbeat_missed");
  });

  test("is one of no more than the limit", async () => {
    for (let n = 0; n < 3; n += 1) await aWorker(bench.store, -60_000);
    expect((await look(bench.store, { limit: 2 })).gone).toHaveLength(2);
    expect((await look(bench.store, { limit: 2 })).gone).toHaveLength(1);
  });
});

describe("after a gap of the watch", () => {
  test("everybody has one whole lease to renew, however long its own has been over", async () => {
    const [dead, alive] = [await aWorker(bench.store, LEASE_MS), await aWorker(bench.store, LEASE_MS)];
    await goTo(3_600_000);
    expect(await look()).toMatchObject({ gone: [], heldBack: { own_gap: 2, blast_radius: 0 } });
    expect((await pass(3_601_000, 3_612_000)).gone).toEqual([]);
    await renewLease(bench.store, { workerId: alive, leaseMs: LEASE_MS });
    expect((await pass(3_612_000, 3_620_001)).gone).toEqual([dead]);
    expect((await look()).heldBack).toEqual({ own_gap: 0, blast_radius: 0 });
  });

  test("a task that is heard of once in a week is given an hour, so that a gap a day does not keep it for ever", async () => {
    const id = newId();
    await bench.sql(
      `insert into holdpoint.workers (tenant_id, id, host, pid, agents, slots, started_at, lease_until, lease_ms, kind, grace_ms)
       select id, $1, 'elsewhere', 0, '[]', 1, holdpoint.clock(), holdpoint.clock() + interval '1 s', 604800000, 'task', 1000
       from holdpoint.tenants`,
      [id],
    );
    const DAY_MS = 86_400_000;
    const HOUR_MS = 3_600_000;
    await goTo(DAY_MS);
    expect(await look()).toMatchObject({ gone: [], heldBack: { own_gap: 1 } });
    await watchTo(DAY_MS + HOUR_MS);
    expect((await look()).gone).toEqual([]);
    await watchTo(DAY_MS + HOUR_MS + 1_001);
    expect((await look()).gone).toEqual([id]);
  });

  test("a sweeper that starts on a database where nobody has ever looked waits a lease as well", async () => {
    await bench.sql("truncate holdpoint.lease_watch");
    const workerId = await aWorker(bench.store, 1_000);
    await goTo(60_000);
    expect(await look()).toMatchObject({ gone: [], heldBack: { own_gap: 1 } });
    expect((await pass(60_000, 66_001)).gone).toEqual([workerId]);
  });

  test("a sweeper that has just started judges at once where another was never away", async () => {
    const workerId = await aWorker(bench.store, LEASE_MS);
    await pass(0, 18_000, "s1");
    await goTo(21_000);
    expect((await look(bench.store, { sweeper: "s2" })).gone).toEqual([workerId]);
  });

  test("a pause of less than twice the grace is none, and one of more is; so is a clock that goes back", async () => {
    const since = async () => (await look()).watchedSinceMs;
    const first = await since();
    await goTo(2 * GRACE_MS);
    expect(await since()).toBe(first);
    await goTo(4 * GRACE_MS + 1);
    const second = await since();
    expect(second).toBeGreaterThan(first);
    await goTo(0);
    expect(await since()).toBeLessThan(second);
    expect(await since()).toBeGreaterThan(first);
  });

  test("two sweepers that come back at once see the same gap, and neither declares anybody gone", async () => {
    for (let n = 0; n < 2; n += 1) await aWorker(bench.store, LEASE_MS);
    await goTo(3_600_000);
    const looks = await Promise.all([look(), look(bench.store, { sweeper: "s2" })]);
    expect(looks.map(({ gone }) => gone)).toEqual([[], []]);
    expect(Math.abs((looks[0]?.watchedSinceMs ?? 0) - (looks[1]?.watchedSinceMs ?? 1))).toBeLessThan(1);
  });
});

describe("when many would go at once", () => {
  test("three of five, more than half: they have one lease more, then they are gone", async () => {
    const silent = [];
    for (let n = 0; n < 3; n += 1) silent.push(await aWorker(bench.store, LEASE_MS));
    for (let n = 0; n < 2; n += 1) await aWorker(bench.store, 3_600_000);
    expect(await pass(0, 21_000)).toMatchObject({ gone: [], heldBack: { own_gap: 0, blast_radius: 3 } });
    expect((await pass(21_000, 35_000)).gone).toEqual([]);
    expect([...(await pass(35_000, 35_001)).gone].sort()).toEqual(silent.sort());
  });

  test.each([
    ["three of six are no more than half", 3, 3],
    ["both of two are too few to be the watcher's fault", 2, 0],
  ])("%s: they are gone at once", async (_why, silent, others) => {
    for (let n = 0; n < silent; n += 1) await aWorker(bench.store, LEASE_MS);
    for (let n = 0; n < others; n += 1) await aWorker(bench.store, 3_600_000);
    expect((await pass(0, 21_000)).gone).toHaveLength(silent);
  });

  test("those that renew in the time that is given are not gone", async () => {
    const ids = [];
    for (let n = 0; n < 3; n += 1) ids.push(await aWorker(bench.store, LEASE_MS));
    await pass(0, 21_000);
    for (const id of ids)
      expect(await renewLease(bench.store, { workerId: id, leaseMs: LEASE_MS })).toMatchObject({ renewed: true });
    expect(await look()).toMatchObject({ gone: [], heldBack: { own_gap: 0, blast_radius: 0 } });
  });
});

test("is what core foretells, to the moment", async () => {
  const workerId = await aWorker(bench.store, LEASE_MS);
  const [row] = await bench.sql<{ lease_until: Date; now: Date }>(
    "select lease_until, holdpoint.clock() as now from holdpoint.workers where id = $1",
    [workerId],
  );
  const { watchedSinceMs } = await look();
  const owner = { kind: "process", leaseMs: LEASE_MS, graceMs: null, goneReason: null } as const;
  const foretold = goneAtMs(
    { ...owner, leaseUntilMs: row?.lease_until.getTime() ?? 0 },
    { sinceMs: watchedSinceMs, graceMs: GRACE_MS },
  );
  const aheadMs = foretold - (row?.now.getTime() ?? 0);
  expect((await pass(0, aheadMs)).gone).toEqual([]);
  expect((await pass(aheadMs, aheadMs + 1)).gone).toEqual([workerId]);
});

test("a renewal says how far the worker's clock is off, however far that is, and none where it says nothing", async () => {
  const skewOf = async (id: string) =>
    (await bench.sql<{ skew_ms: number | null }>("select skew_ms from holdpoint.workers where id = $1", [id]))[0]
      ?.skew_ms;
  const workerId = await aWorker(bench.store, LEASE_MS);
  await renewLease(bench.store, { workerId, leaseMs: LEASE_MS });
  expect(await skewOf(workerId)).toBeNull();
  const [row] = await bench.sql<{ now: Date }>("select holdpoint.clock() as now");
  await renewLease(bench.store, { workerId, leaseMs: LEASE_MS, wallMs: (row?.now.getTime() ?? 0) + 150_000 });
  expect(await skewOf(workerId)).toBe(150_000);
  await renewLease(bench.store, { workerId, leaseMs: LEASE_MS, wallMs: 0 });
  expect(await skewOf(workerId)).toBe(-2_147_483_648);
});
