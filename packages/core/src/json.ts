/** What can be stored and sent: JSON, with money and numbers beyond 2^53 as decimal strings. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export type JsonObject = { readonly [key: string]: JsonValue };

/**
 * JSON with sorted keys and no white space: equal values have equal texts, whatever order their keys came in.
 * Equals RFC 8785 for text that is well formed.
 *
 * @throws {TypeError} something in it is no JSON (undefined, a function, NaN …): it could be written and not read back.
 */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== "object") return scalar(value);
  return isList(value) ? listText(value) : objectText(value);
}

function listText(list: readonly JsonValue[]): string {
  let text = "";
  // By index: what is missing in a list is no JSON either.
  for (let index = 0; index < list.length; index += 1) {
    text += `${index === 0 ? "" : ","}${canonicalJson(list[index] as JsonValue)}`;
  }
  return `[${text}]`;
}

function objectText(value: { readonly [key: string]: JsonValue }): string {
  let text = "";
  // Sorts by UTF-16 units, as RFC 8785 asks.
  for (const key of Object.keys(value).sort()) {
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonicalJson(value[key] as JsonValue)}`;
  }
  return `{${text}}`;
}

/**
 * Text and JSON that Postgres and every provider can carry: NUL and lone surrogates become U+FFFD, at every depth and
 * in keys as well. No property is lost: keys that become equal are told apart by further U+FFFD.
 */
export function storable<Value extends JsonValue>(value: Value): Value;
export function storable(value: JsonValue): JsonValue {
  // Nearly everything is storable as it is, and is not copied then.
  return isStorable(value) ? value : made(value);
}

function isStorable(value: JsonValue): boolean {
  if (typeof value === "string") return isStorableText(value);
  if (value === null || typeof value !== "object") return true;
  if (isList(value)) return value.every(isStorable);
  for (const key of Object.keys(value)) {
    if (!isStorableText(key) || !isStorable(value[key] as JsonValue)) return false;
  }
  return true;
}

function made(value: JsonValue): JsonValue {
  if (typeof value === "string") return storableText(value);
  if (value === null || typeof value !== "object") return value;
  if (isList(value)) return value.map(made);
  const keys = storableKeys(Object.keys(value));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [keys.get(key) ?? key, made(item)]));
}

/** The keys that have to change, and what they become; the same whatever order the keys came in. */
function storableKeys(keys: readonly string[]): ReadonlyMap<string, string> {
  const changed = keys.filter((key) => storableText(key) !== key).sort();
  const taken = new Set(keys);
  const names = new Map<string, string>();
  for (const key of changed) {
    let name = storableText(key);
    while (taken.has(name)) name += "\uFFFD";
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what Postgres cannot store
const UNSTORABLE = /\u0000|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const SUSPECT = /[\u0000\uD800-\uDFFF]/;

/** Text without NUL and lone surrogates; each becomes U+FFFD. */
export function storableText(text: string): string {
  // Most text has no surrogates at all, and one look for those is far cheaper than the exact one.
  return SUSPECT.test(text) ? text.replace(UNSTORABLE, "\uFFFD") : text;
}

function isStorableText(text: string): boolean {
  return storableText(text) === text;
}

function scalar(value: string | number | boolean | null): string {
  const isJson = typeof value === "number" ? Number.isFinite(value) : value === null || SCALARS.has(typeof value);
  if (!isJson) throw new TypeError(`${String(value)} is no JSON`);
  return JSON.stringify(value);
}

const SCALARS: ReadonlySet<string> = new Set(["string", "boolean"]);

/** Whether a value is a list, for the type's sake: `Array.isArray` does not know of `readonly`. */
export function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
