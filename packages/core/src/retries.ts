import { operatorHold } from "./rest.ts";
import type { Hold } from "./state.ts";
import type { Call, ClosedService, Step, StepBody } from "./step.ts";

/** What a call, or a model request, may spend on tries that failed. */
export type RetryBudget = Pick<Call, "retries" | "throttledForMs">;

/** A row of tries that have failed, as far as a budget depends on it. */
export interface FailureRow {
  readonly count: number;
  /** Those that the other side turned away. */
  readonly throttled: number;
  /** Those that were to find out whether a service is back, and found that it is not. */
  readonly probes: number;
  readonly firstThrottledMs: number | null;
  /** When the try after the last throttled one was due. */
  readonly throttledUntilMs: number;
  readonly last: StepBody | null;
}

export const NO_FAILURES: FailureRow = {
  count: 0,
  throttled: 0,
  probes: 0,
  firstThrottledMs: null,
  throttledUntilMs: 0,
  last: null,
};

/** A row with one more failure. */
export function withFailure(row: FailureRow, { body, atMs }: Step): FailureRow {
  const next = { ...row, count: row.count + 1, last: body };
  if (body.kind !== "model_failed" && body.kind !== "call_failed") return next;
  if (body.errorClass !== "throttled") return body.probe === true ? { ...next, probes: row.probes + 1 } : next;
  const firstThrottledMs = row.firstThrottledMs ?? atMs;
  return { ...next, throttled: row.throttled + 1, firstThrottledMs, throttledUntilMs: atMs + body.retryInMs };
}

/** Whether a step says that a try of a call has failed for certain. */
export function isFailedTry(body: StepBody): boolean {
  return body.kind === "call_failed" || (body.kind === "did_not_happen" && body.code !== undefined);
}

/**
 * Which budget a row of failures has used up: `failed` for the tries, `throttled_too_long` for the time in which the
 * other side turned it away; null if there is another try. A throttled try is not the run's fault, nor is one that found
 * its service still down: they cost no try, and are bounded by the clock.
 */
export function budgetReason(failures: FailureRow, budget: RetryBudget): "failed" | "throttled_too_long" | null {
  const { count, throttled, probes, firstThrottledMs, throttledUntilMs } = failures;
  if (count - throttled - probes > budget.retries) return "failed";
  if (firstThrottledMs === null) return null;
  // Not by the time of now: a pause of the run is not the other side's doing.
  return throttledUntilMs - firstThrottledMs > budget.throttledForMs ? "throttled_too_long" : null;
}

/** The service of this name, where nobody may call it freely now. */
export function closedService(
  { services }: { readonly services: readonly ClosedService[] },
  name: string,
): ClosedService | null {
  return services.find((service) => service.name === name) ?? null;
}

const TOO_LONG = { throttled: "throttled_too_long", unavailable: "unavailable_too_long" } as const;

/**
 * The wait for a service that must not be called yet; null if it may be tried. Once it is closed for longer than a call
 * may wait for it, an operator is asked.
 *
 * @param grantedMs when an operator has granted that time once more; 0 if none has.
 */
export function serviceHold(
  service: ClosedService | null,
  wait: {
    readonly callId: string | null;
    readonly nowMs: number;
    readonly atMostMs: number;
    readonly grantedMs: number;
  },
): Hold | null {
  if (service === null || service.untilMs <= wait.nowMs) return null;
  const { name, reason, sinceMs, untilMs } = service;
  if (untilMs - Math.max(sinceMs, wait.grantedMs) > wait.atMostMs) return operatorHold(TOO_LONG[reason], wait.callId);
  return {
    kind: "dependency",
    waitingFor: { kind: "service", principal: name, subject: wait.callId, reason },
    deadline: { at: untilMs },
    onDeadline: "continue",
  };
}
