import type {
  ApprovalRule,
  Approvers,
  Condition,
  DecisionKind,
  JsonObject,
  JsonValue,
  PolicyRule,
  Presentation,
} from "@holdpoint/core";
import { findShadowed } from "@holdpoint/core";
import { z } from "zod";
import { wholeNumbers } from "./whole-numbers.ts";

/** A rule about a tool's calls. The first that asks decides, one that denies wins wherever it stands. */
export type ToolRule = {
  /** Names the rule in requests, refusals and the history. */
  readonly name: string;
  /** All must be met; without any the rule is about every call. */
  readonly when?: readonly Condition[];
} & ({ readonly ask: ApprovalTerms } | { readonly deny: string });

/** Who has to release a call. */
export interface ApprovalTerms {
  readonly roles?: readonly string[];
  readonly users?: readonly string[];
  /** How many different people have to approve; 1 by default. */
  readonly quorum?: number;
  /** One rejection rejects, which is the default; otherwise as many as have to approve. */
  readonly veto?: boolean;
  /** Whoever asked for the run, or steers it, may not approve; the default. */
  readonly fourEyes?: boolean;
  /** What may be decided; by default all that the rule can be answered with. */
  readonly decisions?: readonly DecisionKind[];
  /** Lets a person answer instead of the call, with what this schema takes. */
  readonly answer?: z.ZodType<JsonValue>;
  /** Limits the decision; 24 h by default. */
  readonly deadlineMs?: number;
  /** `reject` by default. */
  readonly onDeadline?: ApprovalRule["onDeadline"];
  /** When the approvers are reminded, in milliseconds from the request, ascending. */
  readonly remindAfterMs?: readonly number[];
  /** Who is asked next, level by level. */
  readonly escalation?: readonly {
    readonly roles?: readonly string[];
    readonly users?: readonly string[];
    readonly deadlineMs: number;
  }[];
  /** How long the approval may be spent after the decision; 24 h by default. */
  readonly validForMs?: number;
}

/** How a tool's arguments are shown to people. */
export interface ToolPresentation {
  /** Arguments that are left out wherever they need not be seen; dots lead into objects. */
  readonly redact?: readonly string[];
  /** Which arguments are the amount, in minor units, and its currency. */
  readonly amount?: { readonly minor: string; readonly currency: string };
  readonly risk?: { readonly level: "low" | "medium" | "high"; readonly reversible: boolean };
}

const DAY_MS = 86_400_000;
/** What callers of the api may be; nobody is assigned these to approve. */
const ACCESS_ROLES: ReadonlySet<string> = new Set(["requester", "operator", "task_runner"]);

/**
 * A tool's rules, complete and about this tool.
 *
 * @throws {TypeError} two rules have one name, one asks for what nobody could give, or one can never decide.
 */
export function rulesOf(tool: string, rules: readonly ToolRule[]): readonly PolicyRule[] {
  const names = new Set(rules.map(({ name }) => name));
  if (names.size < rules.length) throw new TypeError(`Tool ${tool}: two of its rules have one name`);
  const complete = rules.map((rule): PolicyRule => {
    const { name, when = [] } = rule;
    const about = { name, tools: [tool], when };
    if ("deny" in rule) return { ...about, action: "deny", message: rule.deny };
    return { ...about, action: "ask", approval: termsOf(`Tool ${tool}: rule ${name}`, rule.ask) };
  });
  const shadowed = findShadowed(complete);
  if (shadowed === null) return complete;
  const { rule, by } = shadowed;
  throw new TypeError(
    `Tool ${tool}: rule ${rule} can never decide, since ${by}, before it, is about all its calls; put the narrower one first`,
  );
}

/** A tool's presentation, complete. */
export function presentationOf({ redact = [], amount, risk }: ToolPresentation = {}): Presentation {
  return { redact, amount: amount ?? null, risk: risk ?? null };
}

function termsOf(rule: string, terms: ApprovalTerms): Omit<ApprovalRule, "rule"> {
  const { quorum = 1, veto = true, fourEyes = true, answer, remindAfterMs = [], escalation = [] } = terms;
  const { deadlineMs = DAY_MS, onDeadline = "reject", validForMs = DAY_MS } = terms;
  const check = wholeNumbers(rule);
  check("quorum", quorum, { least: 1 });
  check("deadlineMs", deadlineMs, { least: 1 });
  check("validForMs", validForMs, { least: 1 });
  for (const level of escalation) check("escalation.deadlineMs", level.deadlineMs, { least: 1 });
  for (const afterMs of remindAfterMs) check("remindAfterMs", afterMs, { least: 1 });
  if (remindAfterMs.some((afterMs, index) => afterMs <= (remindAfterMs[index - 1] ?? 0))) {
    throw new TypeError(`${rule}: remindAfterMs must ascend`);
  }
  const approvers = approversOf(rule, terms);
  const levels = escalation.map((level) => ({ approvers: approversOf(rule, level), deadlineMs: level.deadlineMs }));
  for (const { roles, users } of [approvers, ...levels.map((level) => level.approvers)]) {
    if (roles.length === 0 && users.length < quorum)
      throw new TypeError(`${rule}: ${quorum} have to approve, and fewer are asked`);
  }
  return {
    approvers,
    quorum,
    veto,
    fourEyes,
    decisions: terms.decisions ?? decisionsOf({ answers: answer !== undefined, escalates: levels.length > 0 }),
    // zod's JSON schema is plain JSON.
    answerSchema: answer === undefined ? null : (JSON.parse(JSON.stringify(z.toJSONSchema(answer))) as JsonObject),
    deadlineMs,
    onDeadline,
    remindAfterMs,
    escalation: levels,
    validForMs,
  };
}

function approversOf(rule: string, { roles = [], users = [] }: Pick<ApprovalTerms, "roles" | "users">): Approvers {
  if (roles.length + users.length === 0) throw new TypeError(`${rule} names no role and no user`);
  const access = roles.find((role) => ACCESS_ROLES.has(role));
  if (access !== undefined)
    throw new TypeError(`${rule} asks the role ${access}, which gives access and is nobody's to approve with`);
  return { roles, users };
}

function decisionsOf({
  answers,
  escalates,
}: {
  readonly answers: boolean;
  readonly escalates: boolean;
}): readonly DecisionKind[] {
  const always = ["approve", "approve_with_edits", "reject", "reject_and_abort", "skip"] as const;
  return [...always, ...(answers ? (["respond"] as const) : []), ...(escalates ? (["escalate"] as const) : [])];
}
