import type { Worker } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { type Column, renderTable } from "../table.ts";
import { local, relative } from "../times.ts";

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

/** What has come of a worker that was asked to drain. */
export function showDrain(worker: Worker, { out }: View): string {
  const { id, goneAt, ownedRuns, stayDown } = worker;
  const next = stayDown ? "No other is started in its place." : "Its supervisor starts another in its place.";
  if (goneAt !== null && ownedRuns === 0) {
    return `${out.colours.good("Drained")}: ${id} ended at ${local(goneAt)} and has no run any more. ${next}\n`;
  }
  const runs = ownedRuns === 1 ? "its run" : `its ${ownedRuns} runs`;
  return `${id} is asked to drain: with its next renewal it hears it, gives ${runs} back and ends. ${next}\n`;
}

function stateOf({ goneAt, goneReason, silent, drainRequestedAt }: Worker, { colours }: Output) {
  if (goneAt !== null) return { text: `gone: ${goneReason?.replaceAll("_", " ") ?? "unknown"}`, paint: colours.quiet };
  if (silent) return { text: "not heard of", paint: colours.bad };
  if (drainRequestedAt !== null) return { text: "draining", paint: colours.waiting };
  return { text: "working", paint: colours.good };
}
