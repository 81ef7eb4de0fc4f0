// A look at what is stored, a part of it in each pass: for faults of which no row tells by itself. A pass costs the same
// however much there is; what there is, is gone through in a round of passes.

import { type Statement, statement } from "./db.ts";

/** Where a round stands: the last id that was looked at, of each of its lists. One that is not named begins anew. */
export type Place = Readonly<Record<string, string>>;

/** What a pass looks at: the next part of a round, or everything, for whoever has to know all of it. */
export type Part = { readonly after: Place } | "everything";

/** What a pass has found in its part, and where the next one goes on. */
export interface Looked<Found> {
  readonly found: readonly Found[];
  readonly next: Place;
}

/**
 * How many rows of each list a part has. Those of a large fleet lie on the disk, so that few of them are most of what a
 * pass costs; where there is little, it is everything. A thousand are gone through in a hundred passes.
 */
export const PART_ROWS = 10;

/** One statement for a part, one for everything. The text says how many rows: a plan for any number is made anew each time. */
export interface PartStatement {
  readonly part: Statement;
  readonly everything: Statement;
}

/** What a statement about a part is put together from. */
export interface PartText {
  /** A list that is gone through by its ids, as a CTE: `from` ends with a condition. */
  readonly list: (name: string, list: List) => string;
  /** Where these lists go on: a part that was not full was the last of its round. */
  readonly next: (names: readonly string[]) => string;
}

export interface List {
  readonly id: string;
  readonly columns: string;
  readonly from: string;
  /** The order of the ids as an index has it, where that begins with another column. */
  readonly order?: string;
}

/** Makes the statements of a verb; the place is their last parameter, `$3`. */
export function partStatement(verb: string, textOf: (text: PartText) => string): PartStatement {
  return {
    part: statement(`${verb}_part`, textOf({ list: partOf, next: nextOf })),
    everything: statement(verb, textOf({ list: allOf, next: () => "'{}'::jsonb" })),
  };
}

/** The statement for a part, and its parameters after these two. */
export function sentFor(which: PartStatement, part: Part, values: readonly [unknown, unknown]): [Statement, unknown[]] {
  return part === "everything"
    ? [which.everything, [...values]]
    : [which.part, [...values, JSON.stringify(part.after)]];
}

function allOf(name: string, { id, columns, from, order = id }: List): string {
  return `${name} as materialized (
     select ${id} as id${columns} from ${from}
     order by ${order}
   )`;
}

function partOf(name: string, { id, columns, from, order = id }: List): string {
  return `${name} as materialized (
     select ${id} as id${columns} from ${from}
     and ${id} > coalesce(($3::jsonb->>'${name}')::uuid, '00000000-0000-0000-0000-000000000000')
     order by ${order} limit ${PART_ROWS}
   )`;
}

function nextOf(names: readonly string[]): string {
  const last = (name: string) => `'${name}', (select id from ${name} order by id offset ${PART_ROWS - 1} limit 1)`;
  return `jsonb_strip_nulls(jsonb_build_object(${names.map(last).join(", ")}))`;
}
