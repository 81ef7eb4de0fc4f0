import type { Run } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { type Column, renderTable } from "../table.ts";
import { relative } from "../times.ts";
import { statusCell } from "./status.ts";

const COLUMNS: readonly Column[] = [
  { title: "RUN", max: 30 },
  { title: "STATUS", max: 18 },
  { title: "WAITS FOR", max: 18 },
  { title: "UNTIL", max: 14 },
  { title: "SINCE", max: 10 },
  { title: "GOAL", max: null },
];

/** Runs as a table. */
export function showRuns(runs: readonly Run[], { out, now }: View): string {
  if (runs.length === 0) return "no runs\n";
  const rows = runs.map((run) => [
    run.id,
    statusCell(run, out),
    run.waitingFor?.principal ?? "",
    untilInShort(run, now),
    relative(run.since, now).replace(" ago", ""),
    run.goal,
  ]);
  return renderTable(COLUMNS, rows, out);
}

const CHILD_COLUMNS: readonly Column[] = [
  { title: "RUN", max: 30 },
  { title: "STATUS", max: 20 },
  { title: "AGENT", max: 24 },
  { title: "BY CALL", max: 20 },
  { title: "WAITS FOR, OR ENDED WITH", max: null, wraps: true },
];

/** The runs that a run has started, as a table. */
export function showChildren(runs: readonly Run[], { out }: View): string {
  if (runs.length === 0) return "no child runs\n";
  const rows = runs.map((run) => [
    run.id,
    statusCell(run, out),
    `${run.agent.name}@${run.agent.version}`,
    run.startedBy?.tool ?? "",
    waitOrEnd(run),
  ]);
  return renderTable(CHILD_COLUMNS, rows, out);
}

/** What a run waits for, or what has become of it. */
export function waitOrEnd({ waitingFor, outcome, endReason, blockedBy }: Run): string {
  const [first] = blockedBy;
  if (first !== undefined) return `${first.runId}, which is blocked at ${first.step}: ${words(first.reason)}`;
  if (waitingFor !== null) return `${waitingFor.principal} (${words(waitingFor.reason)})`;
  if (outcome === null) return endReason === null ? "" : words(endReason);
  if (outcome.kind === "succeeded") return "succeeded";
  return `${outcome.kind === "blocked" ? `at ${outcome.step}: ` : ""}${words(outcome.reason)}`;
}

function words(reason: string): string {
  return reason.replaceAll("_", " ");
}

function untilInShort({ waitDeadline, retryAt, overdue }: Run, now: Date): string {
  if (overdue) return "overdue";
  const until = retryAt ?? waitDeadline;
  return until === null ? "" : relative(until, now);
}
