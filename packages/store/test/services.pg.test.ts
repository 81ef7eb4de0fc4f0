import { moveClock } from "@holdpoint/testkit";
import { afterEach, describe, expect, test } from "vitest";
import {
  listServices,
  loadRun,
  passService,
  reportRecovered,
  reportTrouble,
  type Trouble,
  UNAVAILABLE_AFTER,
} from "../src/index.ts";
import { aRun } from "./a-run.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
afterEach(() => moveClock(bench.url, 0));

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
let names = 0;

/** A service of this test alone. */
function aService() {
  names += 1;
  const service = `service-${names}`;
  const report = (trouble: Partial<Trouble> = {}) =>
    reportTrouble(bench.store, { service, reason: "throttled", retryAfterMs: null, ...trouble });
  return {
    service,
    report,
    /** For how long it is closed after a report, in milliseconds. */
    closedFor: async (trouble: Partial<Trouble> = {}) => {
      const { untilMs, nowMs } = await report(trouble);
      return untilMs === null ? null : untilMs - nowMs;
    },
    pass: (probeMs = 5_000) => passService(bench.store, { service, probeMs }),
    recovered: () => reportRecovered(bench.store, service),
    listed: async () => (await listServices(bench.store)).find(({ name }) => name === service),
  };
}

/** Whole milliseconds, give or take what a statement takes. */
function about(ms: number) {
  return expect.toSatisfy((value: number) => Math.abs(value - ms) < 900, `about ${ms}`);
}

describe("reportTrouble", () => {
  test("closes a service that throttles at once, for as long as it asks", async () => {
    const { closedFor, listed } = aService();
    expect(await closedFor({ retryAfterMs: 10 * MINUTE_MS })).toEqual(about(10 * MINUTE_MS));
    expect(await listed()).toMatchObject({ reason: "throttled", failures: 1, probeUntilMs: null });
  });

  test("keeps the later of two ends, whichever report comes first", async () => {
    const { closedFor } = aService();
    await closedFor({ retryAfterMs: 10 * MINUTE_MS });
    expect(await closedFor({ retryAfterMs: MINUTE_MS })).toEqual(about(10 * MINUTE_MS));
    expect(await closedFor()).toEqual(about(10 * MINUTE_MS));
    expect(await closedFor({ retryAfterMs: 20 * MINUTE_MS })).toEqual(about(20 * MINUTE_MS));
  });

  test("backs off by itself where the service does not say: from a second, doubled, up to five minutes", async () => {
    const { closedFor } = aService();
    const waits: unknown[] = [];
    for (let atMs = 0; waits.length < 11; atMs += 6 * MINUTE_MS) {
      await moveClock(bench.url, atMs);
      waits.push(await closedFor());
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((s) => about(s * 1_000)));
  });

  test("counts no failure of what was under way when it closed", async () => {
    const { report, closedFor, listed } = aService();
    await Promise.all(Array.from({ length: 30 }, () => report()));
    expect(await listed()).toMatchObject({ failures: 1 });
    expect(await closedFor()).toBeLessThanOrEqual(1_000);
  });

  test("closes one that cannot be reached after five failures in a row, from five seconds to five minutes", async () => {
    const { closedFor, listed } = aService();
    const down = { reason: "unavailable" } as const;
    const waits: unknown[] = [];
    for (let n = 0, atMs = 0; n < UNAVAILABLE_AFTER + 7; n += 1, atMs += 6 * MINUTE_MS) {
      await moveClock(bench.url, atMs);
      waits.push(await closedFor(down));
    }
    const closed = [5, 10, 20, 40, 80, 160, 300, 300].map((s) => about(s * 1_000));
    expect(waits).toEqual([null, null, null, null, ...closed]);
    expect(await listed()).toMatchObject({ reason: "unavailable" });
  });

  test("closes it again after a probe that fails otherwise than before: a probe is followed by a wait", async () => {
    const { closedFor } = aService();
    await closedFor({ retryAfterMs: MINUTE_MS });
    await moveClock(bench.url, MINUTE_MS + 1);
    expect(await closedFor({ reason: "unavailable" })).toEqual(about(5_000));
  });

  test("waits as long as a service asks that is down and says so", async () => {
    const { report, closedFor } = aService();
    const down = { reason: "unavailable", retryAfterMs: 2 * MINUTE_MS } as const;
    for (let n = 1; n < UNAVAILABLE_AFTER; n += 1) expect((await report(down)).untilMs).toBeNull();
    expect(await closedFor(down)).toEqual(about(2 * MINUTE_MS));
  });

  test("says since when, over all failures", async () => {
    const { report } = aService();
    const { sinceMs } = await report();
    await moveClock(bench.url, MINUTE_MS);
    expect(await report()).toMatchObject({ sinceMs });
  });

  test("says so anew where nobody has tried it for an hour: nobody has waited that long for it", async () => {
    const { report } = aService();
    const first = await report({ reason: "unavailable" });
    await moveClock(bench.url, 3 * DAY_MS);
    const second = await report({ retryAfterMs: MINUTE_MS });
    expect(second.sinceMs - first.sinceMs).toEqual(about(3 * DAY_MS));
    // Who waits until it opens, and is turned away again, still waits for the same trouble.
    await moveClock(bench.url, 3 * DAY_MS + 30 * MINUTE_MS);
    expect((await report({ retryAfterMs: DAY_MS })).sinceMs).toBe(second.sinceMs);
    await moveClock(bench.url, 4 * DAY_MS + 40 * MINUTE_MS);
    expect((await report()).sinceMs).toBe(second.sinceMs);
  });

  test("is seen by every run that is loaded, with its failures before it closes as well", async () => {
    const { service, report } = aService();
    const run = await aRun(bench.store);
    const seen = async () => (await loadRun(bench.store, run.id))?.services.find(({ name }) => name === service);
    expect(await seen()).toBeUndefined();
    await report({ reason: "unavailable" });
    expect(await seen()).toMatchObject({ reason: "unavailable", untilMs: null });
    const { sinceMs, untilMs } = await report({ retryAfterMs: MINUTE_MS });
    expect(await seen()).toEqual({ name: service, reason: "throttled", sinceMs, untilMs });
  });
});

describe("passService", () => {
  test("lets nobody pass before the time, and says how long that is", async () => {
    const { report, pass } = aService();
    await report({ retryAfterMs: MINUTE_MS });
    expect(await pass()).toEqual({ result: "wait", waitMs: about(MINUTE_MS) });
    await moveClock(bench.url, MINUTE_MS - 2_000);
    expect(await pass()).toEqual({ result: "wait", waitMs: about(2_000) });
  });

  test("lets one of many pass when the time is over: the others wait for how it ends", async () => {
    const { report, pass } = aService();
    await report({ retryAfterMs: MINUTE_MS });
    await moveClock(bench.url, MINUTE_MS + 1);
    const passes = await Promise.all(Array.from({ length: 12 }, () => pass(7_000)));
    expect(passes.filter(({ result }) => result === "probe")).toHaveLength(1);
    const waits = passes.filter((each) => each.result === "wait");
    expect(waits).toHaveLength(11);
    for (const { waitMs } of waits) expect(waitMs).toEqual(about(7_000));
  });

  test("lets another pass when the first has not come back in time", async () => {
    const { report, pass } = aService();
    await report({ retryAfterMs: MINUTE_MS });
    await moveClock(bench.url, MINUTE_MS + 1);
    await pass(5_000);
    expect((await pass()).result).toBe("wait");
    await moveClock(bench.url, MINUTE_MS + 6_000);
    expect((await pass()).result).toBe("probe");
  });

  test("lets everybody pass where there is no trouble any more, or not enough of it", async () => {
    const { report, pass, recovered } = aService();
    expect(await pass()).toEqual({ result: "free" });
    await report({ reason: "unavailable" });
    expect(await pass()).toEqual({ result: "free" });
    await report({ retryAfterMs: 1 });
    await moveClock(bench.url, MINUTE_MS);
    expect((await pass()).result).toBe("probe");
    await recovered();
    expect(await pass()).toEqual({ result: "free" });
  });
});

describe("reportRecovered", () => {
  test("forgets the trouble, and its failures in a row", async () => {
    const { report, recovered, listed, closedFor } = aService();
    for (let n = 1; n < UNAVAILABLE_AFTER; n += 1) await report({ reason: "unavailable" });
    await recovered();
    expect(await listed()).toBeUndefined();
    expect(await closedFor({ reason: "unavailable" })).toBeNull();
    expect(await listed()).toMatchObject({ failures: 1 });
  });

  test("does not open it before its time: that answer was under way when it closed", async () => {
    const { report, recovered, pass } = aService();
    await report({ retryAfterMs: MINUTE_MS });
    await recovered();
    expect((await pass()).result).toBe("wait");
  });
});
