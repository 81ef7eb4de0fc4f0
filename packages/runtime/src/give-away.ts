import { operatorHold, type RunEvent } from "@holdpoint/core";
import { type Run, type Store, transitionOne } from "@holdpoint/store";
import { keepTrying, type Patience } from "./keep-trying.ts";
import { type Log, nameOf } from "./log.ts";
import { mayPass } from "./owned-run.ts";

/** What every worker needs that gives a run away. */
export interface Giver extends Patience {
  readonly store: Store;
  readonly workerId: string;
  readonly log: Log;
}

/** What gives a run that nobody here can work on to a person. An open attempt stays open; only its look-ups are over. */
export function toOperator({ state }: Run): RunEvent {
  return state.status === "running"
    ? { type: "Held", hold: operatorHold("agent_error", null) }
    : { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null };
}

/**
 * Gives a claimed run away that could not be loaded: back, where the database was only away for a moment, else to an
 * operator, since the next worker would fail in the same way. Tries while the lease lasts.
 */
export async function giveAway(giver: Giver, claimed: Run, error: unknown): Promise<void> {
  const { store, workerId, log } = giver;
  const passes = mayPass(error);
  const reason = nameOf(error);
  log.error({ event: "run.not_loaded", runId: claimed.id, error: reason, passes }, "run not loaded");
  let run = claimed;
  const give = async (): Promise<true | null> => {
    const event: RunEvent = passes ? { type: "Released", retryAt: null } : toOperator(run);
    const actor = { kind: "worker", id: workerId } as const;
    const given = await transitionOne(store, { run, events: [event], actor, reason });
    if (given.result !== "conflict") return true;
    run = given.current;
    const isOurs = run.state.owner === workerId && run.epoch === claimed.epoch;
    return isOurs ? null : true;
  };
  const given = await keepTrying(giver, give, (cause) =>
    log.warn({ event: "run.not_given_away", runId: run.id, error: nameOf(cause) }, "run not given away"),
  );
  if (given === null) log.error({ event: "run.kept", runId: run.id }, "run kept until its worker is gone");
}
