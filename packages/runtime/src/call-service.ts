import type { Call, ClosedService, ErrorClass, Hold } from "@holdpoint/core";
import { passService, reportRecovered, reportTrouble } from "@holdpoint/store";
import type { ServiceTrouble } from "./execute-call.ts";
import { nameOf } from "./log.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** Whoever has to wait for somebody else's probe looks again after this long at the latest, in milliseconds. */
const LONGEST_WAIT_MS = 10_000;

/** A call to a service that was in trouble. */
export interface Passing {
  /** Null: nothing is known of trouble, and nothing has to be asked. */
  readonly service: ClosedService | null;
  /** How long the call takes at most, in milliseconds. */
  readonly probeMs: number;
  /** Gives the run back for this long, in milliseconds. */
  readonly wait: (waitMs: number, service: ClosedService) => Promise<Stored>;
}

/** Sends a call as the one that finds out whether its service is back, or waits for how another's ends. */
export function passThen(act: Act, passing: Passing, send: () => Promise<Stored>): Promise<Stored> {
  return passing.service === null ? send() : passOrWait(act, { ...passing, service: passing.service }, send);
}

async function passOrWait(
  { context, run }: Act,
  passing: Passing & { readonly service: ClosedService },
  send: () => Promise<Stored>,
): Promise<Stored> {
  const { service, probeMs } = passing;
  const pass = await run.untilStored(() => passService(context.store, { service: service.name, probeMs }));
  if (pass.result !== "wait") {
    context.log.info({ event: "service.tried", service: service.name, as: pass.result }, "service tried");
    return context.lease.isValid() ? send() : { result: "replaced" };
  }
  return passing.wait(Math.min(LONGEST_WAIT_MS, pass.waitMs), service);
}

/** Holds the run until the service may be tried again: of a call, or of the model. */
export function waitForService({ run }: Act, call: Call | null): Passing["wait"] {
  return (waitMs, { name, reason }) => {
    const hold: Hold = {
      kind: "dependency",
      waitingFor: { kind: "service", principal: name, subject: call?.id ?? null, reason },
      deadline: { inMs: waitMs },
      onDeadline: "continue",
    };
    return run.move([{ type: "Held", hold }], call === null ? {} : { currentStep: call.tool }, reason);
  };
}

/** How a service has answered: its trouble, `well`, or `unknown` if that cannot be told from what came. */
export type ServiceAnswer = ServiceTrouble | "well" | "unknown";

/** How a service has answered that failed without trouble: whoever refuses what was asked has answered. */
export function answerOfFailure(errorClass: ErrorClass): ServiceAnswer {
  return errorClass === "refused" || errorClass === "caller" ? "well" : "unknown";
}

/**
 * Stores what a call came to, and tells all runs how its service has answered. Trouble is told first: whoever takes the
 * run up after a crash in between must not call earlier than the other side allows. A good answer is stored first, and
 * told only where there was trouble.
 */
export async function reportWith(
  act: Act,
  { service, answer }: { readonly service: string; readonly answer: ServiceAnswer },
  store: () => Promise<Stored>,
): Promise<Stored> {
  if (answer !== "well") await report(act, service, answer);
  const stored = await store();
  if (answer === "well" && isTroubled(act, service)) await report(act, service, answer);
  return stored;
}

function isTroubled({ run }: Act, service: string): boolean {
  return run.troubledServices().some(({ name }) => name === service);
}

/** A report that fails costs others a try; it is logged, and keeps nothing of the run from being stored. */
async function report(act: Act, service: string, answer: ServiceAnswer): Promise<void> {
  if (answer === "unknown" || service === "") return;
  try {
    if (answer === "well") await recovered(act, service);
    else await troubled(act, service, answer);
  } catch (error) {
    act.context.log.warn({ event: "service.not_reported", service, error: nameOf(error) }, "service not reported");
  }
}

async function recovered({ context, run }: Act, service: string): Promise<void> {
  const known = run.troubledServices().find(({ name }) => name === service);
  if (known === undefined) return;
  // What was under way when it closed does not open it before its time.
  if (known.untilMs !== null && known.untilMs > run.nowMs) return;
  await reportRecovered(context.store, service);
  context.services.note(service, null, run.nowMs);
  context.log.info({ event: "service.recovered", service }, "service recovered");
}

async function troubled({ context, run }: Act, service: string, trouble: ServiceTrouble): Promise<void> {
  const { reason, retryAfterMs } = trouble;
  // At once for the runs of this process, whatever the way to the database takes.
  if (reason === "throttled" && retryAfterMs !== null) {
    const { nowMs } = run;
    const known = run.troubledServices().find(({ name }) => name === service);
    const untilMs = Math.max(known?.untilMs ?? 0, nowMs + retryAfterMs);
    context.services.note(service, { name: service, reason, sinceMs: known?.sinceMs ?? nowMs, untilMs }, nowMs);
  }
  const { nowMs, ...stored } = await reportTrouble(context.store, { service, reason, retryAfterMs });
  context.services.note(service, stored, nowMs);
  const closedForMs = stored.untilMs === null ? 0 : Math.max(0, stored.untilMs - nowMs);
  context.log.warn({ event: "service.troubled", service, reason: stored.reason, closedForMs }, "service troubled");
}
