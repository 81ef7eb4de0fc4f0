// Decisions and deadlines of requests, as the api and the sweeper bring them.

import { type Actor, passDeadlines } from "@holdpoint/core";
import {
  type ApprovalDecision,
  type DecideResult,
  decideApproval,
  findOverdue,
  type Store,
  type TransitionResult,
  transitionOne,
  writeChange,
} from "../src/index.ts";
import { MANAGER, SWEEPER } from "./a-run.ts";
import type { anAskingRun } from "./a-status.ts";

export type Asking = Pick<Awaited<ReturnType<typeof anAskingRun>>, "run" | "request">;

/** A manager's decision about the first request of a run; an approval, unless said otherwise. */
export function aDecision({ request }: Asking, overrides: Partial<ApprovalDecision> = {}): ApprovalDecision {
  const { id: approvalId, argsHash } = request;
  return { approvalId, decision: "approve", argsHash, note: null, actor: MANAGER, ...overrides };
}

export const deciding =
  (asking: Asking, overrides: Partial<ApprovalDecision> = {}) =>
  (store: Store): Promise<DecideResult> =>
    decideApproval(store, aDecision(asking, overrides));

export const by = (actor: Actor) => ({ actor });

/** Reads a run that is overdue, and gives the move that the sweeper makes of it: it can be made later, as a sweep that was slow. */
export async function overdue(store: Store, runId: string): Promise<(store: Store) => Promise<TransitionResult>> {
  const due = (await findOverdue(store, 1_000)).find(({ run }) => run.id === runId);
  if (due === undefined) throw new Error(`run ${runId} is not overdue`);
  const { run, approvals, nowMs } = due;
  const { changes, remaining, onDeadline } = passDeadlines(approvals, nowMs);
  const written = approvals.flatMap((request) =>
    changes.filter(({ id }) => id === request.id).map((change) => writeChange(request, change)),
  );
  const events = [{ type: "DeadlinePassed", remaining, onDeadline }] as const;
  return (other) =>
    transitionOne(other, { run, actor: SWEEPER, events, reason: onDeadline, writes: { approvals: written } });
}

/** Passes a run's deadline as the sweeper does. */
export async function passDeadline(store: Store, runId: string): Promise<TransitionResult> {
  return (await overdue(store, runId))(store);
}
