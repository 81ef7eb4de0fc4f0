import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Statement, Store } from "./db.ts";

/** How a batch meets a row that somebody else is moving: it waits for it, or passes over it. */
export type RowLock = "wait" | "skip";

/** How a failed statement is met, by its SQLSTATE. */
export type FailureKind =
  /** The data is refused: repeating is useless. */
  | "data"
  /** A deadlock, a serialization failure, a lock not granted in time: the same statement again. */
  | "repeat"
  /** The connection broke, or the server is going down or is no primary any more: nobody knows whether it took effect. */
  | "connection"
  /** The server has no room: back off, claim nothing. */
  | "resources"
  | "other";

const REPEAT_CODES = new Set(["40P01", "40001", "55P03"]);
/** Read-only after a failover: the connection leads to a server that is a standby now; the pool drops it. */
const READ_ONLY = "25006";
const REPEATS = 5;
const FIRST_PAUSE_MS = 10;

/** Classes an error of a statement by its SQLSTATE, never by its text. What the server did not say is a broken connection. */
export function failureKind(error: unknown): FailureKind {
  if (PROGRAM_ERRORS.some((each) => error instanceof each)) return "other";
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return "connection";
  const { code } = error;
  if (REPEAT_CODES.has(code)) return "repeat";
  const group = code.slice(0, 2);
  // 54: what it says is too large, for an index for instance; as much the data's doing.
  if (group === "22" || group === "23" || group === "54") return "data";
  if (group === "08" || group === "57" || code === READ_ONLY) return "connection";
  return group === "53" ? "resources" : "other";
}

/** Mistakes of this program: no statement was sent. */
const PROGRAM_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError] as const;

/** The name of the constraint that refused a row, or null. */
export function constraintOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.constraint ?? null) : null;
}

/** Runs one statement, again where its code says that it took no effect and may now succeed. */
export async function execute<Row extends pg.QueryResultRow>(
  store: Store,
  statement: Statement,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await executeOnce<Row>(store, statement, values);
    } catch (error) {
      if (failureKind(error) !== "repeat" || tries >= REPEATS) throw error;
      await sleep(FIRST_PAUSE_MS * 2 ** tries);
    }
  }
}

/**
 * Runs one statement once: for a batch whose items can be settled alone. Repeated, what it has waited for in vain would keep
 * all of it waiting again.
 */
export async function executeOnce<Row extends pg.QueryResultRow>(
  store: Store,
  { name, text }: Statement,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  const config = { text, values: [...values], ...(store.named ? { name } : {}) };
  return (await store.pool.query<Row>(config)).rows;
}

/**
 * Runs a statement over a batch. Where the batch is refused (its data, its size, or what nobody has foreseen), it is
 * split until only the bad item is alone; the others take effect.
 *
 * @returns for each item, in order, the rows that name it by `ord`, or the error that it alone caused.
 */
export async function executeBatch<Item, Row extends { ord: number }>(
  items: readonly Item[],
  run: (items: readonly { ord: number; item: Item }[]) => Promise<readonly Row[]>,
): Promise<readonly (readonly Row[] | Error)[]> {
  const results: (Row[] | Error)[] = items.map(() => []);
  const attempt = async (part: readonly { ord: number; item: Item }[]): Promise<void> => {
    try {
      const rows = await run(part);
      for (const row of rows) {
        const own = results[row.ord];
        if (Array.isArray(own)) own.push(row);
      }
    } catch (error) {
      if (!mayBeOneItems(error) || part.length === 1) {
        for (const { ord } of part) results[ord] = asError(error);
        return;
      }
      const middle = Math.ceil(part.length / 2);
      await attempt(part.slice(0, middle));
      await attempt(part.slice(middle));
    }
  };
  if (items.length > 0) await attempt(items.map((item, ord) => ({ ord, item })));
  return results;
}

/** Whether an item that met this in a batch, or nothing, is to be tried alone. */
export function isSplitOff(missed: Error | null): boolean {
  return missed === null || failureKind(missed) === "repeat";
}

function mayBeOneItems(error: unknown): boolean {
  const kind = failureKind(error);
  return kind === "data" || kind === "other";
}

/** Whatever was thrown, as an Error. */
export function asError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Error("The database reported something that is no error", { cause: error });
}
