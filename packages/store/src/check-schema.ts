import type { JsonObject, JsonValue } from "@holdpoint/core";
import { z } from "zod";

const PROBLEM_LIMIT = 900;

/** What is wrong with a value, if anything, and the value with the schema's defaults. */
export type Checked =
  | { readonly problem: string; readonly value: null }
  | { readonly problem: null; readonly value: JsonValue };

/** Checks a value against a JSON schema that a tool has registered. A schema that says what this cannot judge is a problem too. */
export function checkSchema(schema: JsonObject, value: JsonValue): Checked {
  const type = typeOf(schema);
  if (type === null) return { problem: "the schema that its tool has registered can't be checked here", value: null };
  const parsed = type.safeParse(value);
  if (!parsed.success) return { problem: z.prettifyError(parsed.error).slice(0, PROBLEM_LIMIT), value: null };
  return { problem: null, value: JSON.parse(JSON.stringify(parsed.data)) as JsonValue };
}

function typeOf(schema: JsonObject): z.ZodType | null {
  try {
    // Plain JSON, as zod wrote it when the tool was registered.
    return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return null;
  }
}

/**
 * The same schema, taking no properties but those that it names: what a tool passes over in what a model writes, a person
 * must not have approved. An object that says itself what else it takes stays so, and so do the parts of an intersection.
 */
export function namedOnly(schema: JsonObject): JsonObject {
  const closed = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, key === "allOf" ? value : closedAt(key, value)]),
  );
  return "properties" in schema && !("additionalProperties" in schema)
    ? { ...closed, additionalProperties: false }
    : closed;
}

/** Keywords whose values are schemas by name. */
const BY_NAME: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);
/** Keywords whose value is a schema, or a list of them. */
const NESTED: ReadonlySet<string> = new Set(["items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "not"]);

function closedAt(key: string, value: JsonValue): JsonValue {
  if (BY_NAME.has(key) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, isObject(one) ? namedOnly(one) : one]));
  }
  if (!NESTED.has(key)) return value;
  if (isList(value)) return value.map((one) => (isObject(one) ? namedOnly(one) : one));
  return isObject(value) ? namedOnly(value) : value;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
