import type { JsonObject } from "@holdpoint/core";
import { encode } from "./codec.ts";

/** Arguments beyond this many bytes are refused. */
export const ARGUMENTS_LIMIT_BYTES = 256 * 2 ** 10;
const DEPTH_LIMIT = 64;
const SHOWN_LIMIT = 80;

/** What a model wrote as a call's arguments: an object, or what is wrong with it, said so that a model can mend it. */
export type ParsedArguments =
  | { readonly args: JsonObject; readonly problem: null }
  | { readonly args: null; readonly problem: string };

/**
 * Reads a call's arguments strictly. Nothing is guessed: text that is cut or no object, keys that are there twice or
 * could reach a prototype, and numbers that would lose digits are refused, and so is what is too large or too deep.
 * Only empty text is taken for `{}`, which is how some providers write a call without arguments.
 */
export function parseArguments(text: string): ParsedArguments {
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > ARGUMENTS_LIMIT_BYTES)
    return refused(`The arguments have ${sizeBytes} bytes; at most ${ARGUMENTS_LIMIT_BYTES} are taken.`);
  if (text.trim() === "") return { args: {}, problem: null };
  const value = parse(text);
  if (value === undefined) return refused("The arguments are not valid JSON. Send one complete JSON object.");
  if (value === null || typeof value !== "object" || Array.isArray(value))
    return refused(`The arguments must be a JSON object, not ${kindOf(value)}.`);
  const problem = problemIn(text);
  return problem === null ? { args: value as JsonObject, problem: null } : refused(problem);
}

/**
 * Freezes what a tool's schema made of the arguments: as it is stored, shown, hashed, and later given to the tool by
 * `decode`. A schema may give Dates and bigints; what is no data is refused.
 */
export function freezeArguments(data: unknown): ParsedArguments {
  const { json, isLossy, isCut } = encode(data);
  if (json === null || typeof json !== "object" || Array.isArray(json))
    return refused(`The tool's schema must give an object, not ${kindOf(json)}.`);
  if (isLossy || isCut) return refused("The tool's schema made something of the arguments that cannot be stored.");
  return { args: json as JsonObject, problem: null };
}

function refused(problem: string): ParsedArguments {
  return { args: null, problem };
}

/** Undefined where the text is no JSON: no JSON text means that. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}

/** An object or a list that the scan is in. */
interface Level {
  /** Keys so far; null in a list. */
  readonly keys: Set<string> | null;
  key: string;
  expectsKey: boolean;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\],]/g;

/** What a text that is JSON says and its value does not: read from the text, since parsing has lost it. */
function problemIn(text: string): string | null {
  const levels: Level[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    const problem = take(token, levels);
    if (problem !== null) return problem;
  }
  return null;
}

function take(token: string, levels: Level[]): string | null {
  const level = levels.at(-1);
  const start = token.charAt(0);
  if (start === "{" || start === "[") return open(start === "{", levels);
  if (start === "}" || start === "]") levels.pop();
  else if (level !== undefined && start === ",") level.expectsKey = level.keys !== null;
  else if (level !== undefined && start === '"') return level.expectsKey ? takeKey(token, levels, level) : null;
  else return start === "," || keepsDigits(token) ? null : lossy(token, levels);
  return null;
}

function open(isObject: boolean, levels: Level[]): string | null {
  const above = levels.at(-1);
  if (above !== undefined && above.keys !== null && above.key === "constructor") return forbidden("constructor");
  if (levels.length >= DEPTH_LIMIT) return `The arguments are nested deeper than ${DEPTH_LIMIT} levels.`;
  levels.push({ keys: isObject ? new Set() : null, key: "", expectsKey: isObject });
  return null;
}

function takeKey(token: string, levels: readonly Level[], level: Level): string | null {
  // A token of text that is JSON, so a string with its escapes.
  level.key = JSON.parse(token) as string;
  level.expectsKey = false;
  if (level.key === "__proto__") return forbidden(level.key);
  if (level.keys?.has(level.key) === true) return `The arguments have the key "${pathOf(levels)}" twice.`;
  level.keys?.add(level.key);
  return null;
}

function forbidden(key: string): string {
  return `The arguments have the key "${key}", which is not allowed.`;
}

function lossy(token: string, levels: readonly Level[]): string {
  const number = token.slice(0, SHOWN_LIMIT);
  return (
    `The number ${number} at "${pathOf(levels)}" would lose digits. ` +
    "Send such a number as a string, or with at most 15 significant digits."
  );
}

function pathOf(levels: readonly Level[]): string {
  const path = levels.map(({ keys, key }) => (keys === null ? "[]" : key)).join(".");
  return path.slice(0, SHOWN_LIMIT).toWellFormed();
}

/** Whether a number in JSON means the same after it was read: whole numbers within 2^53, all others to the last digit. */
function keepsDigits(token: string): boolean {
  const value = Number(token);
  if (/^-?\d+$/.test(token)) return Number.isSafeInteger(value);
  return Number.isFinite(value) && decimal(token) === decimal(String(value));
}

/** One spelling for each decimal number: its digits without zeros at the ends, and their exponent. */
function decimal(token: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = NUMBER.exec(token) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  const places = Number(exponent) - fraction.length + (digits.length - kept.length);
  return kept === "" ? "0" : `${sign}${kept}e${places}`;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
