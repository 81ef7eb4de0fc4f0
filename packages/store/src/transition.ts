import type {
  Actor,
  ApprovalRule,
  ApprovalState,
  Approvers,
  Checkpoint,
  DecisionKind,
  JsonValue,
  Presented,
  Rule,
  RunEvent,
  RunState,
  StepBody,
} from "@holdpoint/core";
import { reduce } from "@holdpoint/core";
import type { Store } from "./db.ts";
import { asError, execute, executeBatch, executeOnce, failureKind, isSplitOff } from "./execute.ts";
import { findRow } from "./find-row.ts";
import { rowsOf } from "./parts.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { storableJson } from "./storable-json.ts";
import type { TaskWrite } from "./task-writes.ts";
import { READ_BACK, SKIPPING, type TransitionPart, WAITING } from "./transition-statement.ts";

/** Something that is said in the run's session together with the transition. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly author: string;
  readonly text: string;
}

/** An attempt that is settled together with the transition. */
export interface Settle {
  readonly attemptId: string;
  readonly outcome: "succeeded" | "failed" | "happened" | "did_not_happen" | "superseded" | "not_established";
  readonly settledBy: string;
  readonly errorClass?: string;
  readonly errorCode?: string;
  readonly externalRef?: string | null;
}

/** What a person is shown beside the arguments; nothing is decided by it. */
export interface ShownRequest extends Presented {
  /** What the model said when it made the call. It wrote this itself: nobody has checked it. */
  readonly modelReason: string | null;
  /** Earlier results of the run, the beginnings of them. */
  readonly evidence: readonly { readonly tool: string; readonly result: string; readonly excerpt: string }[];
  /** What edited arguments must look like, as JSON schema; null: they can't be edited. */
  readonly editSchema: JsonValue;
}

/** An approval request that is made with a hold. */
export interface ApprovalRequest {
  readonly id: string;
  readonly callId: string;
  readonly tool: string;
  /** Canonical JSON. */
  readonly args: string;
  readonly argsHash: string;
  readonly terms: ApprovalRule;
  readonly request: ShownRequest;
  readonly excluded: readonly string[];
  readonly editedBy: string | null;
  /** The approval that whoever edited has given with it; null: nobody has approved it yet. */
  readonly approval: { readonly by: string; readonly note: string | null; readonly suffices: boolean } | null;
}

/** What becomes of a request; what is left out stays. */
export interface ApprovalChange {
  readonly id: string;
  readonly state: Exclude<ApprovalState, "spent">;
  readonly decidedBy?: string;
  readonly note?: string | null;
  readonly answer?: JsonValue;
  /** How many have approved at the present level. */
  readonly given?: number;
  readonly level?: number;
  readonly approvers?: Approvers;
  readonly extended?: boolean;
  /** On the database's clock, in milliseconds since the epoch. */
  readonly deadlineMs?: number;
}

export interface DecisionRecord {
  readonly id: string;
  readonly approvalId: string;
  readonly decision: DecisionKind;
  readonly argsHash: string;
  readonly note: string | null;
  readonly level: number;
  readonly payload: JsonValue;
}

/** What is stored with a transition, in the same statement: all of it or nothing. */
export interface Writes {
  readonly facts?: readonly { readonly id: string; readonly body: StepBody }[];
  readonly messages?: readonly Message[];
  readonly steps?: readonly StepBody[];
  readonly settles?: readonly Settle[];
  /**
   * Look-ups that were made; and, with a code, why a try left its outcome unknown or (with its class) was turned down. The
   * attempts stay open.
   */
  readonly lookUps?: readonly {
    readonly attemptId: string;
    readonly errorClass?: string;
    readonly errorCode?: string;
  }[];
  readonly requests?: readonly ApprovalRequest[];
  readonly approvals?: readonly ApprovalChange[];
  readonly decisions?: readonly DecisionRecord[];
  readonly artifacts?: readonly Artifact[];
  readonly checkpoint?: Checkpoint;
  readonly currentStep?: string;
  /** Where the owner goes on with the run: its next progress is due within this time, in milliseconds. */
  readonly progressMs?: number;
  /** What a worker that was replaced reports about an attempt that somebody settled before. */
  readonly late?: readonly { readonly attemptId: string; readonly evidence: JsonValue }[];
  /** The children whose ends this counts: one `child` fact each, and as of the row that was read not counted yet. */
  readonly toldChildren?: readonly string[];
  /** The version of its agent that the run goes by from now on. */
  readonly agentVersion?: string;
  /** What a run brings home at its end, as stored values. */
  readonly result?: JsonValue;
  /** Where that is only its beginning: the hash of the artifact that has the whole, or `not_kept`. */
  readonly resultArtifact?: string;
  /** What the other side reported by itself. */
  readonly callbacks?: readonly CallbackRecord[];
  /** Who takes a task in hands, or what its executor says last. */
  readonly task?: TaskWrite;
}

/** A report of the other side about an effect, stored once for each of its events. */
export interface CallbackRecord {
  readonly source: string;
  readonly eventId: string;
  /** The run of the call, where that is not the run that is told. */
  readonly runId?: string;
  readonly callId: string;
  readonly status: "pending" | "settled" | "failed";
}

export interface Artifact {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly mediaType: string;
  readonly content: string;
}

/** One run's move: the row as it was read, what happened, and who says so. */
export interface Move {
  readonly run: Run;
  /** Reduced one after the other; each becomes a transition of its own, all in one statement. */
  readonly events: readonly RunEvent[];
  readonly actor: Actor;
  readonly reason?: string | null;
  readonly writes?: Writes;
  /** Refuses the move if this moment (ms since the epoch; at a pause's start while paused) has passed on the database's clock. */
  readonly notAfterMs?: number;
}

export type TransitionResult =
  | { readonly result: "accepted"; readonly run: Run }
  /** The table ignores the event in this status: a duplicate, or late. */
  | { readonly result: "ignored"; readonly run: Run }
  | { readonly result: "rejected"; readonly rule: Rule; readonly event: string; readonly run: Run }
  /** The row has changed since it was read, or a precondition does not hold any more. Nothing was stored. */
  | { readonly result: "conflict"; readonly current: Run }
  | { readonly result: "notFound" };

/**
 * Moves runs, each by its own events: the one function that changes a status. Per run it is all or nothing; runs do not
 * depend on each other. `skipLocked` passes over runs that somebody else is moving (sweeps).
 *
 * @returns for each move, in order, its result, or the error that it met: its data is refused, or the database cannot be
 * reached.
 */
export async function transition(
  store: Store,
  moves: readonly Move[],
  options: { readonly skipLocked?: boolean } = {},
): Promise<readonly (TransitionResult | Error)[]> {
  const reduced = moves.map(reduceMove);
  const outcomes = await moveBatch(store, reduced, { skipLocked: options.skipLocked === true });
  return Promise.all(reduced.map((item, index) => resultOf(store, item, outcomes[index] ?? null)));
}

/**
 * As `transition`, without a second look at what did not move: null says that the row was not moved, be it that it has
 * changed since it was read, or that somebody else was moving it, which is waited for nowhere here. A move that core refuses
 * is not sent.
 */
export async function transitionOnce(
  store: Store,
  moves: readonly Move[],
): Promise<readonly (TransitionResult | Error | null)[]> {
  const reduced = moves.map(reduceMove);
  const outcomes = await moveBatch(store, reduced, { skipLocked: true, once: true });
  return reduced.map((item, index) => {
    if (!("input" in item)) return item;
    const outcome = outcomes[index] ?? null;
    return outcome === null || outcome instanceof Error ? outcome : { result: "accepted", run: runOf(outcome.run) };
  });
}

/**
 * What became of a move that a batch has not made: an answer that was lost is read back; a row that was passed over is
 * waited for, alone.
 *
 * @throws what the move's data alone caused, or that the database cannot be reached.
 */
export async function settleMove(store: Store, move: Move, missed: Error | null): Promise<TransitionResult> {
  if (isSplitOff(missed)) return transitionOne(store, move);
  const result = await resultOf(store, reduceMove(move), missed);
  if (result instanceof Error) throw result;
  return result;
}

type Reduced = TransitionResult | { readonly input: Input };

/** For each that is to be moved, its row, or the error that it met; null for the others, and where no row was moved. */
async function moveBatch(
  store: Store,
  reduced: readonly Reduced[],
  { skipLocked, once = false }: { readonly skipLocked: boolean; readonly once?: boolean },
): Promise<readonly (TransitionRow | Error | null)[]> {
  const pending = reduced.flatMap((item, index) => ("input" in item ? [{ index, input: item.input }] : []));
  const outcomes = await executeBatch<(typeof pending)[number], TransitionRow>(pending, (items) => {
    const composed = (skipLocked ? SKIPPING : WAITING).with(partsOf(items.map(({ item }) => item.input)));
    const rows = rowsOf(
      items.map(({ ord, item }) => ({ ...item.input, ord })),
      composed.columns,
    );
    return (once ? executeOnce : execute)(store, composed.statement, [store.tenantId, storableJson(rows)]);
  });
  const byIndex = new Map(pending.map(({ index }, place) => [index, outcomes[place]]));
  return reduced.map((_, index) => {
    const outcome = byIndex.get(index);
    return outcome === undefined || outcome instanceof Error ? (outcome ?? null) : (outcome[0] ?? null);
  });
}

async function resultOf(
  store: Store,
  reduced: Reduced,
  outcome: TransitionRow | Error | null,
): Promise<TransitionResult | Error> {
  if (!("input" in reduced)) return reduced;
  if (outcome instanceof Error) return readBack(store, reduced.input, outcome).catch(asError);
  if (outcome === null) return conflict(store, reduced.input.runId).catch(asError);
  return { result: "accepted", run: runOf(outcome.run) };
}

/** The parts of the statement that these moves need together. */
function partsOf(inputs: readonly Input[]): ReadonlySet<TransitionPart> {
  const parts = new Set<TransitionPart>();
  for (const input of inputs) {
    for (const list of LISTS) if (input[list].length > 0) parts.add(list);
    if (input.requests.length > 0 || input.approvals.length > 0) parts.add("requests");
    if (input.closesApprovals) parts.add("closesApprovals");
    if (input.resumedFrom !== null) parts.add("resumes");
    if (input.task !== null) parts.add("task");
  }
  return parts;
}

const LISTS = [
  "facts",
  "messages",
  "steps",
  "decisions",
  "settles",
  "lookUps",
  "late",
  "toldChildren",
  "callbacks",
  "artifacts",
] as const satisfies readonly (TransitionPart & keyof Writes)[];

/**
 * One move; see `transition`.
 *
 * @throws when the run's data is refused by the database, or the database cannot be reached.
 */
export async function transitionOne(store: Store, move: Move): Promise<TransitionResult> {
  const [result] = await transition(store, [move]);
  if (result instanceof Error) throw result;
  return result ?? { result: "notFound" };
}

/** What became of a batch, for whoever has nothing to do about the runs that did not move. */
export interface Moved {
  /** The runs that moved, as they are now. */
  readonly moved: readonly Run[];
  /** What kept single runs from moving. */
  readonly errors: readonly Error[];
}

/** Sorts the results of a `transition`. */
export function sortResults(results: readonly (TransitionResult | Error)[]): Moved {
  return {
    moved: results.flatMap((each) => (!(each instanceof Error) && each.result === "accepted" ? [each.run] : [])),
    errors: results.filter((each) => each instanceof Error),
  };
}

type TransitionRow = { ord: number; run: RunJson };

type Input = ReturnType<typeof inputOf>;

/** Events that only the run's owner can mean: fenced by its name and epoch. */
const OWNERS: ReadonlySet<RunEvent["type"]> = new Set(["Held", "Released", "EffectUnknown", "Ended"]);

function reduceMove(move: Move): Reduced {
  let state = move.run.state;
  let pinsSteps = move.actor.kind === "worker" || move.actor.kind === "sweeper" || move.actor.kind === "supervisor";
  let closesApprovals = false;
  const log: { from: string; to: string; event: string }[] = [];
  for (const event of move.events) {
    const decision = reduce(state, event, move.actor);
    if (decision.verdict === "refused") {
      return { result: "rejected", rule: decision.rule, event: event.type, run: move.run };
    }
    if (decision.verdict === "ignored") continue;
    log.push({ from: state.status, to: decision.next.status, event: event.type });
    state = decision.next;
    pinsSteps ||= decision.pinsSteps;
    closesApprovals ||= decision.closesApprovals;
  }
  if (log.length === 0) return { result: "ignored", run: move.run };
  return { input: inputOf(move, { state, log, pinsSteps, closesApprovals }) };
}

const NO_WRITES = {
  checkpoint: null,
  currentStep: null,
  progressMs: null,
  result: null,
  agentVersion: null,
  resultArtifact: null,
  toldChildren: [],
  facts: [],
  messages: [],
  steps: [],
  settles: [],
  lookUps: [],
  requests: [],
  approvals: [],
  decisions: [],
  artifacts: [],
  late: [],
  callbacks: [],
  task: null,
} as const satisfies { readonly [Part in keyof Writes]-?: Writes[Part] | null };

function inputOf(
  { run, events, actor, reason, writes, notAfterMs }: Move,
  reduced: {
    state: RunState;
    log: readonly { from: string; to: string; event: string }[];
    pinsSteps: boolean;
    closesApprovals: boolean;
  },
) {
  // An owner moves only what it owns: after a conflict it must never repeat itself on somebody else's run.
  const fenced = events.some(
    (event) => OWNERS.has(event.type) || (event.type === "EffectSettled" && event.by === "owner"),
  );
  return {
    runId: run.id,
    expected: run.version,
    stepSeq: reduced.pinsSteps ? run.stepSeq : null,
    fenceOwner: fenced ? actor.id : null,
    fenceEpoch: fenced ? run.epoch : null,
    notAfter: notAfterMs === undefined ? null : { at: notAfterMs },
    actorKind: actor.kind,
    actorId: actor.id,
    reason: reason ?? null,
    next: reduced.state,
    // Steps reset them without a new version: a move that does not mean them must not bring back what it read.
    takeovers: reduced.state.takeovers === run.state.takeovers ? null : reduced.state.takeovers,
    attemptDelta: reduced.state.openAttempts - run.state.openAttempts,
    childDelta: reduced.state.liveChildren - run.state.liveChildren,
    log: reduced.log,
    closesApprovals: reduced.closesApprovals,
    resumedFrom: reduced.state.pausedAt === null ? run.state.pausedAt : null,
    storedId: writes?.facts?.[0]?.id ?? writes?.decisions?.[0]?.id ?? null,
    ...NO_WRITES,
    ...writes,
  };
}

/** The row as it is now, by a statement of its own: the one that lost saw an old snapshot. */
async function conflict(store: Store, runId: string): Promise<TransitionResult> {
  const current = await findRow(store, runId);
  return current === null ? { result: "notFound" } : { result: "conflict", current };
}

/** After a lost answer the move was ours only if the row at the next version carries our event, by our hand. */
async function readBack(store: Store, input: Input, error: Error): Promise<TransitionResult> {
  if (failureKind(error) !== "connection") throw error;
  const first = input.log[0];
  const [row] = await execute<{ run: RunJson; ours: boolean }>(store, READ_BACK, [
    store.tenantId,
    input.runId,
    input.expected + 1,
    first?.event,
    input.actorKind,
    input.actorId,
    input.fenceEpoch,
    input.storedId,
  ]);
  if (row === undefined) return { result: "notFound" };
  return row.ours ? { result: "accepted", run: runOf(row.run) } : { result: "conflict", current: runOf(row.run) };
}
