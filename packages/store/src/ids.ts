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
