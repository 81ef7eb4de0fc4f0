import { types } from "node:util";
import { type JsonValue, storable, storableText } from "@holdpoint/core";

/**
 * The boundary between tools and the database: what a tool may give, what of it is stored, and what comes back.
 *
 * | a tool gives | is stored as | comes back as |
 * | --- | --- | --- |
 * | text | itself; NUL and lone surrogates become U+FFFD | that text |
 * | true, false, null, a finite number | itself (-0 as 0) | itself |
 * | a Date | `{"$date":"2026-10-21T07:28:00.000Z"}` | a Date |
 * | a bigint of at most 4000 hexadecimal digits | `{"$bigint":"9007199254740993"}` | a bigint |
 * | a Uint8Array (a Buffer), an ArrayBuffer | `{"$bytes":"aGk="}` | a Uint8Array |
 * | undefined | nothing in an object; null in a list, or alone | |
 * | an object with `toJSON` | what that gives | |
 * | an instance of a class | its own enumerable properties | a plain object |
 * | an object whose only key is one of these tags | itself, with one more `$` before the key | itself |
 * | NaN, Infinity, a function, a symbol, a Map, a Set, an Error, a cycle … | `{"$not_stored":"a Map of 2 entries"}` | the same |
 *
 * Nothing that a tool gives makes this fail: an outcome is always stored.
 */
export type Storable =
  | string
  | number
  | boolean
  | null
  | undefined
  | bigint
  | Date
  | Uint8Array
  | ArrayBuffer
  | readonly Storable[]
  | { readonly [key: string]: Storable };

/** A value as it is stored, and what had to be done to it. */
export interface Encoded {
  readonly json: JsonValue;
  /** Text was changed: it held NUL or lone surrogates. */
  readonly isReplaced: boolean;
  /** It goes on, but what follows was left out: there was too much. */
  readonly isCut: boolean;
  /** Something in it was no data, and a note stands in its place. */
  readonly isLossy: boolean;
}

/** What is encoded of one value: this many characters of text, and less where there are many values. */
const ENCODE_LIMIT = 16 * 2 ** 20;
/** What each value counts, beside its text. */
const VALUE_COST = 16;
const DEPTH_LIMIT = 100;
const BIGINT_HEX_DIGITS = 4_000;
const NOTE_LIMIT = 200;

const DATE = "$date";
const BIGINT = "$bigint";
const BYTES = "$bytes";
const NOT_STORED = "$not_stored";
const TAGGED = /^\$(date|bigint|bytes|not_stored)$/;
/** A tag, and what an object's own key of that name is stored as. */
const TAG_LIKE = /^\$+(date|bigint|bytes|not_stored)$/;
const REST = "the rest: there was too much";

/** What a tool gave, as it is stored. Takes whatever there is; see {@link Storable} for what becomes of it. */
export function encode(value: unknown, limit = ENCODE_LIMIT): Encoded {
  const walk: Walk = { left: limit, isReplaced: false, isCut: false, isLossy: false, above: [] };
  const json = encodeValue(value, walk);
  const { isReplaced, isCut, isLossy } = walk;
  return { json: isReplaced ? storable(json) : json, isReplaced, isCut, isLossy };
}

/** What a tool gave, back from what is stored. Text that only looks like a tag stays what it is. */
export function decode(json: JsonValue): Storable {
  if (json === null || typeof json !== "object") return json;
  if (isList(json)) return json.map(decode);
  const tagged = tagOf(json);
  if (tagged === null) return mapObject(json, decode);
  const { tag, value } = tagged;
  if (!TAGGED.test(tag)) return Object.fromEntries([[tag.slice(1), decode(value)]]);
  return decodeTagged(tag, value) ?? mapObject(json, decode);
}

/**
 * What a model is shown of a stored value: dates and bigints as text, of binary data its size, notes as they are.
 *
 * @param limit  No more than this many characters are needed: of what is written with sorted keys, the beginning.
 */
export function toPlain(json: JsonValue, limit = Number.POSITIVE_INFINITY): JsonValue {
  return plainOf(json, { left: limit });
}

function plainOf(json: JsonValue, room: { left: number }): JsonValue {
  room.left -= typeof json === "string" ? json.length : 1;
  if (json === null || typeof json !== "object") return json;
  if (isList(json)) return plainList(json, room);
  const tagged = tagOf(json);
  if (tagged !== null && TAGGED.test(tagged.tag)) return plainTag(tagged) ?? json;
  const entries = tagged === null ? Object.entries(json) : [[tagged.tag.slice(1), tagged.value] as const];
  const shown: (readonly [string, JsonValue])[] = [];
  for (const [key, value] of entries.sort(([left], [right]) => (left < right ? -1 : 1))) {
    if (room.left < 0) break;
    room.left -= key.length;
    shown.push([key, plainOf(value, room)]);
  }
  return Object.fromEntries(shown);
}

function plainList(list: readonly JsonValue[], room: { left: number }): JsonValue {
  const shown: JsonValue[] = [];
  for (const item of list) {
    if (room.left < 0) break;
    shown.push(plainOf(item, room));
  }
  return shown;
}

function plainTag({ tag, value }: { readonly tag: string; readonly value: JsonValue }): string | null {
  if (tag === NOT_STORED) return `[not stored: ${String(value)}]`;
  const decoded = decodeTagged(tag, value);
  if (decoded === null) return null;
  return decoded instanceof Uint8Array ? `[${decoded.byteLength} bytes of binary data]` : String(value);
}

/** One encoding on its way. */
interface Walk {
  left: number;
  isReplaced: boolean;
  isCut: boolean;
  isLossy: boolean;
  /** The objects that the value is in. */
  readonly above: object[];
}

function encodeValue(value: unknown, walk: Walk): JsonValue {
  walk.left -= VALUE_COST;
  switch (typeof value) {
    case "string":
      return encodeText(value, walk);
    case "number":
      return Number.isFinite(value) ? value + 0 : notStored(String(value), walk);
    case "boolean":
      return value;
    case "bigint":
      return value.toString(16).length > BIGINT_HEX_DIGITS
        ? notStored("a bigint of too many digits", walk)
        : { [BIGINT]: value.toString() };
    case "undefined":
      return null;
    case "function":
    case "symbol":
      return notStored(`a ${typeof value}`, walk);
    case "object":
      return value === null ? null : encodeObject(value, walk);
  }
}

function encodeText(text: string, walk: Walk): string {
  walk.left -= text.length;
  const kept = walk.left < 0 ? cutText(text, Math.max(0, text.length + walk.left)) : text;
  walk.isCut ||= kept.length < text.length;
  walk.isReplaced ||= storableText(kept) !== kept;
  return kept;
}

function encodeObject(value: object, walk: Walk): JsonValue {
  if (walk.above.includes(value)) return notStored("a cycle: the object is inside itself", walk);
  if (walk.above.length >= DEPTH_LIMIT) return notStored(`what is deeper than ${DEPTH_LIMIT} levels`, walk);
  walk.above.push(value);
  try {
    return encodeMembers(value, walk);
  } catch {
    // Whatever a getter, a proxy or toJSON throws: the rest of the outcome is stored all the same.
    return notStored("an object that could not be read", walk);
  } finally {
    walk.above.pop();
  }
}

function encodeMembers(value: object, walk: Walk): JsonValue {
  if (Array.isArray(value)) return encodeList(value, walk);
  if (types.isDate(value))
    return Number.isNaN(value.getTime()) ? notStored("an invalid Date", walk) : { [DATE]: value.toISOString() };
  if (types.isUint8Array(value))
    return encodeBytes(Buffer.from(value.buffer, value.byteOffset, value.byteLength), walk);
  if (types.isAnyArrayBuffer(value)) return encodeBytes(Buffer.from(value), walk);
  const unstorable = unstorableKind(value);
  if (unstorable !== null) return notStored(unstorable, walk);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const json: unknown = value.toJSON();
    if (json !== value) return encodeValue(json, walk);
  }
  return encodeProperties(value, walk);
}

function encodeList(list: readonly unknown[], walk: Walk): JsonValue {
  const stored: JsonValue[] = [];
  for (const item of list) {
    const isRest = isSpent(walk);
    stored.push(isRest ? notStored(REST, walk) : encodeValue(item, walk));
    if (isRest) break;
  }
  return stored;
}

function encodeProperties(value: object, walk: Walk): JsonValue {
  const stored: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    if (isSpent(walk)) {
      put(stored, NOT_STORED, REST);
      return stored;
    }
    const item = read(value, key);
    if (item.kind === "unreadable") put(stored, key, notStored("a property that could not be read", walk));
    else if (item.value !== undefined) put(stored, encodeText(key, walk), encodeValue(item.value, walk));
  }
  const tagged = tagOf(stored);
  return tagged === null ? stored : { [`$${tagged.tag}`]: tagged.value };
}

function read(value: object, key: string): { kind: "read"; value: unknown } | { kind: "unreadable" } {
  try {
    return { kind: "read", value: Reflect.get(value, key) };
  } catch {
    return { kind: "unreadable" };
  }
}

function encodeBytes(bytes: Buffer, walk: Walk): JsonValue {
  const length = Math.ceil(bytes.byteLength / 3) * 4;
  if (length > walk.left) {
    walk.isCut = true;
    return notStored(`${bytes.byteLength} bytes of binary data: there was too much`, walk);
  }
  walk.left -= length;
  return { [BYTES]: bytes.toString("base64") };
}

function isSpent(walk: Walk): boolean {
  walk.isCut ||= walk.left <= 0;
  return walk.left <= 0;
}

/** What an object is whose own properties do not say what is in it; null for any other. */
function unstorableKind(value: object): string | null {
  if (types.isMap(value)) return `a Map of ${value.size} entries`;
  if (types.isSet(value)) return `a Set of ${value.size} values`;
  if (types.isNativeError(value)) return `${value.name}: ${value.message}`;
  if (types.isPromise(value)) return "a Promise: it was not awaited";
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes of a kind that cannot come back`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return null;
  if (Object.keys(value).length > 0 || "toJSON" in value) return null;
  return `an object of class ${value.constructor?.name || "?"} without properties of its own`;
}

function notStored(what: string, walk: Walk): JsonValue {
  walk.isLossy = true;
  return { [NOT_STORED]: storableText(cutText(what, NOTE_LIMIT)) };
}

/** What a tag stands for; null where it stands for nothing but itself. */
function decodeTagged(tag: string, value: JsonValue): Date | bigint | Uint8Array | null {
  if (typeof value !== "string") return null;
  if (tag === DATE && ISO_DATE.test(value)) {
    const date = new Date(value);
    return Number.isNaN(date.getTime()) ? null : date;
  }
  if (tag === BIGINT && DECIMAL.test(value)) return BigInt(value);
  return tag === BYTES && BASE64.test(value) ? new Uint8Array(Buffer.from(value, "base64")) : null;
}

const ISO_DATE = /^([+-]\d{2})?\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const DECIMAL = /^-?\d{1,5000}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function tagOf(json: { readonly [key: string]: JsonValue }): { tag: string; value: JsonValue } | null {
  const [tag, second] = Object.keys(json);
  if (tag === undefined || second !== undefined || !TAG_LIKE.test(tag)) return null;
  return { tag, value: json[tag] as JsonValue };
}

function mapObject<To>(json: { readonly [key: string]: JsonValue }, to: (value: JsonValue) => To) {
  const mapped: Record<string, To> = {};
  for (const key of Object.keys(json)) put(mapped, key, to(json[key] as JsonValue));
  return mapped;
}

/** Gives an object a property of its own, whatever its name: a plain assignment to this one would change its prototype. */
function put<Value>(object: Record<string, Value>, key: string, value: Value): void {
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

function isList(json: JsonValue): json is readonly JsonValue[] {
  return Array.isArray(json);
}

/** At most this many UTF-16 units of a text, never half of a pair. */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = length > 0 && PAIR.test(text.slice(length - 1, length + 1));
  return text.slice(0, isHalf ? length - 1 : length);
}

const PAIR = /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/;
