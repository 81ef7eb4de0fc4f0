import type { Denial, Reply, Rules, Verdict } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { oneLine, wrap } from "../safe-text.ts";
import { renderTable } from "../table.ts";
import { duration, localAndRelative } from "../times.ts";
import { field } from "./run.ts";

type Rule = Rules["registered"][number]["rule"];
type Terms = Extract<Verdict, { kind: "needs_approval" }>["approval"];

/** Every rule as a table, what operators have forbidden first: it always wins. */
export function showRules({ registered, denials }: Reply<"listRules">, { out, now }: View): string {
  if (registered.length + denials.length === 0) return "no rules\n";
  const columns = [
    { title: "RULE", max: 24 },
    { title: "OF", max: 24 },
    { title: "TOOLS", max: 20 },
    { title: "WHEN", max: 30 },
    { title: "THEN", max: null, wraps: true },
  ] as const;
  const denied = denials.map((denial) => [
    { text: denial.rule.name, paint: out.colours.bad },
    denial.createdBy,
    denial.rule.tools.join(", "),
    whenInWords(denial.rule),
    `denied since ${localAndRelative(denial.createdAt, now)}: ${denial.reason}`,
  ]);
  const asked = registered.map(({ agent, rule }) => [
    rule.name,
    `${agent.name}@${agent.version}`,
    rule.tools.join(", "),
    whenInWords(rule),
    thenInWords(rule),
  ]);
  return renderTable(columns, [...denied, ...asked], out);
}

function whenInWords({ when }: Rule): string {
  return when.length === 0
    ? "always"
    : when.map(({ argument, is, value }) => `${argument} ${is} ${plain(value)}`).join(" and ");
}

function plain(value: Rule["when"][number]["value"]): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function thenInWords(rule: Rule): string {
  return rule.action === "deny" ? `denied: ${rule.message}` : askInWords(rule.approval);
}

function askInWords({ approvers: { roles, users }, quorum, deadlineMs }: Terms): string {
  return `asks ${quorum} of ${[...roles, ...users].join(", ")}, for ${duration(deadlineMs)}`;
}

/** What would become of a call. */
export function showVerdict(verdict: Verdict, { out }: View): string {
  const { good, bad, waiting } = out.colours;
  switch (verdict.kind) {
    case "allowed":
      return `${good("allowed")}: no rule is about it\n`;
    case "needs_approval":
      return `${waiting("needs approval")} by the rule ${oneLine(verdict.rule)}: ${askInWords(verdict.approval)}\n`;
    case "denied":
      return `${bad("denied")} by the rule ${oneLine(verdict.rule)}: ${oneLine(verdict.message)}\n`;
    case "invalid":
      return `${bad("invalid")}: the tool does not take these arguments\n${wrap(verdict.message, { width: out.width, indent: 0 })}\n`;
  }
}

/** A rule that is in force from now on. */
export function showDenied({ denial, unknownTools }: Reply<"denyCalls">, view: View): string {
  const warning = `no registered agent has ${unknownTools.join(", ")}: is that spelt right?`;
  return `${showDenial(denial, view)}${unknownTools.length === 0 ? "" : `${view.out.colours.bad(oneLine(warning))}\n`}`;
}

/** A rule that is not in force any more. */
export function showLifted(denial: Denial, view: View): string {
  return `lifted: ${showDenial(denial, view)}`;
}

function showDenial({ rule, reason, createdBy, createdAt }: Denial, { out, now }: View): string {
  const fields = [
    ["Tools", rule.tools.join(", ")],
    ["When", whenInWords(rule)],
    ["Agent is told", rule.message],
    ["Reason", reason],
    ["By", `${createdBy}, ${localAndRelative(createdAt, now)}`],
  ] as const;
  return `${out.colours.title(rule.name)}\n${fields.map(([label, text]) => field(label, text, out)).join("")}`;
}
