import { operatorHold } from "./rest.ts";
import type { Hold } from "./state.ts";
import type { Call, ClosedService, Step } from "./step.ts";

/** What a call, or a model request, may spend on tries that failed. */
export type RetryBudget = Pick<Call, "retries" | "throttledForMs">;

/**
 * Which budget a row of failures has used up: `failed` for the tries, `throttled_too_long` for the time in which the
 * other side turned it away; null if there is another try. A throttled try is not the run's fault, nor is one that found
 * its service still down: they cost no try, and are bounded by the clock.
 */
export function budgetReason(failures: readonly Step[], budget: RetryBudget): "failed" | "throttled_too_long" | null {
  const throttled = failures.flatMap(({ body, atMs }) =>
    "errorClass" in body && body.errorClass === "throttled" ? [{ atMs, dueMs: atMs + body.retryInMs }] : [],
  );
  const probes = failures.filter(
    ({ body }) => "errorClass" in body && body.errorClass !== "throttled" && body.probe === true,
  );
  if (failures.length - throttled.length - probes.length > budget.retries) return "failed";
  const [first, last] = [throttled[0], throttled.at(-1)];
  if (first === undefined || last === undefined) return null;
  // Not by the time of now: a pause of the run is not the other side's doing.
  return last.dueMs - first.atMs > budget.throttledForMs ? "throttled_too_long" : null;
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
