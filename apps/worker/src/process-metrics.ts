// What a working process counts. It listens nowhere: its supervisor asks for it, and shows it with that of the others.
import { type EventLoopUtilization, monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Log } from "@holdpoint/runtime";
import type { Meter, MeterProvider as Meters } from "@opentelemetry/api";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { isMetricsAsked, type MetricsGiven } from "./metrics-messages.ts";
import { OnDemandReader } from "./on-demand-reader.ts";

/**
 * Opens the metrics of this process and answers its supervisor whenever that asks. It registers nothing for the whole
 * process: an SDK that the agents bring along is left alone.
 */
export function openProcessMetrics(log: Log): Meters {
  const reader = new OnDemandReader();
  const provider = new MeterProvider({ readers: [reader] });
  watchLoop(provider.getMeter("holdpoint.process"));
  const answer = async (ask: number): Promise<void> => {
    const { resourceMetrics, errors } = await reader.collect();
    for (const error of errors) tell(log, error);
    const given: MetricsGiven = { event: "metrics.given", ask, scopes: resourceMetrics.scopeMetrics };
    // A supervisor that is gone meanwhile asks for nothing any more.
    if (process.connected) process.send?.(given, undefined, {}, (error) => error !== null && tell(log, error));
  };
  process.on("message", (message) => {
    if (isMetricsAsked(message)) answer(message.ask).catch((error) => tell(log, error));
  });
  return provider;
}

/** How often the loop's delay is measured, in milliseconds: each measurement contains this pause. */
const RESOLUTION_MS = 10;
const NS_PER_S = 1e9;

/** Names and units are those of OpenTelemetry's conventions for Node.js. Each answer covers the time since the last. */
function watchLoop(meter: Meter): void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const gauge = (name: string, description: string) =>
    meter.createObservableGauge(`nodejs.eventloop.delay.${name}`, { description, unit: "s" });
  const p50 = gauge("p50", "Median delay of the event loop");
  const p99 = gauge("p99", "99th percentile of the event loop's delay");
  const max = gauge("max", "Longest delay of the event loop");
  const utilization = meter.createObservableGauge("nodejs.eventloop.utilization", {
    description: "Share of the time in which the event loop was not idle",
    unit: "1",
  });
  const beyondPause = (ns: number): number => Math.max(0, ns / NS_PER_S - RESOLUTION_MS / 1_000);
  meter.addBatchObservableCallback(
    (result) => {
      // Two scrapes within one pause: nothing was measured between them.
      if (delay.count > 0) {
        result.observe(p50, beyondPause(delay.percentile(50)));
        result.observe(p99, beyondPause(delay.percentile(99)));
        result.observe(max, beyondPause(delay.max));
        delay.reset();
      }
      const now = performance.eventLoopUtilization();
      result.observe(utilization, performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
    [p50, p99, max, utilization],
  );
}

function tell(log: Log, error: unknown): void {
  const { name, message } = error instanceof Error ? error : { name: "unknown", message: "" };
  log.warn({ event: "metrics.not_given", error: name, message }, "metrics not given");
}
