import type { JsonValue } from "@holdpoint/core";

const DEEPEST = 64;

/**
 * A copy of a value as JSON, so that nothing which happens to the value later changes what was taken from it. Properties
 * that are undefined are left out.
 *
 * @throws {TypeError} something in it is no JSON, or lies too deep; the message names the place.
 */
export function toJson(value: unknown, path: readonly PropertyKey[] = []): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (path.length > DEEPEST) throw new TypeError(`it is more than ${DEEPEST} levels deep`);
  if (Array.isArray(value)) return Array.from(value, (item: unknown, index) => toJson(item, [...path, index]));
  if (!isPlain(value)) throw new TypeError(`${inWords(path)}${nameOf(value)} is no JSON`);
  const given = Object.entries(value).filter(([, property]) => property !== undefined);
  return Object.fromEntries(given.map(([key, property]) => [key, toJson(property, [...path, key])]));
}

/** A path into a value, as in `items.2.sku: `; nothing for the value itself. */
export function inWords(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "" : `${path.map(String).join(".")}: `;
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What kind of thing it is; never what it holds. */
function nameOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "object" && value !== null
    ? `a ${value.constructor.name}`
    : `a value of type ${typeof value}`;
}
