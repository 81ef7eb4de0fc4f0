import { type JsonValue, storable } from "@holdpoint/core";

/**
 * The JSON text of what a statement is given. Everything that is stored passes this boundary: text that Postgres cannot hold
 * never blocks what belongs to it.
 */
export function storableJson(input: object): string {
  const text = JSON.stringify(input);
  // Where there is no such escape there is nothing to change: the text says so more cheaply than a walk through the data.
  return text.includes("\\u") && ESCAPED.test(text) ? JSON.stringify(storable(plainOf(input))) : text;
}

/** How JSON writes NUL and lone surrogates. */
const ESCAPED = /\\u(?:0000|d[89a-f])/;

/** The inputs of the statements are plain data of their types. */
function plainOf(input: object): JsonValue {
  return input as unknown as JsonValue;
}
