import type { ChildProcess } from "node:child_process";
import type { ScopeMetrics } from "@opentelemetry/sdk-metrics";
import { isMetricsGiven, type MetricsAsked } from "./metrics-messages.ts";

/** Longest time for an answer, in milliseconds: well within Prometheus's own limit, so that one that hangs costs no more. */
const ANSWER_MS = 2_000;
let asks = 0;

/** Asks a process for its metrics; null if it has ended, is still starting, or hangs. */
export function askForMetrics(child: ChildProcess): Promise<readonly ScopeMetrics[] | null> {
  asks += 1;
  const asked: MetricsAsked = { event: "metrics.asked", ask: asks };
  return new Promise((resolve) => {
    const settle = (scopes: readonly ScopeMetrics[] | null): void => {
      clearTimeout(timer);
      child.off("message", hear).off("exit", miss);
      resolve(scopes);
    };
    const hear = (message: unknown): void => {
      if (isMetricsGiven(message) && message.ask === asked.ask) settle(message.scopes);
    };
    const miss = (): void => settle(null);
    const timer = setTimeout(miss, ANSWER_MS);
    child.on("message", hear).once("exit", miss);
    if (child.connected) child.send(asked, (error) => error !== null && miss());
    else miss();
  });
}
