import { randomFillSync } from "node:crypto";
import { TypeID } from "typeid-js";
import { v7 } from "uuid";

/** The kinds of things that have ids, each with the prefix under which its ids are shown. */
export const ID_PREFIXES = {
  run: "run",
  session: "ses",
  call: "call",
  operation: "op",
  attempt: "att",
  approval: "apr",
  worker: "wrk",
  schedule: "sch",
  memory: "mem",
  webhook: "whk",
  delivery: "dlv",
} as const;
export type IdKind = keyof typeof ID_PREFIXES;

/** Asking the system for random bytes costs more than everything else about an id: they are taken for many at once. */
const RANDOM_BYTES = 16;
const pool = new Uint8Array(256 * RANDOM_BYTES);
let used = pool.length;

function randomBytes(): Uint8Array {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += RANDOM_BYTES;
  return pool.subarray(used - RANDOM_BYTES, used);
}

/** The millisecond of the latest id, and its place within that one. */
let msecs = 0;
let seq = 0;

/**
 * A new id: a UUIDv7, ordered by the time it was made, and after every other of this process. Minted here, since
 * `uuidv7()` exists only in Postgres 18.
 */
export function newId(): string {
  const random = randomBytes();
  const nowMs = Date.now();
  if (nowMs > msecs) {
    msecs = nowMs;
    // A fresh place, with room for a thousand million ids behind it.
    seq = new DataView(random.buffer, random.byteOffset).getUint32(6) & 0x3f_ff_ff_ff;
  } else {
    // The same millisecond, or a clock that was put back: behind the latest one all the same.
    seq += 1;
  }
  return v7({ random, msecs, seq });
}

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
/** Two characters of a TypeID for each ten bits. */
const PAIRS = Array.from({ length: 1_024 }, (_, bits) => `${ALPHABET[bits >> 5]}${ALPHABET[bits & 31]}`);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** What each hexadecimal digit says, by its character code. */
const NIBBLES = Uint8Array.from({ length: 128 }, (_, code) => Number.parseInt(String.fromCharCode(code), 16) || 0);
/** Where the digits of a UUID stand, after the first two. */
const PLACES = Uint8Array.from(
  [..."00000000-0000-0000-0000-000000000000"].flatMap((each, place) => (each === "-" ? [] : [place])).slice(2),
);

/** The id as people see it, a TypeID: `run_01k…`. */
export function showId(kind: IdKind, id: string): string {
  const prefix = ID_PREFIXES[kind];
  if (!UUID.test(id)) return TypeID.fromUUID(prefix, id).toString();
  // By hand, since every call and every line of a log has one: two digits, then five at a time.
  let shown = `${prefix}_${PAIRS[(nibble(id, 0) << 4) | nibble(id, 1)]}`;
  for (let at = 0; at < PLACES.length; at += 5) {
    let bits = 0;
    for (let digit = at; digit < at + 5; digit += 1) bits = (bits << 4) | nibble(id, PLACES[digit] as number);
    shown += `${PAIRS[bits >> 10]}${PAIRS[bits & 1_023]}`;
  }
  return shown;
}

function nibble(id: string, place: number): number {
  return NIBBLES[id.charCodeAt(place)] as number; // the characters are checked
}

/** The operation id of a call, in the form in which it is sent with every attempt of it: the call's own id, as one. */
export function operationIdOf(callId: string): string {
  return showId("operation", callId);
}

const LOGGED: readonly (readonly [string, IdKind])[] = Object.entries({
  runId: "run",
  sessionId: "session",
  callId: "call",
  attemptId: "attempt",
  approvalId: "approval",
  workerId: "worker",
  scheduleId: "schedule",
  webhookId: "webhook",
  deliveryId: "delivery",
} as const);

/** A log line's fields with the ids in them as people see them, so that what the api shows can be found in the logs. */
export function showIds(line: Record<string, unknown>): Record<string, unknown> {
  const shown = { ...line };
  for (const [field, kind] of LOGGED) {
    const value = line[field];
    if (typeof value === "string" && UUID.test(value)) shown[field] = showId(kind, value);
  }
  return shown;
}
