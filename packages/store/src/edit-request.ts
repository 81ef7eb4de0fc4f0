import type { ApprovalRule, JsonValue, Verdict } from "@holdpoint/core";
import { approversAt, canonicalJson, judgePolicy, present, storable } from "@holdpoint/core";
import { checkSchema, namedOnly } from "./check-schema.ts";
import { hashArgs } from "./hash-args.ts";
import type { ShownRequest } from "./move.ts";
import type { RequestSeen } from "./read-request.ts";

/** Whoever edits approves what is there, and nothing that a default puts in for them. */
const INCOMPLETE = "args: give all of them, as they are to run; the tool's defaults would fill some in";

/** What a request becomes with other arguments. */
export interface Edit {
  /** What the rules say of the new arguments; `denied` refuses the edit. */
  readonly verdict: "asked" | "denied";
  /** Canonical JSON. */
  readonly args: string;
  readonly argsHash: string;
  readonly terms: ApprovalRule;
  /** The people whom the rule for the new arguments keeps from approving. */
  readonly excluded: readonly string[];
  readonly request: ShownRequest;
  /** Whether the rules for the new arguments let the editor approve them. */
  readonly editorMayApprove: boolean;
}

/** Puts other arguments in the place of a request's: validated, hashed anew, and through the rules again. */
export function editRequest(seen: RequestSeen, edited: JsonValue): Edit | { readonly problem: string } {
  const { registered, tool, request, shown, denials } = seen;
  if (registered === null) return { problem: `args: the tool ${tool} is not registered, so they can't be checked` };
  const { problem, value } = checkSchema(namedOnly(registered.inputSchema), storable(edited));
  if (problem !== null) return { problem: `args: ${problem}` };
  if (canonicalJson(value) !== canonicalJson(storable(edited))) return { problem: INCOMPLETE };
  const argsHash = hashArgs(tool, value);
  if (argsHash === request.argsHash) return { problem: "args: these are the arguments that were shown: approve them" };
  const verdict = judgePolicy([...registered.rules, ...denials], { tool, args: value });
  const terms = termsOf(seen, verdict);
  const excluded = terms.fourEyes ? [...new Set([...request.excluded, ...seen.causes])] : [];
  const { users, roles } = approversAt(terms, 0);
  const isAsked = users.includes(seen.by) || roles.some((role) => seen.roles.includes(role));
  return {
    verdict: verdict.kind === "denied" ? "denied" : "asked",
    args: canonicalJson(value),
    argsHash,
    terms,
    excluded,
    request: { ...shown, ...present(value, registered.presentation) },
    editorMayApprove: isAsked && !excluded.includes(seen.by),
  };
}

/**
 * The terms for the new arguments. What would have needed nobody still is what a person has made of it: their word is
 * enough. Where the rule is the same, those are asked who are asked by now.
 */
function termsOf({ request: { terms: before, level } }: RequestSeen, verdict: Verdict): ApprovalRule {
  if (verdict.kind !== "needs_approval") return { ...fromLevel(before, level), quorum: 1 };
  return verdict.approval.rule === before.rule ? fromLevel(verdict.approval, level) : verdict.approval;
}

/** The terms with a level of the escalation as their first. */
function fromLevel(terms: ApprovalRule, level: number): ApprovalRule {
  const reached = level === 0 ? undefined : terms.escalation[level - 1];
  return reached === undefined ? terms : { ...terms, ...reached, escalation: terms.escalation.slice(level) };
}
