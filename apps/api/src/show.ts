import { describe, type Instant, isTerminal, type RunState } from "@holdpoint/core";
import type { Agent, Assignment, Call, Finding, Message, Run, Service, Session, Worker } from "@holdpoint/protocol";
import { type RegisteredAgent, type Session as StoredSession, showId } from "@holdpoint/store";
import type {
  AssignmentView,
  AttemptView,
  CallView,
  FindingView,
  MessageView,
  RunView,
  ServiceView,
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
    submittedBy: run.submittedBy,
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
    workedMs: view.workedMs,
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

/** The tools without their rules and schemas, which are the operators' business. */
export function showAgent({ name, version, tools }: RegisteredAgent): Agent {
  return {
    name,
    version,
    tools: tools.map(({ name: tool, description, effect }) => ({ name: tool, description, effect })),
  };
}

export function showAssignment({ grantedAtMs, revokedAtMs, ...assignment }: AssignmentView): Assignment {
  return { ...assignment, grantedAt: shown(grantedAtMs), revokedAt: shown(revokedAtMs) };
}

export function showService({ sinceMs, closedUntilMs, ...service }: ServiceView): Service {
  return { ...service, since: shown(sinceMs), closedUntil: shown(closedUntilMs) };
}

export function showFinding(view: FindingView): Finding {
  const { attemptId, runId, callId, workerId, number, settledAtMs, atMs, ...finding } = view;
  return {
    ...finding,
    attemptId: showId("attempt", attemptId),
    runId: showId("run", runId),
    callId: showId("call", callId),
    workerId: showId("worker", workerId),
    attempt: number,
    settledAt: shown(settledAtMs),
    at: shown(atMs),
  };
}
