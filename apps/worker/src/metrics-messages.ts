import type { ScopeMetrics } from "@opentelemetry/sdk-metrics";

/** A supervisor asks one of its processes for its metrics. */
export interface MetricsAsked {
  readonly event: "metrics.asked";
  /** Comes back with the answer, which may come too late. */
  readonly ask: number;
}

/** What the process answers. */
export interface MetricsGiven {
  readonly event: "metrics.given";
  readonly ask: number;
  readonly scopes: readonly ScopeMetrics[];
}

export function isMetricsAsked(message: unknown): message is MetricsAsked {
  return eventOf(message) === "metrics.asked";
}

/** Both sides are this program: what says that it is an answer has the form of one. */
export function isMetricsGiven(message: unknown): message is MetricsGiven {
  return eventOf(message) === "metrics.given";
}

function eventOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "event" in message ? message.event : null;
}
