import { DECISIONS, type DecidableRequest, type DecisionKind, judgeDecision } from "@holdpoint/core";
import type { ApprovalSummary, RefusalRule } from "@holdpoint/protocol";
import type { Store } from "@holdpoint/store";
import { type ApprovalView, findApproval, listApprovals, type RunView, readId } from "@holdpoint/store/read";
import { isOperator, seesAll } from "./parts.ts";
import { notFound } from "./problem.ts";
import type { Caller } from "./tokens.ts";

/** The request with this shown id, if this caller may see it. */
export async function visibleApproval(store: Store, caller: Caller, approvalId: string): Promise<ApprovalView> {
  const id = readId("approval", approvalId);
  const approval = id === null ? null : await findApproval(store, id);
  if (approval === null || !sees(caller, approval)) throw notFound("approval request");
  return approval;
}

function sees(caller: Caller, view: ApprovalView): boolean {
  return seesAll(caller) || hasPart(caller, view);
}

/** Whether a caller may see the arguments themselves: who asked for the run, who may decide or has, and operators. */
export function readsArgs(caller: Caller, view: ApprovalView): boolean {
  return isOperator(caller) || hasPart(caller, view);
}

/** As many of a run's latest requests are looked through for a part that a caller has in it. */
const LOOKED_THROUGH = 100;

/**
 * Whether a caller may see what a run's steps carry, the arguments among it: who asked for it, operators, and who may
 * decide one of its requests or has.
 */
export async function readsPayloads(store: Store, caller: Caller, { run }: RunView): Promise<boolean> {
  if (isOperator(caller) || run.requester === caller.user) return true;
  const { items } = await listApprovals(store, { runId: run.id }, { limit: LOOKED_THROUGH, after: null });
  return items.some((view) => hasPart(caller, view));
}

function hasPart({ user, roles }: Caller, { requester, decided, terms, ...now }: ApprovalView): boolean {
  const asked = [now, terms.approvers, ...terms.escalation.map(({ approvers }) => approvers)];
  const isAsked = asked.some((each) => each.users.includes(user) || each.roles.some((role) => roles.includes(role)));
  return isAsked || requester === user || decided.some(({ by }) => by === user);
}

/** What this caller may decide, and the rule that forbids the rest: judged as the decision itself is. */
export function decisionsOf(caller: Caller, view: ApprovalView): ApprovalSummary["decisions"] {
  const rules = DECISIONS.map((kind) => [kind, ruleFor(caller, view, kind)] as const);
  // One entry for each kind, by the list that the type is made from.
  return Object.fromEntries(rules) as Record<DecisionKind, RefusalRule | null>;
}

function ruleFor({ user, roles }: Caller, view: ApprovalView, kind: DecisionKind): RefusalRule | null {
  const request: DecidableRequest = view;
  const judged = judgeDecision(request, { kind, by: user, roles, argsHash: view.argsHash, payload: null });
  if ("refuse" in judged) return judged.refuse;
  if ("repeated" in judged) return "already_decided";
  return view.isOver ? "deadline_passed" : null;
}
