import { moveClock, stopClock } from "@holdpoint/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { markGone, renewLease } from "../src/index.ts";
import { commitOne } from "./a-parent.ts";
import { aCall, aCommit, aReply, aRun, aStart, aWorker, claim, SWEEPER } from "./a-run.ts";
import { moved, ownerOf, QUESTION, reload } from "./a-status.ts";
import { useBench } from "./a-store.ts";
import { watched } from "./watched.ts";

const bench = useBench();
const LEASE_MS = 15_000;
const GRACE_MS = 5_000;
const HOUR_MS = 3_600_000;

/** The database's clock stands still, so that each instant that is written can be told to the millisecond. */
const DATABASE_MS = Date.parse("2026-03-02T12:00:00Z");

beforeEach(async () => {
  await stopClock(bench.url, new Date(DATABASE_MS));
  const gone = "gone_at = holdpoint.clock(), gone_reason = 'retired'";
  await bench.sql(`update holdpoint.workers set ${gone} where gone_at is null`);
});
afterEach(async () => {
  vi.useRealTimers();
  await moveClock(bench.url, 0);
});

/** From here on the process takes this for the time; its timers go on as they are. */
function setProcessClock(offMs: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: DATABASE_MS + offMs });
}

const msOf = async (select: string, id: string): Promise<number> => {
  const [row] = await bench.sql<{ at: Date }>(`select ${select}`, [id]);
  return (row?.at.getTime() ?? Number.NaN) - DATABASE_MS;
};

test.each([-HOUR_MS, -150_000, 150_000, HOUR_MS])(
  "what a process writes whose clock is off by %i ms has the database's time",
  async (offMs) => {
    setProcessClock(offMs);
    const workerId = await aWorker(bench.store, LEASE_MS);
    const leaseMs = () => msOf("lease_until as at from holdpoint.workers where id = $1", workerId);
    expect(await leaseMs()).toBe(LEASE_MS);
    await renewLease(bench.store, { workerId, leaseMs: LEASE_MS, wallMs: DATABASE_MS + offMs });
    expect(await leaseMs()).toBe(LEASE_MS);

    const { id } = await aRun(bench.store);
    const claimed = await claim(bench.store, id, workerId);
    expect(await msOf("progress_due_at as at from holdpoint.runs where id = $1", id)).toBe(60_000);
    const call = aCall();
    await commitOne(bench.store, aCommit(claimed, { steps: [aReply([call])], calls: [call] }));
    const planned = await reload(bench.store, id);
    await commitOne(bench.store, aCommit(planned, { start: aStart(call) }));
    expect(await msOf("deadline_at as at from holdpoint.attempts where run_id = $1", id)).toBe(call.timeoutMs);
    expect(await msOf("max(at) as at from holdpoint.steps where run_id = $1", id)).toBe(0);

    const other = await claim(bench.store, (await aRun(bench.store)).id, workerId);
    const held = { run: other.run, actor: ownerOf(other), events: [{ type: "Held", hold: QUESTION }] } as const;
    const { state } = await moved(bench.store, held);
    expect(state.waitDeadline).toEqual({ at: DATABASE_MS + 60_000 });
    expect(await msOf("max(at) as at from holdpoint.transitions where run_id = $1", other.run.id)).toBe(0);
  },
);

test.each([-HOUR_MS, HOUR_MS])(
  "a sweeper whose clock is off by %i ms takes nobody for gone too early, and nobody too late",
  async (offMs) => {
    await watched(bench.store);
    const workerId = await aWorker(bench.store, LEASE_MS);
    setProcessClock(offMs);
    const look = async (ms: number) => {
      await stopClock(bench.url, new Date(DATABASE_MS + ms));
      return (await markGone(bench.store, { graceMs: GRACE_MS, limit: 10, sweeper: SWEEPER.id })).gone;
    };
    for (const ms of [0, 5_000, 10_000, 15_000, 20_000]) expect(await look(ms)).toEqual([]);
    expect(await look(20_001)).toEqual([workerId]);
  },
);
