import type { ApprovalRule } from "./approval.ts";
import { canonicalJson, isList, type JsonValue } from "./json.ts";
import type { Verdict } from "./step.ts";

/** One condition on a call's frozen arguments. */
export interface Condition {
  /** The argument's name; dots lead into objects, numbers into lists: `customer.country`, `items.0.sku`. */
  readonly argument: string;
  /**
   * Numbers are compared as decimals, whether they stand as numbers or as strings. An order between things that have
   * none (a missing amount, a word) counts as met, and so does `in` without a list: a rule that cannot be judged applies.
   */
  readonly is: "=" | "!=" | ">" | ">=" | "<" | "<=" | "in";
  /** A list for `in`, one value for the others. */
  readonly value: JsonValue;
}

/** A rule about tool calls, as data: it can be listed, and tried on arguments without making a call. */
export type PolicyRule = {
  /** Names the rule in requests, refusals and the history. */
  readonly name: string;
  /** The tools that it is about; `*` is every tool. */
  readonly tools: readonly string[];
  /** All of them must be met; a rule without conditions is about every call of its tools. */
  readonly when: readonly Condition[];
} & (
  | { readonly action: "ask"; readonly approval: Omit<ApprovalRule, "rule"> }
  /** `message` is told to the model. */
  | { readonly action: "deny"; readonly message: string }
);

/** A rule that forbids calls. */
export type DenyRule = Extract<PolicyRule, { action: "deny" }>;

/** What a rule is tried on. */
export interface JudgedCall {
  readonly tool: string;
  readonly args: JsonValue;
}

/** What the rules say of a call: a denial wins wherever it stands; else the first rule that asks decides; else it may run. */
export function judgePolicy(rules: readonly PolicyRule[], call: JudgedCall): Verdict {
  const denial = findDenial(rules, call);
  if (denial !== null) return { kind: "denied", rule: denial.name, message: denial.message };
  const asking = rules.find((rule) => rule.action === "ask" && applies(rule, call));
  if (asking?.action !== "ask") return { kind: "allowed" };
  return { kind: "needs_approval", approval: { rule: asking.name, ...asking.approval } };
}

/** A rule that asks and can never decide, and the one before it that always does. */
export interface ShadowedRule {
  readonly rule: string;
  readonly by: string;
}

/** The first rule that can never decide, since one before it is about all its calls; null if there is none. */
export function findShadowed(rules: readonly PolicyRule[]): ShadowedRule | null {
  const asking = rules.filter(({ action }) => action === "ask");
  for (const [index, rule] of asking.entries()) {
    const before = asking.slice(0, index).find((earlier) => covers(earlier, rule));
    if (before !== undefined) return { rule: rule.name, by: before.name };
  }
  return null;
}

/** Whether every call that `rule` is about is one that `wider` is about, as far as single conditions say it. */
function covers(wider: PolicyRule, rule: PolicyRule): boolean {
  const sameTools = wider.tools.includes("*") || rule.tools.every((tool) => wider.tools.includes(tool));
  return sameTools && wider.when.every((each) => rule.when.some((condition) => implies(condition, each)));
}

/** Whether whatever meets the first condition meets the second. */
function implies(condition: Condition, wider: Condition): boolean {
  if (condition.argument !== wider.argument) return false;
  const { is, value } = condition;
  if (is === wider.is && canonicalJson(value) === canonicalJson(wider.value)) return true;
  if (is === "=") return isMet(wider, value);
  if (is === "in") return isList(value) && value.every((one) => isMet(wider, one));
  const order = compare(value, wider.value);
  if (order === null) return false;
  if (is.startsWith(">") && wider.is.startsWith(">")) return order > 0 || (order === 0 && wider.is === ">=");
  return is.startsWith("<") && wider.is.startsWith("<") && (order < 0 || (order === 0 && wider.is === "<="));
}

/** The first rule that forbids this call. */
export function findDenial(rules: readonly PolicyRule[], call: JudgedCall): DenyRule | null {
  return rules.find((rule): rule is DenyRule => rule.action === "deny" && applies(rule, call)) ?? null;
}

/** Whether a rule is about this call. */
export function applies({ tools, when }: PolicyRule, { tool, args }: JudgedCall): boolean {
  if (!(tools.includes(tool) || tools.includes("*"))) return false;
  return when.every((condition) => isMet(condition, valueAt(args, condition.argument)));
}

function isMet({ is, value }: Condition, found: JsonValue | undefined): boolean {
  if (is === "=") return isEqual(found, value);
  if (is === "!=") return !isEqual(found, value);
  if (is === "in") return !isList(value) || value.some((one) => isEqual(found, one));
  const order = compare(found, value);
  if (order === null) return true;
  return { ">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0 }[is];
}

function isEqual(found: JsonValue | undefined, value: JsonValue): boolean {
  if (found === undefined) return false;
  return compare(found, value) === 0 || canonicalJson(found) === canonicalJson(value);
}

/** The value of an argument by its name; dots lead into objects and lists. Undefined where there is none. */
export function valueAt(args: JsonValue, argument: string): JsonValue | undefined {
  let value: JsonValue | undefined = args;
  for (const key of argument.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    // An own property of a JSON object or list, by its name.
    value = (value as { readonly [name: string]: JsonValue })[key];
  }
  return value;
}

/** Below zero, zero or above, as two decimals compare; null if one of them is none. */
function compare(left: JsonValue | undefined, right: JsonValue): number | null {
  const [a, b] = [decimalOf(left), decimalOf(right)];
  if (a === null || b === null) return null;
  const digits = Math.max(a.fraction.length, b.fraction.length);
  const difference = scaled(a, digits) - scaled(b, digits);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}

interface Decimal {
  readonly negative: boolean;
  readonly whole: string;
  readonly fraction: string;
}

/** Without leading zeros: "007" is a name, not a number. */
const DECIMAL = /^(-?)(0|[1-9]\d{0,39})(?:\.(\d{1,40}))?$/;

function decimalOf(value: JsonValue | undefined): Decimal | null {
  if (typeof value !== "string" && typeof value !== "number") return null;
  const text = typeof value === "number" ? numeral(value) : value;
  const [, sign, whole, fraction = ""] = DECIMAL.exec(text) ?? [];
  return whole === undefined ? null : { negative: sign === "-", whole, fraction };
}

/** A number without an exponent. */
function numeral(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  return Number.isInteger(value) ? BigInt(value).toString() : value.toFixed(40);
}

function scaled({ negative, whole, fraction }: Decimal, digits: number): bigint {
  const size = BigInt(whole + fraction.padEnd(digits, "0"));
  return negative ? -size : size;
}
