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

/** A new id: a UUIDv7, ordered by the time it was made. Minted here, since `uuidv7()` exists only in Postgres 18. */
export function newId(): string {
  return v7();
}

/** The id as people see it: `run_01k…`. */
export function showId(kind: IdKind, id: string): string {
  return TypeID.fromUUID(ID_PREFIXES[kind], id).toString();
}

/** A new operation id, in the form in which it is sent with every attempt of its call. */
export function newOperationId(): string {
  return showId("operation", newId());
}

const LOGGED: Readonly<Record<string, IdKind>> = {
  runId: "run",
  sessionId: "session",
  callId: "call",
  attemptId: "attempt",
  approvalId: "approval",
  workerId: "worker",
  scheduleId: "schedule",
  webhookId: "webhook",
  deliveryId: "delivery",
};
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A log line's fields with the ids in them as people see them, so that what the api shows can be found in the logs. */
export function showIds(line: Record<string, unknown>): Record<string, unknown> {
  const shown = Object.entries(line).map(([field, value]) => {
    const kind = LOGGED[field];
    return [field, kind !== undefined && typeof value === "string" && UUID.test(value) ? showId(kind, value) : value];
  });
  return Object.fromEntries(shown);
}
