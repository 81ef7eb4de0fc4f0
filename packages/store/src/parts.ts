// Statements that are made of parts. A batch gets the statement that has the parts which its rows need, and no other: each
// part of a plan costs its start-up at every execution, whether it has something to do or not.
import { type Statement, statement } from "./db.ts";

/** Columns of a batch's input, by their SQL types. */
export type Columns = Readonly<Record<string, string>>;

// A list that comes in is expected to have a hundred rows, and for a hundred rows a plan that was made while a table was small
// reads all of it, however much it has grown since. These conditions hold always; they say that the rows are few, so that each
// goes to its row by its id.

/** Says that the rows are few: for a number of their places. */
export const few = (place: string): string => `${place} between 0 and 1000000`;

/** Says that the rows are few: for an id of theirs. */
export const fewIds = (id: string): string =>
  `${id} between '00000000-0000-0000-0000-000000000000' and 'ffffffff-ffff-ffff-ffff-ffffffffffff'`;

/** What a statement over a batch does only where a row of it asks for that. */
export interface Part {
  /** What it reads of the input; `moved` hands that on to it. */
  readonly columns: Columns;
  /** Its common table expressions, with commas between them; they read `moved`. Empty for what is woven into the core. */
  readonly text: string;
  /** The part whose expressions it reads as well: comes with it. */
  readonly needs?: string;
}

/** A statement in all its compositions, each made once. */
export interface Composed<Name extends string> {
  /** The statement for rows that need these parts, and the columns of its input, in order. */
  with(parts: ReadonlySet<Name>): { readonly statement: Statement; readonly columns: readonly string[] };
}

export interface Composition<Name extends string> {
  readonly verb: string;
  /** What the core reads of the input. */
  readonly core: Columns;
  readonly parts: Readonly<Record<Name, Part>>;
  readonly text: (made: Made<Name>) => string;
}

/** What a composition's text is made with. */
export interface Made<Name extends string> {
  readonly has: (part: Name) => boolean;
  /** The batch as a common table expression, in the order in which its rows are locked. */
  readonly input: string;
  /** The columns of the parts, as the end of a select list over the row that is named so: `, i."steps", …`. */
  readonly handedOn: (row: string) => string;
  /** The parts' expressions, each with a comma before it. */
  readonly texts: string;
}

/** Composes a statement on demand. */
export function compose<Name extends string>(composition: Composition<Name>): Composed<Name> {
  const { verb, core, parts, text } = composition;
  const names = Object.keys(parts) as Name[];
  const known = new Map<string, ReturnType<Composed<Name>["with"]>>();
  const make = (chosen: readonly Name[]) => {
    const ofParts: Columns = Object.assign({}, ...chosen.map((name) => parts[name].columns));
    const columns = { ...core, ...ofParts };
    const made: Made<Name> = {
      has: (part) => chosen.includes(part),
      input: `input as materialized (
  select * from jsonb_to_recordset($2::jsonb) as i(${Object.entries(columns)
    .map(([name, type]) => `"${name}" ${type}`)
    .join(", ")})
  where ${few("i.ord")} order by i."runId"
)`,
      handedOn: (row) =>
        Object.keys(ofParts)
          .map((name) => `, ${row}."${name}"`)
          .join(""),
      texts: chosen.map((name) => (parts[name].text === "" ? "" : `,\n${parts[name].text}`)).join(""),
    };
    return { statement: statement(verb, text(made)), columns: Object.keys(columns) };
  };
  return {
    with(needed) {
      const implied = new Set<string | undefined>([...needed].map((name) => parts[name].needs));
      const chosen = names.filter((name) => needed.has(name) || implied.has(name));
      const key = chosen.join(" ");
      const made = known.get(key) ?? make(chosen);
      known.set(key, made);
      return made;
    },
  };
}

/** The rows of a batch as the input of its statement: each with the columns that the statement reads. */
export function rowsOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
): readonly Readonly<Record<string, unknown>>[] {
  return rows.map((row) => {
    const input: Record<string, unknown> = {};
    for (const column of columns) {
      // What is not there is null.
      if (row[column] !== undefined && row[column] !== null) input[column] = row[column];
    }
    return input;
  });
}
