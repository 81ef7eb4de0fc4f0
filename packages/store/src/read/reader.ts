import { type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Store } from "../db.ts";

/** The builder over the store's pool. It holds nothing, so each read makes its own. */
export const reader = (store: Store) => drizzle({ client: store.pool });

/** The most that one page of any list holds. */
export const MAX_PAGE = 200;

/** Which part of a list is wanted. */
export interface PageRequest {
  /** How many at most, 1 to 200. */
  readonly limit: number;
  /** The `next` of the page before; null for the first. */
  readonly after: string | null;
}

/** A part of a list, and what to ask for to get the part after it; null at the end. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** How many rows to ask for: one more than the page holds tells whether another follows. */
export function rowsFor({ limit }: PageRequest): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new RangeError(`A page has 1 to ${MAX_PAGE} items, not ${limit}`);
  }
  return limit + 1;
}

/** Cuts the rows that `rowsFor` asked for to a page. */
export function pageOf<Item>(
  items: readonly Item[],
  { limit }: PageRequest,
  cursorOf: (last: Item) => string,
): Page<Item> {
  const kept = items.slice(0, limit);
  const last = kept.at(-1);
  return { items: kept, next: items.length > limit && last !== undefined ? cursorOf(last) : null };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A cursor that is an id; null for one that no list of ours gave. */
export function idCursor(cursor: string): string | null {
  return UUID.test(cursor) ? cursor : null;
}

/** The condition that an instant lies before the present on the database's clock. */
export const isPast = (instant: SQL | SQL.Aliased | { getSQL(): SQL }): SQL<boolean> =>
  sql<boolean>`coalesce(${instant} < holdpoint.now(), false)`;

/** A column by its whole name: for sub-selects among the fields of a select over one table, where names stand alone. */
export const qualified = (column: PgColumn): SQL => sql`${column.table}.${sql.identifier(column.name)}`;

/** Milliseconds since the epoch of a nullable column. */
export function msOf(at: Date): number;
export function msOf(at: Date | null): number | null;
export function msOf(at: Date | null): number | null {
  return at === null ? null : at.getTime();
}
