import type { Reply, Task } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { oneLine } from "../safe-text.ts";
import { type Column, renderTable } from "../table.ts";
import { duration, localAndRelative, relative } from "../times.ts";
import { field } from "./run.ts";
import { statusCell } from "./status.ts";

const COLUMNS: readonly Column[] = [
  { title: "RUN", max: 30 },
  { title: "TASK", max: 30 },
  { title: "STATUS", max: 20 },
  { title: "SINCE", max: 10 },
  { title: "EXECUTOR", max: 40 },
  { title: "GOAL", max: null },
];

/** Tasks as a table. */
export function showTasks(tasks: readonly Task[], { out, now }: View): string {
  if (tasks.length === 0) return "no tasks\n";
  const rows = tasks.map((task) => [
    task.runId,
    nameOf(task),
    statusCell(task, out),
    relative(task.queuedSince ?? task.executor?.startedAt ?? task.createdAt, now),
    executorInShort(task),
    task.goal,
  ]);
  return renderTable(COLUMNS, rows, out);
}

/** A task's page. */
export function showTask(task: Task, { out, now }: View): string {
  const status = statusCell(task, out);
  const { executor } = task;
  const lines: readonly (readonly [string, string | null])[] = [
    ["Task", `${nameOf(task)}: ${task.description}`],
    ["Goal", task.goal],
    ["Input", task.input === null ? null : JSON.stringify(task.input)],
    ["For", task.parent ?? task.requester],
    ["Outcome", outcomeInWords(task)],
    ["Executor", executor === null ? "nobody yet" : `${executor.name}, started by ${executor.startedBy}`],
    ["Progress", progressInWords(executor?.progress ?? null)],
    ["Heard of", executor === null ? null : localAndRelative(executor.lastHeartbeatAt, now)],
    [
      "Due",
      executor?.heartbeatDueAt == null
        ? null
        : `${localAndRelative(executor.heartbeatDueAt, now)}, and ${duration(task.graceMs)} of grace${executor.silent ? ": not heard of" : ""}`,
    ],
    ["Last word", executor?.said == null ? null : saidInWords(executor.said)],
    ...task.late.map((word) => ["Said too late", lateInWords(word, now)] as const),
  ];
  const fields = lines.map(([label, text]) => (text === null ? "" : field(label, text, out)));
  return `${out.colours.title(task.runId)}  ${status.paint(status.text)}\n\n${fields.join("")}`;
}

/** A start: the token is shown this once. */
export function showStarted({ token, repeated, task }: Reply<"startTask">, view: View): string {
  const { out } = view;
  const head = repeated ? "Started before, by the same request" : "Started";
  return `${out.colours.good(head)}: ${task.runId}\n\n${showTask(task, view)}${token === null ? "" : tokenLines(token, out)}`;
}

/** A token that was asked for. */
export function showIssued({ token, started }: Reply<"issueTaskToken">, { out }: View): string {
  const whose = started ? "Whoever has the task in hands goes on with it." : "It starts the task.";
  return `${whose} The token of before is worth nothing any more.\n${tokenLines(token, out)}`;
}

/** What a sign of life was answered. */
export function showHeartbeat({ stop, pause, heartbeatDueAt }: Reply<"heartbeatTask">, { out, now }: View): string {
  const due = `The next heartbeat is due ${localAndRelative(heartbeatDueAt, now)}.\n`;
  if (stop) return `${out.colours.waiting("Asked to stop")}: stop, then say so with tasks fail --stopped. ${due}`;
  if (pause) return `${out.colours.waiting("Asked to pause")}: give it back with tasks release. ${due}`;
  return due;
}

/** What became of a task's run by what was said of it. */
export function showEnd(ended: Reply<"completeTask">, { out }: View): string {
  const status = statusCell(ended, out);
  return `${ended.runId}  ${status.paint(status.text)}${ended.repeated ? " (the same was said before)" : ""}\n`;
}

/** A definition that was made known. */
export function showTaskDefinition(task: Reply<"defineTask">, { out }: View): string {
  const { name, version, heartbeatMs, graceMs, onFailure, retries } = task;
  const failure = onFailure === "end" ? "the run ends as failed" : "an operator is asked";
  return `${out.colours.good("Known")}: ${name}@${version}. Heard of every ${duration(heartbeatMs)}, ${duration(graceMs)} of grace; after ${retries} retries ${failure}.\n`;
}

function nameOf({ agent }: Task): string {
  return `${agent.name}@${agent.version}`;
}

function executorInShort({ executor, stopRequested }: Task): string {
  if (executor === null) return "nobody yet";
  const progress = progressInWords(executor.progress);
  const parts = [
    executor.inHands ? executor.name : `last ${executor.name}`,
    progress,
    stopRequested ? "to stop" : null,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

function progressInWords(progress: NonNullable<Task["executor"]>["progress"]): string | null {
  if (progress === null) return null;
  const parts = [progress.percent === null ? null : `${progress.percent} %`, progress.text];
  const said = parts.filter((part) => part !== null).join(", ");
  return said === "" ? null : oneLine(said);
}

function outcomeInWords({ outcome }: Task): string | null {
  if (outcome === null || outcome.kind === "succeeded") return outcome?.kind ?? null;
  return outcome.kind === "blocked" ? `blocked at ${outcome.step}: ${outcome.reason}` : `partial: ${outcome.reason}`;
}

function saidInWords(said: NonNullable<NonNullable<Task["executor"]>["said"]>): string {
  if (said.kind === "complete") return `complete, ${said.outcome.kind}`;
  return said.reason === null ? said.kind : `${said.kind}: ${said.reason}`;
}

function lateInWords({ executor, report, at, runStatus }: Task["late"][number], now: Date): string {
  return `${executor}: ${saidInWords(report)} at ${localAndRelative(at, now)}, when the run was ${runStatus}: it has moved nothing`;
}

function tokenLines(token: string, { colours }: Output): string {
  return `\n${colours.waiting("Shown only now:")}\nexport HOLDPOINT_TASK_TOKEN=${token}\n`;
}
