import type { Worker } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { type Column, renderTable } from "../table.ts";
import { relative } from "../times.ts";

const COLUMNS: readonly Column[] = [
  { title: "WORKER", max: 30 },
  { title: "PROCESS", max: 20 },
  { title: "STATE", max: 26 },
  { title: "RUNS", max: 9 },
  { title: "STARTED", max: 10 },
  { title: "AGENTS", max: null },
];

/** Working processes as a table. */
export function showWorkers(workers: readonly Worker[], { out, now }: View): string {
  if (workers.length === 0) return "no workers\n";
  const rows = workers.map((worker) => [
    worker.id,
    `${worker.host}:${worker.pid}`,
    stateOf(worker, out),
    `${worker.ownedRuns} of ${worker.slots}`,
    relative(worker.startedAt, now),
    worker.agents.map(({ name, version }) => `${name}@${version}`).join(", "),
  ]);
  return renderTable(COLUMNS, rows, out);
}

function stateOf({ goneAt, goneReason, silent }: Worker, { colours }: Output) {
  if (goneAt !== null) return { text: `gone: ${goneReason?.replaceAll("_", " ") ?? "unknown"}`, paint: colours.quiet };
  return silent ? { text: "not heard of", paint: colours.bad } : { text: "working", paint: colours.good };
}
