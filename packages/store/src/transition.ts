import type { Store } from "./db.ts";
import { asError, execute, executeBatch, executeOnce, failureKind, isSplitOff } from "./execute.ts";
import { findRow } from "./find-row.ts";
import type { Move, TransitionResult, Writes } from "./move.ts";
import { rowsOf } from "./parts.ts";
import { type MoveInput, type Reduced, reduceMove } from "./reduce-move.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { storableJson } from "./storable-json.ts";
import { READ_BACK, SKIPPING, type TransitionPart, WAITING } from "./transition-statement.ts";

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
function partsOf(inputs: readonly MoveInput[]): ReadonlySet<TransitionPart> {
  const parts = new Set<TransitionPart>();
  for (const input of inputs) {
    for (const list of LISTS) if (input[list].length > 0) parts.add(list);
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
  "approvals",
  "requests",
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

/** The row as it is now, by a statement of its own: the one that lost saw an old snapshot. */
async function conflict(store: Store, runId: string): Promise<TransitionResult> {
  const current = await findRow(store, runId);
  return current === null ? { result: "notFound" } : { result: "conflict", current };
}

/** After a lost answer the move was ours only if the row at the next version carries our event, by our hand. */
async function readBack(store: Store, input: MoveInput, error: Error): Promise<TransitionResult> {
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
