import type { Step, StepBody } from "@holdpoint/core";
import {
  type ChildrenStart,
  type ChildStart,
  type CommitResult,
  type EffectStart,
  type LoadedRun,
  type StepCommit,
  showId,
} from "@holdpoint/store";

type Taken = Extract<CommitResult, { result: "taken" }>;

/** Steps as they are stored behind the last one that is known. */
export function numbered(stepSeq: number, bodies: readonly StepBody[], atMs: number): readonly Step[] {
  return bodies.map((body, index) => ({ seq: stepSeq + index + 1, atMs, body }));
}

/** A run as it is after a commit that was taken. */
export function afterCommit(view: LoadedRun, commit: StepCommit, result: Taken): LoadedRun {
  const begun = result.started ? commit.start : null;
  const bodies = begun === null ? commit.steps : [...commit.steps, begun.body];
  const read = new Set(commit.readFacts ?? []);
  const spent = new Set([commit.usedApproval, begun?.approvalId]);
  const { state } = view.run;
  const at = { at: result.nowMs };
  const started = begun !== null && "children" in begun ? begun.children.map((child) => childOf(begun, child)) : [];
  const openAttempts = attemptsAfter(view, commit, { begun, nowMs: result.nowMs });
  return {
    ...view,
    nowMs: result.nowMs,
    steps: [...view.steps, ...numbered(view.run.stepSeq, bodies, result.nowMs)],
    calls: [...view.calls, ...(commit.calls ?? [])],
    unread: view.unread.filter(({ id }) => !read.has(id)),
    approvals: view.approvals.map((approval) => (spent.has(approval.id) ? { ...approval, state: "spent" } : approval)),
    openAttempts,
    children: [...view.children, ...started],
    run: {
      ...view.run,
      stepSeq: result.stepSeq,
      checkpoint: { ...commit.checkpoint, stepSeq: result.stepSeq },
      currentStep: commit.currentStep,
      state: {
        ...state,
        status: result.status,
        openAttempts: openAttempts.length,
        liveChildren: state.liveChildren + started.length,
        takeovers: commit.progress ? 0 : state.takeovers,
        cancelRequestedAt: result.cancelRequested ? (state.cancelRequestedAt ?? at) : null,
        pauseRequestedAt: result.pauseRequested ? (state.pauseRequestedAt ?? at) : null,
      },
    },
  };
}

function attemptsAfter(
  view: LoadedRun,
  { settles = [] }: StepCommit,
  { begun, nowMs }: { readonly begun: StepCommit["start"]; readonly nowMs: number },
): LoadedRun["openAttempts"] {
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

function opened(view: LoadedRun, start: EffectStart, nowMs: number): LoadedRun["openAttempts"][number] {
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
