import type { AgentRef, Call, Checkpoint, JsonValue, Status, StepBody } from "@holdpoint/core";
import { canonicalJson, EMPTY_CHECKPOINT, storable, submitted } from "@holdpoint/core";
import { COMMIT, COMMIT_SKIPPING, type CommitPart, STEP_READ_BACK } from "./commit-statement.ts";
import type { Store } from "./db.ts";
import { execute, executeBatch, executeOnce, failureKind, isSplitOff, type RowLock } from "./execute.ts";
import type { Artifact, Message, Settle } from "./move.ts";
import { rowsOf } from "./parts.ts";
import { placeCalls } from "./reply-calls.ts";
import { storableJson } from "./storable-json.ts";

/** The start of something new, judged apart from the results that come with it. */
export type Start = EffectStart | ChildrenStart;

interface StartOf<Kind extends StepBody["kind"]> {
  readonly body: Extract<StepBody, { kind: Kind }>;
  /** The hash of the arguments that run. */
  readonly argsHash: string;
  /** The approval that this start spends; it must have been given for this hash. */
  readonly approvalId: string | null;
  /** The revision of deny rules and assignments that the plan was made with (`LoadedRun.policyRevision`). */
  readonly policyRevision: number;
}

/** An intent before an effect's call. */
export interface EffectStart extends StartOf<"intent"> {
  readonly attemptId: string;
  /** The call's deadline, in milliseconds from now. */
  readonly deadlineMs: number;
  /** What the effect is known by outside until the other side gives it a name: its operation id. */
  readonly externalRef: string;
  /** An open attempt of another claim that this one carries on under the same operation id. */
  readonly supersedes: string | null;
}

/** The start of child runs. */
export interface ChildrenStart extends StartOf<"children_started"> {
  /** In the order of the body's ordinals. */
  readonly children: readonly ChildStart[];
  /** The most runs that the whole tree may have; more can start in the moment of another's start, never later. */
  readonly treeLimit: number;
}

/** A child run to be made: in a session of its own, for its parent's requester. */
export interface ChildStart {
  readonly id: string;
  readonly sessionId: string;
  readonly ordinal: number;
  readonly agent: AgentRef;
  readonly goal: string;
  readonly input: JsonValue;
}

/** Why a start was refused, where the run's own rows do not say it: they tell of a stop, a pause, a policy, an approval. */
export type StartRefusal = "ancestor_stopped" | "agent_unknown" | "tree_limit" | "line_is_live";

/** One owner's progress on one run. Steps come first; the start rides along and may be refused by itself. */
export interface StepCommit {
  readonly runId: string;
  readonly workerId: string;
  readonly epoch: number;
  /** The `stepSeq` that the owner knows; the fence that makes a repeated commit harmless. */
  readonly stepSeq: number;
  readonly steps: readonly StepBody[];
  readonly start: Start | null;
  readonly calls?: readonly Call[];
  readonly messages?: readonly Message[];
  readonly settles?: readonly Settle[];
  readonly readFacts?: readonly string[];
  /** The approval of a read that ends with this commit. */
  readonly usedApproval?: string | null;
  readonly artifacts?: readonly Artifact[];
  readonly checkpoint: Checkpoint;
  readonly currentStep: string;
  /** The next progress is due within this time, in milliseconds. */
  readonly progressMs: number;
  /** A stored tool result or model reply: the run is no longer suspected of killing its workers. */
  readonly progress: boolean;
}

export type CommitResult =
  | {
      readonly result: "taken";
      readonly stepSeq: number;
      /** Whether the start was allowed; false as well when none was asked for. */
      readonly started: boolean;
      readonly refusal: StartRefusal | null;
      readonly status: Status;
      readonly cancelRequested: boolean;
      readonly pauseRequested: boolean;
      /** The revision of deny rules and assignments when the commit began: another than the plan's has to be loaded. */
      readonly policyRevision: number;
      /** The database's clock, in milliseconds since the epoch. */
      readonly nowMs: number;
    }
  /** Somebody settled the attempt meanwhile: nothing was taken, the run is still ours, load it again. */
  | { readonly result: "reload" }
  /** Another claim, or nobody, owns the run now: start nothing more on it. */
  | { readonly result: "replaced" };

/**
 * Commits steps of several runs in one statement; each run is taken or not by itself. At most one commit per run may be
 * in a batch.
 *
 * @returns for each commit, in order, its result, or the error that its data alone caused.
 * @throws {RangeError} a run is twice in the batch.
 */
export async function commitSteps(
  store: Store,
  commits: readonly StepCommit[],
): Promise<readonly (CommitResult | Error)[]> {
  const results = await commitBatch(store, commits, "wait");
  return Promise.all(commits.map((commit, index) => resultOf(store, commit, results[index] ?? null)));
}

async function resultOf(
  store: Store,
  commit: StepCommit,
  outcome: CommitResult | Error | null,
): Promise<CommitResult | Error> {
  if (outcome instanceof Error) return failureKind(outcome) === "connection" ? readBack(store, commit) : outcome;
  return outcome ?? readBack(store, commit);
}

/**
 * What became of a commit that a batch has not taken: an answer that was lost is read back; a row that was passed over is
 * waited for, alone.
 *
 * @throws what the commit's data alone caused, or that the database cannot be reached.
 */
export async function settleCommit(store: Store, commit: StepCommit, missed: Error | null): Promise<CommitResult> {
  const result = isSplitOff(missed) ? (await commitSteps(store, [commit]))[0] : await resultOf(store, commit, missed);
  if (result === undefined || result instanceof Error) throw result;
  return result;
}

/**
 * As `commitSteps`, without a second look at what was not taken: null says that the row was not moved, be it that the run is
 * not as this owner knows it, or that somebody else was moving it, which is waited for nowhere here.
 */
export function commitStepsOnce(
  store: Store,
  commits: readonly StepCommit[],
): Promise<readonly (CommitResult | Error | null)[]> {
  return commitBatch(store, commits, "skip");
}

async function commitBatch(
  store: Store,
  commits: readonly StepCommit[],
  lock: RowLock,
): Promise<readonly (CommitResult | Error | null)[]> {
  if (new Set(commits.map(({ runId }) => runId)).size < commits.length) {
    throw new RangeError("A batch takes at most one commit per run");
  }
  const results = await executeBatch<StepCommit, CommitRow>(commits, (items) => {
    const inputs = items.map(({ ord, item }) => inputOf(ord, item));
    const composed = (lock === "wait" ? COMMIT : COMMIT_SKIPPING).with(partsOf(inputs));
    const values = [store.tenantId, storableJson(rowsOf(inputs, composed.columns))];
    return (lock === "wait" ? execute : executeOnce)(store, composed.statement, values);
  });
  return results.map((outcome) => {
    if (outcome instanceof Error) return outcome;
    const [row] = outcome;
    return row === undefined ? null : taken(row);
  });
}

/** The parts of the statement that these rows need together. */
function partsOf(inputs: readonly CommitInput[]): ReadonlySet<CommitPart> {
  const parts = Object.keys(NEEDS) as CommitPart[];
  return new Set(parts.filter((part) => inputs.some(NEEDS[part])));
}

/** Whether a row needs a part. */
const NEEDS: Readonly<Record<CommitPart, (input: CommitInput) => boolean>> = {
  start: ({ start }) => start !== null,
  children: ({ start }) => start !== null && "children" in start,
  settles: ({ settles }) => isFilled(settles),
  calls: ({ calls }) => isFilled(calls),
  replyCalls: ({ replyCalls }) => isFilled(replyCalls),
  messages: ({ messages }) => isFilled(messages),
  usedApproval: ({ usedApproval }) => (usedApproval ?? null) !== null,
  readFacts: ({ readFacts }) => isFilled(readFacts),
  artifacts: ({ artifacts }) => isFilled(artifacts),
};

function isFilled(list: readonly unknown[] | undefined): boolean {
  return list !== undefined && list.length > 0;
}

interface CommitRow {
  readonly ord: number;
  readonly step_seq: number;
  readonly started: boolean;
  readonly refusal: StartRefusal | null;
  readonly status: Status;
  readonly cancel_requested: boolean;
  readonly pause_requested: boolean;
  readonly policy_revision: number;
  readonly now: Date;
}

function taken(row: Omit<CommitRow, "ord">): CommitResult {
  return {
    result: "taken",
    stepSeq: row.step_seq,
    started: row.started,
    refusal: row.refusal,
    status: row.status,
    cancelRequested: row.cancel_requested,
    pauseRequested: row.pause_requested,
    policyRevision: row.policy_revision,
    nowMs: row.now.getTime(),
  };
}

/** No row moved, or the answer was lost: the row itself says whether the commit was ours. */
async function readBack(store: Store, commit: StepCommit): Promise<CommitResult> {
  const bodies = commit.start === null ? commit.steps : [...commit.steps, commit.start.body];
  const [row] = await execute<StepReadBackRow>(store, STEP_READ_BACK, [
    store.tenantId,
    commit.runId,
    commit.stepSeq,
    storableJson(bodies),
    commit.start === null ? null : proofOf(commit.start),
  ]);
  if (row === undefined || row.owner !== commit.workerId || row.epoch !== commit.epoch) return { result: "replaced" };
  // The start may have been refused by itself.
  const ours = row.matched > 0 && row.matched >= commit.steps.length && row.step_seq === commit.stepSeq + row.matched;
  return ours ? taken({ ...row, started: row.matched > commit.steps.length }) : { result: "reload" };
}

/** What only this very start would have made: its attempt, or its first child. */
function proofOf(start: Start): string | null {
  return "attemptId" in start ? start.attemptId : (start.children[0]?.id ?? null);
}

type StepReadBackRow = Omit<CommitRow, "ord"> & { owner: string | null; epoch: number; matched: number };

/** A commit as its statement reads it. */
type CommitInput = ReturnType<typeof inputOf>;

function inputOf(ord: number, commit: StepCommit) {
  const { runId, workerId, epoch, stepSeq, steps, checkpoint, currentStep, progressMs, progress, start } = commit;
  const { settles, messages, usedApproval, readFacts, artifacts } = commit;
  const { rows, ofSteps } = placeCalls(steps, commit.calls);
  // By name: this is made for every step, and a copy of all that is left over costs several times as much.
  return {
    ord,
    runId,
    workerId,
    epoch,
    stepSeq,
    steps,
    checkpoint,
    currentStep,
    progressMs,
    progress,
    settles,
    messages,
    usedApproval,
    readFacts,
    artifacts,
    start: start === null ? null : startRow(start),
    approvalId: start?.approvalId ?? null,
    argsHash: start?.argsHash ?? null,
    supersedes: start !== null && "supersedes" in start ? start.supersedes : null,
    calls: rows.length === 0 ? undefined : rows.map(callRow),
    replyCalls: ofSteps.every((each) => each === null) ? undefined : ofSteps,
  };
}

function startRow(start: Start): object {
  if (!("children" in start)) return start;
  const state = submitted();
  const queueMs = state.waitDeadline !== null && "inMs" in state.waitDeadline ? state.waitDeadline.inMs : 0;
  return { ...start, queueMs, emptyCheckpoint: EMPTY_CHECKPOINT };
}

function callRow(call: Call): object {
  const { args, ...rest } = call;
  return { ...rest, args: canonicalJson(storable(args)) };
}
