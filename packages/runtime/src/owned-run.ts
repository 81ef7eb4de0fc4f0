import { setTimeout as sleep } from "node:timers/promises";
import {
  advance,
  type Checkpoint,
  type ClosedService,
  type PlanInput,
  type RunEvent,
  runHistory,
  type Step,
} from "@holdpoint/core";
import {
  type CommitGroup,
  failureKind,
  type LoadedRun,
  loadRun,
  type Run,
  type StartRefusal,
  type StepCommit,
  type Store,
  type TransitionResult,
  type TroubledService,
  type Writes,
} from "@holdpoint/store";
import type { History, Indexed, Workflow } from "@holdpoint/workflow";
import type { ModelMessage } from "ai";
import { afterCommit, numbered, type OwnedView } from "./after-commit.ts";
import type { Clock } from "./clock.ts";
import { openCompletedCalls } from "./completed-calls.ts";
import type { CompletedCall, Runnable } from "./define-agent.ts";
import type { Lease } from "./lease.ts";
import { openConversation } from "./prompt.ts";
import type { ServiceBoard } from "./service-board.ts";
import type { Wholes } from "./whole-outputs.ts";
import { openWorkflowHistory, type WorkflowHistory } from "./workflow-history.ts";

/** What became of something that the owner wanted to store. */
export type Stored =
  | { readonly result: "taken"; readonly started: boolean; readonly refusal: StartRefusal | null }
  /** The run was given back: somebody else moves it next. */
  | { readonly result: "given"; readonly run: Run }
  /** The rows have changed; they were loaded again and the owner has to plan anew. */
  | { readonly result: "changed" }
  /** The run is not this worker's any more. */
  | { readonly result: "replaced" };

/** What one commit carries; fences and checkpoint are added here. */
export type Progress = Pick<StepCommit, "steps" | "currentStep" | "progress"> &
  Partial<Pick<StepCommit, "start" | "calls" | "messages" | "settles" | "readFacts" | "usedApproval" | "artifacts">>;

export interface OwnedRunOptions {
  readonly store: Store;
  readonly group: CommitGroup;
  readonly lease: Lease;
  readonly agent: Runnable;
  readonly workerId: string;
  /** The next progress is due within this time, in milliseconds. */
  readonly progressMs: number;
  readonly clock: Clock;
  readonly services: ServiceBoard;
}

/** The database may be away for a moment: a commit is repeated, since its fence makes that harmless, while the lease lasts. */
const STORE_PAUSE_MS = 200;

/** A run that this worker has claimed, as it knows it: every commit that is taken moves this view as well. */
export class OwnedRun {
  readonly stepSeqAtClaim: number;
  #view: OwnedView;
  /** When the view's `nowMs` was read, on the process's own clock. */
  #readAtMs: number;
  /** When the view's services were loaded, on the database's clock. */
  #servicesAtMs: number;
  /** The latest revision of deny rules and assignments that a commit has seen. */
  #policyRevision: number;
  readonly #options: OwnedRunOptions;
  readonly #conversation = openConversation();
  readonly #completed = openCompletedCalls();
  #workflow: { readonly of: Workflow; readonly history: WorkflowHistory } | null = null;

  constructor(options: OwnedRunOptions, loaded: LoadedRun) {
    this.#options = options;
    this.#view = viewOf(loaded);
    this.#readAtMs = options.clock.monotonicMs();
    this.#servicesAtMs = loaded.nowMs;
    this.#policyRevision = loaded.policyRevision;
    this.stepSeqAtClaim = loaded.run.stepSeq;
  }

  get view(): OwnedView {
    return this.#view;
  }

  /** The database's clock at this moment, as far as this process can know it. */
  get nowMs(): number {
    return this.#view.nowMs + (this.#options.clock.monotonicMs() - this.#readAtMs);
  }

  /**
   * Deny rules or assignments have changed since the view was loaded. An intent is refused then; a read has none, so
   * nothing must be planned before the rows are loaded again.
   */
  get isPolicyStale(): boolean {
    return this.#policyRevision !== this.#view.policyRevision;
  }

  #see(view: OwnedView): void {
    if (view.nowMs !== this.#view.nowMs) this.#readAtMs = this.#options.clock.monotonicMs();
    this.#view = view;
  }

  /** The services in trouble, as far as this process knows. */
  troubledServices(): readonly TroubledService[] {
    return this.#options.services.seen(this.#view.services, this.#servicesAtMs);
  }

  /** The service of this name, where nobody may call it freely now. */
  troubledService(named: string): ClosedService | null {
    const known = this.troubledServices().find(({ name }) => name === named);
    return known === undefined || known.untilMs === null ? null : { ...known, untilMs: known.untilMs };
  }

  /** What `plan` is asked with. */
  planInput(): PlanInput {
    const { agent } = this.#options;
    const { history, openAttempts, approvals, children, unread, lineEffects, denials, run } = this.#view;
    const { nowMs } = this;
    const closed = this.troubledServices().flatMap(({ untilMs, ...service }) =>
      untilMs === null ? [] : [{ ...service, untilMs }],
    );
    return {
      history,
      openAttempts,
      approvals,
      children,
      liveChildren: run.state.liveChildren,
      unread,
      lineEffects,
      denials,
      services: closed,
      nowMs,
      limits: agent.limits,
      price: agent.kind === "agent" ? agent.price : null,
      isGraph: agent.kind === "workflow",
      version: run.agent.version,
      workedMs: run.workedMs + (run.claimedAtMs === null ? 0 : nowMs - run.claimedAtMs),
      onBlocked: agent.kind === "agent" ? agent.onBlocked : "end",
      model: modelOf(agent),
      requester: run.requester,
    };
  }

  /** The conversation so far, as a model is shown it. */
  prompt(): ModelMessage[] {
    return this.#conversation.messages(this.#view);
  }

  /** The results of its calls so far, as its agent sees them. */
  completedCalls(): readonly CompletedCall[] {
    return this.#completed.of(this.#view.history);
  }

  /** What the graph of its workflow decides from, at once. */
  workflowHistory(of: Workflow, wholes: Wholes): History & Indexed {
    if (this.#workflow?.of !== of) this.#workflow = { of, history: openWorkflowHistory(of) };
    return this.#workflow.history.of(this.#view, wholes);
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
    const { run } = this.#view;
    const { workerId, progressMs } = this.#options;
    const steps = numbered(run.stepSeq, progress.steps, this.nowMs);
    const {
      start = null,
      calls = NONE,
      messages = NONE,
      settles = NONE,
      readFacts = NONE,
      artifacts = NONE,
    } = progress;
    const commit: StepCommit = {
      runId: run.id,
      workerId,
      epoch: run.epoch,
      stepSeq: run.stepSeq,
      steps: progress.steps,
      start,
      calls,
      messages,
      settles,
      readFacts,
      usedApproval: progress.usedApproval ?? null,
      artifacts,
      checkpoint: checkpointAfter(this.#view, steps, calls),
      currentStep: progress.currentStep,
      progressMs,
      progress: progress.progress,
    };
    const result = await this.untilStored(() => this.#options.group.commit(commit));
    if (result.result === "replaced") return result;
    if (result.result === "reload") return this.reload();
    this.#see(afterCommit(this.#view, commit, result));
    this.#policyRevision = result.policyRevision;
    return { result: "taken", started: result.started, refusal: result.refusal };
  }

  /**
   * Moves the run by events of its owner, with what is stored beside them. If the run is still this worker's
   * afterwards (a look-up that settled its attempt), it goes on.
   */
  async move(events: readonly RunEvent[], writes: Writes = {}, reason: string | null = null): Promise<Stored> {
    const { run } = this.#view;
    const steps = numbered(run.stepSeq, writes.steps ?? [], this.nowMs);
    const actor = { kind: "worker", id: this.#options.workerId } as const;
    const { progressMs } = this.#options;
    const kept = steps.length === 0 ? {} : { checkpoint: checkpointAfter(this.#view, steps) };
    const move = { run, events, actor, reason, writes: { ...writes, ...kept, progressMs } };
    const result: TransitionResult = await this.untilStored(() => this.#options.group.move(move));
    if (result.result === "notFound") return { result: "replaced" };
    if (result.result === "conflict" || result.result === "rejected") return this.reload();
    // This process may have claimed the run anew while the answer was lost: that is another owner, by its epoch.
    const isOurs = result.run.state.owner === this.#options.workerId && result.run.epoch === run.epoch;
    if (!isOurs) return { result: "given", run: result.run };
    const settled = new Set((writes.settles ?? []).map(({ attemptId }) => attemptId));
    const openAttempts = this.#view.openAttempts.filter(({ id }) => !settled.has(id));
    this.#see({ ...this.#view, run: result.run, history: this.#view.history.append({ steps }), openAttempts });
    return { result: "taken", started: false, refusal: null };
  }

  /** Loads the rows again; the run may have been taken over meanwhile. */
  async reload(): Promise<Stored> {
    const loaded = await this.untilStored(() => loadRun(this.#options.store, this.#view.run.id));
    const isOurs = loaded?.run.state.owner === this.#options.workerId && loaded.run.epoch === this.#view.run.epoch;
    if (loaded === null || !isOurs) return { result: "replaced" };
    this.#see(viewOf(loaded));
    this.#servicesAtMs = loaded.nowMs;
    this.#policyRevision = loaded.policyRevision;
    return { result: "changed" };
  }

  /** Runs a statement of the store, again while the database is away and the lease lasts. */
  async untilStored<Value>(store: () => Promise<Value>): Promise<Value> {
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

/** What a commit has none of. */
const NONE: readonly never[] = [];

function viewOf({ steps, calls, ...loaded }: LoadedRun): OwnedView {
  return { ...loaded, history: runHistory(steps, calls) };
}

/** The cursor after these steps, some of which may be about calls that come with them. */
function checkpointAfter(
  { run, history }: OwnedView,
  steps: readonly Step[],
  added: StepCommit["calls"] = [],
): Checkpoint {
  const find = (callId: string) => history.known.callById.get(callId) ?? added.find(({ id }) => id === callId);
  return steps.reduce((cursor, step) => advance(cursor, step, find), run.checkpoint);
}

function modelOf(agent: Runnable): PlanInput["model"] {
  if (agent.kind !== "agent") return { retries: 0, throttledForMs: 0, service: "" };
  const { modelRetries: retries, modelThrottledForMs: throttledForMs, modelService: service } = agent;
  return { retries, throttledForMs, service };
}

/** Whether a failed statement may succeed when it is sent again. */
export function mayPass(error: unknown): boolean {
  const kind = failureKind(error);
  return kind === "connection" || kind === "resources" || kind === "repeat";
}
