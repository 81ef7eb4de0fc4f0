// Owns: the names, units and attributes of a worker's metrics. Does not own: where they go. Without an SDK of
// OpenTelemetry in the process they go nowhere. What is recorded is recorded once for a batch, a claim or a renewal, and
// with attributes of closed sets only: neither a step nor a run has a line of its own.
import type { BatchKind, BatchReport } from "@holdpoint/store";
import {
  type Attributes,
  type BatchObservableCallback,
  type Meter,
  type MeterProvider,
  metrics,
} from "@opentelemetry/api";
import type { ClaimReport } from "./claim-group.ts";
import type { RenewalReport } from "./lease.ts";

/** What a worker tells of itself. */
export interface WorkerMetrics {
  readonly onBatch: (report: BatchReport) => void;
  readonly onClaim: (report: ClaimReport) => void;
  readonly onRenewal: (report: RenewalReport) => void;
  /** Shows the slots, until the metrics are closed. */
  watchSlots(slots: { readonly limit: number; readonly used: () => number }): void;
  close(): void;
}

/** The scope of a worker's metrics. */
const SCOPE = "holdpoint.worker";
const SIZES = [1, 2, 5, 10, 20, 50, 100];
const TIMES_MS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

type Shared = BatchKind | "claims";
const KINDS: Readonly<Record<Shared, Attributes>> = {
  starts: { "holdpoint.batch.kind": "starts" },
  said: { "holdpoint.batch.kind": "said" },
  said_moves: { "holdpoint.batch.kind": "said_moves" },
  results: { "holdpoint.batch.kind": "results" },
  moves: { "holdpoint.batch.kind": "moves" },
  claims: { "holdpoint.batch.kind": "claims" },
};

const RENEWALS: Readonly<Record<"on_time" | "late" | "failed", Attributes>> = {
  on_time: { "holdpoint.renewal.outcome": "on_time" },
  late: { "holdpoint.renewal.outcome": "late" },
  failed: { "holdpoint.renewal.outcome": "failed" },
};

/**
 * Opens the metrics of one worker.
 *
 * @param provider  Where they go; by default where the process's own SDK takes them, if it has one.
 * @param renewMs   How often the lease is to be renewed: what takes twice as long is late.
 */
export function openWorkerMetrics({
  provider = metrics.getMeterProvider(),
  renewMs,
}: {
  readonly provider?: MeterProvider | undefined;
  readonly renewMs: number;
}): WorkerMetrics {
  const meter = provider.getMeter(SCOPE);
  const recordBatch = batchRecorder(meter);
  const rows = meter.createCounter("holdpoint.worker.committed.rows", {
    description: "Commits and moves of runs that their batch has stored",
    unit: "{row}",
  });
  return {
    onBatch: (report) => {
      recordBatch(report.kind, report);
      rows.add(report.size - report.splitOff, KINDS[report.kind]);
    },
    onClaim: claimRecorder(meter, recordBatch),
    onRenewal: renewalRecorder(meter, renewMs),
    ...slotGauges(meter),
  };
}

type Batch = Pick<BatchReport, "size" | "waitedMs" | "tookMs" | "splitOff">;

function batchRecorder(meter: Meter): (kind: Shared, batch: Batch) => void {
  const times = { unit: "ms", advice: { explicitBucketBoundaries: TIMES_MS } };
  const size = meter.createHistogram("holdpoint.worker.batch.size", {
    description: "Rows of one statement",
    unit: "{row}",
    advice: { explicitBucketBoundaries: SIZES },
  });
  const wait = meter.createHistogram("holdpoint.worker.batch.wait", {
    description: "How long the oldest row of a batch had waited for its statement",
    ...times,
  });
  const duration = meter.createHistogram("holdpoint.worker.batch.duration", {
    description: "How long a batch's statement took",
    ...times,
  });
  const splitOff = meter.createCounter("holdpoint.worker.split_off.rows", {
    description: "Rows that their batch has not stored, settled alone afterwards",
    unit: "{row}",
  });
  return (kind, batch) => {
    const attributes = KINDS[kind];
    size.record(batch.size, attributes);
    wait.record(batch.waitedMs, attributes);
    duration.record(batch.tookMs, attributes);
    splitOff.add(batch.splitOff, attributes);
  };
}

function claimRecorder(meter: Meter, recordBatch: (kind: Shared, batch: Batch) => void): (report: ClaimReport) => void {
  const claimed = meter.createCounter("holdpoint.worker.claimed.runs", {
    description: "Runs taken up",
    unit: "{run}",
  });
  const takeovers = meter.createCounter("holdpoint.worker.claimed.takeovers", {
    description: "Runs taken up of which an owner was lost since they last got on",
    unit: "{run}",
  });
  const missed = meter.createCounter("holdpoint.worker.missed.wake_ups", {
    description: "Wake-ups that found nothing to claim",
    unit: "{wake_up}",
  });
  return (report) => {
    recordBatch("claims", report);
    claimed.add(report.claimed);
    takeovers.add(report.takeovers);
    missed.add(report.missed);
  };
}

function renewalRecorder(meter: Meter, renewMs: number): (report: RenewalReport) => void {
  const renewals = meter.createCounter("holdpoint.worker.lease.renewals", {
    description: "Renewals of the lease: late, if the one before was confirmed more than two intervals ago",
    unit: "{renewal}",
  });
  return ({ confirmed, sinceMs }) => {
    const inTime = sinceMs > 2 * renewMs ? "late" : "on_time";
    renewals.add(1, RENEWALS[confirmed ? inTime : "failed"]);
  };
}

function slotGauges(meter: Meter): Pick<WorkerMetrics, "watchSlots" | "close"> {
  const limit = meter.createObservableUpDownCounter("holdpoint.worker.slot.limit", {
    description: "Runs that may be worked on at once",
    unit: "{slot}",
  });
  const usage = meter.createObservableUpDownCounter("holdpoint.worker.slot.usage", {
    description: "Runs that are worked on",
    unit: "{slot}",
  });
  const closing: (() => void)[] = [];
  return {
    watchSlots: (slots) => {
      const observe: BatchObservableCallback = (result) => {
        result.observe(limit, slots.limit);
        result.observe(usage, slots.used());
      };
      meter.addBatchObservableCallback(observe, [limit, usage]);
      closing.push(() => meter.removeBatchObservableCallback(observe, [limit, usage]));
    },
    close: () => {
      for (const close of closing.splice(0)) close();
    },
  };
}
