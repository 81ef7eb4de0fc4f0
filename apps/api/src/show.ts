import { type BlockedBy, describe, type Instant, isTerminal, type RunState } from "@holdpoint/core";
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
  const { run, owner, movedBy, overdue, blockedBy } = view;
  const waitingFor = waitingForNow(view);
  const { state, checkpoint } = run;
  const since = shown(movedBy.atMs);
  return {
    id: showId("run", run.id),
    sessionId: showId("session", run.sessionId),
    agent: run.agent,
    kind: view.agentKind,
    requester: run.requester,
    submittedBy: run.submittedBy,
    goal: run.goal,
    status: state.status,
    sentence: sentenceOf({ ...run, state: { ...run.state, waitingFor } }, { since, owner, blockedBy }),
    actions,
    outcome: state.outcome,
    endReason: state.endReason,
    currentStep: run.currentStep,
    lastCompleted: checkpoint.lastCompleted,
    turn: checkpoint.turn,
    usage: { inputTokens: checkpoint.inputTokens, outputTokens: checkpoint.outputTokens },
    workedMs: view.workedMs,
    since,
    waitingFor: waitingFor === null ? null : { ...waitingFor, subject: showSubject(waitingFor.subject) },
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
    ancestors: run.ancestors.map((id) => showId("run", id)),
    startedBy: showStart(view),
    instanceKey: run.instanceKey,
    blockedBy: blockedBy.map(({ id, ...child }) => ({ ...child, runId: showId("run", id) })),
    notStopped: view.notStopped.map(({ id, ...below }) => ({ ...below, runId: showId("run", id) })),
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

/** One sentence that says what a run is doing or for whom it waits. */
export function sentenceOf(
  { state, currentStep, progressDueAtMs, isTask }: RunView["run"],
  {
    since,
    owner,
    blockedBy = [],
  }: {
    readonly since: string;
    readonly owner: Pick<NonNullable<RunView["owner"]>, "host" | "silent"> | null;
    readonly blockedBy?: RunView["blockedBy"];
  },
): string {
  return describe({
    status: state.status,
    currentStep,
    waitingFor: state.waitingFor,
    since,
    until: isTerminal(state.status) ? null : until(state, progressDueAtMs),
    onDeadline: state.onDeadline,
    outcome: state.outcome,
    endReason: state.endReason,
    ownerSilent: owner?.silent ?? false,
    blockedBy: firstOf(blockedBy),
    task: isTask ? { executor: owner?.host ?? null } : null,
  });
}

/** For whom a run waits: of children those that have not ended by now. */
function waitingForNow({ run, awaited }: RunView): RunState["waitingFor"] {
  const { waitingFor } = run.state;
  if (waitingFor === null || awaited === null) return waitingFor;
  const { first, count } = awaited;
  if (first === null) return { ...waitingFor, principal: "child runs" };
  return { ...waitingFor, principal: `${showId("run", first)}${count === 1 ? "" : ` and ${count - 1} more`}` };
}

function firstOf([first, ...others]: RunView["blockedBy"]): BlockedBy | null {
  if (first === undefined) return null;
  const { id, step, reason } = first;
  return { run: showId("run", id), step, reason, others: others.length };
}

function showStart({ run: { parentCall }, parentTool: tool }: RunView): Run["startedBy"] {
  if (parentCall === null || tool === null) return null;
  const { callId, ordinal, try: number } = parentCall;
  return { callId: showId("call", callId), tool, ordinal, try: number };
}

/** By when somebody moves the run at the latest. */
function until(state: RunState, progressDueAtMs: number | null): string | null {
  if (state.status === "running") return shown(progressDueAtMs);
  return instant(state.status === "retrying" ? state.retryAt : state.waitDeadline);
}

export function showSubject(subject: string | null): string | null {
  return subject !== null && UUID.test(subject) ? showId("call", subject) : subject;
}

function showOwner({ id, leaseUntilMs, ...owner }: NonNullable<RunView["owner"]>): NonNullable<Run["owner"]> {
  return { workerId: showId("worker", id), ...owner, leaseUntil: shown(leaseUntilMs) };
}

/** What was read from the database is a moment, never one that a statement still has to compute. */
export function instant(moment: Instant | null): string | null {
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
    id: view.id === null ? null : showId("attempt", view.id),
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

export function showWorker(view: WorkerView): Worker {
  const { id, startedAtMs, leaseUntilMs, goneAtMs, drainRequestedAtMs, agents, ...worker } = view;
  return {
    ...worker,
    id: showId("worker", id),
    agents: [...agents],
    startedAt: shown(startedAtMs),
    leaseUntil: shown(leaseUntilMs),
    goneAt: shown(goneAtMs),
    drainRequestedAt: shown(drainRequestedAtMs),
  };
}

/** The tools without their rules and schemas, which are the operators' business. */
export function showAgent({ name, version, tools, kind = "agent" }: RegisteredAgent): Agent {
  return {
    name,
    version,
    kind,
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
