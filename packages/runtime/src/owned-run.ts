import { setTimeout as sleep } from "node:timers/promises";
import { advance, type PlanInput, type RunEvent, type Step, type StepBody } from "@holdpoint/core";
import {
  type CommitGroup,
  type CommitResult,
  failureKind,
  type LoadedRun,
  loadRun,
  type Run,
  type StepCommit,
  type Store,
  type TransitionResult,
  transitionOne,
  type Writes,
} from "@holdpoint/store";
import type { Clock } from "./clock.ts";
import type { Agent } from "./define-agent.ts";
import type { Lease } from "./lease.ts";

/** What became of something that the owner wanted to store. */
export type Stored =
  | { readonly result: "taken"; readonly started: boolean }
  /** The run was given back: somebody else moves it next. */
  | { readonly result: "given"; readonly run: Run }
  /** The rows have changed; they were loaded again and the owner has to plan anew. */
  | { readonly result: "changed" }
  /** The run is not this worker's any more. */
  | { readonly result: "replaced" };

/** What one commit carries; fences and checkpoint are added here. */
export type Progress = Pick<StepCommit, "steps" | "currentStep" | "progress"> &
  Partial<Pick<StepCommit, "start" | "calls" | "messages" | "settles" | "finished" | "readFacts" | "artifacts">>;

export interface OwnedRunOptions {
  readonly store: Store;
  readonly group: CommitGroup;
  readonly lease: Lease;
  readonly agent: Agent;
  readonly workerId: string;
  /** The next progress is due within this time, in milliseconds. */
  readonly progressMs: number;
  readonly clock: Clock;
}

/** The database may be away for a moment: a commit is repeated, since its fence makes that harmless, while the lease lasts. */
const STORE_PAUSE_MS = 200;

/** A run that this worker has claimed, as it knows it: every commit that is taken moves this view as well. */
export class OwnedRun {
  readonly stepSeqAtClaim: number;
  #view: LoadedRun;
  /** When the view's `nowMs` was read, on the process's own clock. */
  #readAtMs: number;
  readonly #options: OwnedRunOptions;

  constructor(options: OwnedRunOptions, loaded: LoadedRun) {
    this.#options = options;
    this.#view = loaded;
    this.#readAtMs = options.clock.monotonicMs();
    this.stepSeqAtClaim = loaded.run.stepSeq;
  }

  get view(): LoadedRun {
    return this.#view;
  }

  /** The database's clock at this moment, as far as this process can know it. */
  get nowMs(): number {
    return this.#view.nowMs + (this.#options.clock.monotonicMs() - this.#readAtMs);
  }

  #see(view: LoadedRun): void {
    if (view.nowMs !== this.#view.nowMs) this.#readAtMs = this.#options.clock.monotonicMs();
    this.#view = view;
  }

  /** What `plan` is asked with. */
  planInput(): PlanInput {
    const { agent } = this.#options;
    const { steps, calls, openAttempts, approvals, unread, lineEffects, run } = this.#view;
    return {
      steps,
      calls,
      openAttempts,
      approvals,
      unread,
      lineEffects,
      nowMs: this.nowMs,
      limits: agent.limits,
      onBlocked: agent.onBlocked,
      modelRetries: agent.modelRetries,
      requester: run.requester,
    };
  }

  /** A repeat was turned down: nobody repeats this attempt again. Stored with the move that follows. */
  markRepeatRefused(attemptId: string): void {
    const openAttempts = this.#view.openAttempts.map((attempt) =>
      attempt.id === attemptId ? { ...attempt, repeatRefused: true } : attempt,
    );
    this.#see({ ...this.#view, openAttempts });
  }

  /** Commits progress under this run's fence. */
  async commit(progress: Progress): Promise<Stored> {
    const { run, calls } = this.#view;
    const { workerId, progressMs } = this.#options;
    const allCalls = [...calls, ...(progress.calls ?? [])];
    const steps = numbered(run.stepSeq, progress.steps);
    const commit: StepCommit = {
      ...progress,
      start: progress.start ?? null,
      runId: run.id,
      workerId,
      epoch: run.epoch,
      stepSeq: run.stepSeq,
      checkpoint: steps.reduce((cursor, step) => advance(cursor, step, allCalls), run.checkpoint),
      progressMs,
    };
    const result = await this.#untilStored(() => this.#options.group.commit(commit));
    if (result.result === "replaced") return result;
    if (result.result === "reload") return this.reload();
    this.#see(afterCommit(this.#view, commit, result));
    return { result: "taken", started: result.started };
  }

  /**
   * Moves the run by events of its owner, with what is stored beside them. If the run is still this worker's
   * afterwards (a look-up that settled its attempt), it goes on.
   */
  async move(events: readonly RunEvent[], writes: Writes = {}, reason: string | null = null): Promise<Stored> {
    const { run, calls } = this.#view;
    const steps = numbered(run.stepSeq, writes.steps ?? []);
    const checkpoint = steps.reduce((cursor, step) => advance(cursor, step, calls), run.checkpoint);
    const actor = { kind: "worker", id: this.#options.workerId } as const;
    const { progressMs } = this.#options;
    const kept = steps.length === 0 ? {} : { checkpoint };
    const move = { run, events, actor, reason, writes: { ...writes, ...kept, progressMs } };
    const result: TransitionResult = await this.#untilStored(() => transitionOne(this.#options.store, move));
    if (result.result === "notFound") return { result: "replaced" };
    if (result.result === "conflict" || result.result === "rejected") return this.reload();
    // This process may have claimed the run anew while the answer was lost: that is another owner, by its epoch.
    const isOurs = result.run.state.owner === this.#options.workerId && result.run.epoch === run.epoch;
    if (!isOurs) return { result: "given", run: result.run };
    const settled = new Set((writes.settles ?? []).map(({ attemptId }) => attemptId));
    const openAttempts = this.#view.openAttempts.filter(({ id }) => !settled.has(id));
    this.#see({ ...this.#view, run: result.run, steps: [...this.#view.steps, ...steps], openAttempts });
    return { result: "taken", started: false };
  }

  /** Loads the rows again; the run may have been taken over meanwhile. */
  async reload(): Promise<Stored> {
    const loaded = await this.#untilStored(() => loadRun(this.#options.store, this.#view.run.id));
    const isOurs = loaded?.run.state.owner === this.#options.workerId && loaded.run.epoch === this.#view.run.epoch;
    if (loaded === null || !isOurs) return { result: "replaced" };
    this.#see(loaded);
    return { result: "changed" };
  }

  async #untilStored<Value>(store: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        return await store();
      } catch (error) {
        if (!mayPass(error) || !this.#options.lease.isValid()) throw error;
        await sleep(STORE_PAUSE_MS);
      }
    }
  }
}

/** Whether a failed statement may succeed when it is sent again. */
export function mayPass(error: unknown): boolean {
  const kind = failureKind(error);
  return kind === "connection" || kind === "resources" || kind === "repeat";
}

function numbered(stepSeq: number, bodies: readonly StepBody[]): readonly Step[] {
  return bodies.map((body, index) => ({ seq: stepSeq + index + 1, body }));
}

function afterCommit(
  view: LoadedRun,
  commit: StepCommit,
  result: Extract<CommitResult, { result: "taken" }>,
): LoadedRun {
  const bodies = result.started && commit.start !== null ? [...commit.steps, commit.start.body] : commit.steps;
  const settled = new Set((commit.settles ?? []).map(({ attemptId }) => attemptId));
  const read = new Set(commit.readFacts ?? []);
  const kept = view.openAttempts.filter(
    ({ id }) => !settled.has(id) && !(result.started && id === commit.start?.supersedes),
  );
  const { state } = view.run;
  const at = { at: result.nowMs };
  const openAttempts = result.started ? [...kept, opened(view, commit, result.nowMs)] : kept;
  return {
    ...view,
    nowMs: result.nowMs,
    steps: [...view.steps, ...numbered(view.run.stepSeq, bodies)],
    calls: [...view.calls, ...(commit.calls ?? [])],
    unread: view.unread.filter(({ id }) => !read.has(id)),
    openAttempts,
    run: {
      ...view.run,
      stepSeq: result.stepSeq,
      checkpoint: { ...commit.checkpoint, stepSeq: result.stepSeq },
      currentStep: commit.currentStep,
      state: {
        ...state,
        status: result.status,
        openAttempts: openAttempts.length,
        takeovers: commit.progress ? 0 : state.takeovers,
        cancelRequestedAt: result.cancelRequested ? (state.cancelRequestedAt ?? at) : null,
        pauseRequestedAt: result.pauseRequested ? (state.pauseRequestedAt ?? at) : null,
      },
    },
  };
}

function opened(view: LoadedRun, { start }: StepCommit, nowMs: number): LoadedRun["openAttempts"][number] {
  if (start === null) throw new RangeError("A commit without a start has started nothing");
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
  };
}
