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
const bytes = Buffer.alloc(16);
const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** The id as people see it, a TypeID: `run_01k…`. */
export function showId(kind: IdKind, id: string): string {
  const prefix = ID_PREFIXES[kind];
  if (!UUID.test(id)) return TypeID.fromUUID(prefix, id).toString();
  // By hand, since every call and every line of a log has one: the first byte, then five at a time.
  bytes.write(id.replaceAll("-", ""), "hex");
  let shown = `${prefix}_${PAIRS[view.getUint8(0)]}`;
  for (let at = 1; at < bytes.length; at += 5) {
    const left = view.getUint32(at) >>> 12;
    const right = view.getUint32(at + 1) & 0xf_ff_ff;
    shown += `${PAIRS[left >> 10]}${PAIRS[left & 1_023]}${PAIRS[right >> 10]}${PAIRS[right & 1_023]}`;
  }
  return shown;
}

/** A new operation id, in the form in which it is sent with every attempt of its call. */
export function newOperationId(): string {
  return showId("operation", newId());
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
