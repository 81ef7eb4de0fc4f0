import type { Approval } from "@holdpoint/protocol";
import type { Output } from "../context.ts";
import { oneLine } from "../safe-text.ts";
import { type Column, renderTable } from "../table.ts";
import { localAndRelative, relative } from "../times.ts";
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

interface View {
  readonly out: Output;
  readonly now: Date;
}

/** Approval requests as a table. */
export function showApprovals(approvals: readonly Approval[], { out, now }: View): string {
  if (approvals.length === 0) return "no approval requests\n";
  const rows = approvals.map((approval) => [
    approval.id,
    { text: approval.state, paint: approval.state === "pending" ? out.colours.waiting : out.colours.quiet },
    approval.tool,
    approval.requester,
    approversOf(approval),
    approval.state === "pending" ? relative(approval.deadline, now) : "",
    JSON.stringify(approval.args),
  ]);
  return renderTable(COLUMNS, rows, out);
}

/** One request with all that whoever decides it must see. */
export function showApproval(approval: Approval, { out, now }: View): string {
  const decided =
    approval.decidedAt === null
      ? null
      : `${approval.decidedBy ?? "nobody"}, ${localAndRelative(approval.decidedAt, now)}`;
  const lines: readonly (readonly [string, string | null])[] = [
    ["State", approval.state],
    ["Tool", approval.tool],
    ["Requester", approval.requester],
    ["Run", approval.runId],
    ["Rule", approval.rule.replaceAll("_", " ")],
    ["Approvers", approversOf(approval)],
    ["Deadline", `${localAndRelative(approval.deadline, now)}; then: ${approval.onDeadline}`],
    ["Decided by", decided],
    ["Note", approval.note],
    ["Spent", approval.spentAt === null ? null : localAndRelative(approval.spentAt, now)],
    ["Hash", approval.argsHash],
  ];
  const head = `${out.colours.title(approval.id)}\n`;
  const fields = lines.map(([label, text]) => (text === null ? "" : field(label, text, out))).join("");
  return `${head}${fields}${argumentsOf(approval, out)}`;
}

/** Every argument on its own line, whole: what is approved must be seen. */
function argumentsOf({ args }: Approval, { colours }: Output): string {
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
  const entries = isObject ? Object.entries(args) : [["", args] as const];
  const width = Math.max(...entries.map(([name]) => oneLine(name).length));
  const lines = entries.map(([name, value]) => `  ${oneLine(name).padEnd(width)}  ${oneLine(JSON.stringify(value))}\n`);
  return `${colours.quiet("Runs with these arguments:")}\n${lines.join("")}`;
}

function approversOf({ approvers: { roles, users } }: Approval): string {
  return [...roles, ...users].join(", ");
}
