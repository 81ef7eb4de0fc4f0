import type { Approval, ApprovalSummary } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { oneLine, safe, wrap } from "../safe-text.ts";
import { type Column, renderTable } from "../table.ts";
import { duration, localAndRelative, relative } from "../times.ts";
import { howToDecide } from "./how-to-decide.ts";
import { money } from "./money.ts";
import { field } from "./run.ts";

const COLUMNS: readonly Column[] = [
  { title: "REQUEST", max: 30 },
  { title: "STATE", max: 10 },
  { title: "TOOL", max: 20 },
  { title: "FOR", max: 16 },
  { title: "BY", max: 18 },
  { title: "UNTIL", max: 10 },
  { title: "ARGUMENTS", max: null },
];

/** Approval requests as a table. */
export function showApprovals(approvals: readonly ApprovalSummary[], { out, now }: View): string {
  if (approvals.length === 0) return "no approval requests\n";
  const rows = approvals.map((approval) => [
    approval.id,
    { text: approval.state, paint: approval.state === "pending" ? out.colours.waiting : out.colours.quiet },
    approval.tool,
    approval.requester,
    `${namesOf(approval.approvers)}${approval.terms.quorum > 1 ? ` ${approval.terms.given}/${approval.terms.quorum}` : ""}`,
    approval.state === "pending" ? relative(approval.deadline, now) : "",
    JSON.stringify(approval.redactedArgs),
  ]);
  return renderTable(COLUMNS, rows, out);
}

/** One request with all that whoever decides it must see, and how to decide it. */
export function showApproval(approval: Approval, view: View): string {
  const { out } = view;
  const { requester, tool, amount } = approval;
  const what = amount === null ? oneLine(tool) : `${oneLine(tool)} of ${money(amount)}`;
  const fields = [...askedLines(approval, view), ...stateLines(approval, view)];
  return [
    `${out.colours.title(approval.id)}  ${approval.state}\n${wrap(`${requester} asks for ${what}`, { width: out.width, indent: 0 })}\n\n`,
    ...fields.map(([label, text]) => (text === null ? "" : field(label, text, out))),
    argumentsOf(approval, out),
    untrusted(approval, out),
    evidenceOf(approval, out),
    historyOf(approval, view),
    howToDecide(approval, out),
  ].join("");
}

type Line = readonly [label: string, text: string | null];

function askedLines(approval: Approval, { now }: View): readonly Line[] {
  const { approvers, terms, risk, escalation, level } = approval;
  const excluded = approvers.excluded.length === 0 ? "" : `; not by ${approvers.excluded.join(", ")}`;
  return [
    ["Requester", approval.requester],
    ["Run", approval.runId],
    ["Rule", approval.rule.replaceAll("_", " ")],
    ["Risk", risk === null ? null : `${risk.level}, ${risk.reversible ? "can be undone" : "cannot be undone"}`],
    ["Decided by", `${namesOf(approvers)}${level === 0 ? "" : ` (escalation ${level})`}${excluded}`],
    [
      "Quorum",
      `${terms.given} of ${terms.quorum} so far; ${terms.veto ? "one rejection is enough" : "as many reject it"}`,
    ],
    ["Deadline", `${localAndRelative(approval.deadline, now)}; then ${afterDeadline(approval)}`],
    ["Escalation", escalation.length === 0 ? null : escalation.map(levelInWords).join("; then ")],
    ["Reminders", remindersOf(approval, now)],
  ];
}

function stateLines(approval: Approval, { now }: View): readonly Line[] {
  const { decided, decidedAt, decidedBy, closedAt, closedReason, validUntil, spentAt } = approval;
  const said = decided.map(({ by, decision, at, note }) => {
    const why = note === null ? "" : `: ${oneLine(note)}`;
    return `${by} ${decision.replaceAll("_", " ")} ${localAndRelative(at, now)}${why}`;
  });
  const close = closedReason === null ? "" : `: ${closedReason.replaceAll("_", " ")}`;
  return [
    ["So far", said.length === 0 ? null : said.join("\n")],
    ["Edited by", approval.editedBy],
    ["Closed", closedAt === null ? null : `${localAndRelative(closedAt, now)}${close}`],
    ["Ended by", decidedAt === null ? null : `${decidedBy ?? "nobody"}, ${localAndRelative(decidedAt, now)}`],
    ["Answered", approval.answer === null ? null : cut(JSON.stringify(approval.answer))],
    ["Valid until", validUntil === null || spentAt !== null ? null : localAndRelative(validUntil, now)],
    ["Spent", spentAt === null ? null : localAndRelative(spentAt, now)],
    ["Hash", approval.argsHash],
  ];
}

const AFTER = {
  reject: "it counts as rejected",
  abort: "the run is stopped",
  operator: "an operator decides",
  escalate: "it is passed on, after the last to an operator",
  extend: "it is extended once",
} as const satisfies Record<Approval["onDeadline"], string>;

function afterDeadline({ onDeadline, extended }: Approval): string {
  return onDeadline === "extend" && extended ? AFTER.reject : AFTER[onDeadline];
}

function levelInWords({ deadlineMs, ...approvers }: Approval["escalation"][number]): string {
  return `${namesOf(approvers)}, who have ${duration(deadlineMs)}`;
}

function remindersOf({ reminders: { made, nextAt } }: Approval, now: Date): string | null {
  if (made === 0 && nextAt === null) return null;
  return `${made} made${nextAt === null ? "" : `, the next ${localAndRelative(nextAt, now)}`}`;
}

/** Every argument on its own line, whole: what is approved must be seen. */
function argumentsOf({ args, redactedArgs, modelArgs }: Approval, { colours }: Output): string {
  const model =
    modelArgs === null ? "" : `${colours.quiet("The model had given these arguments:")}\n${linesOf(modelArgs)}`;
  if (args === null) return `${colours.quiet("Arguments, as far as you may see them:")}\n${linesOf(redactedArgs)}`;
  return `${colours.quiet("Runs with these arguments:")}\n${linesOf(args)}${model}`;
}

function linesOf(args: Approval["redactedArgs"]): string {
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
  const entries = isObject ? Object.entries(args) : [["", args] as const];
  const width = Math.max(0, ...entries.map(([name]) => oneLine(name).length));
  return entries
    .map(([name, value]) => `  ${oneLine(name).padEnd(width)}  ${oneLine(JSON.stringify(value))}\n`)
    .join("");
}

const TEXT_LIMIT = 2_000;

function cut(text: string): string {
  return text.length <= TEXT_LIMIT ? text : `${text.slice(0, TEXT_LIMIT)}…`;
}

/** What the model wrote stands behind a mark in every line, so that it cannot be taken for ours. */
function untrusted({ modelReason }: Approval, { colours, width }: Output): string {
  if (modelReason === null) return "";
  const lines = wrap(safe(cut(modelReason)), { width: width - 4, indent: 0 }).split("\n");
  const quoted = lines.map((line) => `  | ${line}\n`).join("");
  return `${colours.waiting("The model's reason, which nobody has checked:")}\n${quoted}`;
}

function evidenceOf({ evidence }: Approval, { colours, width }: Output): string {
  if (evidence.length === 0) return "";
  const lines = evidence.map(({ tool, result, excerpt }) => {
    const text = `${oneLine(tool)} ${oneLine(result)}: ${oneLine(cut(excerpt))}`;
    return `  ${wrap(text, { width, indent: 4 })}\n`;
  });
  return `${colours.quiet("What the run has found so far:")}\n${lines.join("")}`;
}

function historyOf({ sameCall, equalCalls, supersededBy }: Approval, { out: { colours }, now }: View): string {
  const others = sameCall.map(({ id, state, decidedBy, note }) => {
    const by = decidedBy === null ? "" : ` by ${decidedBy}${note === null ? "" : `: ${oneLine(note)}`}`;
    return `  ${id}  ${state}${by}${id === supersededBy ? ", instead of this one" : ""}\n`;
  });
  const equal = equalCalls.map(({ runId, result, at }) => {
    return `  ${runId}  ${result === null ? "has not ended" : result.replaceAll("_", " ")}, ${localAndRelative(at, now)}\n`;
  });
  return [
    ...(others.length === 0 ? [] : [`${colours.quiet("Other requests for this call:")}\n`, ...others]),
    ...(equal.length === 0 ? [] : [`${colours.waiting("An equal call was made before:")}\n`, ...equal]),
  ].join("");
}

function namesOf({ roles, users }: { readonly roles: readonly string[]; readonly users: readonly string[] }): string {
  return [...roles, ...users].join(", ");
}
