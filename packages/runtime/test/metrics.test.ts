import {
  type DataPoint,
  type Histogram,
  MeterProvider,
  MetricReader,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openWorkerMetrics, type WorkerMetrics } from "../src/metrics.ts";

/** Reads when the test asks. */
class Reader extends MetricReader {
  protected override onForceFlush = async (): Promise<void> => undefined;
  protected override onShutdown = async (): Promise<void> => undefined;
}

let reader: Reader;
let provider: MeterProvider;
let metrics: WorkerMetrics;

beforeEach(() => {
  reader = new Reader();
  provider = new MeterProvider({ readers: [reader] });
  metrics = openWorkerMetrics({ provider, renewMs: 5_000 });
});
afterEach(() => provider.shutdown());

/** What is known now: of each metric its points, by the value of their attribute, or "" without one. */
async function readAll(): Promise<Record<string, Record<string, unknown>>> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  return Object.fromEntries(named(resourceMetrics).map(({ name, points }) => [name, byAttribute(points)]));
}

function named({ scopeMetrics }: ResourceMetrics) {
  return scopeMetrics.flatMap(({ metrics: all }) =>
    all.map(({ descriptor, dataPoints }) => ({
      name: descriptor.name,
      unit: descriptor.unit,
      points: dataPoints as readonly DataPoint<unknown>[], // of whichever kind
    })),
  );
}

function byAttribute(points: readonly DataPoint<unknown>[]): Record<string, unknown> {
  return Object.fromEntries(points.map(({ attributes, value }) => [Object.values(attributes).join(), shown(value)]));
}

function shown(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { sum, count } = value as Histogram; // these metrics have no other kind of object
  return { sum, count };
}

const BATCH = { size: 40, waitedMs: 2, tookMs: 3, splitOff: 1 };

describe("a batch of commits", () => {
  test("is told by its kind: size, wait, duration, what it has stored and what was split off", async () => {
    metrics.onBatch({ kind: "results", ...BATCH });
    metrics.onBatch({ kind: "results", size: 2, waitedMs: 0, tookMs: 1, splitOff: 0 });
    metrics.onBatch({ kind: "moves", ...BATCH });
    const kinds = (results: unknown, moves: unknown) => ({ results, moves });
    const summed = (sum: number, count: number) => ({ sum, count });
    expect(await readAll()).toMatchObject({
      "holdpoint.worker.batch.size": kinds(summed(42, 2), summed(40, 1)),
      "holdpoint.worker.batch.wait": kinds(summed(2, 2), summed(2, 1)),
      "holdpoint.worker.batch.duration": kinds(summed(4, 2), summed(3, 1)),
      "holdpoint.worker.committed.rows": kinds(41, 39),
      "holdpoint.worker.split_off.rows": kinds(1, 1),
    });
  });
});

describe("a batch of claims", () => {
  test("is one more kind of batch, and counts the runs, the takeovers and the wake-ups in vain", async () => {
    metrics.onClaim({ ...BATCH, size: 10, claimed: 6, takeovers: 2, missed: 3 });
    expect(await readAll()).toMatchObject({
      "holdpoint.worker.batch.size": { claims: { sum: 10, count: 1 } },
      "holdpoint.worker.split_off.rows": { claims: 1 },
      "holdpoint.worker.claimed.runs": { "": 6 },
      "holdpoint.worker.claimed.takeovers": { "": 2 },
      "holdpoint.worker.missed.wake_ups": { "": 3 },
    });
  });

  test("commits nothing", async () => {
    metrics.onClaim({ ...BATCH, claimed: 39, takeovers: 0, missed: 0 });
    expect(await readAll()).not.toHaveProperty(["holdpoint.worker.committed.rows"]);
  });
});

describe("a renewal", () => {
  test("is late when the one before was confirmed more than two intervals ago, and failed without an answer", async () => {
    metrics.onRenewal({ confirmed: true, sinceMs: 10_000 });
    metrics.onRenewal({ confirmed: true, sinceMs: 10_001 });
    metrics.onRenewal({ confirmed: false, sinceMs: 5_000 });
    metrics.onRenewal({ confirmed: false, sinceMs: 12_000 });
    expect(await readAll()).toEqual({ "holdpoint.worker.lease.renewals": { on_time: 1, late: 1, failed: 2 } });
  });
});

describe("the slots", () => {
  test("are read when somebody asks, until the metrics are closed", async () => {
    let used = 3;
    metrics.watchSlots({ limit: 8, used: () => used });
    expect(await readAll()).toEqual({
      "holdpoint.worker.slot.limit": { "": 8 },
      "holdpoint.worker.slot.usage": { "": 3 },
    });
    used = 8;
    expect(await readAll()).toMatchObject({ "holdpoint.worker.slot.usage": { "": 8 } });
    metrics.close();
    used = 0;
    expect(await readAll()).not.toMatchObject({ "holdpoint.worker.slot.usage": { "": 0 } });
  });
});

test("every metric has a unit", async () => {
  metrics.onBatch({ kind: "said", ...BATCH });
  metrics.onClaim({ ...BATCH, claimed: 1, takeovers: 1, missed: 1 });
  metrics.onRenewal({ confirmed: true, sinceMs: 0 });
  metrics.watchSlots({ limit: 1, used: () => 0 });
  const { resourceMetrics } = await reader.collect();
  const units = Object.fromEntries(named(resourceMetrics).map(({ name, unit }) => [name, unit]));
  expect(units).toEqual({
    "holdpoint.worker.batch.size": "{row}",
    "holdpoint.worker.batch.wait": "ms",
    "holdpoint.worker.batch.duration": "ms",
    "holdpoint.worker.committed.rows": "{row}",
    "holdpoint.worker.split_off.rows": "{row}",
    "holdpoint.worker.claimed.runs": "{run}",
    "holdpoint.worker.claimed.takeovers": "{run}",
    "holdpoint.worker.missed.wake_ups": "{wake_up}",
    "holdpoint.worker.lease.renewals": "{renewal}",
    "holdpoint.worker.slot.limit": "{slot}",
    "holdpoint.worker.slot.usage": "{slot}",
  });
});

test("without an SDK in the process nothing is recorded and nothing fails", () => {
  const silent = openWorkerMetrics({ renewMs: 5_000 });
  silent.onBatch({ kind: "starts", ...BATCH });
  silent.onClaim({ ...BATCH, claimed: 1, takeovers: 0, missed: 0 });
  silent.onRenewal({ confirmed: true, sinceMs: 0 });
  silent.watchSlots({ limit: 1, used: () => expect.unreachable("nobody asks") });
  silent.close();
});
