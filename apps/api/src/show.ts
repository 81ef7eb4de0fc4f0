import { describe, type Instant, isTerminal, type RunState } from "@holdpoint/core";
import type { Agent, Approval, Call, Message, Run, Session, TimelineEntry, Worker } from "@holdpoint/protocol";
import { type RegisteredAgent, type Session as StoredSession, showId } from "@holdpoint/store";
import type {
  ApprovalView,
  AttemptView,
  CallView,
  MessageView,
  RunView,
  TimelineEntry as StoredEntry,
  WorkerView,
} from "@holdpoint/store/read";

/** An instant as it crosses HTTP. */
export function shown(atMs: number): string;
export function shown(atMs: number | null): string | null;
export function shown(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** An actor by the name that the audit shows; a worker by its id. */
export function showActor(kind: string, id: string): { readonly kind: string; readonly id: string } {
  return { kind, id: UUID.test(id) ? showId("worker", id) : id };
}

/** A run as its reader sees it; `actions` are this caller's. */
export function showRun(view: RunView, actions: Run["actions"]): Run {
  const { run, owner, movedBy, overdue } = view;
  const { state, checkpoint } = run;
  const since = shown(movedBy.atMs);
  return {
    id: showId("run", run.id),
    sessionId: showId("session", run.sessionId),
    agent: run.agent,
    requester: run.requester,
    goal: run.goal,
    status: state.status,
    sentence: sentence(view, since),
    actions,
    outcome: state.outcome,
    endReason: state.endReason,
    currentStep: run.currentStep,
    lastCompleted: checkpoint.lastCompleted,
    turn: checkpoint.turn,
    usage: { inputTokens: checkpoint.inputTokens, outputTokens: checkpoint.outputTokens },
    since,
    waitingFor:
      state.waitingFor === null ? null : { ...state.waitingFor, subject: showSubject(state.waitingFor.subject) },
    hold: run.holdSeq,
    waitDeadline: instant(state.waitDeadline),
    onDeadline: state.onDeadline,
    overdue,
    retryAt: instant(state.retryAt),
    nextReconcileAt: instant(state.nextReconcileAt),
    progressDueAt: shown(run.progressDueAtMs),
    owner: owner === null ? null : showOwner(owner),
    epoch: run.epoch,
    externalRef: run.externalRef,
    version: run.version,
    stepSeq: run.stepSeq,
    openAttempts: state.openAttempts,
    liveChildren: state.liveChildren,
    takeovers: state.takeovers,
    line: showId("run", run.line),
    retryOf: run.retryOf === null ? null : showId("run", run.retryOf),
    parent: run.parent === null ? null : showId("run", run.parent),
    cancelRequestedAt: instant(state.cancelRequestedAt),
    pauseRequestedAt: instant(state.pauseRequestedAt),
    pausedAt: instant(state.pausedAt),
    lostAt: instant(state.lostAt),
    lostReason: state.lostReason,
    createdAt: shown(run.createdAtMs),
    updatedAt: shown(run.updatedAtMs),
    endedAt: instant(state.endedAt),
  };
}

function sentence({ run, owner }: RunView, since: string): string {
  const { state } = run;
  return describe({
    status: state.status,
    currentStep: run.currentStep,
    waitingFor: state.waitingFor,
    since,
    until: isTerminal(state.status) ? null : until(state, run.progressDueAtMs),
    onDeadline: state.onDeadline,
    outcome: state.outcome,
    endReason: state.endReason,
    ownerSilent: owner?.silent ?? false,
  });
}

/** By when somebody moves the run at the latest. */
function until(state: RunState, progressDueAtMs: number | null): string | null {
  if (state.status === "running") return shown(progressDueAtMs);
  return instant(state.status === "retrying" ? state.retryAt : state.waitDeadline);
}

function showSubject(subject: string | null): string | null {
  return subject !== null && UUID.test(subject) ? showId("call", subject) : subject;
}

function showOwner({ id, leaseUntilMs, ...owner }: NonNullable<RunView["owner"]>): NonNullable<Run["owner"]> {
  return { workerId: showId("worker", id), ...owner, leaseUntil: shown(leaseUntilMs) };
}

/** What was read from the database is a moment, never one that a statement still has to compute. */
function instant(moment: Instant | null): string | null {
  return moment !== null && "at" in moment ? shown(moment.at) : null;
}

export function showSession({ id, requester, createdAtMs }: StoredSession): Session {
  return { id: showId("session", id), requester, createdAt: shown(createdAtMs) };
}

export function showMessage({ atMs, runId, ...message }: MessageView): Message {
  return { ...message, runId: runId === null ? null : showId("run", runId), at: shown(atMs) };
}

export function showApproval(view: ApprovalView): Approval {
  return {
    id: showId("approval", view.id),
    runId: showId("run", view.runId),
    sessionId: showId("session", view.sessionId),
    requester: view.requester,
    callId: showId("call", view.callId),
    tool: view.tool,
    args: view.args,
    argsHash: view.argsHash,
    rule: view.rule,
    approvers: { roles: [...view.roles], users: [...view.users], excluded: [...view.excluded] },
    state: view.state,
    requestedAt: shown(view.requestedAtMs),
    deadline: shown(view.deadlineMs),
    onDeadline: view.onDeadline,
    decidedAt: shown(view.decidedAtMs),
    decidedBy: view.decidedBy,
    note: view.note,
    validUntil: shown(view.validUntilMs),
    spentAt: shown(view.spentAtMs),
  };
}

export function showCall({ atMs, attempts, ...call }: CallView): Call {
  return { ...call, id: showId("call", call.id), at: shown(atMs), attempts: attempts.map(showAttempt) };
}

function showAttempt(view: AttemptView): Call["attempts"][number] {
  return {
    id: showId("attempt", view.id),
    number: view.number,
    workerId: showId("worker", view.workerId),
    // A check constraint lists the outcomes.
    state: (view.outcome ?? "open") as Call["attempts"][number]["state"],
    externalRef: view.externalRef,
    startedAt: shown(view.startedAtMs),
    deadlineAt: shown(view.deadlineAtMs),
    endedAt: shown(view.endedAtMs),
    settledBy: view.settledBy,
    errorClass: view.errorClass,
    errorCode: view.errorCode,
    lookUps: view.lookUps,
    lateAt: shown(view.lateAtMs),
  };
}

export function showEntry(entry: StoredEntry): TimelineEntry {
  const at = shown(entry.atMs);
  switch (entry.kind) {
    case "transition": {
      const { kind, seq, from, to, event, reason } = entry;
      return { kind, at, seq, from, to, event, actor: showActor(entry.actorKind, entry.actorId), reason };
    }
    case "step": {
      const { kind, seq, step, line, body } = entry;
      return { kind, at, seq, step, line, ...(body === null ? {} : { body }) };
    }
    case "decision": {
      const { kind, approvalId, tool, decision, actorId, note } = entry;
      const actor = { kind: "approver", id: actorId };
      return { kind, at, approvalId: showId("approval", approvalId), tool, decision, actor, note };
    }
    case "refusal": {
      const { kind, event, rule, status } = entry;
      return { kind, at, event, rule, status, actor: showActor(entry.actorKind, entry.actorId) };
    }
  }
}

export function showWorker({ id, startedAtMs, leaseUntilMs, goneAtMs, agents, ...worker }: WorkerView): Worker {
  return {
    ...worker,
    id: showId("worker", id),
    agents: [...agents],
    startedAt: shown(startedAtMs),
    leaseUntil: shown(leaseUntilMs),
    goneAt: shown(goneAtMs),
  };
}

export function showAgent({ name, version, tools }: RegisteredAgent): Agent {
  return { name, version, tools };
}
