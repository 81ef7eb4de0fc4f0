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

function untilInShort({ waitDeadline, retryAt, overdue }: Run, now: Date): string {
  if (overdue) return "overdue";
  const until = retryAt ?? waitDeadline;
  return until === null ? "" : relative(until, now);
}
