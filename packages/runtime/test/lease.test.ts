import type { Renewal, Store } from "@holdpoint/store";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { keepLease, type RenewalReport } from "../src/lease.ts";

const LEASE_MS = 9_000;
const RENEW_MS = 3_000;

/** A lease whose clocks and timers the test moves, and whose database it plays. */
function aLease() {
  let monotonicMs = 0;
  let wallMs = 1_000_000;
  const asked: PromiseWithResolvers<Renewal>[] = [];
  const told: RenewalReport[] = [];
  const query = async () => {
    const answer = Promise.withResolvers<Renewal>();
    asked.push(answer);
    const renewal = await answer.promise;
    return { rows: renewal.renewed ? [{ stop: renewal.stop, drain: renewal.drain }] : [] };
  };
  // Only what a renewal touches.
  const store = { tenantId: "t", named: true, leasePool: { query } } as unknown as Store;
  const lease = keepLease({
    store,
    workerId: "w1",
    leaseMs: LEASE_MS,
    renewMs: RENEW_MS,
    clock: { monotonicMs: () => monotonicMs, wallMs: () => wallMs },
    log: pino({ level: "silent" }),
    begunAtMs: 0,
    onRenewal: (report) => told.push(report),
  });
  return {
    lease,
    asked,
    told,
    /** Time passes, and timers fire. */
    pass: async (ms: number) => {
      // In steps, so that a timer sees the clock of its own moment.
      for (let left = ms; left > 0; left -= 10) {
        monotonicMs += Math.min(10, left);
        wallMs += Math.min(10, left);
        await vi.advanceTimersByTimeAsync(Math.min(10, left));
      }
    },
    /** Time passes while the loop is blocked: no timer fires. */
    block: (ms: number) => {
      monotonicMs += ms;
      wallMs += ms;
    },
    /** The machine sleeps. */
    suspend: (ms: number) => {
      wallMs += ms;
    },
    answer: async (renewal: Renewal | Error) => {
      const last = asked.at(-1);
      if (renewal instanceof Error) last?.reject(renewal);
      else last?.resolve(renewal);
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

const RENEWED = { renewed: true, stop: [], drain: null } as const;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("keepLease", () => {
  test("stays valid while it is renewed", async () => {
    const { lease, asked, pass, answer } = aLease();
    for (let round = 1; round <= 5; round += 1) {
      await pass(RENEW_MS);
      expect(asked).toHaveLength(round);
      await answer(RENEWED);
    }
    expect(lease.isValid()).toBe(true);
    lease.close();
    await pass(RENEW_MS * 2);
    expect(asked).toHaveLength(5);
  });

  test("a loop that was blocked beyond the lease does not renew it", async () => {
    const { lease, asked, block, pass } = aLease();
    block(LEASE_MS);
    expect(lease.isValid()).toBe(false);
    await pass(RENEW_MS);
    expect(lease.signal.aborted).toBe(true);
    expect(asked.length).toBeLessThanOrEqual(1);
  });

  test("a machine that slept has lost it", () => {
    const { lease, suspend } = aLease();
    suspend(1_900);
    expect(lease.isValid()).toBe(true);
    suspend(200);
    expect(lease.isValid()).toBe(false);
    expect(String(lease.signal.reason)).toContain("suspended");
  });

  test("a renewal that throws is tried again sooner, and only an answer counts", async () => {
    const { lease, asked, pass, answer } = aLease();
    await pass(RENEW_MS);
    await answer(new Error("away"));
    await pass(RENEW_MS / 5);
    expect(asked).toHaveLength(2);
    await answer(RENEWED);
    await pass(LEASE_MS * 0.85);
    expect(lease.isValid()).toBe(true);
    await pass(LEASE_MS * 0.1);
    expect(lease.signal.aborted).toBe(true);
  });

  test("a renewal that hangs does not keep what is under way beyond the lease's usable part", async () => {
    const { lease, pass, answer } = aLease();
    const watch = lease.watch("r1");
    await pass(LEASE_MS * 0.89);
    expect(watch.stop.aborted).toBe(false);
    await pass(LEASE_MS * 0.02);
    expect(watch.stop.aborted).toBe(true);
    await answer(RENEWED);
    expect(lease.isValid()).toBe(false);
  });

  test("tells of each renewal how long ago the last confirmed one was sent; of none that its end has overtaken", async () => {
    const { lease, told, pass, answer } = aLease();
    await pass(RENEW_MS);
    await answer(RENEWED);
    await pass(RENEW_MS);
    await answer(new Error("away"));
    await pass(RENEW_MS / 5 + 100);
    await answer(RENEWED);
    expect(told).toEqual([
      { confirmed: true, sinceMs: RENEW_MS },
      { confirmed: false, sinceMs: RENEW_MS },
      { confirmed: true, sinceMs: RENEW_MS * 1.2 + 100 },
    ]);
    await pass(RENEW_MS);
    lease.close();
    await answer(RENEWED);
    expect(told).toHaveLength(3);
  });

  test("counts from before the renewal was sent, not from its answer", async () => {
    const { lease, pass, answer } = aLease();
    await pass(RENEW_MS);
    await pass(2_000);
    await answer(RENEWED);
    await pass(LEASE_MS * 0.9 - 2_000 - 50);
    expect(lease.isValid()).toBe(true);
    await pass(100);
    expect(lease.isValid()).toBe(false);
  });

  test("ends at once when the worker was declared gone, and never comes back", async () => {
    const { lease, asked, pass, answer } = aLease();
    await pass(RENEW_MS);
    await answer({ renewed: false });
    expect(lease.signal.aborted).toBe(true);
    await pass(RENEW_MS * 3);
    expect(asked).toHaveLength(1);
    expect(lease.isValid()).toBe(false);
  });

  test("stops the runs that the answer names, and every claim of them", async () => {
    const { lease, pass, answer } = aLease();
    const [old, fresh, other] = [lease.watch("r1"), lease.watch("r1"), lease.watch("r2")];
    old.end();
    await pass(RENEW_MS);
    await answer({ ...RENEWED, stop: ["r1"] });
    expect([old, fresh, other].map(({ stop }) => stop.aborted)).toEqual([false, true, false]);
    expect(lease.isValid()).toBe(true);
  });

  test("stops a run as well when what it was given fires, and forgets that at the end of the watch", async () => {
    const { lease } = aLease();
    const drained = new AbortController();
    const added = vi.spyOn(drained.signal, "addEventListener");
    const removed = vi.spyOn(drained.signal, "removeEventListener");
    const [past, present] = [lease.watch("r1", drained.signal), lease.watch("r2", drained.signal)];
    past.end();
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([2, 1]);
    drained.abort("drained");
    expect([past.stop.aborted, present.stop.aborted, present.stop.reason]).toEqual([false, true, "drained"]);
    // What comes after that is stopped from its beginning.
    expect(lease.watch("r3", drained.signal).stop.reason).toBe("drained");
    expect(lease.isValid()).toBe(true);
  });

  test("tells that an operator wants it drained, and whether it is to stay down, also if that is said later", async () => {
    const { lease, pass, answer } = aLease();
    let told = 0;
    void lease.drainRequested.then(() => {
      told += 1;
    });
    await pass(RENEW_MS);
    await answer(RENEWED);
    expect(told).toBe(0);
    await pass(RENEW_MS);
    await answer({ ...RENEWED, drain: { stayDown: false } });
    expect([told, lease.staysDown()]).toEqual([1, false]);
    await pass(RENEW_MS);
    await answer({ ...RENEWED, drain: { stayDown: true } });
    expect([told, lease.staysDown()]).toEqual([1, true]);
    // It works on until whoever runs it has drained it.
    expect(lease.isValid()).toBe(true);
  });

  test("that is closed while a renewal is under way leaves no timer, and allows no start", async () => {
    const { lease, pass, answer } = aLease();
    await pass(RENEW_MS);
    lease.close();
    await answer(RENEWED);
    expect(vi.getTimerCount()).toBe(0);
    expect(lease.isValid()).toBe(false);
    expect(lease.signal.aborted).toBe(false);
  });
});
