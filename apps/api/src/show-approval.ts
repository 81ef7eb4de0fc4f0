import type { Approval, ApprovalSummary } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import type { ApprovalHistory, ApprovalView, DecisionView } from "@holdpoint/store/read";
import { decisionsOf, readsArgs } from "./approval-access.ts";
import { shown } from "./show.ts";
import type { Caller } from "./tokens.ts";

/** A request in a list, for this caller. */
export function showApprovalSummary(caller: Caller, view: ApprovalView): ApprovalSummary {
  const { terms, shown: request } = view;
  return {
    id: showId("approval", view.id),
    runId: showId("run", view.runId),
    sessionId: showId("session", view.sessionId),
    callId: showId("call", view.callId),
    requester: view.requester,
    tool: view.tool,
    redactedArgs: request.redactedArgs,
    argsHash: view.argsHash,
    amount: request.amount,
    risk: request.risk,
    rule: terms.rule,
    state: view.state,
    terms: {
      quorum: terms.quorum,
      given: view.given,
      veto: terms.veto,
      fourEyes: terms.fourEyes,
      offered: [...terms.decisions],
      validForMs: terms.validForMs,
    },
    decided: view.decided.map(showGiven),
    decisions: decisionsOf(caller, view),
    approvers: { roles: [...view.roles], users: [...view.users], excluded: [...view.excluded] },
    level: view.level,
    escalation: terms.escalation.slice(view.level).map(({ approvers: { roles, users }, deadlineMs }) => ({
      roles: [...roles],
      users: [...users],
      deadlineMs,
    })),
    requestedAt: shown(view.requestedAtMs),
    deadline: shown(view.deadlineMs),
    onDeadline: view.onDeadline,
    extended: view.extended,
    reminders: { made: view.reminders, nextAt: view.state === "pending" ? shown(view.remindAtMs) : null },
    editedBy: view.editedBy,
    decidedAt: shown(view.decidedAtMs),
    decidedBy: view.decidedBy,
    note: view.note,
    validUntil: shown(view.validUntilMs),
    spentAt: shown(view.spentAtMs),
    closedAt: shown(view.closedAtMs),
    closedReason: view.closedReason,
  };
}

function showGiven({ by, kind, level, note, atMs }: DecisionView): ApprovalSummary["decided"][number] {
  return { by, decision: kind, level, at: shown(atMs), note };
}

/** A request with all that whoever decides it needs, for this caller. */
export function showApproval(caller: Caller, view: ApprovalView, history: ApprovalHistory): Approval {
  const mayRead = readsArgs(caller, view);
  const { sameCall, equalCalls, modelArgs } = history;
  const { modelReason, evidence, editSchema } = view.shown;
  const next = view.state === "superseded" ? sameCall.find(({ id }) => id > view.id) : undefined;
  return {
    ...showApprovalSummary(caller, view),
    args: mayRead ? view.args : null,
    modelArgs: mayRead && view.editedBy !== null ? modelArgs : null,
    modelReason: mayRead ? modelReason : null,
    evidence: mayRead ? evidence.map((each) => ({ ...each })) : [],
    editSchema,
    answerSchema: view.terms.answerSchema,
    answer: mayRead ? view.answer : null,
    sameCall: sameCall.map(({ id, requestedAtMs, ...other }) => ({
      ...other,
      id: showId("approval", id),
      requestedAt: shown(requestedAtMs),
    })),
    supersededBy: next === undefined ? null : showId("approval", next.id),
    equalCalls: equalCalls.map(({ runId, callId, result, atMs }) => ({
      runId: showId("run", runId),
      callId: showId("call", callId),
      result,
      at: shown(atMs),
    })),
  };
}
