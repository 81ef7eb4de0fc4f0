import { MAINTENANCE } from "./schedule.ts";
import type { Action, Plan, PlannedSweep, SweepContext } from "./sweep.ts";

/** What maintenance has found, and done if it was told to. */
export interface Maintenance {
  /** What is to be done in the state that was found: the same list whether it is done or only shown. */
  readonly actions: readonly Action[];
  /** What could not be read: nobody knows whether something is to be done there. */
  readonly unreadable: readonly string[];
  /** Null: nothing was done, it was only looked. */
  readonly applied: Applied | null;
}

export interface Applied {
  /** What was found after that, and done as well: the first of it. */
  readonly followUps: readonly Action[];
  /** How much that was, all of it. */
  readonly followed: number;
  /** What was found last, and not done: somebody else works on it, it failed, or the time was over. */
  readonly left: readonly Action[];
  /** What failed, by the sweep that met it. */
  readonly failed: readonly (Failure & { readonly kind: string })[];
}

/** Looking again after so many rounds, each of which found something, is for the next call. */
const ROUNDS_LIMIT = 50;
const FOLLOW_UPS_LISTED = 500;

/** Looks for what is to be done; changes nothing. */
export async function planMaintenance(context: SweepContext): Promise<Maintenance> {
  const { actions, unreadable } = await planAll(context);
  return { actions, unreadable, applied: null };
}

/**
 * Does what `planMaintenance` would list, each action judged anew by the statement that does it; then what is found after
 * that (children first, then their parents; the next of what is many), until nothing is left or `stop` says that the
 * time is over. A second call finds nothing but what the first has reported as left.
 */
export async function applyMaintenance(context: SweepContext, stop: AbortSignal): Promise<Maintenance> {
  const failures = new Map<string, Failure>();
  const first = await planAll(context);
  const later = new Map<string, Action>();
  let round = first;
  for (let number = 1; number <= ROUNDS_LIMIT && !stop.aborted; number += 1) {
    await carryOut(round.plans, { stop, failures });
    const before = round;
    round = await planAll(context);
    // What stays although it was to be done is somebody else's, or fails: looking again would find it again.
    if (round.actions.length === 0 || isSame(before.actions, round.actions)) break;
    for (const action of round.actions) later.set(keyOf(action), action);
  }
  for (const action of [...first.actions, ...round.actions]) later.delete(keyOf(action));
  return {
    actions: first.actions,
    unreadable: [...new Set([...first.unreadable, ...round.unreadable])],
    applied: {
      followUps: [...later.values()].slice(0, FOLLOW_UPS_LISTED),
      followed: later.size,
      left: round.actions,
      failed: [...failures].map(([kind, failure]) => ({ kind, ...failure })),
    },
  };
}

interface Failure {
  readonly count: number;
  readonly error: Error;
}

interface Found {
  readonly plans: readonly { readonly sweep: PlannedSweep; readonly plan: Plan }[];
  readonly actions: readonly Action[];
  readonly unreadable: readonly string[];
}

async function planAll(context: SweepContext): Promise<Found> {
  const plans: { sweep: PlannedSweep; plan: Plan }[] = [];
  for (const sweep of MAINTENANCE) plans.push({ sweep, plan: await sweep.plan(context) });
  return {
    plans,
    actions: plans.flatMap(({ plan }) => plan.actions),
    unreadable: plans.flatMap(({ plan }) => plan.unreadable),
  };
}

async function carryOut(
  plans: Found["plans"],
  { stop, failures }: { readonly stop: AbortSignal; readonly failures: Map<string, Failure> },
): Promise<void> {
  for (const { sweep, plan } of plans) {
    if (stop.aborted) break;
    const { errors } = await plan.carryOut();
    const [error] = errors;
    if (error !== undefined) failures.set(sweep.name, { count: errors.length, error });
  }
}

function isSame(one: readonly Action[], other: readonly Action[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function keyOf({ kind, runId, subject }: Action): string {
  return JSON.stringify([kind, runId, subject]);
}
