import type { ExpectedTask, RetailTask } from "./retail-data.ts";
import { isToolName, TOOL_OFFERS } from "./retail-store.ts";
import type { JournalRow } from "./store-service/journal.ts";

/** What is left of one task when everything has ended. */
export type TaskEvidence = {
  readonly taskId: string;
  /** The run's status and outcome, such as "completed" and "succeeded". */
  readonly runStatus: string;
  readonly runOutcome: string | null;
  /** SHA-256 of each tool result that the run recorded, in model order. */
  readonly resultsSha256: readonly string[];
  /** The store's state, as the service hashes it. */
  readonly stateSha256: string;
  /** The service's journal of this task, the oldest first. */
  readonly journal: readonly Pick<JournalRow, "key" | "tool" | "ok" | "resultSha256">[];
};

/** One task's comparison; `differences` is empty exactly when all is as expected. */
export type TaskFinding = {
  readonly taskId: string;
  readonly differences: readonly string[];
  readonly journalRows: number;
  readonly expectedRows: number;
  readonly duplicateEffects: number;
};

/** What was counted while it ran. */
export type RunCounts = {
  readonly seed: string;
  readonly kills: number;
  readonly killsAfterWrite: number;
  /** Of the kills, those that took a supervisor and all its processes along. */
  readonly killsOfMachines: number;
  readonly takeovers: number;
  readonly lookUps: number;
  /** Why runs had to be retried by an operator, each time once. */
  readonly operatorRetries: readonly string[];
  /** Rows that the invariant queries found. */
  readonly invariantViolations: number;
  readonly durationMs: number;
  /** What went wrong beside the tasks, in words. */
  readonly faults: readonly string[];
};

/** What a run must reach at least, so that a green result says something. */
export type RunMinimums = { readonly kills: number; readonly killsAfterWrite: number; readonly takeovers: number };

export type AcceptanceReport = RunCounts & {
  readonly tasks: number;
  readonly tasksEqual: number;
  readonly journalRows: number;
  readonly expectedRows: number;
  readonly duplicateEffects: number;
  /** Everything that keeps the run from passing, in words; empty: passed. */
  readonly failures: readonly string[];
};

/** Compares one task's evidence with what is expected. */
export function compareTask(task: RetailTask, expected: ExpectedTask, evidence: TaskEvidence): TaskFinding {
  const writes = task.actions.flatMap((action, index) => (isWrite(action.name) ? [{ tool: action.name, index }] : []));
  const duplicateEffects = countDuplicates(evidence.journal, writes.length);
  const differences = [
    ...runDifferences(evidence.runStatus, evidence.runOutcome),
    ...resultDifferences(expected.results, evidence.resultsSha256),
    ...journalDifferences(evidence, writes, expected),
    ...(duplicateEffects > 0 ? [`${duplicateEffects} duplicate effects`] : []),
    ...(evidence.stateSha256 === expected.sha256 ? [] : ["the state's hash differs"]),
  ];
  const { taskId, journal } = evidence;
  return { taskId, differences, journalRows: journal.length, expectedRows: writes.length, duplicateEffects };
}

/** Sums the findings up; says in `failures` what is wrong or was not reached. */
export function buildReport(
  findings: readonly TaskFinding[],
  counts: RunCounts,
  minimums: RunMinimums,
): AcceptanceReport {
  const sum = (of: (finding: TaskFinding) => number) => findings.reduce((total, finding) => total + of(finding), 0);
  const short = (["kills", "killsAfterWrite", "takeovers"] as const)
    .filter((name) => counts[name] < minimums[name])
    .map(
      (name) => `${counts[name]} ${LABELS[name]}, at least ${minimums[name]} are needed for the test to mean something`,
    );
  const broken = counts.invariantViolations > 0 ? [`invariant queries found ${counts.invariantViolations} rows`] : [];
  const none = findings.length === 0 ? ["no task was compared"] : [];
  const unequal = findings.filter(({ differences }) => differences.length > 0);
  return {
    ...counts,
    tasks: findings.length,
    tasksEqual: findings.length - unequal.length,
    journalRows: sum((finding) => finding.journalRows),
    expectedRows: sum((finding) => finding.expectedRows),
    duplicateEffects: sum((finding) => finding.duplicateEffects),
    failures: [
      ...unequal.map(({ taskId, differences }) => `task ${taskId}: ${differences.join("; ")}`),
      ...none,
      ...broken,
      ...short,
      ...counts.faults,
    ],
  };
}

const LABELS = { kills: "kills", killsAfterWrite: "kills after a write", takeovers: "takeovers" } as const;

/** The report as lines for a terminal, ending with its verdict. */
export function renderReport(report: AcceptanceReport): string {
  const rows: readonly (readonly [string, string])[] = [
    ["tasks equal", `${report.tasksEqual} of ${report.tasks}`],
    ["journal rows", `${report.journalRows} of ${report.expectedRows} expected`],
    ["duplicate effects", String(report.duplicateEffects)],
    [
      "kills",
      `${report.kills}, ${report.killsAfterWrite} of them after a write had left, ${report.killsOfMachines} of whole machines`,
    ],
    ["takeovers", String(report.takeovers)],
    ["look-ups", String(report.lookUps)],
    ["operator retries", [report.operatorRetries.length, ...new Set(report.operatorRetries)].join(" ")],
    ["invariant violations", String(report.invariantViolations)],
    ["duration", `${Math.round(report.durationMs / 1_000)} s`],
    ["seed", `${report.seed} (again: npm run test:acceptance -- --seed ${report.seed})`],
  ];
  const verdict = report.failures.length === 0 ? "passed" : `failed (${report.failures.length})`;
  return [
    ...rows.map(([label, value]) => `${label.padEnd(22)}${value}`),
    ...report.failures.map((failure) => `  ! ${failure}`),
    `acceptance ${verdict}`,
    "",
  ].join("\n");
}

function isWrite(name: string): boolean {
  return isToolName(name) && TOOL_OFFERS[name] !== "read";
}

/** What keeps a run from having ended well. */
export function runDifferences(runStatus: string, runOutcome: string | null): string[] {
  if (runStatus === "completed" && runOutcome === "succeeded") return [];
  return [`the run is ${runStatus}${runOutcome === null ? "" : `, ${runOutcome}`} instead of completed, succeeded`];
}

function resultDifferences(expected: readonly string[], found: readonly string[]): string[] {
  const count = found.length === expected.length ? [] : [`${found.length} tool results instead of ${expected.length}`];
  const different = expected.flatMap((hash, index) => {
    const actual = found[index];
    return actual === undefined || actual === hash ? [] : [`the result of call ${index} differs`];
  });
  return [...count, ...different];
}

/** Row by row: the same writes in the same order, each with the expected result. */
function journalDifferences(
  { journal }: TaskEvidence,
  writes: readonly { readonly tool: string; readonly index: number }[],
  expected: ExpectedTask,
): string[] {
  const okRows = journal.filter((row) => row.ok).length;
  const counts = [
    ...(journal.length === writes.length ? [] : [`${journal.length} journal rows instead of ${writes.length}`]),
    ...(okRows === expected.writes_ok ? [] : [`${okRows} successful writes instead of ${expected.writes_ok}`]),
  ];
  const rows = writes.flatMap(({ tool, index }, position) => {
    const row = journal[position];
    if (row === undefined) return [];
    if (row.tool !== tool) return [`journal row ${position} is ${row.tool} instead of ${tool}`];
    return row.resultSha256 === expected.results[index] ? [] : [`the result in journal row ${position} differs`];
  });
  return [...counts, ...rows];
}

/** Rows beyond the first of each key, or beyond the expected number: a repeat under a new key is one, too. */
function countDuplicates(journal: TaskEvidence["journal"], expectedRows: number): number {
  const keys = new Set(journal.map((row) => row.key));
  return Math.max(journal.length - keys.size, journal.length - expectedRows, 0);
}
