import type { RunHistory, RunState, Step, StepBody } from "@holdpoint/core";
import {
  type ChildrenStart,
  type ChildStart,
  type CommitResult,
  type EffectStart,
  type LoadedRun,
  runAfterSteps,
  type StepCommit,
  showId,
} from "@holdpoint/store";

type Taken = Extract<CommitResult, { result: "taken" }>;

/** A run as its owner knows it: its steps and calls are a history, which grows without being copied. */
export type OwnedView = Omit<LoadedRun, "steps" | "calls"> & { readonly history: RunHistory };

/** Steps as they are stored behind the last one that is known. */
export function numbered(stepSeq: number, bodies: readonly StepBody[], atMs: number): readonly Step[] {
  return bodies.map((body, index) => ({ seq: stepSeq + index + 1, atMs, body }));
}

/** A run as it is after a commit that was taken. */
export function afterCommit(view: OwnedView, commit: StepCommit, result: Taken): OwnedView {
  const begun = result.started ? commit.start : null;
  const bodies = begun === null ? commit.steps : [...commit.steps, begun.body];
  const started = begun !== null && "children" in begun ? begun.children.map((child) => childOf(begun, child)) : [];
  const openAttempts = attemptsAfter(view, commit, { begun, nowMs: result.nowMs });
  return {
    ...view,
    nowMs: result.nowMs,
    history: view.history.append({
      steps: numbered(view.run.stepSeq, bodies, result.nowMs),
      calls: commit.calls ?? [],
    }),
    unread: unreadAfter(view, commit),
    approvals: approvalsAfter(view, [commit.usedApproval ?? null, begun?.approvalId ?? null]),
    openAttempts,
    children: started.length === 0 ? view.children : [...view.children, ...started],
    run: runAfterSteps(view.run, {
      stepSeq: result.stepSeq,
      checkpoint: { ...commit.checkpoint, stepSeq: result.stepSeq },
      currentStep: commit.currentStep,
      state: stateAfter(view.run.state, result, {
        openAttempts: openAttempts.length,
        liveChildren: view.run.state.liveChildren + started.length,
        takeovers: commit.progress ? 0 : view.run.state.takeovers,
      }),
    }),
  };
}

/** Nearly every step leaves all of it as it is; a copy of so many fields costs more than the look that says so. */
function stateAfter(
  state: RunState,
  { status, cancelRequested, pauseRequested, nowMs }: Taken,
  counts: Pick<RunState, "openAttempts" | "liveChildren" | "takeovers">,
): RunState {
  const isSame =
    state.status === status &&
    state.openAttempts === counts.openAttempts &&
    state.liveChildren === counts.liveChildren &&
    state.takeovers === counts.takeovers &&
    (state.cancelRequestedAt !== null) === cancelRequested &&
    (state.pauseRequestedAt !== null) === pauseRequested;
  if (isSame) return state;
  const at = { at: nowMs };
  return {
    ...state,
    ...counts,
    status,
    cancelRequestedAt: cancelRequested ? (state.cancelRequestedAt ?? at) : null,
    pauseRequestedAt: pauseRequested ? (state.pauseRequestedAt ?? at) : null,
  };
}

function unreadAfter({ unread }: OwnedView, { readFacts = [] }: StepCommit): LoadedRun["unread"] {
  if (readFacts.length === 0) return unread;
  const read = new Set(readFacts);
  return unread.filter(({ id }) => !read.has(id));
}

function approvalsAfter({ approvals }: OwnedView, ids: readonly (string | null)[]): LoadedRun["approvals"] {
  if (ids.every((id) => id === null)) return approvals;
  return approvals.map((approval) => (ids.includes(approval.id) ? { ...approval, state: "spent" } : approval));
}

function attemptsAfter(
  view: OwnedView,
  { settles = [] }: StepCommit,
  { begun, nowMs }: { readonly begun: StepCommit["start"]; readonly nowMs: number },
): LoadedRun["openAttempts"] {
  if (settles.length === 0 && begun === null) return view.openAttempts;
  const settled = new Set<string | null>(settles.map(({ attemptId }) => attemptId));
  if (begun === null || !("attemptId" in begun)) return view.openAttempts.filter(({ id }) => !settled.has(id));
  const kept = view.openAttempts.filter(({ id }) => !settled.has(id) && id !== begun.supersedes);
  return [...kept, opened(view, begun, nowMs)];
}

function childOf({ body }: ChildrenStart, { id, ordinal, agent }: ChildStart): LoadedRun["children"][number] {
  return {
    id,
    shownId: showId("run", id),
    callId: body.callId,
    ordinal,
    try: body.try,
    agent,
    ended: false,
    status: "queued",
    outcome: null,
    endReason: null,
    result: null,
    resultArtifact: null,
    stopRequested: false,
  };
}

function opened(view: OwnedView, start: EffectStart, nowMs: number): LoadedRun["openAttempts"][number] {
  const earlier = view.openAttempts.find(({ id }) => id === start.supersedes);
  return {
    id: start.attemptId,
    callId: start.body.callId,
    number: start.body.attempt,
    startedAtMs: nowMs,
    deadlineAtMs: nowMs + start.deadlineMs,
    keyFirstUsedAtMs: earlier?.keyFirstUsedAtMs ?? nowMs,
    repeatRefused: false,
    lookUps: 0,
    errorCode: null,
  };
}
