import { isList, type JsonValue } from "./json.ts";
import { valueAt } from "./policy.ts";

/** How a tool's arguments are shown to people, as data, so that edited ones are shown in the same way. */
export interface Presentation {
  /** Arguments that are left out wherever they need not be seen, by name; dots lead into objects. */
  readonly redact: readonly string[];
  /** Where the amount and its currency stand among the arguments. */
  readonly amount: { readonly minor: string; readonly currency: string } | null;
  readonly risk: { readonly level: "low" | "medium" | "high"; readonly reversible: boolean } | null;
}

/** What a person is shown of a call's arguments. */
export interface Presented {
  /** The arguments with secrets left out, for lists. */
  readonly redactedArgs: JsonValue;
  readonly amount: { readonly minor: string; readonly currency: string } | null;
  readonly risk: Presentation["risk"];
}

const REDACTED = "[redacted]";

/** What a person is shown of these arguments. */
export function present(args: JsonValue, { redact, amount, risk }: Presentation): Presented {
  const redactedArgs = redact.reduce((shown, argument) => without(shown, argument.split(".")), args);
  const [minor, currency] = amount === null ? [] : [valueAt(args, amount.minor), valueAt(args, amount.currency)];
  const isAmount = (typeof minor === "string" || typeof minor === "number") && typeof currency === "string";
  return { redactedArgs, amount: isAmount ? { minor: String(minor), currency } : null, risk };
}

function without(value: JsonValue, [key, ...rest]: readonly string[]): JsonValue {
  if (key === undefined) return REDACTED;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  if (isList(value)) return value.map((item, index) => (String(index) === key ? without(item, rest) : item));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, name === key ? without(item, rest) : item]),
  );
}
