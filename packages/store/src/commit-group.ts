import { type CommitResult, commitStepsOnce, type StepCommit, settleCommit } from "./commit-steps.ts";
import type { Store } from "./db.ts";
import { openGate } from "./gate.ts";
import { type LaneReport, openLanes } from "./lanes.ts";
import type { Move, TransitionResult } from "./move.ts";
import { settleMove, transitionOnce } from "./transition.ts";

/** Lets the steps and moves of one process's concurrent runs share statements; each run waits for its own. */
export interface CommitGroup {
  /**
   * Commits one run's steps. A second of the same run waits for the next statement.
   *
   * @throws what the commit's data alone caused, or that the database cannot be reached.
   */
  commit(commit: StepCommit): Promise<CommitResult>;
  /**
   * Moves one run by its owner's events.
   *
   * @throws what the move's data alone caused, or that the database cannot be reached.
   */
  move(move: Move): Promise<TransitionResult>;
  /** Does something else that has a statement of its own (a claim) when it is this one's turn among the group's. */
  turn<T>(work: () => Promise<T>): Promise<T>;
}

/** What shares a statement: starts, results, and moves (holds, ends, releases); `said`: those that say something in a session. */
export type BatchKind = "starts" | "results" | "said" | "moves" | "said_moves";

/** One statement of a group, for the metrics. */
export interface BatchReport extends LaneReport {
  readonly kind: BatchKind;
}

export interface CommitGroupOptions {
  /** Hears of each batch. Must not throw. */
  readonly onBatch?: (report: BatchReport) => void;
}

/** Most rows of one statement. */
const BATCH_LIMIT = 100;
/** Statements of results under way at once: while Postgres works on one, this process makes the next. */
const RESULT_LANES = 2;
/**
 * Statements of the whole group under way at once. Each costs the server its start-up, whatever it carries, and more of them
 * at once only make each carry less.
 */
const PLACES = 2;
/** A statement that takes longer waits for somebody: the others go on without it. */
const PATIENCE_MS = 50;

/**
 * Opens a group. What arrives while two statements are under way waits for the next and shares it; in an idle process everything
 * is sent at once. A row that somebody else is moving, or that the database refuses, keeps its neighbours from nothing: it
 * is split off and settled alone.
 *
 * What may wait for more than its run's row has lanes of its own: a start for the run's ancestors, what is said for the
 * session. So neither keeps results waiting.
 */
export function openCommitGroup(store: Store, { onBatch = () => undefined }: CommitGroupOptions = {}): CommitGroup {
  const gate = openGate({ places: PLACES, patienceMs: PATIENCE_MS });
  const commits = (kind: BatchKind, lanes: number) =>
    openLanes<StepCommit, CommitResult>({
      lanes,
      limit: BATCH_LIMIT,
      gate,
      keyOf: ({ runId }) => runId,
      send: (batch) => commitStepsOnce(store, batch),
      settle: (commit, missed) => settleCommit(store, commit, missed),
      onBatch: (report) => onBatch({ ...report, kind }),
    });
  const moves = (kind: BatchKind) =>
    openLanes<Move, TransitionResult>({
      lanes: 1,
      limit: BATCH_LIMIT,
      gate,
      keyOf: ({ run }) => run.id,
      send: (batch) => transitionOnce(store, batch),
      settle: (move, missed) => settleMove(store, move, missed),
      onBatch: (report) => onBatch({ ...report, kind }),
    });
  const [starts, results, said] = [commits("starts", 1), commits("results", RESULT_LANES), commits("said", 1)];
  const [silent, spoken] = [moves("moves"), moves("said_moves")];
  return {
    commit: (commit) => {
      if (commit.start !== null) return starts(commit);
      return saysNothing(commit.messages) ? results(commit) : said(commit);
    },
    move: (move) => (saysNothing(move.writes?.messages) ? silent(move) : spoken(move)),
    turn: (work) => new Promise((resolve) => gate.enter((leave) => resolve(Promise.try(work).finally(leave)))),
  };
}

function saysNothing(messages: readonly unknown[] = []): boolean {
  return messages.length === 0;
}
