import type { Message, Run, TimelineEntry } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { oneLine, wrap } from "../safe-text.ts";
import { duration, localAndRelative, withLocalTimes } from "../times.ts";
import { showFamily } from "./family.ts";
import { nextStep } from "./next-step.ts";
import { statusCell } from "./status.ts";
import { showTimeline } from "./timeline.ts";

/** Everything that a run's page shows. */
export interface RunPage {
  readonly run: Run;
  readonly children: { readonly items: readonly Run[]; readonly next: string | null };
  readonly timeline: readonly TimelineEntry[];
  /** What the agent said last in this run, or null. */
  readonly said: Message | null;
}

const LABEL_WIDTH = 16;

/** A run's page: what it does or for whom it waits, what was last and what is next, and its story. */
export function showRunPage({ run, children, timeline, said }: RunPage, view: View): string {
  const words = said === null ? "" : field("Agent says", said.text, view.out);
  return `${showRun(run, view)}${words}${showFamily(run, children, view)}\n${showTimeline(timeline, view.out)}`;
}

/** The head of a run's page. */
export function showRun(run: Run, { out, now }: View): string {
  const { colours } = out;
  const status = statusCell(run, out);
  const lines: readonly (readonly [string, string | null])[] = [
    ["Agent", `${run.agent.name}@${run.agent.version}, for ${run.requester}${submitter(run)}`],
    ["Goal", run.goal],
    ["Outcome", outcomeInWords(run)],
    ["Waiting for", waitingFor(run)],
    [
      "Deadline",
      run.waitDeadline === null ? null : `${localAndRelative(run.waitDeadline, now)}${run.overdue ? ", overdue" : ""}`,
    ],
    ["Blocked by", blockedByInWords(run)],
    ["Not stopped", notStoppedInWords(run)],
    ["Last completed", run.lastCompleted ?? "nothing yet"],
    ["Under way", openNodesInWords(run)],
    ["Next", withLocalTimes(nextStep(run), now)],
    [
      "Worker",
      run.owner === null
        ? "none"
        : `process ${run.owner.pid} on ${run.owner.host}, lease until ${localAndRelative(run.owner.leaseUntil, now)}`,
    ],
    [
      "Open attempts",
      run.openAttempts === 0 ? null : `${run.openAttempts}, known outside as ${run.externalRef ?? "nothing"}`,
    ],
    ["Worked", run.workedMs === 0 ? null : duration(run.workedMs)],
    ["Takeovers", run.takeovers === 0 ? null : String(run.takeovers)],
    ["Again of", run.retryOf],
    ["Instance key", run.instanceKey],
    ["Was given", json(run.input)],
    ["Brought home", json(run.result)],
    ["You may", mayInWords(run)],
  ];
  const fields = lines.map(([label, text]) => (text === null ? "" : field(label, text, out)));
  const sentence = wrap(withLocalTimes(run.sentence, now), { width: out.width, indent: 0 });
  return `${colours.title(run.id)}  ${status.paint(status.text)}\n${sentence}\n\n${fields.join("")}`;
}

/** One labelled line, its text broken where it is too long. */
export function field(label: string, text: string, { colours, width }: Output): string {
  return `${colours.quiet(label.padEnd(LABEL_WIDTH))}${wrap(text, { width, indent: LABEL_WIDTH })}\n`;
}

function submitter({ requester, submittedBy }: Run): string {
  return submittedBy === requester ? "" : `, submitted by ${submittedBy}`;
}

function waitingFor({ waitingFor: waiting }: Run): string | null {
  if (waiting === null) return null;
  const quorum = waiting.quorum === undefined ? "" : `${waiting.quorum} of `;
  return oneLine(`${quorum}${waiting.principal} (${waiting.reason.replaceAll("_", " ")})`);
}

function outcomeInWords({ outcome }: Run): string | null {
  if (outcome === null) return null;
  if (outcome.kind === "succeeded") return "succeeded";
  const where = outcome.kind === "blocked" ? ` at ${outcome.step}` : "";
  return `${outcome.kind}${where}: ${outcome.reason.replaceAll("_", " ")}`;
}

function blockedByInWords({ blockedBy }: Run): string | null {
  const each = blockedBy.map(
    ({ runId, agent, step, reason }) =>
      `${runId} (${agent.name}@${agent.version}) at ${step}: ${reason.replaceAll("_", " ")}`,
  );
  return each.length === 0 ? null : oneLine(each.join("; "));
}

function notStoppedInWords({ notStopped }: Run): string | null {
  return notStopped.length === 0 ? null : notStopped.map(({ runId, status }) => `${runId} (${status})`).join(", ");
}

function openNodesInWords({ openNodes = [] }: Run): string | null {
  const each = openNodes.map(
    ({ node, round, item }) =>
      `${node}${round === 1 ? "" : `, round ${round}`}${item === null ? "" : `, item ${item}`}`,
  );
  return each.length === 0 ? null : each.join("; ");
}

const SHOWN_JSON = 1_000;

function json(value: Run["input"]): string | null {
  if (value === undefined || value === null) return null;
  const text = JSON.stringify(value);
  return text.length <= SHOWN_JSON ? text : `${text.slice(0, SHOWN_JSON)}… (--json prints all)`;
}

function mayInWords({ actions }: Run): string {
  const open = Object.entries(actions).flatMap(([action, rule]) =>
    rule === null ? [action.replaceAll("_", " ")] : [],
  );
  return open.length === 0 ? "only look" : open.join(", ");
}
