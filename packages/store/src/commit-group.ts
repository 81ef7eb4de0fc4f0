import { type CommitResult, commitSteps, type StepCommit } from "./commit-steps.ts";
import type { Store } from "./db.ts";

/** Lets the steps of one process's concurrent runs share statements; each run waits for its own. */
export interface CommitGroup {
  /** Commits one run's steps. A second of the same run waits for the next statement. */
  commit(commit: StepCommit): Promise<CommitResult>;
}

const BATCH_LIMIT = 64;

/** Opens a group: while one statement is under way, the commits that arrive wait for the next and share it. */
export function openCommitGroup(store: Store): CommitGroup {
  type Waiting = { commit: StepCommit; resolve: (result: CommitResult) => void; reject: (error: unknown) => void };
  let waiting: Waiting[] = [];
  let busy = false;

  const flush = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = firstOfEachRun(waiting).slice(0, BATCH_LIMIT);
      waiting = waiting.filter((each) => !batch.includes(each));
      await settle(batch);
    }
    busy = false;
  };

  const settle = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const results = await commitSteps(
        store,
        batch.map(({ commit }) => commit),
      );
      batch.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result === undefined || result instanceof Error) reject(result);
        else resolve(result);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  return {
    commit: (commit) =>
      new Promise((resolve, reject) => {
        waiting.push({ commit, resolve, reject });
        // In the next turn of the loop, so that runs which became ready together share the first statement as well.
        if (!busy) {
          busy = true;
          setImmediate(() => void flush());
        }
      }),
  };
}

function firstOfEachRun<Waiting extends { readonly commit: StepCommit }>(
  waiting: readonly Waiting[],
): readonly Waiting[] {
  return [...new Map(waiting.toReversed().map((each) => [each.commit.runId, each])).values()].toReversed();
}
