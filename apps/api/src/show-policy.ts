import type { ApprovalRule, PolicyRule } from "@holdpoint/core";
import type { Denial, Rules, Verdict } from "@holdpoint/protocol";
import type { StoredDenyRule } from "@holdpoint/store";
import { shown } from "./show.ts";

type ShownRule = Rules["registered"][number]["rule"];
type ShownTerms = Extract<Verdict, { kind: "needs_approval" }>["approval"];

/** A rule as it crosses HTTP. */
export function showRule(rule: PolicyRule): ShownRule {
  const { name } = rule;
  const about = { name, tools: [...rule.tools], when: rule.when.map((condition) => ({ ...condition })) };
  return rule.action === "deny"
    ? { ...about, action: "deny", message: rule.message }
    : { ...about, action: "ask", approval: showTerms(rule.approval) };
}

/** What a rule asks for. */
export function showTerms(terms: Omit<ApprovalRule, "rule">): ShownTerms {
  const { approvers, escalation, decisions, remindAfterMs } = terms;
  return {
    ...terms,
    approvers: showApprovers(approvers),
    decisions: [...decisions],
    remindAfterMs: [...remindAfterMs],
    escalation: escalation.map((level) => ({ ...level, approvers: showApprovers(level.approvers) })),
  };
}

export function showDenial({ rule, reason, createdBy, createdAtMs }: StoredDenyRule): Denial {
  const { name, tools, when, message } = rule;
  const about = { name, tools: [...tools], when: when.map((condition) => ({ ...condition })) };
  return { rule: { ...about, action: "deny", message }, reason, createdBy, createdAt: shown(createdAtMs) };
}

function showApprovers({ roles, users }: ApprovalRule["approvers"]) {
  return { roles: [...roles], users: [...users] };
}
