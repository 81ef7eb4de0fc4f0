// What was sent, put beside what is there.

import { canonicalJson, type JsonValue, type StepBody } from "@holdpoint/core";
import type { StepCommit } from "@holdpoint/store";
import type { Ledger, Sent, Taken } from "./ledger.ts";
import type { Stored, StoredAttempt, StoredStep } from "./read-database.ts";

/** All that was sent under one fence with one content. */
export interface Token {
  readonly commit: StepCommit;
  readonly sent: Sent<StepCommit, Taken>;
  readonly is: "there" | "absent" | "torn";
  readonly started: boolean;
}

export interface View {
  readonly ledger: Ledger;
  readonly stored: Stored;
  readonly steps: ReadonlyMap<string, readonly StoredStep[]>;
  readonly attempts: ReadonlyMap<string, StoredAttempt>;
  readonly tokens: readonly Token[];
}

/** Finds what each commit has left. */
export function viewOf(ledger: Ledger, stored: Stored): View {
  const steps = Map.groupBy(stored.steps, ({ run_id }) => run_id);
  const attempts = new Map(stored.attempts.map((attempt) => [attempt.id, attempt]));
  const byContent = Map.groupBy(ledger.commits, ({ what }) => contentOf(what));
  const tokens = [...byContent.values()].flatMap((same): readonly Token[] => {
    const [first] = same;
    if (first === undefined) return [];
    const commit = first.what;
    const sent: Sent<StepCommit, Taken> = {
      what: commit,
      by: first.by,
      sends: same.reduce((total, each) => total + each.sends, 0),
      answers: same.flatMap((each) => each.answers),
    };
    const started = attemptIdOf(commit) !== null && attempts.has(attemptIdOf(commit) ?? "");
    const matched = commit.steps.filter((body, index) => {
      const found = steps.get(commit.runId)?.[commit.stepSeq + index];
      return found !== undefined && found.epoch === commit.epoch && isEqual(found.body, body);
    }).length;
    const isWhole = matched === commit.steps.length && (matched > 0 || started);
    const is = isWhole ? "there" : matched > 0 || started ? "torn" : "absent";
    return [{ commit, sent, is, started }];
  });
  return { ledger, stored, steps, attempts, tokens };
}

/** What tells a commit from every other: one text for all that is the same. */
export function contentOf(commit: StepCommit): string {
  const { runId, workerId, epoch, stepSeq, steps } = commit;
  return canonicalJson([runId, workerId, epoch, stepSeq, attemptIdOf(commit), steps as unknown as JsonValue]);
}

/** The attempt that a commit's start would open. */
export function attemptIdOf({ start }: StepCommit): string | null {
  return start !== null && "attemptId" in start ? start.attemptId : null;
}

/** Whether two steps say the same. */
export function isEqual(a: StepBody, b: StepBody): boolean {
  return canonicalJson(a as JsonValue) === canonicalJson(b as JsonValue);
}
