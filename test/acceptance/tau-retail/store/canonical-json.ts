import { createHash } from "node:crypto";

/**
 * Canonical JSON text (equal to RFC 8785 for this data): keys sorted as strings, no whitespace, numbers as ECMAScript
 * prints them. Fields that are `undefined` are left out.
 *
 * Written by hand because `JSON.stringify` of a key-sorted object moves integer-like keys to the front.
 *
 * @throws {TypeError} the value holds something that JSON has no text for (a function, a symbol, a bigint, NaN, infinity).
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object") throw new TypeError(`canonical JSON has no text for ${String(value)}`);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`);
  return `{${fields.join(",")}}`;
}

/** SHA-256 of a text's UTF-8 bytes, lower-case hex. */
export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
